"""The store: what goes in comes out, survives, and is refused with a sentence where it cannot be."""

import contextlib
import shutil
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest
from conftest import RunCommand, read_rows, read_summary

from ctxrel.cli.runs.database import NO_SHARED_MEMORY
from ctxrel.cli.runs.store import Store
from ctxrel.evaluators.errors import Failure, FailureKind, MemoryBusy, OutputError
from ctxrel.evaluators.replies import Reply, Usage

FIRST = Reply(text='{"a": "é\n"}', finish_reason="stop", model="m", usage=Usage(1, 2, 3, 4))
SECOND = Reply(text=None, finish_reason="length", model=None, usage=Usage(), refusal="no")


def test_replies_come_back(tmp_path: Path) -> None:
    """Replies come back as they arrived, in their order, from another connection that opens at any moment."""
    path = tmp_path / "s.sqlite"
    store = Store(path)
    assert store.replies(b"k") == []
    store.keep_reply(b"k", SECOND)
    store.keep_reply(b"k", FIRST)
    other = Store(path)
    assert other.replies(b"k") == [SECOND, FIRST]
    assert other.replies(b"l") == []
    other.close()
    store.close()


def test_failures_and_facts(tmp_path: Path) -> None:
    """The last failure and what an endpoint takes are remembered."""
    store = Store(tmp_path / "s.sqlite")
    assert store.failure(b"k") is None
    store.keep_failure(b"k", Failure(FailureKind.TIMEOUT, "t"))
    store.keep_failure(b"k", Failure(FailureKind.REFUSAL, "r"))
    assert store.failure(b"k") is FailureKind.REFUSAL
    assert store.facts("h", "m") == {}
    store.keep_facts("h", "m", {"a": [1]})
    assert store.facts("h", "m") == {"a": [1]}
    assert store.facts("h", "n") == store.facts("i", "m") == {}
    store.close()


def test_temporary() -> None:
    """Without a path nothing is left behind."""
    store = Store(None)
    store.keep_reply(b"k", FIRST)
    assert store.replies(b"k") == [FIRST]
    store.close()
    assert list(Path.cwd().iterdir()) == []


def test_history(tmp_path: Path) -> None:
    """A run that did not end has no summary in the history."""
    store = Store(tmp_path / "s.sqlite")
    store.begin_run(1.0)
    store.begin_run(2.0)
    store.end_run(2.0, {"status": "complete"})
    store.close()
    with contextlib.closing(sqlite3.connect(tmp_path / "s.sqlite")) as opened:
        rows = opened.execute("SELECT started, summary FROM runs ORDER BY 1").fetchall()
    assert rows == [(1.0, None), (2.0, '{"status":"complete"}')]


def test_many_open_a_new_store_at_once(tmp_path: Path) -> None:
    """Runs that start at the same moment on a new store wait for each other."""
    for number in range(20):
        start = threading.Barrier(8)

        def open_it(path: Path = tmp_path / f"{number}.sqlite", start: threading.Barrier = start) -> None:
            start.wait()
            Store(path).close()

        with ThreadPoolExecutor(8) as pool:
            for opened in [pool.submit(open_it) for _ in range(8)]:
                opened.result()


def test_not_a_store(tmp_path: Path) -> None:
    """A file of another kind, a folder, a missing folder and a newer store are each one sentence."""
    (tmp_path / "text").write_text("not a database, whatever its name says\n" * 50)
    newer = sqlite3.connect(tmp_path / "newer")
    newer.execute("PRAGMA user_version = 99")
    newer.close()
    for name, said in (
        ("text", "file is not a database"),
        (".", "unable to open database file"),
        ("no/where", "No such file or directory"),
        ("newer", "was written by a newer ctxrel"),
    ):
        with pytest.raises(OutputError, match=said):
            Store(tmp_path / name)


def without_shared_memory(path: Path) -> None:
    """Nobody can make the file that the connections of a WAL share, as on a network mount."""
    path.with_name(f"{path.name}-shm").symlink_to("nowhere")


def journal_mode(path: Path) -> str:
    with contextlib.closing(sqlite3.connect(path)) as opened:
        mode: str = opened.execute("PRAGMA journal_mode").fetchone()[0]
    return mode


