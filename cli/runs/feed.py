"""Records from a blocking reader into the event loop, a bounded number ahead."""

import asyncio
import threading
from collections import deque
from collections.abc import AsyncIterator, Iterator
from typing import Generic, TypeVar

Item = TypeVar("Item")
_END = object()


class Feed(Generic[Item]):
    """Reads on a thread of its own, so that a slow disk or pipe holds up nobody."""

    def __init__(self, items: Iterator[Item], *, ahead: int) -> None:
        self._items = items
        self._ahead = ahead
        self._room = threading.Event()
        self._ready: deque[Item | object] = deque()
        self._arrived = asyncio.Event()
        self._loop = asyncio.get_running_loop()
        self._error: BaseException | None = None
        self._stopped = False

    async def __aiter__(self) -> AsyncIterator[Item]:
        """The items. Raises what the reader raises."""
        # A daemon: it may wait for a pipe that nobody writes to when the run is over.
        threading.Thread(target=self._read, name="ctxrel-reader", daemon=True).start()
        while True:
            while not self._ready:
                self._arrived.clear()
                if not self._ready:
                    await self._arrived.wait()
            item = self._ready.popleft()
            # The reader is woken once for many items: a lock for each of them costs more than reading it.
            if not self._room.is_set() and len(self._ready) <= self._ahead // 2:
                self._room.set()
            if item is _END:
                break
            yield item  # type: ignore[misc]  # everything but _END is an Item
        if self._error:
            raise self._error

    def stop(self) -> None:
        """Read no further."""
        self._stopped = True
        self._room.set()

    def _read(self) -> None:
        try:
            for item in self._items:
                self._wait_for_room()
                if self._stopped:
                    return
                self._put(item)
        except BaseException as error:  # noqa: BLE001  # it is raised again where the items are awaited
            self._error = error
        self._put(_END)

    def _wait_for_room(self) -> None:
        while len(self._ready) >= self._ahead and not self._stopped:
            self._room.clear()
            if len(self._ready) >= self._ahead and not self._stopped:  # else it was made before the flag was cleared
                self._room.wait()

    def _put(self, item: Item | object) -> None:
        self._ready.append(item)
        if not self._arrived.is_set():
            try:
                self._loop.call_soon_threadsafe(self._arrived.set)
            except RuntimeError:  # the loop has ended meanwhile
                self._stopped = True
