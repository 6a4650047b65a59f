"""Logs behind addresses: read as files are, named without what is secret, refused in one sentence."""

import gzip
import json
import sys
import tracemalloc
from collections.abc import Iterator
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import fsspec
import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from servers.files import FileServer
from servers.loopback import MODEL, LoopbackServer

from ctxrel.cli import app
from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.addresses import is_remote, shown
from ctxrel.cli.records.sampling import Selection
from ctxrel.cli.records.where import parse_condition
from ctxrel.evaluators.errors import InputError

NEEDS = {"question": "text", "contexts": "contexts"}
LONG = " And so on." * 400
SECRET = "SECRET"  # noqa: S105  # stands for one


def records(count: int, padding: str = "") -> list[Record]:
    return [
        {"id": str(n), "question": f"What is {n}?", "contexts": [f"{n} is a thing.{padding}"]} for n in range(count)
    ]


def as_lines(count: int, padding: str = "") -> bytes:
    return "".join(json.dumps(record) + "\n" for record in records(count, padding)).encode()


def as_parquet(count: int) -> bytes:
    sink = pa.BufferOutputStream()
    pq.write_table(pa.Table.from_pylist(records(count)), sink)
    return sink.getvalue().to_pybytes()


def as_arrow(count: int) -> bytes:
    table, sink = pa.Table.from_pylist(records(count)), pa.BufferOutputStream()
    with pa.ipc.new_file(sink, table.schema) as writer:
        writer.write_table(table)
    return sink.getvalue().to_pybytes()


FORMS = {
    "log.jsonl": as_lines,
    "log.json": lambda count: json.dumps({"results": records(count)}).encode(),
    "log.jsonl.gz": lambda count: gzip.compress(as_lines(count)),
    "log.parquet": as_parquet,
    "log.arrow": as_arrow,
}


@pytest.fixture
def memory() -> Iterator[Any]:
    """A file system in memory, empty."""
    system = fsspec.filesystem("memory")
    system.store.clear()
    system.pseudo_dirs[:] = [""]
    yield system
    system.store.clear()
    system.pseudo_dirs[:] = [""]


def ids(*inputs: str, where: str | None = None) -> list[str]:
    selection = Selection(where=[parse_condition(where)] if where else [])
    return [position.record.id for position in open_log(inputs, Fields(), NEEDS, selection=selection).records()]


@pytest.mark.parametrize("name", FORMS)
def test_all_formats(memory: Any, name: str) -> None:  # noqa: ANN401
    """Every format is read from an address as from a file, and again for a second pass."""
    memory.pipe_file(f"/bucket/{name}", FORMS[name](300))
    log = open_log([f"memory://bucket/{name}"], Fields(), NEEDS)
    for _ in range(2):
        assert [position.record.id for position in log.records()] == [str(number) for number in range(300)]
    assert log.size == len(FORMS[name](300))


def test_folders_and_globs(memory: Any) -> None:  # noqa: ANN401
    """A folder is read with those in it that are named like fields, a glob as it says; rows tell their file."""
    for path, count in (
        ("date=1/a.jsonl", 2),
        ("date=2/b.parquet", 1),
        ("other/c.jsonl", 1),
        ("d.jsonl", 1),
        ("e.txt", 1),
    ):
        memory.pipe_file(f"/logs/{path}", FORMS[f"log.{path.split('.')[1]}"](count) if "txt" not in path else b"no log")
    assert ids("memory://logs") == ["0", "0", "1", "0"] or ids("memory://logs") == ["0", "1", "0", "0"]
    assert ids("memory://logs/", where="date=1") == ["0", "1"]
    assert len(ids("memory://logs/**/*.jsonl")) == 4
    found = list(open_log(["memory://logs/date=*/*"], Fields(), NEEDS).records())
    assert [position.carried["file"] for position in found] == ["memory:///logs/date=1/a.jsonl"] * 2 + [
        "memory:///logs/date=2/b.parquet"
    ]
    for name, said in (("memory://logs/nothing.jsonl", "no file"), ("memory://logs/*.csv", "no log at")):
        with pytest.raises(InputError, match=said):
            ids(name)


