"""A store's file: opened in the way its file system takes, shared with other programs, its errors translated."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

from ...evaluators.errors import MemoryBusy, OutputError
from .store_schema import SCHEMA_VERSION, VERSIONS

_BUSY_SECONDS = 10.0
_BUSY_PAUSE_SECONDS = 0.05
_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
NO_SHARED_MEMORY = (
    "the store's file system has no shared memory (a network mount?): it is kept with a rollback journal, "
    "which waits for the disk at each reply; a local file can be named with --store"
)


class Database:
    """One SQLite file (WAL mode) with the tables of a store; who finds it held by another program waits."""

    def __init__(self, path: Path | None, *, reading: bool = False) -> None:
        """Open or create the file; None is a temporary one that goes with the process. Raises OutputError.

        With `reading` nothing is written; the file has to be there.
        """
        self.path = path
        self.notice: str | None = None
        """What the user should know of it."""
        with self._translated():
            if path is not None and not reading:
                path.touch(mode=0o600)
            self._db = self._connect()
            with ExitStack() as failed:
                failed.callback(self.close)  # `_set_up` may open another connection
                if reading and path is not None:
                    self._execute("PRAGMA query_only = ON")
                    self._look()
                else:
                    self._set_up()
                self.version = self._checked_version()
                """Of its tables: older than ours where it is only read."""
                failed.pop_all()

    def _connect(self) -> sqlite3.Connection:
        return sqlite3.connect(self.path or "", timeout=_BUSY_PAUSE_SECONDS, isolation_level=None)

    def _set_up(self) -> None:
        """Switch to WAL, or to a rollback journal where that cannot be had, and make the tables."""
        try:
            wal = self._begin_wal()
        except sqlite3.OperationalError as error:
            if self.path is None or _is_busy(error):
                raise
            wal = False
        if self.path and not wal:
            self._do_without_wal()
        self._create()

    def _begin_wal(self) -> bool:
        """Whether the store is in WAL mode now. Raises OperationalError where it cannot be."""
        version = self._look()
        # One that an earlier run had to do without stays so: another run may be using it.
        ((mode,),) = self._execute("PRAGMA journal_mode" if version else "PRAGMA journal_mode = WAL")
        self._execute("PRAGMA synchronous = NORMAL")
        self._execute("PRAGMA user_version")  # not before now is the shared memory asked for
        return bool(mode == "wal")

    def _look(self) -> int:
        """The version, 0 of a new store. Raises OutputError for a database that is something else."""
        self._execute("BEGIN")  # both in one state of the file: another run may be making the tables
        ((version,),) = self._execute("PRAGMA user_version")
        tables = self._execute("SELECT 1 FROM sqlite_master LIMIT 1")
        self._execute("COMMIT")
        if tables and not version:
            raise OutputError(
                f"{str(self.path)!r} is a database, but no store of ctxrel; another can be named with --store"
            )
        return int(version)

    def _do_without_wal(self) -> None:
        """Keep a rollback journal. The file may be marked as WAL already: read alone it needs no shared memory."""
        self._db.close()
        self._db = self._connect()
        self._execute("PRAGMA locking_mode = EXCLUSIVE")
        self._execute("PRAGMA journal_mode = TRUNCATE")
        self._execute("PRAGMA synchronous = FULL")  # NORMAL is safe from a loss of power in WAL mode only
        self._execute("PRAGMA locking_mode = NORMAL")
        self._execute("PRAGMA user_version")  # lets go of the file
        self.notice = NO_SHARED_MEMORY

    def _create(self) -> None:
        self._execute("BEGIN IMMEDIATE")  # two runs may open a new store at once
        ((version,),) = self._execute("PRAGMA user_version")
        for step in VERSIONS[version:]:
            for statement in step.split(";"):
                self._execute(statement)
        if version < SCHEMA_VERSION:
            self._execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._execute("COMMIT")

    def _checked_version(self) -> int:
        ((version,),) = self._execute("PRAGMA user_version")
        if version > SCHEMA_VERSION:
            raise OutputError(f"the store {str(self.path)!r} was written by a newer ctxrel; update ctxrel to use it")
        return int(version)

    def rows(self, statement: str, values: tuple[object, ...] = ()) -> list[Any]:
        """The rows of a statement, which waits for its turn. Raises OutputError."""
        with self._translated():
            return self._execute(statement, values)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        """All that is written inside at once, or nothing of it. Raises OutputError."""
        self.rows("BEGIN IMMEDIATE")
        try:
            yield
        except BaseException:
            with suppress(OutputError):
                self.rows("ROLLBACK")
            raise
        self.rows("COMMIT")

    def settle(self) -> None:
        """Bring all that was written into the file itself, so that it can be read without the ones beside it."""
        self._write("PRAGMA wal_checkpoint(TRUNCATE)", ())

    def close(self) -> None:
        """Close the file; everything written is already in it."""
        self._db.close()

    def _write(self, statement: str, values: tuple[object, ...], *, wait: bool = True) -> None:
        with self._translated():
            self._execute(statement, values, wait=wait)

    def _execute(self, statement: str, values: tuple[object, ...] = (), *, wait: bool = True) -> list[Any]:
        """The rows. SQLite itself waits for a moment, and does not wait at all for some locks."""
        deadline = time.monotonic() + _BUSY_SECONDS if wait else 0.0
        while True:
            try:
                return self._db.execute(statement, values).fetchall()
            except sqlite3.OperationalError as error:
                if not _is_busy(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_BUSY_PAUSE_SECONDS)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> OutputError:
        reason = getattr(error, "strerror", None) or str(error)
        busy = isinstance(error, sqlite3.Error) and _is_busy(error)
        return (MemoryBusy if busy else OutputError)(
            f"cannot use the store {str(self.path or 'temporary')!r}: {reason}; another can be named with --store"
        )


def _is_busy(error: sqlite3.Error) -> bool:
    """Whether another program holds the file."""
    return getattr(error, "sqlite_errorcode", 0) & 0xFF in _BUSY_CODES  # extended codes say more in higher bits
