"""Asking until there is a verdict or a reason why not: retries by class, within a budget."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass
from functools import partial
from typing import TypeVar

from ..errors import EndpointDown, EndpointError, EndpointUnreachable, Failure, FailureKind, RateLimited, RunError
from ..memory import Door
from ..prompt import Request
from ..replies import Reply, Usage
from ..tokens import most_tokens
from .judge import Judge
from .limiter import Limiter, Limits

_RETRIED = frozenset(
    {
        FailureKind.INVALID_REPLY,
        FailureKind.RATE_LIMITED,
        FailureKind.TIMEOUT,
        FailureKind.CONNECTION,
        FailureKind.SERVER_ERROR,
    }
)
_UNANSWERED = frozenset({FailureKind.TIMEOUT, FailureKind.CONNECTION})
_TROUBLE = _UNANSWERED | {FailureKind.SERVER_ERROR}
_NO_LARGER = frozenset({FailureKind.REJECTED, FailureKind.CONTEXT_TOO_LONG})
_DOUBTS = 3
"""So many refusals and two for each slot, without a reply in between, are not meant for single records any more."""
_FIRST_OUTPUT = 200
"""Tokens that a reply is expected to have before there was any."""
Verdict = TypeVar("Verdict")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a request is tried, and how long is waited in between."""

    attempts: int = 5
    """Tries in all."""
    invalid_replies: int = 3
    """Tries that may end in a reply that does not fit; each of them is paid."""
    rate_limits: int = 40
    """Rate limits that a request may meet; they do not count as tries. With growing waits some 10 to 20 minutes."""
    first_wait: float = 0.5
    """Seconds; doubled with each try, and the wait is a random share of it (full jitter)."""
    longest_wait: float = 30.0
    trouble: int = 20
    """Errors in a row, and two for each slot, after which the endpoint is taken to be down and asked by one request at
    a time."""
    outage_waits: tuple[float, ...] = (1, 2, 4, 8, 16, 30)
    """Seconds before each of these requests; when none of them is answered the run ends."""

    def wait(self, tries: int) -> float:
        """Seconds before the next try after `tries` failed ones."""
        return random.uniform(0, min(self.longest_wait, self.first_wait * 2 ** (tries - 1)))  # noqa: S311


