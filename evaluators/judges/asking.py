"""Asking until there is a verdict or a reason why not: retries by class, within a budget."""

import asyncio
import random
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import NoReturn, TypeVar

from ..costs.bounds import Bounds
from ..costs.budget import NOTHING, Budget
from ..costs.experience import Experience
from ..costs.tokens import frame_tokens, likely_tokens
from ..errors import EndpointDown, EndpointError, EndpointUnreachable, Failure, FailureKind, RateLimited, RunError
from ..memory import Door
from ..prompt import Prompt, Request
from ..replies import Reply, Usage
from ..tokens import most_tokens
from .judge import Judge
from .limiter import Limiter, Limits
from .outage import Outage

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
_LOST = 3
"""So many records without an answer, and none with one, are no record's fault."""
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
    """Different records in a row that meet errors, and two for each slot, after which the endpoint is taken to be down
    and asked by one request at a time."""
    outage_waits: tuple[float, ...] = (1, 2, 4, 8, 16, 30)
    """Seconds before each of these requests; when none of them is answered the run ends."""
    rate_limited_for: float = 1200.0
    """Seconds, beyond those that the endpoint named, of rate limits and nothing else; then the run ends."""

    def wait(self, tries: int) -> float:
        """Seconds before the next try after `tries` failed ones."""
        return random.uniform(0, min(self.longest_wait, self.first_wait * 2 ** (tries - 1)))  # noqa: S311

    def allows(self, failures: Sequence[FailureKind]) -> bool:
        """Whether a request that has failed so is tried once more."""
        last, limited = failures[-1], failures.count(FailureKind.RATE_LIMITED)
        if len(failures) - limited >= self.attempts:
            return False
        if last is FailureKind.TRUNCATED:
            return failures.count(last) == 1
        invalid = failures.count(FailureKind.INVALID_REPLY)
        return last in _RETRIED and limited <= self.rate_limits and invalid < self.invalid_replies


class _Spent(Failure):
    """All tries at a record were made before anybody else had a turn."""


