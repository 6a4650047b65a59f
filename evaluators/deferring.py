"""Judging by what the memory holds, without asking: what is missing is wanted, and somebody else fetches it."""

from collections.abc import Callable
from typing import NamedTuple

from .errors import Failure, FailureKind
from .evaluator import Evaluator, Task, Verdict
from .judges.asking import Asker
from .judging import Judging, Outcome
from .memory import Memory
from .prompt import Request
from .record import Record

_NEVER_ASKED = "it came into the log after everything else was asked about; run the same command again"


class Wanted(NamedTuple):
    """A request without a reply that could be read."""

    key: bytes
    request: Request
    task: Task


class Deferring(Judging):
    """Tells what is wanted for a record; judges it by what there is, a failure where it is still wanted."""

    def __init__(
        self,
        asker: Asker,
        memory: Memory,
        last_failure: Callable[[bytes], Failure | None],
        *,
        max_input_tokens: int | None = None,
    ) -> None:
        """`last_failure` tells why a request had no usable reply when it was last sent."""
        super().__init__(asker, memory, max_input_tokens=max_input_tokens)
        self._last_failure = last_failure

    def wanted(self, record: Record, evaluator: Evaluator) -> list[Wanted]:
        """The requests that have to be answered before more is known of the record; empty where nothing can be."""
        begun = self.begin(record, evaluator)
        if begun.ended or begun.task is None or begun.request is None:
            return []
        verdict = self._missing(begun.task, begun.request, begun.key)
        return verdict if isinstance(verdict, list) else []

    def failures(self, wanted: Wanted) -> list[Failure]:
        """What is wrong with each of the replies to a wanted request, in the order of their arrival."""
        found = []
        for reply in self._memory.replies(wanted.key):
            try:
                wanted.task.read(reply)
            except Failure as failure:
                found.append(failure)
        return found

    def _look(self, task: Task) -> Verdict | list[Wanted]:
        """The verdict on a task, or what is wanted for it."""
        request = task.request()
        if request is None:
            return task.nothing()
        key = self._key(request)
        verdict = self._remembered(task, key, Outcome(), found=True)
        return self._missing(task, request, key) if verdict is None else verdict

    def _missing(self, task: Task, request: Request, key: bytes) -> Verdict | list[Wanted]:
        """As `_asked`, with wishes in the place of requests."""
        exceeds = self._exceeds(request) > 0
        halves = task.halves() if exceeds or self._memory.failure(key) is FailureKind.CONTEXT_TOO_LONG else None
        if halves is None:
            return [] if exceeds else [Wanted(key, request, task)]
        first = self._look(halves[0])
        if isinstance(first, list):
            return first if not first or _chained(task) else first + _wishes(self._look(halves[1]))
        second = self._look(halves[1].after(first))
        return second if isinstance(second, list) else task.unite(first, second)

    async def _ask(self, task: Task, request: Request, key: bytes, *, failed_before: bool) -> bool:  # noqa: ARG002
        raise self._last_failure(key) or Failure(FailureKind.SERVER_ERROR, _NEVER_ASKED)


def _chained(task: Task) -> bool:
    """Whether the second part of a record can be asked about only once the first has its verdict."""
    return task.after(task.nothing()) is not task


def _wishes(found: Verdict | list[Wanted]) -> list[Wanted]:
    return found if isinstance(found, list) else []