def test_flat_memory(memory: Any) -> None:  # noqa: ANN401
    """A long log is read block by block."""
    memory.pipe_file("/long.jsonl", as_lines(6000, LONG))
    size = memory.size("/long.jsonl")
    log = open_log(["memory://long.jsonl"], Fields(), NEEDS)
    tracemalloc.start()
    assert sum(1 for _ in log.records()) == 6000
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert peak < size / 5


def test_the_command_reads_memory(memory: Any, monkeypatch: pytest.MonkeyPatch) -> None:  # noqa: ANN401
    """The whole command works on an address; the folder is named like the file."""
    memory.pipe_file("/logs/night.jsonl", as_lines(5))
    monkeypatch.setattr(
        sys, "argv", ["ctxrel", "run", "memory://logs/night.jsonl", "-m", "offline", "--progress", "none"]
    )
    for _ in range(2):
        with pytest.raises(SystemExit) as ended:
            app.main()
        assert ended.value.code == 0
    assert len(read_rows(Path("night.ctxrel"))) == 5
    summary = read_summary(Path("night.ctxrel"))
    assert (summary["input"]["files"], summary["requests"]["sent"]) == (["memory:///logs/night.jsonl"], 0)


@pytest.mark.parametrize("manner", ["ranges", "whole", "unsized"])
def test_the_web(ctxrel: RunCommand, server: LoopbackServer, manner: str) -> None:
    """A log is read over HTTP whatever the server can do; nothing that is secret in the address is told or kept."""
    Path("www/date=7").mkdir(parents=True)
    Path("www/date=7/log.jsonl").write_bytes(as_lines(20))
    with FileServer(manner) as files:
        address = files.url.replace("://", f"://user:{SECRET}@") + f"/www/date=7/log.jsonl?X-Amz-Signature={SECRET}&x=1"
        done = ctxrel("run", address, "-m", MODEL, "--base-url", server.url, "--keep", "date")
    assert (done.returncode, len(server.seen)) == (0, 20), done.stderr
    assert all(path.endswith(f"?X-Amz-Signature={SECRET}&x=1") for path, _ in files.asked)
    rows = read_rows(Path("log.ctxrel"))
    assert [row["id"] for row in rows] == [str(number) for number in range(20)]
    assert rows[0]["kept"] == {"date": "7"}
    assert read_summary(Path("log.ctxrel"))["input"]["files"] == [f"{files.url}/www/date=7/log.jsonl"]
    kept = b"".join(path.read_bytes() for path in Path("log.ctxrel").iterdir())
    assert SECRET not in done.stderr + done.stdout
    assert SECRET.encode() not in kept


def test_the_web_in_blocks() -> None:
    """A server that gives ranges is asked for a block at a time, also for the columns of Parquet."""
    Path("log.jsonl").write_bytes(as_lines(1500, LONG))
    Path("log.parquet").write_bytes(as_parquet(1000))
    with FileServer() as files:
        assert len(ids(f"{files.url}/log.jsonl")) == 1500
        assert len(ids(f"{files.url}/log.parquet")) == 1000
        assert files.most_given <= 5 << 20 < Path("log.jsonl").stat().st_size


def test_the_web_as_a_whole() -> None:
    """A long text is read from a server that gives no ranges; of Parquet there it is said what to do."""
    Path("log.jsonl").write_bytes(as_lines(1500, LONG))
    Path("log.parquet").write_bytes(as_parquet(2000))
    with FileServer("whole") as files:
        assert len(ids(f"{files.url}/log.jsonl")) == 1500
        with pytest.raises(
            InputError, match=r"log\.parquet' as Parquet: the server gives it as a whole only; download it"
        ):
            ids(f"{files.url}/log.parquet")


