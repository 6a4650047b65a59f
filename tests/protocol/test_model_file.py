"""A model file as judge, from the command to the server's end. What it says is noise."""

import os
import re
import signal
import time
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from servers.llama import MARKS, rows_of, start_run, wait_until, write_model

from ctxrel.evaluators import ContextRelevanceEvaluator

pytestmark = MARKS
WriteLog = Callable[..., Path]


@pytest.fixture
def model(tmp_path: Path) -> Path:
    return write_model(tmp_path / "noise.gguf")


def records(count: int) -> list[Record]:
    return [
        {"question": f"What is item {n}?", "contexts": [f"Item {n} is a thing. It weighs {n} g."]} for n in range(count)
    ]


def arguments(log: Path, model: str | Path, *more: str) -> list[str]:
    return ["run", str(log), "-m", str(model), "--param", "n_threads=1", *more]


def servers_of(process: int) -> list[int]:
    """The processes that a run has started."""
    found = []
    for folder in Path("/proc").glob("[0-9]*"):
        try:
            fields = (folder / "stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        except OSError:
            continue
        if int(fields[1]) == process and fields[0] != "Z":
            found.append(int(folder.name))
    return found


def alive(process: int) -> bool:
    try:
        return Path(f"/proc/{process}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()[0] != "Z"
    except OSError:
        return False


def test_a_run(ctxrel: RunCommand, model: Path, write_log: WriteLog, tmp_path: Path) -> None:
    """A log is judged without key and network; the summary names file, size and how it was served."""
    done = ctxrel(*arguments(write_log(records(20)), "./noise.gguf"), timeout=120)
    assert done.returncode == 0, done.stderr
    rows, summary = read_rows(tmp_path / "log.ctxrel"), read_summary(tmp_path / "log.ctxrel")
    assert {row["status"] for row in rows} == {"evaluated"}
    assert {row["model"] for row in rows} == {"noise.gguf"}
    assert summary["judge"]["description"] == f"noise.gguf ({model.stat().st_size / 1000:.1f} kB)"
    served = summary["configuration"]["server"]
    assert {name: served[name] for name in ("n_ctx", "n_threads", "n_parallel")} == {
        "n_ctx": 8192,
        "n_threads": 1,
        "n_parallel": 2,
    }
    assert (summary["configuration"]["concurrency"], summary["configuration"]["base_url"]) == (2, None)
    sent = summary["configuration"]["parameters"]["context_relevance"]
    assert set(sent) == {"temperature", "max_completion_tokens"}


def test_moved_and_changed(ctxrel: RunCommand, model: Path, write_log: WriteLog, tmp_path: Path) -> None:
    """The content is the model: a moved file asks nothing again (nor is it loaded), another file asks anew."""
    log, store = write_log(records(5)), str(tmp_path / "store.sqlite")
    ctxrel(*arguments(log, model, "--store", store))
    (tmp_path / "elsewhere").mkdir()
    moved = model.rename(tmp_path / "elsewhere" / "other.gguf")
    done = ctxrel(*arguments(log, moved, "--store", store, "--param", "n_parallel=1"))
    assert "requests: 0 sent, 5 answered from the store" in done.stderr
    done = ctxrel(*arguments(log, write_model(model, seed=1), "--store", store))
    assert "requests: 5 sent, 0 answered from the store" in done.stderr


def test_through_no_proxy(
    ctxrel: RunCommand, model: Path, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Whatever proxy is set, records go to the server here and nowhere else; an endpoint's URL is not heeded."""
    for name in ("HTTP_PROXY", "http_proxy", "ALL_PROXY", "HTTPS_PROXY"):
        monkeypatch.setenv(name, "http://127.0.0.1:9")
    monkeypatch.setenv("OPENAI_BASE_URL", "http://127.0.0.1:9/v1")
    done = ctxrel(*arguments(write_log(records(2)), model))
    assert done.returncode == 0, done.stderr


def test_too_long(ctxrel: RunCommand, model: Path, write_log: WriteLog, tmp_path: Path) -> None:
    """A record beyond n_ctx is divided; where it cannot be it is `context_too_long`."""
    contexts = [f"Context {number}. " + "It is long. " * 30 for number in range(6)]
    log = write_log(
        [*records(1), {"question": "q", "contexts": contexts}, {"question": "q", "contexts": ["word " * 600]}]
    )
    done = ctxrel(*arguments(log, model, "--param", "n_ctx=7168", "--max-errors", "100%"))
    assert done.returncode == 0, done.stderr
    short, divided, refused = read_rows(tmp_path / "log.ctxrel")
    assert (short["status"], divided["status"]) == ("evaluated", "evaluated")
    assert divided["requests"] > 1
    assert refused["error"]["kind"] == "context_too_long"


@pytest.mark.parametrize(
    ("damage", "words"),
    [
        pytest.param(lambda content: content[:-20_000], "not within the file bounds", id="cut in the weights"),
        pytest.param(lambda content: content[:300], "failed to read", id="cut in the header"),
        pytest.param(lambda content: content[:4] + b"\xff" * 400, "this GGUF file", id="junk"),
        pytest.param(lambda content: content.replace(b"blk.0.attn_q", b"blk.0.attn_x"), "tensor", id="other names"),
    ],
)
def test_damaged(
    ctxrel: RunCommand, model: Path, write_log: WriteLog, damage: Callable[[bytes], bytes], words: str
) -> None:
    """A file that llama.cpp cannot load is met with its reason in one sentence and exit 1."""
    model.write_bytes(damage(model.read_bytes()))
    done = ctxrel(*arguments(write_log(records(2)), model))
    said = done.stderr.splitlines()[-1]
    assert done.returncode == 1
    assert re.fullmatch(rf"ctxrel: llama.cpp cannot load noise.gguf \([\d.]+ kB\): .*{words}.*; .*", said), said


def test_two_at_once(model: Path, write_log: WriteLog, tmp_path: Path) -> None:
    """Two runs at once have two servers, and neither meets the other's."""
    log = write_log(records(20))
    runs = [start_run(*arguments(log, model, "-o", f"out-{number}")) for number in range(2)]
    for run in runs:
        _, said = run.communicate(timeout=120)
        assert run.returncode == 0, said
    assert [len(read_rows(tmp_path / f"out-{number}")) for number in range(2)] == [20, 20]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_signal_while_judging(model: Path, write_log: WriteLog, tmp_path: Path, number: signal.Signals) -> None:
    """A signal to the whole process group, as from a terminal, lets what is in flight finish; no server is left."""
    run = start_run(*arguments(write_log(records(400)), model))
    wait_until(lambda: rows_of(tmp_path / "log.ctxrel") >= 3)
    servers = servers_of(run.pid)
    os.killpg(run.pid, number)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 128 + number, said
    assert len(servers) == 1
    assert not alive(servers[0])
    assert {row["status"] for row in read_rows(tmp_path / "log.ctxrel", "results.jsonl.part")} == {"evaluated"}


@pytest.mark.parametrize("number", [signal.SIGTERM, signal.SIGINT])
def test_signal_while_loading(model: Path, write_log: WriteLog, number: signal.Signals) -> None:
    """A signal does not wait for a model to be loaded."""
    run = start_run(*arguments(write_log(records(5)), model, "--param", "n_ctx=1000000", "--param", "n_parallel=16"))
    wait_until(lambda: servers_of(run.pid))
    time.sleep(0.2)
    servers, began = servers_of(run.pid), time.monotonic()
    run.send_signal(number)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 128 + number, said
    assert time.monotonic() - began < 5
    assert b"Traceback" not in said
    assert b"never retrieved" not in said
    assert not any(alive(server) for server in servers)


@pytest.mark.parametrize("when", ["loading", "judging"])
def test_killed(ctxrel: RunCommand, model: Path, write_log: WriteLog, tmp_path: Path, when: str) -> None:
    """A run that is killed leaves no server behind, and the next one goes on."""
    log = write_log(records(400))
    much = ["--param", "n_ctx=1000000", "--param", "n_parallel=16"] if when == "loading" else []
    run = start_run(*arguments(log, model, *much))
    wait_until(lambda: servers_of(run.pid) if much else rows_of(tmp_path / "log.ctxrel") >= 3)
    servers = servers_of(run.pid)
    run.kill()
    run.communicate(timeout=60)
    wait_until(lambda: not any(alive(server) for server in servers), seconds=5)
    assert len(servers) == 1
    done = ctxrel(*arguments(log, model, "--limit", "30"), timeout=120)
    assert done.returncode == 0, done.stderr
    assert len(read_rows(tmp_path / "log.ctxrel")) == 30


def test_server_killed(ctxrel: RunCommand, model: Path, write_log: WriteLog, tmp_path: Path) -> None:
    """When the system kills the server the run ends at once and says so; the same command goes on."""
    log = write_log(records(400))
    run = start_run(*arguments(log, model))
    wait_until(lambda: rows_of(tmp_path / "log.ctxrel") >= 3)
    (server,) = servers_of(run.pid)
    os.kill(server, signal.SIGKILL)
    _, said = run.communicate(timeout=60)
    assert run.returncode == 1
    assert b"ctxrel: llama.cpp ended at work (signal SIGKILL, as for want of memory)" in said
    kept = rows_of(tmp_path / "log.ctxrel")
    done = ctxrel(*arguments(log, model, "--limit", "10"), timeout=120)
    assert done.returncode == 0, done.stderr
    assert read_summary(tmp_path / "log.ctxrel")["requests"]["reused"] >= min(kept, 10) > 0


def test_nobody_else_is_served(model: Path, write_log: WriteLog, tmp_path: Path) -> None:
    """The server listens on the loopback only, and its key stands in no argument, environment or file of the run."""
    run = start_run(*arguments(write_log(records(400)), model))
    wait_until(lambda: rows_of(tmp_path / "log.ctxrel") >= 3)
    (server,) = servers_of(run.pid)
    links = [str(link.readlink()) for link in Path(f"/proc/{server}/fd").iterdir()]
    inodes = {link.removeprefix("socket:[")[:-1] for link in links if link.startswith("socket:")}
    lines = [
        line.split() for name in ("tcp", "tcp6") for line in Path(f"/proc/net/{name}").read_text().splitlines()[1:]
    ]
    listening = [line[1] for line in lines if line[3] == "0A" and line[9] in inodes]
    visible = b"".join(
        Path(f"/proc/{process}/{name}").read_bytes() for process in (server, run.pid) for name in ("cmdline", "environ")
    )
    run.terminate()
    run.communicate(timeout=60)
    assert len(listening) == 1
    assert listening[0].startswith("0100007F:")
    assert b"api_key" not in visible


def test_from_python(model: Path) -> None:
    """The evaluators for Python take a model file as well."""
    evaluator = ContextRelevanceEvaluator(model=str(model), parameters={"n_threads": 1}, progress_bar=False)
    results = evaluator.run(questions=["What is it?"], contexts=[["It is a thing."]])
    assert len(results["results"]) == 1
    assert not servers_of(os.getpid())
