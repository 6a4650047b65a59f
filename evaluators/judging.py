"""One record through one evaluator: remembered, asked for, divided where it does not fit, never raised."""

import asyncio
from collections.abc import Iterator
from dataclasses import dataclass, field
from functools import partial
from hashlib import blake2b

from .costs.tariff import UNKNOWN_TARIFF, Tariff
from .errors import Failure, FailureKind
from .evaluator import Evaluation, Evaluator, Task, Verdict
from .judges.asking import Asker
from .memory import Memory
from .prompt import Prompt, Request
from .record import Record
from .replies import Reply, Usage, is_repaired
from .tokens import most_tokens

_FAILED = 10_000


@dataclass(kw_only=True, slots=True)
class Outcome:
    """What became of a record."""

    evaluation: Evaluation | None = None
    failure: Failure | None = None
    replies: list[Reply] = field(default_factory=list)
    """Every reply that was paid for on the way, also in earlier runs."""
    found: list[Reply] = field(default_factory=list)
    """Those of them that this record did not have to ask for."""
    tariff: Tariff = UNKNOWN_TARIFF
    """What they cost."""
    requests: int = 0
    """Requests the record was divided into; 0 where there was nothing to ask."""
    reused: int = 0
    """How many of the requests were answered from memory, or by one that was in flight for another record."""
    repaired: bool = False
    """Whether a reply that the verdict was read from had something around its object."""

    @property
    def usage(self) -> Usage:
        """Tokens of all replies."""
        total = Usage()
        for reply in self.replies:
            total = total.plus(reply.usage)
        return total

    @property
    def cost(self) -> float | None:
        """USD that all replies cost at list price, None where that is not known."""
        return self.tariff.cost(self.replies)

    @property
    def saved(self) -> float:
        """USD that the replies would have cost which this record did not have to ask for; 0 where that is not known."""
        return (self.found and self.tariff.cost(self.found)) or 0.0

    @property
    def model(self) -> str | None:
        """The model as the endpoint named it last."""
        return self.replies[-1].model if self.replies else None


class Begun:
    """A record's judgement under way."""

    __slots__ = ("ended", "evaluator", "key", "outcome", "request", "task")

    def __init__(self, evaluator: Evaluator, tariff: Tariff) -> None:
        self.evaluator = evaluator
        self.outcome = Outcome(tariff=tariff)
        self.task: Task | None = None
        self.request: Request | None = None
        self.key = b""
        self.ended = False

    def conclude(self, verdict: Verdict) -> None:
        """Make the evaluation of the whole record's verdict."""
        assert self.task is not None  # noqa: S101  # there is no verdict without one
        self.outcome.evaluation = self.evaluator.evaluate(self.task, verdict)
        self.ended = True


