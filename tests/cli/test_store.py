"""The store: what goes in comes out, survives, and is refused with a sentence where it cannot be."""

import contextlib
import sqlite3
import threading
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

from ctxrel.cli.runs.store import Store
from ctxrel.evaluators.errors import Failure, FailureKind, OutputError
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
