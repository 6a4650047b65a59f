"""The judges of this process that have a name for `--model`."""

from collections.abc import Mapping
from typing import Protocol

from ..prompt import Prompt
from .judge import Judge
from .offline import OfflineJudge


class Named(Protocol):
    """The class of such a judge."""

    def __call__(self) -> Judge:
        """One for a run."""

    def check(self, prompts: Mapping[str, Prompt]) -> None:
        """Raise UsageError where it cannot answer an evaluator; `prompts` are by the evaluators' names."""


NAMED: dict[str, Named] = {
    OfflineJudge.model: OfflineJudge,
}
"""None of them needs a key or an endpoint."""
