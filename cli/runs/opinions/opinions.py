"""Further opinions on each record, gathered after the first answer, and what they come to."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

from ....evaluators.case import CONTEXTS
from ....evaluators.errors import ModelUnknown
from ....evaluators.evaluator import Evaluator
from ....evaluators.judges.asking import Asker
from ....evaluators.judges.judge import Judge
from ....evaluators.judging import Begun, Judging, Outcome
from ....evaluators.record import Record
from .order import in_order, order_of, verdicts_of
from .second import add_second
from .stability import Stability
from .wanted import Wanted


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


class Opinions:
    """Asks for the further opinions of a run."""

    def __init__(
        self, wanted: Wanted, seed: int, first: Judging, repeats: Sequence[Judging], second: Judging | None
    ) -> None:
        """`repeats` are those from the second on; `seed` draws the orders of contexts."""
        self.judgings = [*repeats, *([second] if second else [])]
        """All that are asked, the first aside."""
        self.to_explain: Judge | None = None
        """The judge whose model was unknown and ended the run, where it is the second."""
        self._wanted = wanted
        self._seed = seed
        self._first = first
        self._repeats = repeats
        self._second = second
        self._stability: dict[str, Stability] = {}

    @property
    def second(self) -> Asker | None:
        """Who asks the second judge."""
        return self._second.asker if self._second else None

    async def gather(self, record: Record, begun: Begun) -> list[Opinion]:
        """The further opinions on a record that has its first; none where there was nothing to ask.

        Raises RunError where no record can be judged.
        """
        if begun.request is None:
            return []
        evaluator, scores = begun.evaluator, [_score(begun.outcome)]
        opinions = []
        for number, judging in enumerate(self._repeats, start=2):
            outcome = await judging.judge(record, evaluator)
            scores.append(_score(outcome))
            opinions.append(Opinion(judging=judging, outcome=outcome, repeat=number))
        if self._second and (not self._wanted.on_disagreement or len({*scores} - {None}) > 1):
            outcome = await self._ask_second(self._second, record, evaluator)
            opinions.append(Opinion(judging=self._second, outcome=outcome, second=True))
        if self._wanted.shuffle and CONTEXTS in evaluator.inputs and (order := order_of(record, self._seed)):
            outcome = await self._first.judge(in_order(record, order), evaluator)
            opinions.append(Opinion(judging=self._first, outcome=outcome, order=order))
        return opinions

    async def _ask_second(self, second: Judging, record: Record, evaluator: Evaluator) -> Outcome:
        try:
            return await second.judge(record, evaluator)
        except ModelUnknown:
            if not self._first.asker.limiter.closed:  # else the run has ended for another reason
                self.to_explain = second.asker.judge
            raise

    def columns(self, outcome: Outcome, opinions: Sequence[Opinion]) -> dict[str, object]:
        """The further columns of a row."""
        return {"opinions": [each.describe() for each in opinions], "majority": majority_of(outcome, opinions)}

    def count(self, evaluator: Evaluator, outcome: Outcome, opinions: Sequence[Opinion]) -> int:
        """Count a row that is written; the number of requests that its opinions did not have to send."""
        if evaluator.name not in self._stability:
            self._stability[evaluator.name] = Stability()
        self._stability[evaluator.name].add(outcome, opinions, majority_of(outcome, opinions))
        for each in opinions:
            if each.outcome.found and each.judging.saves:
                saved = each.outcome.tariff.cost(each.outcome.found) or 0.0
                each.judging.asker.budget.bill.saved_by_store += saved
        return sum(each.outcome.reused for each in opinions)

    def add_to(self, summary: dict[str, Any]) -> None:
        """Put into a summary what the opinions come to, and what a second judge took."""
        for name, stability in self._stability.items():
            summary["evaluators"][name]["stability"] = stability.summary(self._wanted)
        if self._second:
            add_second(summary, self._second.asker)


def majority_of(outcome: Outcome, opinions: Sequence[Opinion]) -> float | None:
    """The most frequent score among the judge's repeats; None in a tie, and where there is no score."""
    repeats = [outcome, *(each.outcome for each in opinions if not each.second and each.order is None)]
    counts = Counter(score for each in repeats if (score := _score(each)) is not None).most_common(2)
    if not counts or (len(counts) > 1 and counts[0][1] == counts[1][1]):
        return None
    return counts[0][0]


def _score(outcome: Outcome) -> float | None:
    return outcome.evaluation.score if outcome.evaluation else None
