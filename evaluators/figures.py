"""What per-context verdicts say about the retrieval, summed up record by record."""

from collections.abc import Sequence
from typing import TypedDict


class ContextVerdict(TypedDict):
    """The judgement of one context, as it stands in a result row."""

    relevant: bool
    statements: int
    relevant_statements: int
    spans: list[tuple[int, int]]
    """Character spans (code points) of the relevant statements in the context."""


class ContextFigures:
    """Running sums over evaluated records; memory does not grow with them.

    `reciprocal_rank`: 1 / rank of the first relevant context, 0 without one (Voorhees, TREC-8 QA track, 1999);
    the mean over records is MRR.
    """

    def __init__(self) -> None:
        self._records = self._no_contexts = 0
        self._contexts = self._relevant_contexts = 0
        self._statements = self._relevant_statements = 0
        self._precision = self._reciprocal_rank = 0.0

    def add(self, contexts: Sequence[ContextVerdict]) -> None:
        """Count one record."""
        self._records += 1
        if not any(context["statements"] for context in contexts):
            self._no_contexts += 1
        flags = [context["relevant"] for context in contexts]
        self._contexts += len(flags)
        self._relevant_contexts += sum(flags)
        self._statements += sum(context["statements"] for context in contexts)
        self._relevant_statements += sum(context["relevant_statements"] for context in contexts)
        self._precision += sum(flags) / len(flags) if flags else 0.0
        self._reciprocal_rank += 1 / (flags.index(True) + 1) if True in flags else 0.0

    def result(self) -> dict[str, float | int | None]:
        """Counts, and means over the evaluated records (None without any)."""
        return {
            "no_contexts": self._no_contexts,
            "contexts": self._contexts,
            "relevant_contexts": self._relevant_contexts,
            "statements": self._statements,
            "relevant_statements": self._relevant_statements,
            "context_precision": _ratio(self._precision, self._records),
            "mrr": _ratio(self._reciprocal_rank, self._records),
        }


def _ratio(part: float, whole: int) -> float | None:
    return part / whole if whole else None
