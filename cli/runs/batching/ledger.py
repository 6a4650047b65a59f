"""What was sent through batches: kept in the store, written down before and after each step."""

import os
import time
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

from ....evaluators.errors import Failure
from ....evaluators.judges.batches.batch import Batch
from ....evaluators.judges.openai_chat import Room
from ....evaluators.replies import Reply, Usage
from ..store import Store
from .parts import OPEN, OTHER_WAY, REPLIED, Part, Planned, State, Try

_COLUMNS = (
    "number, run, hash, state, planned, requests, bytes, tokens, dialect, file, batch, status, completed, failed, "
    "created, ended, company, refused, cancelled, input_tokens, output_tokens, cached_tokens, reasoning_tokens"
)
_OPEN = ", ".join(f"'{state}'" for state in OPEN)
_PLAN = f"""
INSERT INTO batches (run, hash, state, planned, requests, bytes, tokens, dialect) VALUES (?, ?, ?, ?, ?, ?, ?, ?)
RETURNING {_COLUMNS}
"""  # noqa: S608  # no value is in it
_ELSEWHERE = """
state = ? AND run != ? AND run IN (SELECT number FROM batch_runs WHERE base_url = ?)
AND number IN (SELECT part FROM batch_requests WHERE key = ? AND outcome IS NULL)
"""
_PAID_BY = """
UPDATE replies SET run = ? WHERE key = ? AND number = (SELECT max(number) FROM replies WHERE key = ?)
"""
_KEEP_STATUS = f"""
UPDATE batches SET state = '{State.SENT}', batch = ?, file = coalesce(?, file), status = ?, completed = ?, failed = ?,
created = coalesce(?, created), ended = ? WHERE number = ? AND state IN ({_OPEN})
"""  # noqa: S608  # no value is in it


class Sender(NamedTuple):
    """To whom the batches of a run go, and with which key."""

    base_url: str
    model: str
    api_key_env: str
    insecure: bool