@pytest.mark.parametrize("before", ["new", "WAL of an earlier run", "WAL with replies in it", "without WAL"])
def test_no_shared_memory(tmp_path: Path, before: str) -> None:
    """Where the file system has no shared memory a rollback journal is kept, said so, and nothing stored is lost."""
    path = tmp_path / "s.sqlite"
    if before == "without WAL":
        without_shared_memory(path)
        Store(path).close()
    elif before != "new":
        store = Store(path)
        store.keep_reply(b"k", FIRST)
        if before == "WAL with replies in it":
            for name in ("s.sqlite", "s.sqlite-wal"):
                shutil.copy(tmp_path / name, tmp_path / f"c{name}")
            path = tmp_path / "cs.sqlite"
        store.close()
    if before != "without WAL":
        without_shared_memory(path)
    stores = [Store(path), Store(path)]
    assert [store.notice for store in stores] == [NO_SHARED_MEMORY] * 2
    kept = [FIRST] if before.startswith("WAL") else []
    for store in stores:
        store.keep_reply(b"k", SECOND)
        kept.append(SECOND)
        assert stores[0].replies(b"k") == stores[1].replies(b"k") == kept
    for store in stores:
        store.close()
    assert journal_mode(path) == "delete"  # what a connection that says nothing else does: no WAL
    assert path.stat().st_mode & 0o777 == 0o600


def test_shared_memory_again(tmp_path: Path) -> None:
    """A store that was kept with a rollback journal opens where there is shared memory, and may be in use by another."""
    path = tmp_path / "s.sqlite"
    without_shared_memory(path)
    first = Store(path)
    first.keep_reply(b"k", FIRST)
    (tmp_path / "s.sqlite-shm").unlink()
    second = Store(path)
    second.keep_reply(b"k", SECOND)
    assert first.replies(b"k") == second.replies(b"k") == [FIRST, SECOND]
    first.close()
    second.close()


def test_a_usual_store_has_no_notice(tmp_path: Path) -> None:
    """Nothing is said of a store in WAL mode, and of none."""
    for path in (tmp_path / "s.sqlite", None):
        store = Store(path)
        assert store.notice is None
        store.close()
    assert journal_mode(tmp_path / "s.sqlite") == "wal"


def test_a_run_without_shared_memory(ctxrel: RunCommand, tmp_path: Path) -> None:
    """The run says once how its store is kept, and goes on from it."""
    (tmp_path / "log.jsonl").write_text('{"question": "What is it?", "contexts": ["It is a thing."]}\n' * 3)
    without_shared_memory(tmp_path / "s.sqlite")
    for sent in (1, 0):
        done = ctxrel("run", "log.jsonl", "-m", "offline", "--store", "s.sqlite")
        assert (done.returncode, done.stderr.count("rollback journal")) == (0, 1)
        assert read_summary(tmp_path / "log.ctxrel")["requests"]["sent"] == sent
    assert len(read_rows(tmp_path / "log.ctxrel")) == 3


@pytest.mark.parametrize("wal", [True, False], ids=["WAL", "rollback journal"])
def test_held_by_another_program(tmp_path: Path, wal: bool) -> None:  # noqa: FBT001
    """A reply and a failure that cannot be kept now are told so; a fact is left, and the rest waits."""
    path = tmp_path / "s.sqlite"
    if not wal:
        without_shared_memory(path)
    store = Store(path)
    with contextlib.closing(sqlite3.connect(path, isolation_level=None, check_same_thread=False)) as other:
        other.execute("BEGIN IMMEDIATE")
        with pytest.raises(MemoryBusy, match="database is locked"):
            store.keep_reply(b"k", FIRST)
        with pytest.raises(MemoryBusy):
            store.keep_failure(b"k", Failure(FailureKind.TIMEOUT, "t"))
        store.keep_facts("h", "m", {"a": 1})
        assert store.replies(b"k") == []
        threading.Timer(0.3, lambda: other.execute("COMMIT")).start()
        store.begin_run(1.0)
        store.keep_reply(b"k", FIRST)
    assert store.replies(b"k") == [FIRST]
    assert store.facts("h", "m") == {}
    store.close()