class Asker:
    """Sends requests to a judge, not too many at once, and tries again where that can help."""

    def __init__(
        self,
        judge: Judge,
        patience: Patience | None = None,
        limits: Limits | None = None,
        budget: Budget | None = None,
    ) -> None:
        """Without a budget nothing is known of prices, and nothing is capped."""
        self.judge = judge
        self.budget = budget or Budget()
        self.usage = Usage()
        """Tokens of the replies so far."""
        self.failed: Counter[FailureKind] = Counter()
        """Attempts that brought no reply, by kind."""
        self.door = Door()
        self.limiter = Limiter(limits or Limits(most=judge.concurrency, fixed=True), self.budget)
        self.experience: dict[Prompt, Experience] = {}
        """Of this run, by prompt; no more than is needed for an estimate."""
        self._bounds = Bounds(judge)
        self._patience = patience or Patience()
        self._outage = Outage(self._patience.trouble, self._patience.outage_waits)
        self._replies = 0
        self._lost = 0
        self._limited_since: float | None = None
        self._named_waits = 0.0
        self._named_until = float("-inf")
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
        suspect: bool = False,
    ) -> Verdict:
        """The verdict that `read` finds in a reply; `keep` gets each reply as soon as it arrives.

        Where `keep` raises MemoryBusy it is called again.
        `enlarged` starts with the larger room that a truncated reply earlier on has shown to be needed. `suspect` tells
        that the request has failed in an earlier run: another failure says nothing of the endpoint.
        Raises Failure once all tries are made, RunError where no request can succeed (also BudgetReached).
        """
        self.budget.check()
        await self._open()
        failures = [FailureKind.TRUNCATED] if enlarged else []
        while True:
            larger = FailureKind.TRUNCATED in failures
            try:
                reply = await self._attempt(request, keep, failures, enlarged=larger, suspect=suspect)
                return read(reply)
            except Failure as failure:
                if larger and failure.kind in _NO_LARGER:
                    raise Failure(
                        FailureKind.TRUNCATED, "the reply was cut, and no more room is to be had"
                    ) from failure
                failures.append(failure.kind)
                if isinstance(failure, _Spent) or not self._patience.allows(failures):
                    self._lose(failure)
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

    async def _attempt(
        self,
        request: Request,
        keep: Callable[[Reply], None],
        before: Sequence[FailureKind],
        *,
        enlarged: bool,
        suspect: bool,
    ) -> Reply:
        bound = self.budget.bound(self._bounds.most(request, enlarged=enlarged)) if self.budget.caps.any else NOTHING
        async with self.limiter.slot(partial(self._expected, request), bound) as reserved:
            started = asyncio.get_running_loop().time()
            try:
                # The first request goes alone, and until it is answered nobody else has a turn.
                reply = await (self._send if self._answered else self._send_first)(request, enlarged=enlarged)
                self.budget.pay(reply)
                # Kept before the slot is free: what a kill can lose is never more than what is in flight.
                await self.door.through(partial(keep, reply))
            except Failure as failure:
                self._count(failure, request, before, started, suspect=suspect)
                raise
            except RunError as error:
                self.limiter.close(error)  # before the slot is free: nothing else is sent
                raise
            self._replies += 1
            self.usage = self.usage.plus(reply.usage)
            self._learn(request, reply)
            self._known, self._doubts, self._limited_since = True, 0, None
            self._outage.answered()
            self._prove()  # once it is known what a reply takes: others have their turn with this
            self.limiter.succeeded(reserved=reserved, used=reply.usage.input_tokens + reply.usage.output_tokens)
            if wait := self.judge.wanted_wait():
                self.limiter.hold(wait)
            return reply

    def _learn(self, request: Request, reply: Reply) -> None:
        experience = self.experience.setdefault(request.prompt, Experience())
        if experience.wanting and reply.usage.input_tokens:
            experience.add(frame_tokens(request.prompt) + likely_tokens(request.user), reply.usage)

    def _expected(self, request: Request) -> int:
        """Tokens that a request may take: its own, and as many as replies have had so far."""
        out = self.usage.output_tokens / self._replies if self._replies else _FIRST_OUTPUT
        return most_tokens(request.prompt.system) + most_tokens(request.user) + round(out)

    def _count(
        self, failure: Failure, request: Request, before: Sequence[FailureKind], started: float, *, suspect: bool
    ) -> None:
        """What everybody has to know of a failed attempt. Raises EndpointDown where it was one too many."""
        self.failed[failure.kind] += 1
        if failure.kind not in _TROUBLE:  # an answer, if no reply
            self._outage.answered()
            self.limiter.recovered()
            if not isinstance(failure, RateLimited):
                self._limited_since = None
        if isinstance(failure, RateLimited):
            self._count_rate_limit(failure, started, before.count(FailureKind.RATE_LIMITED))
        elif failure.kind in _TROUBLE:
            self.limiter.growth.failed()
            if failure.wait:
                self.limiter.hold(failure.wait)
            if not suspect:
                retry = any(kind in _TROUBLE for kind in before)
                self._count_trouble(failure, request, started, retry=retry)

    def _count_rate_limit(self, failure: RateLimited, started: float, limits: int) -> None:
        now = asyncio.get_running_loop().time()
        if self._limited_since is None:
            self._limited_since, self._named_waits = now, 0.0
        elif now - self._limited_since > self._patience.rate_limited_for + self._named_waits:
            minutes = (now - self._limited_since) / 60
            self._give_up(
                f"the endpoint has answered with nothing but rate limits for {minutes:.0f} minutes; run the same "
                "command again later, with --rpm or --tpm if others share the limit"
            )
        # All who were told to wait at once wait the same seconds.
        until = now + (failure.wait or 0.0)
        self._named_waits += max(0.0, until - max(now, self._named_until))
        self._named_until = max(self._named_until, until)
        # A wait the endpoint names is kept in full, and grows all the same where it does not suffice.
        grown = max(self._patience.wait(limits + 1), self._patience.first_wait / 10)
        self.limiter.pause(max(failure.wait or 0.0, grown), started)
        self._prove()

    def _count_trouble(self, failure: Failure, request: Request, started: float, *, retry: bool) -> None:
        now = asyncio.get_running_loop().time()
        record = hash(request.user)
        wait = self._outage.failed(record, retry=retry, started=started, now=now, slots=self.limiter.limit)
        if wait == float("inf"):
            self._give_up(
                f"the endpoint answered none of the last {self._outage.requests} requests ({failure.message}); "
                "run the same command again when it does"
            )
        elif wait is not None:
            self.limiter.trip(wait)

    def _give_up(self, message: str) -> NoReturn:
        down = EndpointDown(message)
        self.limiter.close(down)
        raise down

    def _lose(self, failure: Failure) -> None:
        """A record is given up; raises EndpointUnreachable where several were and none was ever answered."""
        if self._answered or failure.kind not in _UNANSWERED:
            return
        self._lost += 1
        if self._lost == _LOST:
            unreachable = EndpointUnreachable(
                f"{failure.message}; {_LOST} records were tried and none has ever been answered, check --base-url"
            )
            self.limiter.close(unreachable)
            raise unreachable from failure

    async def _send_first(self, request: Request, *, enlarged: bool) -> Reply:
        for tries in range(1, self._patience.attempts + 1):
            try:
                return await self._send(request, enlarged=enlarged)
            except Failure as failure:
                if self._answered or failure.kind not in _UNANSWERED:
                    raise
                somebody = failure.kind is FailureKind.TIMEOUT and (self._known or self.judge.reached)
                if tries == self._patience.attempts and somebody:  # it may be this record that takes too long
                    raise _Spent(failure.kind, failure.message) from failure
                if tries == self._patience.attempts:
                    raise EndpointUnreachable(
                        f"{failure.message}; nothing has ever been answered, check --base-url"
                    ) from failure
                self.budget.check()
                if failure.billed and not self.budget.admits(NOTHING):  # money for another try has to be waited for
                    raise
                self.failed[failure.kind] += 1
                await self.limiter.sleep(self._patience.wait(tries))
                if self.limiter.closed:
                    raise
        raise AssertionError("unreachable")

    async def _send(self, request: Request, *, enlarged: bool) -> Reply:
        try:
            reply = await self.judge.ask(request, enlarged=enlarged)
        except asyncio.CancelledError:
            self.budget.lose(self._bounds.most(request, enlarged=enlarged))
            raise
        except Failure as failure:
            if failure.billed:
                self.budget.lose(self._bounds.most(request, enlarged=enlarged))
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
        return reply

    def _prove(self) -> None:
        self._answered = True
        self.limiter.open()

    async def _wait(self, failure: Failure, failures: list[FailureKind]) -> None:
        if isinstance(failure, RateLimited):  # the pause is everybody's; the jitter spreads those who waited
            await self.limiter.sleep(random.uniform(0, self._patience.first_wait))  # noqa: S311
        elif failure.kind not in (FailureKind.TRUNCATED, FailureKind.INVALID_REPLY):
            await self.limiter.sleep(self._patience.wait(failures.count(failure.kind)))