class Ledger:
    """The batches of one run in its store; a run lasts over several commands until its rows are written."""

    def __init__(self, store: Store, output: str, sender: Sender) -> None:
        """Goes on with the run that was begun at this output, with this endpoint and model, or begins one."""
        self._store = store
        self._output = output
        self._sender = sender
        with store.transaction():
            found = store.rows(
                "SELECT number FROM batch_runs WHERE output = ? AND base_url = ? AND model = ? AND ended IS NULL",
                (output, sender.base_url, sender.model),
            )
            self.run: int = found[0][0] if found else self._begin(output)

    def _begin(self, output: str) -> int:
        values = (output, *self._sender, time.time())
        rows = self._store.rows(
            "INSERT INTO batch_runs (output, base_url, model, api_key_env, insecure, begun) VALUES (?, ?, ?, ?, ?, ?) "
            "RETURNING number",
            values,
        )
        return int(rows[0][0])

    @property
    def surveyed(self) -> bool:
        """Whether all that is wanted has been sent, as far as that is known without what is under way."""
        return bool(self._of_run("surveyed"))

    @property
    def rounds(self) -> int:
        """How often everything was sent and collected."""
        return int(self._of_run("rounds") or 0)

    @property
    def most_tokens(self) -> int | None:
        """What a part may have at most, as far as the account's limit has shown; None where it has not."""
        return self._of_run("most_tokens")

    def keep_surveyed(self, *, surveyed: bool) -> None:
        """Note that a survey has ended, or that what it sent has been collected."""
        rounds = 0 if surveyed else 1
        self._set_run("surveyed = ?, rounds = rounds + ?", (surveyed, rounds))

    def keep_most_tokens(self, tokens: int) -> None:
        """Note that parts have to be smaller."""
        self._set_run("most_tokens = ?", (tokens,))

    def end(self) -> None:
        """The run is over: its rows are written, and the next one asks about failures again."""
        with self._store.transaction():
            self._set_run("ended = ?", (time.time(),))
            self._store.rows(
                "DELETE FROM batch_requests WHERE part IN (SELECT number FROM batches WHERE run = ?)", (self.run,)
            )

    def plan(self, part_hash: str, size: int, tokens: int, dialect: str, planned: Sequence[Planned]) -> Part:
        """Write a part down before anything of it is sent."""
        with self._store.transaction():
            rows = self._store.rows(
                _PLAN,
                (self.run, part_hash, State.PLANNED, time.time(), len(planned), size, tokens, dialect),
            )
            part = _part(rows[0])
            for key, prompt, room in planned:
                self._store.rows(
                    "INSERT INTO batch_requests VALUES (?, ?, ?, ?, NULL)", (part.number, key, prompt, room.name)
                )
        return part

    def parts(self, *, under_way: bool = False) -> list[Part]:
        """The run's parts in their order."""
        also = f"AND state IN ({_OPEN})" if under_way else ""
        return self._parts(f"run = ? {also}", (self.run,))

    def part(self, number: int) -> Part:
        """One part, as it is now."""
        return self._parts("number = ?", (number,))[0]

    def elsewhere(self, key: bytes) -> Part | None:
        """The part of another run that a request is under way in, at the same endpoint."""
        found = self._parts(_ELSEWHERE, (State.SENT, self.run, self._sender.base_url, key))
        return found[0] if found else None

    def tries(self, key: bytes) -> list[Try]:
        """The run's tries at a request, in their order."""
        rows = self._store.rows(
            "SELECT outcome, part FROM batch_requests r JOIN batches b ON b.number = r.part "
            "WHERE key = ? AND run = ? ORDER BY part",
            (key, self.run),
        )
        return [Try(*row) for row in rows]

    def prompts(self, part: Part) -> set[bytes]:
        """The prompts of a part's requests."""
        rows = self._store.rows("SELECT DISTINCT prompt FROM batch_requests WHERE part = ?", (part.number,))
        return {row[0] for row in rows}

    def rooms(self, part: Part) -> dict[Room, int]:
        """How many of a part's requests ask for which room."""
        rows = self._store.rows(
            "SELECT room, count(*) FROM batch_requests WHERE part = ? GROUP BY room", (part.number,)
        )
        return {Room[room]: count for room, count in rows}

    def answered_meanwhile(self, part: Part) -> bool:
        """Whether a reply to one of a part's requests has arrived since it was planned, by another way."""
        rows = self._store.rows(
            "SELECT 1 FROM batch_requests q JOIN replies r ON r.key = q.key WHERE part = ? AND received > ? LIMIT 1",
            (part.number, part.planned),
        )
        return bool(rows)

    def knows(self, batch: str) -> bool:
        """Whether a batch is written down already."""
        return bool(self._store.rows("SELECT 1 FROM batches WHERE batch = ?", (batch,)))

    def keep_file(self, part: Part, file: str) -> Part:
        """Write down that a part's file is at the endpoint."""
        self._store.rows("UPDATE batches SET state = ?, file = ? WHERE number = ?", (State.UPLOADED, file, part.number))
        return self.part(part.number)

    def keep_creating(self, part: Part, company: int) -> Part:
        """Write down that a batch is asked for, beside so many others."""
        self._store.rows(
            "UPDATE batches SET state = ?, company = ? WHERE number = ?", (State.CREATING, company, part.number)
        )
        return self.part(part.number)

    def keep_batch(self, part: Part, batch: Batch) -> Part:
        """Write down a part's batch, and how far it is."""
        keep_status(self._store, part, batch)
        return self.part(part.number)

    def give_back(self, part: Part) -> None:
        """Nothing came of a part: its requests are wanted as if it had never been."""
        forget_part(self._store, part)

    def hold(self, part: Part) -> Part:
        """Let go of a batch that the account had no room for; its file stays."""
        self._store.rows(
            "UPDATE batches SET state = ?, batch = NULL, status = NULL, created = NULL, ended = NULL, "
            "refused = refused + (company = 0) WHERE number = ?",
            (State.HELD, part.number),
        )
        return self.part(part.number)

    def put_off(self, part: Part) -> None:
        """A part waits until others have left enough of the caps."""
        self._store.rows("UPDATE batches SET state = ? WHERE number = ?", (State.HELD, part.number))

    def waiting(self, part: Part, key: bytes) -> tuple[bytes, Room] | None:
        """Prompt and room of a request that has no outcome yet; None where it has one, or is not of this part."""
        rows = self._store.rows(
            "SELECT prompt, room FROM batch_requests WHERE part = ? AND key = ? AND outcome IS NULL",
            (part.number, key),
        )
        return (rows[0][0], Room[rows[0][1]]) if rows else None

    def keep(self, part: Part, key: bytes, found: Reply | Failure | Room) -> None:
        """Write down what became of a request; a Room is for another try at one refused for a parameter."""
        if isinstance(found, Reply):
            self._store.keep_reply(key, found)
            if payer := self.payer(part):
                self._store.rows(_PAID_BY, (payer, key, key))
            usage = tuple(found.usage)
            self._store.rows(
                "UPDATE batches SET input_tokens = input_tokens + ?, output_tokens = output_tokens + ?, "
                "cached_tokens = cached_tokens + ?, reasoning_tokens = reasoning_tokens + ? WHERE number = ?",
                (*usage, part.number),
            )
            outcome = REPLIED
        elif isinstance(found, Failure):
            self._store.keep_failure(key, found)
            outcome = found.kind.value
        else:
            outcome = f"{OTHER_WAY}: {found.name}"
        self._store.rows(
            "UPDATE batch_requests SET outcome = ? WHERE part = ? AND key = ?", (outcome, part.number, key)
        )

    def payer(self, part: Part) -> float | None:
        """The run of another output that has sent a part, and so pays for it; None for a part of this output."""
        if part.run == self.run or self._store.path is None:
            return None
        ((output,),) = self._store.rows("SELECT output FROM batch_runs WHERE number = ?", (part.run,))
        if output == self._output:
            return None
        name = os.path.relpath(output, os.path.realpath(self._store.path.parent))
        ((started,),) = self._store.rows(
            "SELECT max(started) FROM runs WHERE output = ? AND started <= ?", (name, part.planned)
        )
        return None if started is None else float(started)

    def release(self, part: Part) -> None:
        """A part is over, and what has no outcome is wanted as if it had not been in it."""
        with self._store.transaction():
            self._store.rows("DELETE FROM batch_requests WHERE part = ? AND outcome IS NULL", (part.number,))
            self._store.rows("UPDATE batches SET state = ? WHERE number = ?", (State.COLLECTED, part.number))

    def close_part(self, part: Part, failure: Failure) -> None:
        """A part is over, and what has no outcome failed."""
        with self._store.transaction():
            self._store.rows(
                "INSERT OR REPLACE INTO failures SELECT key, ?, ?, ? FROM batch_requests "
                "WHERE part = ? AND outcome IS NULL",
                (failure.kind.value, failure.message, time.time(), part.number),
            )
            self._store.rows(
                "UPDATE batch_requests SET outcome = ? WHERE part = ? AND outcome IS NULL",
                (failure.kind.value, part.number),
            )
            self._store.rows("UPDATE batches SET state = ? WHERE number = ?", (State.COLLECTED, part.number))

    def usage(self) -> Usage:
        """Tokens of all replies that the run's batches have brought."""
        total = Usage()
        for part in self.parts():
            total = total.plus(part.usage)
        return total

    def _parts(self, condition: str, values: tuple[object, ...]) -> list[Part]:
        rows = self._store.rows(f"SELECT {_COLUMNS} FROM batches WHERE {condition} ORDER BY number", values)  # noqa: S608  # no value is in it
        return [_part(row) for row in rows]

    def _of_run(self, column: str) -> int | None:
        rows = self._store.rows(f"SELECT {column} FROM batch_runs WHERE number = ?", (self.run,))  # noqa: S608  # a name of ours
        value: int | None = rows[0][0]
        return value

    def _set_run(self, change: str, values: tuple[object, ...]) -> None:
        self._store.rows(f"UPDATE batch_runs SET {change} WHERE number = ?", (*values, self.run))  # noqa: S608  # no value is in it


