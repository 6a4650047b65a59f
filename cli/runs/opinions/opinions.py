"""Further opinions on each record, gathered after the first answer, and what they come to."""

from collections.abc import Sequence
from typing import Any

from ....evaluators.case import CONTEXTS
from ....evaluators.errors import ModelUnknown
from ....evaluators.evaluator import Evaluator
from ....evaluators.judges.judge import Judge
from ....evaluators.judging import Begun, Judging, Outcome
from ....evaluators.record import Record
from .opinion import Opinion, majority_of, score_of
from .order import in_order, order_of
from .second import add_second
from .stability import Stability
from .wanted import Wanted


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

    async def gather(self, record: Record, begun: Begun) -> list[Opinion]:
        """The further opinions on a record that has its first; none where there was nothing to ask.

        Raises RunError where no record can be judged.
        """
        if begun.request is None:
            return []
        evaluator, scores = begun.evaluator, [score_of(begun.outcome)]
        opinions = []
        for number, judging in enumerate(self._repeats, start=2):
            outcome = await judging.judge(record, evaluator)
            scores.append(score_of(outcome))
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

    def count(self, evaluator: str, outcome: Outcome, opinions: Sequence[Opinion]) -> int:
        """Count a row that is written; the number of requests that its opinions did not have to send."""
        if evaluator not in self._stability:
            self._stability[evaluator] = Stability()
        self._stability[evaluator].add(outcome, opinions, majority_of(outcome, opinions))
        for each in opinions:
            if each.judging.saves:
                each.judging.asker.budget.bill.saved_by_store += each.outcome.saved
        return sum(each.outcome.reused for each in opinions)

    def add_to(self, summary: dict[str, Any]) -> None:
        """Put into a summary what the opinions come to, and what a second judge took."""
        for name, stability in self._stability.items():
            summary["evaluators"][name]["stability"] = stability.summary(self._wanted)
        if self._second:
            add_second(summary, self._second.asker)
