"""Where replies are kept and found again."""

import asyncio
from collections.abc import Callable
from typing import Protocol, runtime_checkable

from .errors import Failure, FailureKind, MemoryBusy
from .replies import Reply

_BUSY_SECONDS = 60.0
_BUSY_PAUSE_SECONDS = 0.1


@runtime_checkable
class Memory(Protocol):
    """Replies and failures by the key of their request."""

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request, in the order of their arrival."""

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        """Add a reply. Raises MemoryBusy where it may be tried again."""

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed when it was last asked, None where it did not."""

    def keep_failure(self, key: bytes, failure: Failure) -> None:
        """Note a failure. Raises MemoryBusy where it may be tried again."""


class Door:
    """Where writers wait for a memory that is busy, one of them at a time knocking, and the event loop goes on."""

    def __init__(self) -> None:
        self._lock = asyncio.Lock()

    async def through(self, write: Callable[[], None]) -> None:
        """Write, as soon as that can be done. Raises MemoryBusy where it cannot for long."""
        if not self._lock.locked():
            try:
                return write()
            except MemoryBusy:
                pass
        deadline = asyncio.get_running_loop().time() + _BUSY_SECONDS
        async with self._lock:
            while True:
                try:
                    return write()
                except MemoryBusy:
                    if asyncio.get_running_loop().time() > deadline:
                        raise
                await asyncio.sleep(_BUSY_PAUSE_SECONDS)


class PlainMemory:
    """A memory that lasts as long as the object."""

    def __init__(self) -> None:
        self._replies: dict[bytes, list[Reply]] = {}
        self._failures: dict[bytes, FailureKind] = {}

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request, in the order of their arrival."""
        return list(self._replies.get(key, ()))

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        """Add a reply."""
        self._replies.setdefault(key, []).append(reply)

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed when it was last asked, None where it did not."""
        return self._failures.get(key)

    def keep_failure(self, key: bytes, failure: Failure) -> None:
        """Note a failure."""
        self._failures[key] = failure.kind
