"""Who works beside others, and who works alone."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager


class Gate:
    """Lets many in at a time, or one that wants nobody beside it; who waits for that keeps out those who come later."""

    def __init__(self) -> None:
        self._changed = asyncio.Condition()
        self._inside = 0
        self._alone = 0

    @asynccontextmanager
    async def shared(self) -> AsyncIterator[None]:
        """Be inside together with others."""
        async with self._changed:
            await self._changed.wait_for(lambda: not self._alone)
            self._inside += 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._changed.notify_all()

    @asynccontextmanager
    async def exclusive(self) -> AsyncIterator[None]:
        """Be inside with nobody else."""
        async with self._changed:
            self._alone += 1
            try:
                await self._changed.wait_for(lambda: not self._inside)
            except BaseException:
                self._alone -= 1
                self._changed.notify_all()
                raise
            self._inside += 1
        try:
            yield
        finally:
            async with self._changed:
                self._inside -= 1
                self._alone -= 1
                self._changed.notify_all()