def _part(row: Sequence[Any]) -> Part:
    """The part of a row of `_COLUMNS`."""
    number, run, part_hash, state, *others = row[:-5]
    return Part._make((number, run, part_hash, State(state), *others, bool(row[-5]), Usage(*row[-4:])))


class Sent(NamedTuple):
    """A part, and to whom it was sent."""

    part: Part
    sender: Sender
    output: str


def sent_parts(store: Store) -> list[Sent]:
    """All parts of all runs that a store knows of."""
    named = ", ".join(f"b.{name.strip()}" for name in _COLUMNS.split(","))
    rows = store.rows(
        f"SELECT {named}, base_url, model, api_key_env, insecure, output FROM batches b "  # noqa: S608  # no value is in it
        "JOIN batch_runs r ON r.number = b.run ORDER BY b.number"
    )
    return [Sent(_part(row[:-5]), Sender(row[-5], row[-4], row[-3], bool(row[-2])), row[-1]) for row in rows]


def keep_status(store: Store, part: Part, batch: Batch) -> None:
    """Write down a part's batch, and how far it is."""
    counts = (batch.status, batch.completed, batch.failed)
    store.rows(_KEEP_STATUS, (batch.id, batch.input_file, *counts, batch.created, batch.ended, part.number))


def forget_part(store: Store, part: Part) -> None:
    """Nothing came of a part: its requests are wanted as if it had never been."""
    with store.transaction():
        store.rows("DELETE FROM batch_requests WHERE part = ?", (part.number,))
        store.rows("UPDATE batches SET state = ? WHERE number = ?", (State.RETURNED, part.number))


def ask_to_cancel(store: Store, part: Part) -> None:
    """Note that the user wants an end of the part."""
    store.rows("UPDATE batches SET cancelled = 1 WHERE number = ?", (part.number,))


def part_file(folder: Path, part: Part) -> Path:
    """Where the requests of a part are until it is sent."""
    return folder / "batches" / f"{part.hash}.jsonl"
