"""What a judge is: whoever answers a request with a reply."""

from typing import Protocol, runtime_checkable

from ..errors import RunError
from ..prompt import Prompt, Request
from ..replies import Reply


@runtime_checkable
class Judge(Protocol):
    """Answers requests; knows nothing of records, stores and retries."""

    model: str
    description: str
    """Who it is, for people."""
    sent: int
    """Requests sent so far."""
    known: bool
    """Whether it has answered in an earlier run."""
    reached: bool
    """Whether anything has answered in its place in this one, if with no reply."""
    concurrency: int
    """How many requests it can work at once."""

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over everything but the record that can change the answer."""

    def parameters(self, prompt: Prompt) -> dict[str, object]:
        """The request parameters in force for an evaluator."""

    def notices(self) -> list[str]:
        """What a reader of the results should know of the judge."""

    def wanted_wait(self) -> float:
        """Seconds for which nobody should send, by what the last answer said of the endpoint's limits; 0 else."""

    async def explain(self, error: RunError) -> RunError:
        """The error that ended the run, with whatever the judge can still find out about it."""

    async def open(self) -> None:
        """Called before the first request of a run. Raises RunError or UsageError."""

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:
        """One attempt at a reply; `enlarged` doubles the room for it.

        Raises Failure for this request and RunError where no other request can succeed either.
        """

    async def close(self) -> None:
        """Called after the last request of a run; another run may follow."""
