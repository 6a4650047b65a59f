"""Where replies are kept and found again."""

from typing import Protocol, runtime_checkable

from .errors import Failure, FailureKind
from .replies import Reply


@runtime_checkable
class Memory(Protocol):
    """Replies and failures by the key of their request."""

    def replies(self, key: bytes) -> list[Reply]:
        """All replies to a request, in the order of their arrival."""

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        """Add a reply."""

    def failure(self, key: bytes) -> FailureKind | None:
        """Why the request failed when it was last asked, None where it did not."""

    def keep_failure(self, key: bytes, failure: Failure) -> None:
        """Note a failure."""


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
