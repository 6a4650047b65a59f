"""How far a judge agrees with itself, with another one, and with itself over another order: counts only."""

from collections import Counter
from collections.abc import Sequence
from itertools import combinations
from typing import Any

from ....evaluators.judging import Outcome
from ...statistics.agreement import PairSums
from ...statistics.intervals import wilson_interval
from .opinion import Opinion, score_of, scores_of_repeats
from .order import verdicts_of
from .wanted import Wanted

THIRDS = ("first", "middle", "last")


class Share:
    """A share, counted."""

    def __init__(self) -> None:
        self.part = self.whole = 0

    def add(self, *, hit: bool) -> None:
        """Count one."""
        self.part += hit
        self.whole += 1

    def summary(self) -> dict[str, object]:
        """The share with Wilson's 95 % interval, and of how many it is."""
        return {
            "share": self.part / self.whole if self.whole else None,
            "interval_95": [*wilson_interval(self.part, self.whole)] if self.whole else None,
            "n": self.whole,
        }


def third_of(place: int, length: int) -> str:
    """In which third of a list the middle of an entry lies: of two entries one is first and one is last."""
    return THIRDS[(6 * place + 3) // (2 * length)]


class Stability:
    """Counts over the rows of one evaluator; memory does not grow with them."""

    def __init__(self) -> None:
        self._asked = 0
        self._errors: Counter[str] = Counter()
        self._pairs, self._unanimous = Share(), Share()
        self._majorities, self._majority_total, self._ties = 0, 0.0, 0
        self._judges, self._same = PairSums(), Share()
        self._order, self._flipped = Share(), Share()
        self._thirds = {third: Share() for third in THIRDS}

    def add(self, outcome: Outcome, opinions: Sequence[Opinion], majority: float | None) -> None:
        """Count a row with the further opinions on its record."""
        self._asked += len(opinions)
        for each in opinions:
            if each.outcome.failure:
                self._errors[each.outcome.failure.kind.value] += 1
        own = score_of(outcome)
        self._add_repeats(scores_of_repeats(outcome, opinions), majority)
        for each in opinions:
            other = score_of(each.outcome)
            if each.second and own is not None and other is not None:
                self._judges.add(own, other)
                self._same.add(hit=own == other)
            if each.order is not None:
                self._add_shuffled(outcome, each, each.order)

    def _add_repeats(self, scores: Sequence[float], majority: float | None) -> None:
        if majority is not None:
            self._majorities += 1
            self._majority_total += majority
        self._ties += majority is None and bool(scores)
        if len(scores) > 1:
            self._unanimous.add(hit=len({*scores}) == 1)
            for one, other in combinations(scores, 2):
                self._pairs.add(hit=one == other)

    def _add_shuffled(self, outcome: Outcome, opinion: Opinion, order: Sequence[int]) -> None:
        own, other = score_of(outcome), score_of(opinion.outcome)
        moved = [*order] != sorted(order)
        if moved and own is not None and other is not None:
            self._order.add(hit=own == other)
        before, after = verdicts_of(outcome.evaluation), opinion.verdicts
        for place, context in enumerate(order):
            verdict = after[context] if after else None
            if verdict is not None:
                self._thirds[third_of(place, len(order))].add(hit=verdict)
                if moved and before and before[context] is not None:
                    self._flipped.add(hit=verdict != before[context])

    def summary(self, wanted: Wanted) -> dict[str, Any]:
        """The figures of what was wanted, None for what was not."""
        return {
            "opinions": self._asked,
            "errors": dict(sorted(self._errors.items())),
            "repeats": self._of_repeats(wanted.repeat) if wanted.repeat > 1 else None,
            "judges": self._of_judges(wanted) if wanted.model is not None else None,
            "order": self._of_order() if wanted.shuffle else None,
        }

    def _of_repeats(self, repeat: int) -> dict[str, object]:
        pairs = self._pairs
        return {
            "repeat": repeat,
            "agreement": pairs.part / pairs.whole if pairs.whole else None,
            "unanimous": self._unanimous.summary(),
            "ties": self._ties,
            "score_by_majority": self._majority_total / self._majorities if self._majorities else None,
        }

    def _of_judges(self, wanted: Wanted) -> dict[str, object]:
        return {
            "model": wanted.model,
            "asked": "on disagreement" if wanted.on_disagreement else "always",
            "n": self._judges.n,
            "agreement": self._same.summary(),
            "kappa": self._judges.kappa,
            "score": self._judges.mean_of_second,
        }

    def _of_order(self) -> dict[str, object]:
        return {
            "score_agreement": self._order.summary(),
            "flipped": self._flipped.summary(),
            "relevant_by_position": {third: share.summary() for third, share in self._thirds.items()},
        }
