"""What one more answer on a record says."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass

from ....evaluators.judging import Judging, Outcome
from .order import verdicts_of


@dataclass(frozen=True, kw_only=True, slots=True)
class Opinion:
    """What one more answer on a record says."""

    judging: Judging
    outcome: Outcome
    repeat: int = 1
    order: Sequence[int] | None = None
    """Places of the contexts as they were shown; None for the log's order."""
    second: bool = False
    """Whether it is the second judge's."""

    @property
    def verdicts(self) -> list[bool | None] | None:
        """Whether each context is relevant, in the log's order."""
        return verdicts_of(self.outcome.evaluation, self.order)

    def describe(self) -> dict[str, object]:
        """The opinion as it stands in the row."""
        evaluation, failure = self.outcome.evaluation, self.outcome.failure
        return {
            "judge": self.judging.asker.judge.model,
            "repeat": self.repeat,
            "shuffled": self.order is not None,
            "status": "evaluated" if evaluation else "error",
            "score": evaluation.score if evaluation else None,
            "contexts_relevant": self.verdicts,
            "usage": self.outcome.usage._asdict(),
            "cost": self.outcome.cost,
            "error": failure.kind if failure else None,
        }


def majority_of(outcome: Outcome, opinions: Sequence[Opinion]) -> float | None:
    """The most frequent score among the judge's repeats; None in a tie, and where there is no score."""
    counts = Counter(scores_of_repeats(outcome, opinions)).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def scores_of_repeats(outcome: Outcome, opinions: Sequence[Opinion]) -> list[float]:
    """The scores that the judge gave the record as it is, first answer first, those that it did not give left out."""
    repeats = [outcome, *(each.outcome for each in opinions if not each.second and each.order is None)]
    return [score for each in repeats if (score := score_of(each)) is not None]


def score_of(outcome: Outcome) -> float | None:
    """The score, None where there is none."""
    return outcome.evaluation.score if outcome.evaluation else None
