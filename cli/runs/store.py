"""The store: every reply that was paid for, found again by the exact request that brought it."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager, suppress
from pathlib import Path
from typing import Any

import orjson

from ...evaluators.costs.price import LEAST_CACHED
from ...evaluators.errors import Failure, FailureKind, MemoryBusy, OutputError
from ...evaluators.replies import Reply, Usage

_VERSIONS = (
    """
CREATE TABLE replies (
    key BLOB NOT NULL, number INTEGER NOT NULL, text TEXT, finish_reason TEXT NOT NULL, refusal TEXT, model TEXT,
    input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL,
    cached_tokens INTEGER NOT NULL, reasoning_tokens INTEGER NOT NULL,
    received REAL NOT NULL, PRIMARY KEY (key, number)
) WITHOUT ROWID;
CREATE TABLE failures (
    key BLOB PRIMARY KEY, kind TEXT NOT NULL, message TEXT NOT NULL, noted REAL NOT NULL
) WITHOUT ROWID;
CREATE TABLE endpoints (address TEXT NOT NULL, model TEXT NOT NULL, facts TEXT NOT NULL, PRIMARY KEY (address, model));
CREATE TABLE runs (started REAL PRIMARY KEY, ended REAL, summary TEXT);
""",
    """
ALTER TABLE replies ADD COLUMN run REAL;
ALTER TABLE runs ADD COLUMN output TEXT;
CREATE TABLE unanswered (run REAL NOT NULL, input_tokens INTEGER NOT NULL, output_tokens INTEGER NOT NULL);
CREATE TABLE experience (
    address TEXT NOT NULL, model TEXT NOT NULL, fingerprint BLOB NOT NULL, sums TEXT NOT NULL,
    PRIMARY KEY (address, model, fingerprint)
) WITHOUT ROWID;
""",
    """