class Asker:
    """Sends requests to a judge, not too many at once, and tries again where that can help."""

    def __init__(self, judge: Judge, patience: Patience | None = None, limits: Limits | None = None) -> None:
        self.judge = judge
        self.usage = Usage()
        """Tokens of the replies so far."""
        self.failed: Counter[FailureKind] = Counter()
        """Attempts that brought no reply, by kind."""
        self.door = Door()
        self.limiter = Limiter(limits or Limits(most=judge.concurrency, fixed=True))
        self._patience = patience or Patience()
        self._streak = 0
        self._trips = 0
        self._tripped_at = float("-inf")
        self._opening: asyncio.Task[None] | None = None
        self._answered = False
        self._known = judge.known
        self._doubts = 0

    @property
    def sent(self) -> int:
        """Requests sent so far."""
        return self.judge.sent

    async def ask(
        self,
        request: Request,
        read: Callable[[Reply], Verdict],
        keep: Callable[[Reply], None],
        *,
        enlarged: bool = False,
    ) -> Verdict:
        """The verdict that `read` finds in a reply; `keep` gets each reply as soon as it arrives.

        Where `keep` raises MemoryBusy it is called again.
        `enlarged` starts with the larger room that a truncated reply earlier on has shown to be needed.
        Raises Failure once the budget is spent, RunError where no request can succeed.
        """
        await self._open()
        failures = [FailureKind.TRUNCATED] if enlarged else []
        while True:
            larger = FailureKind.TRUNCATED in failures
            try:
                limits = failures.count(FailureKind.RATE_LIMITED)
                return read(await self._attempt(request, keep, enlarged=larger, limits=limits))
            except Failure as failure:
                if larger and failure.kind in _NO_LARGER:
                    raise Failure(
                        FailureKind.TRUNCATED, "the reply was cut, and no more room is to be had"
                    ) from failure
                failures.append(failure.kind)
                if not self._again(failures):
                    raise
                await self._wait(failure, failures)

    async def close(self) -> None:
        """Close the judge, if it was opened."""
        if self._opening is not None:
            await self.judge.close()

    async def _open(self) -> None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self.judge.open())
        await asyncio.shield(self._opening)

    async def _attempt(self, request: Request, keep: Callable[[Reply], None], *, enlarged: bool, limits: int) -> Reply:
        reserved = self._expected(request) if self.limiter.counts_tokens else 0
        async with self.limiter.slot(reserved):
            started = asyncio.get_running_loop().time()
            try:
                # The first request goes alone, and until it is answered nobody else has a turn.
                reply = await (self._send if self._answered else self._send_first)(request, enlarged=enlarged)
                # Kept before the slot is free: what a kill can lose is never more than what is in flight.
                await self.door.through(partial(keep, reply))
            except Failure as failure:
                self._count(failure, started, limits)
                raise
            except RunError as error:
                self.limiter.close(error)  # before the slot is free: nothing else is sent
                raise
            self.usage = self.usage.plus(reply.usage)
            self._known, self._doubts, self._streak, self._trips = True, 0, 0, 0
            self.limiter.succeeded(reserved=reserved, used=reply.usage.input_tokens + reply.usage.output_tokens)
            if wait := self.judge.wanted_wait():
                self.limiter.hold(wait)
            return reply

    def _expected(self, request: Request) -> int:
        """Tokens that a request may take: its own, and as many as replies have had so far."""
        replies = self.judge.sent - self.failed.total()
        out = self.usage.output_tokens / replies if replies > 0 else _FIRST_OUTPUT
        return most_tokens(request.prompt.system) + most_tokens(request.user) + round(out)

    def _count(self, failure: Failure, started: float, limits: int) -> None:
        """What everybody has to know of a failed attempt. Raises EndpointDown where it was one too many."""
        self.failed[failure.kind] += 1
        if isinstance(failure, RateLimited):
            # A wait the endpoint names is kept in full, and grows all the same where it does not suffice.
            grown = max(self._patience.wait(limits + 1), self._patience.first_wait / 10)
            self.limiter.pause(max(failure.wait or 0.0, grown))
            self._prove()
        elif failure.kind not in _TROUBLE:
            self._streak = 0
        else:
            self.limiter.growth.failed()
            if failure.wait:
                self.limiter.hold(failure.wait)
            if started > self._tripped_at:  # what was sent before tells nothing new
                self._streak += 1
                self._trip(failure)

    def _trip(self, failure: Failure) -> None:
        patience = self._patience
        if self._streak < patience.trouble + 2 * self.limiter.limit and not self._trips:
            return
        if self._trips == len(patience.outage_waits):
            down = EndpointDown(
                f"the endpoint answered none of the last {self._streak} requests ({failure.message}); "
                "run the same command again when it does"
            )
            self.limiter.close(down)
            raise down from failure
        self._tripped_at = asyncio.get_running_loop().time()
        self.limiter.trip(patience.outage_waits[self._trips])
        self._trips += 1

    async def _send_first(self, request: Request, *, enlarged: bool) -> Reply:
        for tries in range(1, self._patience.attempts + 1):
            try:
                return await self._send(request, enlarged=enlarged)
            except Failure as failure:
                if self._answered or failure.kind not in _UNANSWERED:
                    raise
                if tries == self._patience.attempts:
                    raise EndpointUnreachable(
                        f"{failure.message}; nothing has ever been answered, check --base-url"
                    ) from failure
                await self.limiter.sleep(self._patience.wait(tries))
                if self.limiter.closed:
                    raise
        raise AssertionError("unreachable")

    async def _send(self, request: Request, *, enlarged: bool) -> Reply:
        try:
            reply = await self.judge.ask(request, enlarged=enlarged)
        except Failure as failure:
            # A rate limit opens up only once its pause is set, and a cut reply was cut in an earlier run.
            if failure.kind not in _UNANSWERED | {FailureKind.RATE_LIMITED, FailureKind.TRUNCATED}:
                self._prove()
            raise
        except EndpointError as error:
            if not self._known or not error.doubtful or self._doubts >= _DOUBTS + 2 * self.limiter.limit:
                raise
            # A gateway may refuse a single record in the words in which it refuses a key.
            self._doubts += 1
            self._prove()
            raise Failure(FailureKind.REJECTED, "a gateway refused this request, and lets others pass") from error
        self._prove()
        return reply

    def _prove(self) -> None:
        self._answered = True
        self.limiter.open()

    def _again(self, failures: list[FailureKind]) -> bool:
        last, limited = failures[-1], failures.count(FailureKind.RATE_LIMITED)
        if len(failures) - limited >= self._patience.attempts:
            return False
        if last is FailureKind.TRUNCATED:
            return failures.count(last) == 1
        invalid = failures.count(FailureKind.INVALID_REPLY)
        return last in _RETRIED and limited <= self._patience.rate_limits and invalid < self._patience.invalid_replies

    async def _wait(self, failure: Failure, failures: list[FailureKind]) -> None:
        if isinstance(failure, RateLimited):  # the pause is everybody's; the jitter spreads those who waited
            await self.limiter.sleep(random.uniform(0, self._patience.first_wait))  # noqa: S311
        elif failure.kind not in (FailureKind.TRUNCATED, FailureKind.INVALID_REPLY):
            await self.limiter.sleep(self._patience.wait(failures.count(failure.kind)))
