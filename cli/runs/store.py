"""The store: every reply that was paid for, found again by the exact request that brought it."""

import sqlite3
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import orjson

from ...evaluators.costs.price import LEAST_CACHED
from ...evaluators.errors import Failure, FailureKind, MemoryBusy
from ...evaluators.replies import Reply, Usage
from .database import Database

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
_OLDEST, _WITH_BATCHES = 1, 3
"""Versions of the tables: the first has none for experience; since the other, replies tell of batches."""
_FIND_FACTS = "SELECT facts FROM endpoints WHERE address = ? AND model = ?"


class Store(Database):
    """Replies, failures and facts about endpoints in one SQLite file; the runs' history beside them.

    Each reply is committed as it arrives, which costs some 23 µs of CPU (13 µs in a transaction of 64):
    a killed process loses none. Where another program holds the file, replies and failures raise MemoryBusy after
    a moment, and the rest waits.
    """

    def __init__(self, path: Path | None, *, reading: bool = False) -> None:
        """Open or create the file, as a Database does. Raises OutputError."""
        super().__init__(path, reading=reading)
        self._run: float | None = None
        told = self.version >= _WITH_BATCHES
        self._find_replies = _FIND_REPLIES if told else _FIND_REPLIES.replace(" batch,", " 0,")

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
        if self.version == _OLDEST:
            return {}
        rows = self.rows(statement, (address, model))
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


def read_replies(db: sqlite3.Connection, key: bytes) -> list[Reply]:
    """All replies to a request in a store that somebody else writes, in the order of their arrival."""
    return _replies(db.execute(_FIND_REPLIES, (key,)).fetchall())


def _replies(rows: list[Any]) -> list[Reply]:
    return [
        Reply(text=text, finish_reason=finish, refusal=refusal, model=model, batch=bool(batch), usage=Usage(*usage))
        for text, finish, refusal, model, batch, *usage in rows
    ]