class Judging:
    """Judges records with one judge and one memory."""

    saves = True
    """Whether replies that are remembered are money saved: earlier runs have paid them."""

    def __init__(self, asker: Asker, memory: Memory, *, max_input_tokens: int | None = None, salt: bytes = b"") -> None:
        """Records of more than `max_input_tokens`, the prompt included, are divided before they are asked about.

        `salt` (16 bytes at most) keeps replies apart from those to the same requests with another one.
        """
        self.asker = asker
        self._salt = salt
        self._most = max_input_tokens
        self._memory = memory
        self._under_way: dict[bytes, asyncio.Task[bool]] = {}
        # In this run, the latest: a record that failed is not paid for again where it stands twice in a log.
        self._failed: dict[bytes, Failure] = {}
        self._fingerprints: dict[Prompt, bytes] = {}
        self._lengths: dict[Prompt, int] = {}

    async def judge(self, record: Record, evaluator: Evaluator) -> Outcome:
        """The outcome; failures are data in it. Raises RunError where no record can be judged."""
        return await self.finish(self.begin(record, evaluator))

    def begin(self, record: Record, evaluator: Evaluator) -> "Begun":
        """A record's judgement as far as it goes without asking: to its end, where its reply is remembered."""
        begun = Begun(evaluator, self.asker.budget.bill.tariff)
        try:
            if record.problem is not None:
                raise Failure(FailureKind.BAD_INPUT, record.problem)  # noqa: TRY301  # the one way to an error row
            begun.task = evaluator.task(record)
            begun.request = begun.task.request()
            if begun.request is None:
                begun.conclude(begun.task.nothing())
                return begun
            begun.key = self._key(begun.request)
            verdict = self._remembered(begun.task, begun.key, begun.outcome, found=True)
            if verdict is not None:
                begun.outcome.requests = begun.outcome.reused = 1
                begun.conclude(verdict)
        except Failure as failure:
            begun.outcome.failure = failure
            begun.ended = True
        return begun

    async def finish(self, begun: "Begun") -> Outcome:
        """The outcome of a judgement that was begun. Raises RunError where no record can be judged."""
        if not begun.ended:
            assert begun.task is not None  # noqa: S101  # else it would have ended
            assert begun.request is not None  # noqa: S101
            try:
                begun.outcome.requests += 1
                begun.conclude(await self._asked(begun.task, begun.request, begun.key, begun.outcome))
            except Failure as failure:
                begun.outcome.failure = failure
        return begun.outcome

    def needed(self, begun: "Begun") -> Iterator[tuple[bytes, Request]]:
        """Key and request of all that a judgement would have to ask for, as far as that can be told before."""
        if not begun.ended and begun.task is not None and begun.request is not None:
            yield from self._needed(begun.task, begun.request, begun.key)

    def _needed(self, task: Task, request: Request, key: bytes) -> Iterator[tuple[bytes, Request]]:
        halves = task.halves() if self._exceeds(request) > 0 else None
        if halves is None:
            yield key, request
            return
        for half in halves:
            part = half.request()
            if part is not None and self._remembered(half, self._key(part), Outcome(), found=True) is None:
                yield from self._needed(half, part, self._key(part))

    async def cancel(self) -> None:
        """Give up what is under way; replies that have arrived are kept."""
        tasks = list(self._under_way.values())
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    async def _verdict(self, task: Task, outcome: Outcome) -> Verdict:
        """The verdict on a part of a record."""
        request = task.request()
        if request is None:
            return task.nothing()
        key = self._key(request)
        outcome.requests += 1
        verdict = self._remembered(task, key, outcome, found=True)
        if verdict is not None:
            outcome.reused += 1
            return verdict
        return await self._asked(task, request, key, outcome)

    async def _asked(self, task: Task, request: Request, key: bytes, outcome: Outcome) -> Verdict:
        """The verdict on what is not remembered, divided where it does not fit."""
        before = self._memory.failure(key)
        too_long = before is FailureKind.CONTEXT_TOO_LONG or task.crowded or self._exceeds(request) > 0
        halves = task.halves() if too_long else None
        if halves is None:
            self._refuse_too_long(request)
            try:
                return await self._new_verdict(task, request, key, outcome, failed_before=before is not None)
            except Failure as failure:
                halves = task.halves() if failure.kind is FailureKind.CONTEXT_TOO_LONG else None
                if halves is None:
                    raise
        outcome.requests -= 1
        first = await self._verdict(halves[0], outcome)
        return task.unite(first, await self._verdict(halves[1].after(first), outcome))

    def _refuse_too_long(self, request: Request) -> None:
        if over := self._exceeds(request):
            raise Failure(
                FailureKind.CONTEXT_TOO_LONG,
                f"about {over:,} tokens of input, which cannot be divided further; "
                f"--max-input-tokens allows {self._most:,}",
            )

    def _exceeds(self, request: Request) -> int:
        """The tokens of a request that has more than it may have, else 0."""
        if self._most is None:
            return 0
        if request.prompt not in self._lengths:
            self._lengths[request.prompt] = most_tokens(request.prompt.system)
        tokens = self._lengths[request.prompt] + most_tokens(request.user)
        return tokens if tokens > self._most else 0

    async def _new_verdict(
        self, task: Task, request: Request, key: bytes, outcome: Outcome, *, failed_before: bool
    ) -> Verdict:
        """The verdict as the memory has it once it was asked for: the first that arrived, whoever asked."""
        try:
            if earlier := self._failed.get(key):
                raise Failure(earlier.kind, earlier.message)  # noqa: TRY301  # anew: a traceback grows with each raise
            found = await self._ask_once(task, request, key, failed_before=failed_before)
        except Failure:
            outcome.replies += self._memory.replies(key)
            raise
        outcome.reused += found
        verdict = self._remembered(task, key, outcome, found=found)
        if verdict is None:  # another evaluator asked, and reads other things in the same reply
            outcome.replies += self._memory.replies(key)
            raise Failure(FailureKind.INVALID_REPLY, "the reply to a request that is shared does not fit")
        return verdict

    async def _ask_once(self, task: Task, request: Request, key: bytes, *, failed_before: bool) -> bool:
        """Ask, and tell whether somebody else had; identical requests that are in flight at once are one request."""
        shared = key in self._under_way
        if not shared:
            self._under_way[key] = asyncio.ensure_future(self._ask(task, request, key, failed_before=failed_before))
            self._under_way[key].add_done_callback(lambda done: self._done(key, done))
        asked = await asyncio.shield(self._under_way[key])
        return shared or not asked

    def _done(self, key: bytes, asked: "asyncio.Task[bool]") -> None:
        del self._under_way[key]
        if not asked.cancelled():
            asked.exception()  # looked at, also where whoever waited for it has been cancelled meanwhile

    async def _ask(self, task: Task, request: Request, key: bytes, *, failed_before: bool) -> bool:
        """Ask, and return whether that was needed."""
        kinds = [_kind_of(task, reply) for reply in self._memory.replies(key)]
        if None in kinds:  # the same text was answered while this record waited for its turn
            return False
        # A reply that was cut in an earlier run need not be cut again.
        enlarged = FailureKind.TRUNCATED in kinds
        try:
            await self.asker.ask(
                request,
                task.read,
                lambda reply: self._memory.keep_reply(key, reply),
                enlarged=enlarged,
                suspect=failed_before,
            )
        except Failure as failure:
            await self.asker.door.through(partial(self._memory.keep_failure, key, failure))
            self._failed[key] = failure
            if len(self._failed) > _FAILED:
                del self._failed[next(iter(self._failed))]
            raise
        return True

    def _remembered(self, task: Task, key: bytes, outcome: Outcome, *, found: bool) -> Verdict | None:
        """The verdict of the first reply that has one; the outcome is told of the replies up to it.

        `found` tells that nobody was asked for this record's sake.
        """
        replies = self._memory.replies(key)
        for number, reply in enumerate(replies, start=1):
            try:
                verdict = task.read(reply)
            except Failure:
                continue
            outcome.replies += replies[:number]
            if found:
                outcome.found += replies[:number]
            outcome.repaired |= is_repaired(reply)
            return verdict
        return None

    def _key(self, request: Request) -> bytes:
        if request.prompt not in self._fingerprints:
            self._fingerprints[request.prompt] = self.asker.judge.fingerprint(request.prompt)
        return blake2b(
            self._fingerprints[request.prompt] + request.user.encode(), digest_size=16, salt=self._salt
        ).digest()


def _kind_of(task: Task, reply: Reply) -> FailureKind | None:
    try:
        task.read(reply)
    except Failure as failure:
        return failure.kind
    return None
