"""Models in files: what is one, what is wrong with it, and what is asked of the server instead of the model."""

import os
from pathlib import Path

import pytest
from conftest import RunCommand

from ctxrel.evaluators.errors import UsageError
from ctxrel.evaluators.judges import llamacpp, machine, model_file
from ctxrel.evaluators.judges.llamacpp import ServerSettings, find_local_model
from ctxrel.evaluators.judges.model_file import in_bytes, is_model_file, read_model_file


def gguf(name: str, content: bytes = b"") -> Path:
    path = Path(name)
    path.write_bytes(b"GGUF" + content)
    return path


@pytest.fixture
def engine(monkeypatch: pytest.MonkeyPatch) -> None:
    """As if llama.cpp were installed."""
    monkeypatch.setattr(llamacpp, "find_spec", lambda _: True)


def test_what_is_a_model_file() -> None:
    """A name that ends in .gguf and is a file, or is written as a path; any other is an endpoint's."""
    gguf("here.GGUF")
    assert [is_model_file(name) for name in ("here.GGUF", "./gone.gguf", "/a/b.gguf")] == [True] * 3
    assert [is_model_file(name) for name in ("gone.gguf", "gpt-5-mini", "org/model", "")] == [False] * 4


def test_the_content_is_the_model() -> None:
    """Name and place are chance; one other byte is another model."""
    first = read_model_file(str(gguf("a.gguf", b"x" * 3_000_000)))
    Path("folder").mkdir()
    moved = read_model_file(str(Path("a.gguf").rename("folder/b.gguf")))
    assert moved.digest == first.digest != read_model_file(str(gguf("a.gguf", b"x" * 2_999_999 + b"y"))).digest
    assert (first.description, moved.description) == ("a.gguf (3.0 MB)", "b.gguf (3.0 MB)")


def test_parts() -> None:
    """A model in parts is all of them."""
    for number in (1, 2):
        gguf(f"m-0000{number}-of-00002.gguf", bytes([number]))
    whole = read_model_file("m-00001-of-00002.gguf")
    gguf("m-00002-of-00002.gguf", b"other")
    assert read_model_file("m-00001-of-00002.gguf").digest != whole.digest
    assert whole.size == 10
    with pytest.raises(UsageError, match="name the first one"):
        read_model_file("m-00002-of-00002.gguf")
    Path("m-00002-of-00002.gguf").unlink()
    with pytest.raises(UsageError, match=r"m-00002-of-00002.gguf': No such file"):
        read_model_file("m-00001-of-00002.gguf")


def test_no_model() -> None:
    """What cannot be a model is refused with one sentence."""
    Path("text.gguf").write_text("hello", encoding="utf-8")
    Path("empty.gguf").touch()
    Path("folder.gguf").mkdir()
    for name, words in {
        "./gone.gguf": "No such file or directory; check --model",
        "text.gguf": "is no GGUF",
        "empty.gguf": "is no GGUF",
        "folder.gguf": "Is a directory",
    }.items():
        with pytest.raises(UsageError, match=words):
            read_model_file(name)


def test_too_little_memory(monkeypatch: pytest.MonkeyPatch) -> None:
    """A file larger than the memory is refused before it is read, unless it goes to a graphics card."""
    gguf("huge.gguf")
    os.truncate("huge.gguf", 10**13)
    with pytest.raises(UsageError, match=r"has 10000.0 GB and .* of memory are available.*n_gpu_layers"):
        read_model_file("huge.gguf")
    monkeypatch.setattr(model_file, "_digest", lambda _: "read")
    assert read_model_file("huge.gguf", in_memory=False).digest == "read"


def test_memory_and_processors(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """A container's limits count where they are lower than the machine's."""
    monkeypatch.setattr(machine, "_CGROUP", tmp_path)
    assert machine.usable_cpus() == len(os.sched_getaffinity(0))
    free = machine.available_memory()
    assert free
    for limit, quota in (("max", "max 100000"), ("123456", "150000 100000")):
        (tmp_path / "memory.max").write_text(f"{limit}\n", encoding="ascii")
        (tmp_path / "cpu.max").write_text(f"{quota}\n", encoding="ascii")
    assert (machine.available_memory(), machine.usable_cpus()) == (123456, 1)
    monkeypatch.setattr(machine, "_MEMINFO", tmp_path / "none")
    monkeypatch.setattr(machine, "_CGROUP", tmp_path / "none")
    assert machine.available_memory() is None


@pytest.mark.parametrize(("size", "told"), [(0, "0.0 kB"), (239_296, "239.3 kB"), (4_700_000_000, "4.7 GB")])
def test_in_bytes(size: int, told: str) -> None:
    assert in_bytes(size) == told


@pytest.mark.usefixtures("engine")
def test_parameters_of_the_server() -> None:
    """Some parameters are the server's and no request's; slots and requests in flight are as many."""
    gguf("m.gguf")

    def found(concurrency: int | None = None, **parameters: object) -> llamacpp.LocalModel:
        return find_local_model(
            model="m.gguf", base_url=None, parameters=parameters, concurrency=concurrency, timeout=None
        )

    cpus = machine.usable_cpus()
    assert found().settings == ServerSettings(n_ctx=8192, n_threads=cpus, n_parallel=2)
    assert (found().concurrency, found().timeout) == (2, 600)
    chosen = found(n_ctx=4096, n_threads=3, n_parallel=4, n_gpu_layers=0, seed=7, top_k=None)
    assert chosen.settings == ServerSettings(n_ctx=4096, n_threads=3, n_parallel=4, n_gpu_layers=0)
    assert (chosen.parameters, chosen.concurrency) == ({"seed": 7, "top_k": None}, 4)
    assert found(3).settings.n_parallel == found(3).concurrency == 3
    assert (found(3, n_parallel=2).concurrency, found(1, n_parallel=2).concurrency) == (2, 1)
    for name, value in {"n_ctx": 8, "n_threads": "many", "n_parallel": 0, "n_gpu_layers": 1.5}.items():
        with pytest.raises(UsageError, match=f"the parameter {name} takes a whole number from"):
            found(None, **{name: value})


@pytest.mark.usefixtures("engine")
def test_a_file_and_an_endpoint() -> None:
    """A model file is judged with here and nowhere else."""
    with pytest.raises(UsageError, match="leave out --base-url"):
        find_local_model(model="./m.gguf", base_url="http://x/v1", parameters={}, concurrency=None, timeout=None)


def test_without_the_extra(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without llama.cpp the sentence names what to install."""
    monkeypatch.setattr(llamacpp, "find_spec", lambda _: None)
    with pytest.raises(UsageError, match=r"pip install 'ctxrel\[llamacpp\]'"):
        find_local_model(model="./m.gguf", base_url=None, parameters={}, concurrency=None, timeout=None)


def test_one_sentence_and_exit_2(ctxrel: RunCommand, tmp_path: Path) -> None:
    """From the command a model file that cannot be used is a usage error, and nothing is written."""
    Path("log.jsonl").write_text('{"question": "q", "contexts": []}\n', encoding="utf-8")
    done = ctxrel("run", "log.jsonl", "-m", "./gone.gguf")
    assert (done.returncode, done.stderr.count("\n"), done.stdout) == (2, 1, "")
    assert not (tmp_path / "log.ctxrel").exists()
