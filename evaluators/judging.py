"""One record through one evaluator: remembered, asked for, divided where it does not fit, never raised."""

import asyncio
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import Protocol

from .errors import Failure, FailureKind
from .evaluator import Evaluation, Evaluator, Task
from .judges.asking import Asker
from .prompt import Prompt, Request
from .record import Record
from .replies import Reply, Usage


class Memory(Protocol):
    """Where replies are kept."""

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request, in the order of their arrival."""

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        """Add a reply."""

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed when it was last asked, None where it did not."""

    def keep_failure(self, key: bytes, failure: Failure) -> None:
        """Note a failure."""


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What became of a record."""

    evaluation: Evaluation | None = None
    failure: Failure | None = None
    replies: list[Reply] = field(default_factory=list)
    """Every reply that was paid for on the way, also in earlier runs."""
    requests: int = 0
    """Requests the record was divided into; 0 where there was nothing to ask."""
    reused: int = 0
    """How many of the requests were answered from memory."""

    @property
    def usage(self) -> Usage:
        """Tokens of all replies."""
        total = Usage()
        for reply in self.replies:
            total = total.plus(reply.usage)
        return total

    @property
    def model(self) -> str | None:
        """The model as the endpoint named it last."""
        return self.replies[-1].model if self.replies else None


class Judging:
    """Judges records with one judge and one memory."""

    def __init__(self, asker: Asker, memory: Memory) -> None:
        self.asker = asker
        self._memory = memory
        self._under_way: dict[bytes, asyncio.Task[set[int]]] = {}
        self._fingerprints: dict[Prompt, bytes] = {}

    async def judge(self, record: Record, evaluator: Evaluator) -> Outcome:
        """The outcome; failures are data in it. Raises RunError where no record can be judged."""
        outcome = Outcome()
        try:
            if record.problem is not None:
                raise Failure(FailureKind.BAD_INPUT, record.problem)  # noqa: TRY301  # the one way to an error row
            task = evaluator.task(record)
            verdict = await self._verdict(task, outcome)
            outcome.evaluation = evaluator.evaluate(task, verdict)
        except Failure as failure:
            outcome.failure = failure
        return outcome

    async def cancel(self) -> None:
        """Give up what is under way; replies that have arrived are kept."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _verdict(self, task: Task, outcome: Outcome) -> set[int]:
        request = task.request()
        if request is None:
            return set()
        key = self._key(request)
        outcome.requests += 1
        replies = self._memory.replies(key)
        remembered = _first_verdict(task, replies)
        if remembered is not None:
            outcome.reused += 1
            outcome.replies += replies
            return remembered
        return await self._new_verdict(task, request, key, outcome)

    async def _new_verdict(self, task: Task, request: Request, key: bytes, outcome: Outcome) -> set[int]:
        halves = task.halves()
        if halves and self._memory.failure(key) is FailureKind.CONTEXT_TOO_LONG:
            return await self._united(halves, outcome)
        try:
            return await self._shared(task, request, key)
        except Failure as failure:
            self._memory.keep_failure(key, failure)
            if not halves or failure.kind is not FailureKind.CONTEXT_TOO_LONG:
                raise
            return await self._united(halves, outcome)
        finally:
            outcome.replies += self._memory.replies(key)

    async def _united(self, halves: tuple[Task, Task], outcome: Outcome) -> set[int]:
        outcome.requests -= 1
        first = await self._verdict(halves[0], outcome)
        return first | await self._verdict(halves[1], outcome)

    async def _shared(self, task: Task, request: Request, key: bytes) -> set[int]:
        """The verdict; identical requests that are in flight at once are one request."""
        if key not in self._under_way:
            asking = self.asker.ask(request, task.read, lambda reply: self._memory.keep_reply(key, reply))
            self._under_way[key] = asyncio.ensure_future(asking)
            self._under_way[key].add_done_callback(lambda _: self._under_way.pop(key))
        return await asyncio.shield(self._under_way[key])

    def _key(self, request: Request) -> bytes:
        if request.prompt not in self._fingerprints:
            self._fingerprints[request.prompt] = self.asker.judge.fingerprint(request.prompt)
        return blake2b(self._fingerprints[request.prompt] + request.user.encode(), digest_size=16).digest()


def _first_verdict(task: Task, replies: list[Reply]) -> set[int] | None:
    for reply in replies:
        try:
            return task.read(reply)
        except Failure:
            continue
    return None