@pytest.mark.parametrize(
    ("address", "said"),
    [
        ("s3://bucket/log.jsonl", "'s3://bucket/log.jsonl' needs one more package to be read: pip install s3fs"),
        ("gs://bucket/*.jsonl", "'gs://bucket/*.jsonl' needs one more package to be read: pip install gcsfs"),
        ("hf://datasets/a/b/c.parquet", "'hf://datasets/a/b/c.parquet' needs one more package to be read: pip install huggingface_hub"),
        ("nothing://x/y.jsonl", "cannot read 'nothing://x/y.jsonl': Protocol not known: nothing"),
        (f"https://u:{SECRET}@127.0.0.1:9/log.jsonl?sig={SECRET}", "cannot read 'https://127.0.0.1:9/log.jsonl': Cannot connect to host 127.0.0.1:9"),
    ],
    ids=["s3", "gs", "hf", "unknown", "refused"],
)  # fmt: skip
def test_what_cannot_be_read(ctxrel: RunCommand, address: str, said: str) -> None:
    """A package that is missing, a protocol nobody knows, a server that is not there: one sentence, exit 2."""
    package = said.rpartition("install ")[2]
    if package.isidentifier() and find_spec(package):
        pytest.skip(f"{package} is installed here")
    done = ctxrel("run", address, "-m", "offline")
    assert (done.returncode, done.stderr.count("\n")) == (2, 1)
    assert done.stderr.startswith(f"ctxrel: {said}")
    assert SECRET not in done.stderr


def test_errors_of_the_web(ctxrel: RunCommand) -> None:
    """What is not there, and what may not be read, are told apart, and no signature with them."""
    with FileServer() as files:
        done = ctxrel("run", f"{files.url}/no.jsonl?sig={SECRET}", "-m", "offline")
        assert (done.returncode, done.stderr) == (2, f"ctxrel: no file '{files.url}/no.jsonl'; check the address\n")
    with FileServer("forbidden") as files:
        done = ctxrel("run", f"{files.url}/no.jsonl?sig={SECRET}", "-m", "offline")
        assert (done.returncode, "403" in done.stderr, SECRET in done.stderr) == (2, True, False)


def test_the_extra_is_missing(monkeypatch: pytest.MonkeyPatch) -> None:
    """Without fsspec the error names the extra."""
    monkeypatch.setitem(sys.modules, "fsspec", None)
    with pytest.raises(
        InputError, match=r"'s3://b/log\.jsonl' is not on this machine; to read it: pip install 'ctxrel\[remote\]'"
    ):
        ids("s3://b/log.jsonl")


def test_results_stay_here(ctxrel: RunCommand) -> None:
    """An address is no output folder."""
    Path("log.jsonl").write_bytes(as_lines(1))
    done = ctxrel("run", "log.jsonl", "-m", "offline", "-o", f"s3://key:{SECRET}@bucket/out")
    assert (done.returncode, done.stderr) == (
        2, "ctxrel: results are written on this machine; name a local folder, not 's3://bucket/out'\n"
    )  # fmt: skip


@pytest.mark.parametrize(
    ("text", "cut"),
    [
        ("https://u:p@h:1/a/b.jsonl?x=1&y#z", "https://h:1/a/b.jsonl"),
        ("404, url='https://h/a?sig=1%2F2'", "404, url='https://h/a'"),
        ("az://c/a.jsonl?sv=1&sig=2", "az://c/a.jsonl"),
        ("s3://b/date=202?-01/lang=ko/*.jsonl", "s3://b/date=202?-01/lang=ko/*.jsonl"),
        ("s3://b/part-?.jsonl", "s3://b/part-?.jsonl"),
        ("logs/a@b?c=d.jsonl", "logs/a@b?c=d.jsonl"),
    ],
)
def test_what_is_shown(text: str, cut: str) -> None:
    """Users, passwords and signatures are cut; globs, and names that only look so, are not."""
    assert shown(text) == cut
    assert is_remote(text) == text.startswith(("https", "az", "s3"))
