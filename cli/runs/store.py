"""The store: every reply that was paid for, found again by the exact request that brought it."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

import orjson

from ...evaluators.errors import Failure, FailureKind, OutputError
from ...evaluators.replies import Reply, Usage

SCHEMA_VERSION = 1
_SCHEMA = """
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
"""
_FIND_REPLIES = """
SELECT text, finish_reason, refusal, model, input_tokens, output_tokens, cached_tokens, reasoning_tokens
FROM replies WHERE key = ? ORDER BY number
"""
_KEEP_REPLY = """
INSERT INTO replies
SELECT ?, coalesce(max(number) + 1, 0), ?, ?, ?, ?, ?, ?, ?, ?, ? FROM replies WHERE key = ?
"""
_FIND_FACTS = "SELECT facts FROM endpoints WHERE address = ? AND model = ?"
_BUSY_SECONDS = 10.0
_BUSY_PAUSE_SECONDS = 0.05


class Store:
    """Replies, failures and facts about endpoints in one SQLite file (WAL mode); the runs' history beside them.

    Each reply is committed as it arrives, which costs some 23 µs of CPU (13 µs in a transaction of 64):
    a killed process loses none.
    """

    def __init__(self, path: Path | None) -> None:
        """Open or create the file; None is a temporary one that goes with the process. Raises OutputError."""
        self.path = path
        with self._translated():
            if path is not None:
                path.touch(mode=0o600)
            self._db = sqlite3.connect(path or "", timeout=_BUSY_SECONDS, isolation_level=None)
            with ExitStack() as failed:
                failed.callback(self._db.close)
                self._set_up()
                failed.pop_all()

    def _set_up(self) -> None:
        """Switch to WAL, which waits for nobody by itself, and make the tables."""
        deadline = time.monotonic() + _BUSY_SECONDS
        while True:
            try:
                self._db.execute("PRAGMA journal_mode = WAL")
                break
            except sqlite3.OperationalError as error:
                if "locked" not in str(error) or time.monotonic() > deadline:
                    raise
                time.sleep(_BUSY_PAUSE_SECONDS)
        self._db.execute("PRAGMA synchronous = NORMAL")
        self._create()

    def _create(self) -> None:
        self._db.execute("BEGIN IMMEDIATE")  # two runs may open a new store at once
        (version,) = self._db.execute("PRAGMA user_version").fetchone()
        if version == 0:
            for statement in _SCHEMA.split(";"):
                self._db.execute(statement)
            self._db.execute(f"PRAGMA user_version = {SCHEMA_VERSION}")
        self._db.execute("COMMIT")
        if version > SCHEMA_VERSION:
            raise OutputError(f"the store {str(self.path)!r} was written by a newer ctxrel; update ctxrel to use it")

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request, in the order of their arrival."""
        try:  # not by the context manager: this is asked for every record
            rows = self._db.execute(_FIND_REPLIES, (key,)).fetchall()
        except sqlite3.Error as error:
            raise self._unusable(error) from error
        return [
            Reply(text=text, finish_reason=finish, refusal=refusal, model=model, usage=Usage(*usage))
            for text, finish, refusal, model, *usage in rows
        ]

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        """Add a reply."""
        values = (key, reply.text, reply.finish_reason, reply.refusal, reply.model, *reply.usage, time.time(), key)
        self._write(_KEEP_REPLY, values)

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed when it was last asked, None where it did not."""
        with self._translated():
            row = self._db.execute("SELECT kind FROM failures WHERE key = ?", (key,)).fetchone()
        return FailureKind(row[0]) if row else None

    def keep_failure(self, key: bytes, failure: Failure) -> None:
        """Note a failure; the request is asked again in the next run."""
        values = (key, failure.kind, failure.message, time.time())
        self._write("INSERT OR REPLACE INTO failures VALUES (?, ?, ?, ?)", values)

    def facts(self, address: str, model: str) -> dict[str, object]:
        """What is known of an endpoint; empty where nothing is."""
        with self._translated():
            row = self._db.execute(_FIND_FACTS, (address, model)).fetchone()
        facts: dict[str, object] = orjson.loads(row[0]) if row else {}
        return facts

    def keep_facts(self, address: str, model: str, facts: dict[str, object]) -> None:
        """Remember what an endpoint takes."""
        self._write("INSERT OR REPLACE INTO endpoints VALUES (?, ?, ?)", (address, model, orjson.dumps(facts).decode()))

    def begin_run(self, started: float) -> None:
        """Open a line in the runs' history; `started` is a Unix time in seconds."""
        self._write("INSERT OR REPLACE INTO runs (started) VALUES (?)", (started,))

    def end_run(self, started: float, summary: dict[str, object]) -> None:
        """Close the run's line with its summary."""
        values = (time.time(), orjson.dumps(summary).decode(), started)
        self._write("UPDATE runs SET ended = ?, summary = ? WHERE started = ?", values)

    def knows_results(self, results_hash: str) -> bool:
        """Whether a run that used this store ended with these results."""
        with self._translated():
            rows = self._db.execute("SELECT 1 FROM runs WHERE instr(summary, ?) LIMIT 1", (results_hash,)).fetchall()
        return bool(rows)

    def close(self) -> None:
        """Close the file; everything written is already in it."""
        self._db.close()

    def _write(self, statement: str, values: tuple[object, ...]) -> None:
        with self._translated():
            self._db.execute(statement, values)

    @contextmanager
    def _translated(self) -> Iterator[None]:
        try:
            yield
        except (sqlite3.Error, OSError) as error:
            raise self._unusable(error) from error

    def _unusable(self, error: Exception) -> OutputError:
        reason = getattr(error, "strerror", None) or str(error)
        return OutputError(
            f"cannot use the store {str(self.path or 'temporary')!r}: {reason}; another can be named with --store"
        )