ALTER TABLE replies ADD COLUMN batch INTEGER NOT NULL DEFAULT 0;
CREATE TABLE batch_runs (
    number INTEGER PRIMARY KEY, output TEXT NOT NULL, base_url TEXT NOT NULL, model TEXT NOT NULL,
    api_key_env TEXT NOT NULL, insecure INTEGER NOT NULL,
    begun REAL NOT NULL, ended REAL, surveyed INTEGER NOT NULL DEFAULT 0, rounds INTEGER NOT NULL DEFAULT 0,
    most_tokens INTEGER
);
CREATE TABLE batches (
    number INTEGER PRIMARY KEY, run INTEGER NOT NULL, hash TEXT NOT NULL, state TEXT NOT NULL, planned REAL NOT NULL,
    requests INTEGER NOT NULL, bytes INTEGER NOT NULL, tokens INTEGER NOT NULL, dialect TEXT NOT NULL,
    file TEXT, batch TEXT, status TEXT, completed INTEGER NOT NULL DEFAULT 0, failed INTEGER NOT NULL DEFAULT 0,
    created REAL, ended REAL, cancelled INTEGER NOT NULL DEFAULT 0, company INTEGER NOT NULL DEFAULT 0,
    refused INTEGER NOT NULL DEFAULT 0,
    input_tokens INTEGER NOT NULL DEFAULT 0, output_tokens INTEGER NOT NULL DEFAULT 0,
    cached_tokens INTEGER NOT NULL DEFAULT 0, reasoning_tokens INTEGER NOT NULL DEFAULT 0
);
CREATE TABLE batch_requests (
    part INTEGER NOT NULL, key BLOB NOT NULL, prompt BLOB NOT NULL, room TEXT NOT NULL, outcome TEXT,
    PRIMARY KEY (part, key)
) WITHOUT ROWID;
CREATE INDEX batch_requests_by_key ON batch_requests (key);
""",
)
"""What makes a store of each version out of one of the version before."""
SCHEMA_VERSION = len(_VERSIONS)
_FIND_REPLIES = """
SELECT text, finish_reason, refusal, model, batch, input_tokens, output_tokens, cached_tokens, reasoning_tokens
FROM replies WHERE key = ? ORDER BY number
"""
_KEEP_REPLY = """
INSERT INTO replies (
    key, number, text, finish_reason, refusal, model, input_tokens, output_tokens, cached_tokens, reasoning_tokens,
    received, run, batch
)
SELECT ?, coalesce(max(number) + 1, 0), ?, ?, ?, ?, ?, ?, ?, ?, ?, ?, ? FROM replies WHERE key = ?
"""
_SPENT = """
SELECT model, batch, sum(input_tokens), sum(output_tokens), sum(cached_tokens), sum(reasoning_tokens) FROM replies
WHERE run IN (SELECT started FROM runs WHERE output = ?) OR (run IS NULL AND ?)
GROUP BY model, batch, input_tokens >= ?
"""
_UNANSWERED = """
SELECT coalesce(sum(input_tokens), 0), coalesce(sum(output_tokens), 0) FROM unanswered
WHERE run IN (SELECT started FROM runs WHERE output = ?)
"""
_PAID = "SELECT model, input_tokens, output_tokens, cached_tokens, reasoning_tokens FROM replies WHERE run = ?"
_FIND_FACTS = "SELECT facts FROM endpoints WHERE address = ? AND model = ?"
_BUSY_SECONDS = 10.0
_BUSY_PAUSE_SECONDS = 0.05
_BUSY_CODES = (sqlite3.SQLITE_BUSY, sqlite3.SQLITE_LOCKED)
NO_SHARED_MEMORY = (
    "the store's file system has no shared memory (a network mount?): it is kept with a rollback journal, "
    "which waits for the disk at each reply; a local file can be named with --store"
)


class Store:
    """Replies, failures and facts about endpoints in one SQLite file (WAL mode); the runs' history beside them.

    Each reply is committed as it arrives, which costs some 23 µs of CPU (13 µs in a transaction of 64):
    a killed process loses none. Where another program holds the file, replies and failures raise MemoryBusy after
    a moment, and the rest waits.
    """

    def __init__(self, path: Path | None, *, reading: bool = False) -> None:
        """Open or create the file; None is a temporary one that goes with the process. Raises OutputError.

        With `reading` nothing is written; the file has to be there.
        """
        self.path = path
        self._reading = reading
        self._run: float | None = None
        self._find_replies = _FIND_REPLIES
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
                    self._check_version()
                else:
                    self._set_up()
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
        for step in _VERSIONS[version:]:
            for statement in step.split(";"):
                self._execute(statement)
        if version < SCHEMA_VERSION:
            self._execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._execute("COMMIT")
        self._check_version()

    def _check_version(self) -> None:
        ((version,),) = self._execute("PRAGMA user_version")
        if version < SCHEMA_VERSION:  # of one that is only read
            self._find_replies = _FIND_REPLIES.replace(" batch,", " 0,")
        if version > SCHEMA_VERSION:
            raise OutputError(f"the store {str(self.path)!r} was written by a newer ctxrel; update ctxrel to use it")

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request, in the order of their arrival."""
        try:  # not by the context manager: this is asked for every record
            rows = self._execute(self._find_replies, (key,))
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return _replies(rows)

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        """Add a reply. Raises MemoryBusy."""
        told = (reply.text, reply.finish_reason, reply.refusal, reply.model, *reply.usage)
        self._write(_KEEP_REPLY, (key, *told, time.time(), self._run, reply.batch, key), wait=False)

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed when it was last asked, None where it did not."""
        with self._translated():
            rows = self._execute("SELECT kind FROM failures WHERE key = ?", (key,))
        return FailureKind(rows[0][0]) if rows else None

    def last_failure(self, key: bytes) -> Failure | None:
        """The same with its message."""
        rows = self.rows("SELECT kind, message FROM failures WHERE key = ?", (key,))
        return Failure(FailureKind(rows[0][0]), rows[0][1]) if rows else None

    def keep_failure(self, key: bytes, failure: Failure) -> None:
        """Note a failure; the request is asked again in the next run. Raises MemoryBusy."""
        values = (key, failure.kind, failure.message, time.time())
        self._write("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)", values, wait=False)

    def facts(self, address: str, model: str) -> dict[str, object]:
        """What is known of an endpoint; empty where nothing is."""
        with self._translated():
            rows = self._execute(_FIND_FACTS, (address, model))
        facts: dict[str, object] = orjson.loads(rows[0][0]) if rows else {}
        return facts

    def keep_facts(self, address: str, model: str, facts: dict[str, object]) -> None:
        """Remember what an endpoint takes, unless another program holds the file: it is found out again."""
        values = (address, model, orjson.dumps(facts).decode())
        with suppress(MemoryBusy):
            self._write("INSERT OR REPLACE INTO endpoints VALUES (?, ?, ?)", values, wait=False)

    def begin_run(self, started: float, output: str = "") -> None:
        """Open a line in the runs' history; `started` is a Unix time in seconds, `output` tells whose runs it is of.

        What is kept from now on was paid by this run.
        """
        self._write("INSERT OR REPLACE INTO runs (started, output) VALUES (?, ?)", (started, output))
        self._run = started

    def spent(self, output: str, *, alone: bool) -> list[tuple[str | None, bool, Usage]]:
        """Tokens that the runs of an output have paid for, by the model as it was named, and by batches apart.

        Long prompts, which may have another price, stand apart from short ones.

        Replies that an earlier version of ctxrel kept do not tell of their run: they count where no other output
        uses the store (`alone`).
        """
        with self._translated():
            rows = self._execute(_SPENT, (output, alone, LEAST_CACHED))
        return [(model, bool(batch), Usage(*usage)) for model, batch, *usage in rows]

    def unanswered(self, output: str) -> Usage:
        """The most that attempts of an output's runs can have had in tokens which brought no reply."""
        with self._translated():
            ((taken, given),) = self._execute(_UNANSWERED, (output,))
        return Usage(taken, given)

    def paid_by(self, run: float) -> Iterator[Reply]:
        """The replies that a run has paid for, without their texts."""
        with self._translated():
            for model, *usage in self._db.execute(_PAID, (run,)):
                yield Reply(text=None, finish_reason="", model=model, usage=Usage(*usage))

    def lost_by(self, run: float) -> list[Usage]:
        """The bounds of a run's attempts that brought no reply and may have been billed."""
        with self._translated():
            rows = self._execute("SELECT input_tokens, output_tokens FROM unanswered WHERE run = ?", (run,))
        return [Usage(*usage) for usage in rows]

    def keep_unanswered(self, most: Usage) -> None:
        """Note an attempt that brought no reply and may have been billed, unless another program holds the file."""
        with suppress(MemoryBusy):
            self._write(
                "INSERT INTO unanswered VALUES (?, ?, ?)",
                (self._run, most.input_tokens, most.output_tokens),
                wait=False,
            )

    def experience(self, address: str, model: str) -> dict[bytes, dict[str, float]]:
        """Sums over what a model has answered, by the prompt's fingerprint."""
        statement = "SELECT fingerprint, sums FROM experience WHERE address = ? AND model = ?"
        with self._translated():
            if self._reading and self._execute("PRAGMA user_version") == [(1,)]:
                return {}
            rows = self._execute(statement, (address, model))
        return {fingerprint: orjson.loads(sums) for fingerprint, sums in rows}

    def keep_experience(self, address: str, model: str, fingerprint: bytes, sums: dict[str, float]) -> None:
        """Replace the sums of a prompt, unless another program holds the file."""
        values = (address, model, fingerprint, orjson.dumps(sums).decode())
        with suppress(MemoryBusy):
            self._write("INSERT OR REPLACE INTO experience VALUES (?, ?, ?, ?)", values, wait=False)

    def end_run(self, started: float, summary: dict[str, object]) -> None:
        """Close the run's line with its summary."""
        values = (time.time(), orjson.dumps(summary).decode(), started)
        self._write("UPDATE runs SET ended = ?, summary = ? WHERE started = ?", values)

    def knows_results(self, results_hash: str) -> bool:
        """Whether a run that used this store ended with these results."""
        with self._translated():
            rows = self._db.execute("SELECT 1 FROM runs WHERE instr(summary, ?) LIMIT 1", (results_hash,)).fetchall()
        return bool(rows)

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


def read_replies(db: sqlite3.Connection, key: bytes) -> list[Reply]:
    """All replies to a request in a store that somebody else writes, in the order of their arrival."""
    return _replies(db.execute(_FIND_REPLIES, (key,)).fetchall())


def _replies(rows: list[Any]) -> list[Reply]:
    return [
        Reply(text=text, finish_reason=finish, refusal=refusal, model=model, batch=bool(batch), usage=Usage(*usage))
        for text, finish, refusal, model, batch, *usage in rows
    ]
