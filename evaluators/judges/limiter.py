"""Who may send when: slots, a pace, and the one pause that all of them keep."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager, suppress
from dataclasses import dataclass
from typing import NamedTuple

from ..costs.budget import NOTHING, Amount, Budget
from .growth import MOST, Growth
from .pace import Pace


@dataclass(frozen=True, kw_only=True, slots=True)
class Limits:
    """What is asked of an endpoint at most."""

    most: int = MOST
    """Requests in flight."""
    fixed: bool = False
    """Whether there are always so many, or as many as turn out to be of use."""
    rpm: float | None = None
    """Requests per minute."""
    tpm: float | None = None
    """Tokens per minute, in and out."""


class _Turn(NamedTuple):
    """Somebody who waits for a slot."""

    future: asyncio.Future[int]
    expected: Callable[[], int]
    bound: Amount


class Limiter:
    """Slots for requests, in the order in which they were asked for; who waits for anything but an answer holds none.

    The first request goes alone: it finds out whether key, model and request format are right.
    """

    def __init__(self, limits: Limits, budget: Budget | None = None) -> None:
        """Who is let in counts against the budget, and nobody is once it is spent."""
        self.budget = budget or Budget()
        self._loop = asyncio.get_running_loop()
        self.growth = Growth(limits.most, fixed=limits.fixed)
        self.in_flight = 0
        self.closed: BaseException | None = None
        """Why nobody is let in any more, None while somebody is."""
        self.on_hold: Callable[[float, bool], None] = lambda _seconds, _limited: None
        """Told of each wait that the endpoint asks of everybody, and whether a rate limit was met."""
        self.on_short: Callable[[], None] = lambda: None
        """Told when a slot was given back, and whoever is first waits for money all the same."""
        now = self._loop.time()
        self._requests = Pace(limits.rpm, now) if limits.rpm else None
        self._tokens = Pace(limits.tpm, now) if limits.tpm else None
        self._opened = self._tripped = False
        self._idle = asyncio.Event()
        self._idle.set()
        self._closing = asyncio.Event()
        self._resume_at = 0.0
        self._cut_at = float("-inf")
        self._waiting: deque[_Turn] = deque()
        self._timer: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """How many may be in flight now."""
        return 1 if self._tripped else self.growth.limit

    @property
    def paused_for(self) -> float:
        """Seconds for which nobody sends."""
        return max(0.0, self._resume_at - self._loop.time())

    @asynccontextmanager
    async def slot(self, expected: Callable[[], int] = lambda: 0, bound: Amount = NOTHING) -> AsyncIterator[int]:
        """Hold a slot for one attempt; gives the tokens that were counted for it, those that are `expected` by then.

        `bound` is reserved in the budget for as long. Raises BudgetReached where that is spent.
        """
        if self.closed:
            raise self.closed
        self.budget.check()
        if self._waiting or self._wait_for(expected, bound):
            tokens = await self._queue(expected, bound)
        else:
            tokens = self._take(expected, bound)
        try:
            yield tokens
        finally:
            self._give_back(bound)

    def open(self) -> None:
        """Somebody was answered: all slots may be used."""
        if not self._opened:
            self._opened = True
            self.growth.open(self._loop.time())
            self._wake()

    def succeeded(self, *, reserved: int = 0, used: int = 0) -> None:
        """A request brought a reply, and took `used` tokens where `reserved` were counted."""
        now = self._loop.time()
        if self._tokens:
            self._tokens.spend(used - reserved, now)
        self._tripped = False
        self.growth.answered(now, full=self.in_flight >= self.growth.limit)

    def pause(self, seconds: float, started: float) -> None:
        """Nobody sends for `seconds`: a request that was `started` then met a rate limit.

        The limit is cut once for all that were sent before: they tell of the same.
        """
        self._cut(started)
        self._keep(seconds)
        self.on_hold(seconds, True)  # noqa: FBT003  # a callback takes no names

    def hold(self, seconds: float) -> None:
        """Nobody sends for `seconds`."""
        self._keep(seconds)
        self.on_hold(seconds, False)  # noqa: FBT003  # the same

    def heed(self, seconds: float, *, limited: bool) -> None:
        """Keep a wait that another limiter of the same endpoint was told of."""
        if limited:
            self._cut(self._loop.time())
        self._keep(seconds)

    def deal(self, limits: Limits) -> None:
        """Other limits from now on; what more may be sent then is not saved up yet."""
        now = self._loop.time()
        if limits.fixed:
            self.growth.deal(limits.most)
        self._requests = _dealt(self._requests, limits.rpm, now)
        self._tokens = _dealt(self._tokens, limits.tpm, now)
        self._wake()

    @property
    def busy(self) -> bool:
        """Whether anything is in flight or waits for its turn."""
        return bool(self.in_flight or self._waiting)

    @property
    def wanted(self) -> Amount | None:
        """What the request that is first can cost at most; None where nobody waits."""
        return next((turn.bound for turn in self._waiting if not turn.future.done()), None)

    @property
    def short(self) -> bool:
        """Whether whoever is first waits for money."""
        return (wanted := self.wanted) is not None and not self.budget.admits(wanted)

    def recovered(self) -> None:
        """Somebody was answered, if not with a reply."""
        self._tripped = False

    def trip(self, seconds: float) -> None:
        """Nobody sends for `seconds`, and then one at a time, until somebody is answered."""
        self._tripped = True
        self._keep(seconds)

    def close(self, error: BaseException) -> None:
        """Let nobody in any more: who waits or comes gets `error`; those in flight go on."""
        self.closed = self.closed or error
        self._closing.set()
        while self._waiting:
            turn = self._waiting.popleft().future
            if not turn.done():
                turn.set_exception(self.closed)

    async def sleep(self, seconds: float) -> None:
        """Wait before another try; return at once where there can be none."""
        with suppress(TimeoutError):
            async with asyncio.timeout(seconds):
                await self._closing.wait()

    async def idle(self) -> None:
        """Return once nothing is in flight."""
        await self._idle.wait()

    def _cut(self, started: float) -> None:
        now = self._loop.time()
        if started > self._cut_at:
            self._cut_at = now
            self.growth.limited(now)

    def _keep(self, seconds: float) -> None:
        self._resume_at = max(self._resume_at, self._loop.time() + seconds)

    def _wait_for(self, expected: Callable[[], int], bound: Amount) -> float:
        """Seconds until whoever is first may send; without an end while no slot is free, or no money."""
        if self.in_flight >= self.limit or not self.budget.admits(bound):
            return float("inf")
        now = self._loop.time()
        wait = self._resume_at - now
        if self._requests:
            wait = max(wait, self._requests.wait(1, now))
        if self._tokens:
            wait = max(wait, self._tokens.wait(expected(), now))
        return max(0.0, wait)

    def _take(self, expected: Callable[[], int], bound: Amount) -> int:
        self.in_flight += 1
        self.budget.reserve(bound)
        self._idle.clear()
        now = self._loop.time()
        if self._requests:
            self._requests.spend(1, now)
        if not self._tokens:
            return 0
        tokens = expected()
        self._tokens.spend(tokens, now)
        return tokens

    def _give_back(self, bound: Amount) -> None:
        self.in_flight -= 1
        self.budget.release(bound)
        if not self.in_flight:
            self._idle.set()
        self._wake()
        if self.short:
            self.on_short()

    async def _queue(self, expected: Callable[[], int], bound: Amount) -> int:
        """Wait for a slot, which `_wake` takes for whoever is first: nobody who comes later gets it."""
        turn = _Turn(self._loop.create_future(), expected, bound)
        self._waiting.append(turn)
        self._wake()
        try:
            return await turn.future
        except asyncio.CancelledError:
            if turn.future.done() and not turn.future.cancelled() and turn.future.exception() is None:
                self._give_back(bound)
            raise

    def _wake(self) -> None:
        if self._waiting and self.budget.exhausted:
            self.close(self.budget.reached())
        while self._waiting:
            if self._waiting[0].future.done():
                self._waiting.popleft()
                continue
            first = self._waiting[0]
            wait = self._wait_for(first.expected, first.bound)
            if wait:
                self._wake_in(wait)
                return
            turn = self._waiting.popleft()
            turn.future.set_result(self._take(turn.expected, turn.bound))

    def _wake_in(self, seconds: float) -> None:
        """Look again when a wait is over; a slot that is given back looks by itself."""
        if self._timer:
            self._timer.cancel()
            self._timer = None
        if seconds != float("inf"):
            self._timer = self._loop.call_later(seconds, self._wake)


def _dealt(pace: Pace | None, per_minute: float | None, now: float) -> Pace | None:
    """The pace at another amount; a new one starts with nothing saved up."""
    if pace is None or per_minute is None:
        return None if per_minute is None else Pace(per_minute, now, full=False)
    pace.change(per_minute, now)
    return pace
