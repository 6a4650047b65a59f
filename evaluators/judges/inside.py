"""What the judges have in common that answer in this process: no key, no limits, nothing to open."""

from collections.abc import Mapping

from ..errors import RunError
from ..prompt import Prompt


class InsideJudge:
    """A judge but for `fingerprint` and `ask`."""

    known = reached = True
    concurrency = 1

    def __init__(self) -> None:
        self.sent = 0

    @classmethod
    def check(cls, prompts: Mapping[str, Prompt]) -> None:
        """Raise UsageError where it cannot answer an evaluator; `prompts` are by the evaluators' names."""

    def parameters(self, prompt: Prompt) -> dict[str, object]:  # noqa: ARG002  # it has none
        """None."""
        return {}

    def notices(self) -> list[str]:
        """None."""
        return []

    def wanted_wait(self) -> float:
        """None: it has no limits."""
        return 0.0

    async def explain(self, error: RunError) -> RunError:
        """The error; there is nobody to ask about it."""
        return error

    async def open(self) -> None:
        """Nothing to open."""

    async def close(self) -> None:
        """Nothing to close."""
