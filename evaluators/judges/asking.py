"""Asking until there is a verdict or a reason why not: retries by class, within a budget."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar

from ..errors import EndpointUnreachable, Failure, FailureKind, RateLimited, RunError
from ..prompt import Request
from ..replies import Reply, Usage
from .judge import Judge
from .limiter import Limiter

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
Verdict = TypeVar("Verdict")


@dataclass(frozen=True, kw_only=True)
class Patience:
    """How often a request is tried, and how long is waited in between."""

    attempts: int = 5
    """Tries in all."""
    invalid_replies: int = 3
    """Tries that may end in a reply that does not fit; each of them is paid."""
    rate_limits: int = 20
    """Rate limits that a request may meet; they do not count as tries."""
    first_wait: float = 0.5
    """Seconds; doubled with each try, and the wait is a random share of it (full jitter)."""
    longest_wait: float = 30.0

    def wait(self, tries: int) -> float:
        """Seconds before the next try after `tries` failed ones."""
        return random.uniform(0, min(self.longest_wait, self.first_wait * 2 ** (tries - 1)))  # noqa: S311


class Asker:
    """Sends requests to a judge, not too many at once, and tries again where that can help."""

    def __init__(self, judge: Judge, patience: Patience | None = None) -> None:
        self.judge = judge
        self.sent = 0
        """Requests sent so far."""
        self.usage = Usage()
        """Tokens of the replies they brought."""
        self.limiter = Limiter(judge.concurrency)
        self._patience = patience or Patience()
        self._opening: asyncio.Task[None] | None = None
        self._answered = False

    async def ask(self, request: Request, read: Callable[[Reply], Verdict], keep: Callable[[Reply], None]) -> Verdict:
        """The verdict that `read` finds in a reply; `keep` gets each reply as soon as it arrives.

        Raises Failure once the budget is spent, RunError where no request can succeed.
        """
        await self._open()
        failures: list[FailureKind] = []
        while True:
            try:
                return read(await self._attempt(request, keep, enlarged=FailureKind.TRUNCATED in failures))
            except Failure as failure:
                failures.append(failure.kind)
                if not self._again(failures):
                    self._give_up(failure)
                await self._wait(failure, failures)

    async def close(self) -> None:
        """Close the judge."""
        await self.judge.close()

    async def _open(self) -> None:
        if self._opening is None:
            self._opening = asyncio.ensure_future(self.judge.open())
        await asyncio.shield(self._opening)

    async def _attempt(self, request: Request, keep: Callable[[Reply], None], *, enlarged: bool) -> Reply:
        async with self.limiter.slot():
            self.sent += 1
            try:
                reply = await self.judge.ask(request, enlarged=enlarged)
            except Failure as failure:
                self._answered |= failure.kind not in _UNANSWERED
                raise
            except RunError as error:
                # Before the slot is free: nothing else is sent.
                self.limiter.close(error)
                raise
            # Kept before the slot is free: what a kill can lose is never more than what is in flight.
            keep(reply)
            self.usage = self.usage.plus(reply.usage)
            self._answered = True
            self.limiter.answered()
            return reply

    def _again(self, failures: list[FailureKind]) -> bool:
        last = failures[-1]
        if last is FailureKind.TRUNCATED:
            return failures.count(last) == 1
        limited, invalid = failures.count(FailureKind.RATE_LIMITED), failures.count(FailureKind.INVALID_REPLY)
        return (
            last in _RETRIED
            and len(failures) - limited < self._patience.attempts
            and limited <= self._patience.rate_limits
            and invalid < self._patience.invalid_replies
        )

    def _give_up(self, failure: Failure) -> None:
        if self._answered or failure.kind not in _UNANSWERED:
            raise failure
        error = EndpointUnreachable(f"{failure.message}; nothing has ever been answered, check --base-url")
        self.limiter.close(error)
        raise error from failure

    async def _wait(self, failure: Failure, failures: list[FailureKind]) -> None:
        wait = self._patience.wait(failures.count(failure.kind))
        if isinstance(failure, RateLimited):
            # A wait the endpoint named is kept in full; the jitter on top spreads those who wait.
            self.limiter.pause(max(self._patience.first_wait, wait) if failure.wait is None else failure.wait)
            await asyncio.sleep(random.uniform(0, self._patience.first_wait))  # noqa: S311
        elif failure.kind not in (FailureKind.TRUNCATED, FailureKind.INVALID_REPLY):
            await asyncio.sleep(wait)
