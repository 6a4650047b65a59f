"""The stores of several workers: each writes its own, and the run's store has them all when the run has ended."""

import fcntl
import os
import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from pathlib import Path
from typing import NamedTuple

from ...evaluators.errors import Failure, FailureKind, OutputError, OutputLocked
from ...evaluators.memory import PlainMemory
from ...evaluators.replies import Reply, Usage
from .store import Store, read_replies

STORES = "stores"
_PATTERN = "worker-*.sqlite"
_LET_GO_SECONDS = 30.0
_PAUSE_SECONDS = 0.1
_MERGE = {
    "replies": """
        INSERT INTO main.replies ({columns})
        SELECT {numbered} FROM worker.replies AS w WHERE NOT EXISTS (
            SELECT 1 FROM main.replies AS m WHERE m.key = w.key AND m.received = w.received AND m.text IS w.text
        )
    """,
    "failures": "INSERT OR REPLACE INTO main.failures ({columns}) SELECT {columns} FROM worker.failures",
    "endpoints": "INSERT OR REPLACE INTO main.endpoints ({columns}) SELECT {columns} FROM worker.endpoints",
    "unanswered": "INSERT INTO main.unanswered ({columns}) SELECT {columns} FROM worker.unanswered",
}
_NUMBERED = "w.number + coalesce((SELECT max(m.number) + 1 FROM main.replies AS m WHERE m.key = w.key), 0)"


def store_of(folder: Path, worker: str) -> Path:
    """Where a worker keeps replies; `folder` is that of the workers' stores."""
    return folder / f"worker-{worker}.sqlite"


class Run(NamedTuple):
    """Which run of which output it is that pays."""

    started: float
    """Unix time in seconds."""
    output: str


class WorkerStore:
    """A worker's own store, before it the run's, and those of workers that had its batches before.

    Only its own is written. Raises OutputError where that cannot be.
    """

    def __init__(self, folder: Path, worker: str, run_store: Path, *, run: Run, alone: bool) -> None:
        """`alone` tells that nobody writes to the run's store while the run lasts: it is read without locks."""
        self._folder = folder
        self._path = store_of(folder, worker)
        self._held = ExitStack()
        self._held.enter_context(_held(self._path))
        self._own = Store(self._path)
        self._held.callback(self._own.close)
        self._own.begin_run(*run)
        self._run = run
        self._others: dict[Path, sqlite3.Connection] = {}
        self._open(run_store, immutable=alone)

    def consult(self, worker: str) -> None:
        """Look into the store of a worker that is gone as well."""
        path = store_of(self._folder, worker)
        if path != self._path and path not in self._others and path.exists():
            self._open(path, immutable=False)

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request, those of earlier runs first."""
        found = [reply for other in self._others.values() for reply in read_replies(other, key)]
        return found + self._own.replies(key)

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        """Add a reply. Raises MemoryBusy."""
        self._own.keep_reply(key, reply)

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed when it was last asked, None where it did not."""
        for other in self._others.values():
            if row := other.execute("SELECT kind FROM failures WHERE key = ?", (key,)).fetchone():
                return FailureKind(row[0])
        return self._own.failure(key)

    def keep_failure(self, key: bytes, failure: Failure) -> None:
        """Note a failure. Raises MemoryBusy."""
        self._own.keep_failure(key, failure)

    def paid(self) -> Iterator[Reply]:
        """What this run has paid for in the worker's own store, without the texts."""
        return self._own.paid_by(self._run.started)

    def lost(self) -> list[Usage]:
        """The bounds of this run's attempts that may have been billed without a reply."""
        return self._own.lost_by(self._run.started)

    def keep_facts(self, address: str, model: str, facts: dict[str, object]) -> None:
        """Remember what an endpoint takes."""
        self._own.keep_facts(address, model, facts)

    def keep_unanswered(self, most: Usage) -> None:
        """Note an attempt that brought no reply and may have been billed."""
        self._own.keep_unanswered(most)

    def close(self) -> None:
        """Close all of them."""
        for other in self._others.values():
            other.close()
        self._held.close()

    def _open(self, path: Path, *, immutable: bool) -> None:
        how = "immutable=1" if immutable else "mode=ro"
        try:
            self._others[path] = sqlite3.connect(f"{path.resolve().as_uri()}?{how}", uri=True, timeout=10)
        except sqlite3.Error as error:
            raise OutputError(f"cannot read the store {str(path)!r}: {error}; is the folder on all machines?") from None


@contextmanager
def _held(path: Path) -> Iterator[None]:
    """Hold a worker's store for as long as its process lives; wait for one that is about to end.

    Raises OutputLocked.
    """
    descriptor = os.open(path.with_suffix(".lock"), os.O_RDWR | os.O_CREAT, 0o600)
    deadline = time.monotonic() + _LET_GO_SECONDS
    try:
        while True:
            try:
                fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
                break
            except BlockingIOError:
                if time.monotonic() > deadline:
                    raise OutputLocked(
                        f"an earlier run's worker still holds {str(path)!r}; wait for it, then run the same command"
                    ) from None
                time.sleep(_PAUSE_SECONDS)
        yield
    finally:
        os.close(descriptor)


class StoresLeft(PlainMemory):
    """A run's store, and those of workers whose run was killed before they were moved into it; all are only read."""

    def __init__(self, store: Store, folder: Path | None) -> None:
        """`folder` is that of the run, where there is one."""
        super().__init__()
        paths = sorted((folder / STORES).glob(_PATTERN)) if folder else []
        self._workers = [Store(path, reading=True) for path in paths if path.stat().st_size]
        self._stores = [store, *(worker for worker in self._workers if worker.version)]

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request."""
        return [reply for store in self._stores for reply in store.replies(key)]

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed, None where it did not."""
        return next((kind for store in self._stores if (kind := store.failure(key))), None)

    def close(self) -> None:
        """Close those of the workers."""
        for worker in self._workers:
            worker.close()


def merge_stores(folder: Path, into: Path) -> int:
    """Move what the workers' stores hold into the run's store; gives the number of replies that are new there.

    Killed in between it can be done again. Raises OutputError and OutputLocked.
    """
    new = 0
    for path in sorted(folder.glob(_PATTERN)):
        with _held(path):
            try:
                with closing(Store(path)):  # one of an earlier version is brought up to date
                    pass
                with closing(sqlite3.connect(into, isolation_level=None, timeout=10)) as db:
                    new += _merge(db, path)
            except sqlite3.Error as error:
                raise OutputError(f"cannot move {str(path)!r} into the store {str(into)!r}: {error}") from None
            for each in (path, Path(f"{path}-wal"), Path(f"{path}-shm"), path.with_suffix(".lock")):
                each.unlink(missing_ok=True)
    return new


def _merge(db: sqlite3.Connection, path: Path) -> int:
    db.execute("ATTACH ? AS worker", (str(path),))
    db.execute("BEGIN IMMEDIATE")
    new = 0
    for table, statement in _MERGE.items():
        names = [row[1] for row in db.execute(f"PRAGMA worker.table_info({table})")]
        columns = ", ".join(names)
        numbered = ", ".join(_NUMBERED if name == "number" else f"w.{name}" for name in names)
        count = db.execute(statement.format(columns=columns, numbered=numbered)).rowcount
        new += count if table == "replies" else 0
    db.execute("COMMIT")
    db.execute("DETACH worker")
    return new
