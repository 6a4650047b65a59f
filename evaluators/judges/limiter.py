"""How many requests may be in flight, and the one pause that all of them keep."""

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Limiter:
    """Slots for requests; a request that waits for anything but its answer holds none.

    The first request goes alone: it finds out whether key, model and request format are right.
    Once it is answered `most` may be in flight. A rate limit halves the number, once per pause;
    as many good answers as there are slots add one again.
    """

    def __init__(self, most: int) -> None:
        self.limit = 1
        """How many may be in flight now."""
        self.in_flight = 0
        self._most = most
        self._good = 0
        self._opened = False
        self.closed: BaseException | None = None
        """Why nobody is let in any more, None while somebody is."""
        self._idle = asyncio.Event()
        self._idle.set()
        self._resume_at = 0.0
        self._waiting: deque[asyncio.Future[None]] = deque()

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[None]:
        """Hold a slot for one attempt."""
        if self.closed:
            raise self.closed
        if self._waiting or not self._free():
            await self._wait()
        else:
            self._take()
        try:
            yield
        finally:
            self._give_back()

    def open(self) -> None:
        """Somebody was answered: all slots may be used."""
        if not self._opened:
            self._opened = True
            self.limit = self._most
            self._wake()

    def succeeded(self) -> None:
        """A request brought a reply: after a cut, as many as there are slots add one."""
        if self._opened and self.limit < self._most:
            self._good += 1
            if self._good >= self.limit:
                self.limit, self._good = self.limit + 1, 0

    @property
    def paused_for(self) -> float:
        """Seconds for which nobody sends."""
        return max(0.0, self._resume_at - asyncio.get_running_loop().time())

    def pause(self, seconds: float) -> None:
        """Nobody sends for `seconds`; the number in flight is halved, once for all who are told so at a time."""
        loop = asyncio.get_running_loop()
        now = loop.time()
        if now >= self._resume_at:
            self.limit, self._good = max(1, self.limit // 2), 0
        if now + seconds > self._resume_at:
            self._resume_at = now + seconds
            loop.call_at(self._resume_at, self._wake)

    def close(self, error: BaseException) -> None:
        """Let nobody in any more: who waits or comes gets `error`; those in flight go on."""
        self.closed = self.closed or error
        while self._waiting:
            turn = self._waiting.popleft()
            if not turn.done():
                turn.set_exception(self.closed)

    async def idle(self) -> None:
        """Return once nothing is in flight."""
        await self._idle.wait()

    def _free(self) -> bool:
        now = asyncio.get_running_loop().time()
        return self.in_flight < self.limit and now >= self._resume_at

    def _take(self) -> None:
        self.in_flight += 1
        self._idle.clear()

    def _give_back(self) -> None:
        self.in_flight -= 1
        if not self.in_flight:
            self._idle.set()
        self._wake()

    async def _wait(self) -> None:
        """Queue for a slot, which `_wake` takes for whoever is first: nobody who comes later gets it."""
        turn = asyncio.get_running_loop().create_future()
        self._waiting.append(turn)
        try:
            await turn
        except asyncio.CancelledError:
            if turn.done() and not turn.cancelled() and turn.exception() is None:
                self._give_back()
            raise

    def _wake(self) -> None:
        while self._waiting and self._free():
            turn = self._waiting.popleft()
            if not turn.done():
                self._take()
                turn.set_result(None)
