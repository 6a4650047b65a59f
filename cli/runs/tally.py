"""What a run adds up to, kept up to date row by row."""

import math
from collections import Counter
from collections.abc import Sequence
from typing import NamedTuple, cast

from ...evaluators.figures import ContextFigures, ContextVerdict
from ...evaluators.judging import Outcome

_Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


class Interval(NamedTuple):
    """A 95 % interval of a mean."""

    low: float
    high: float


def wilson_interval(successes: float, n: int) -> Interval:
    """The 95 % interval of a share; Wilson, J. Am. Stat. Assoc. 22 (1927) 209, the score interval."""
    share = successes / n
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def normal_interval(total: float, total_of_squares: float, n: int) -> Interval | None:
    """The 95 % interval of a mean of scores between 0 and 1 by the normal approximation; None for fewer than two."""
    if n < 2:  # noqa: PLR2004
        return None
    mean = total / n
    variance = max(0.0, (total_of_squares - n * mean**2) / (n - 1))
    half = _Z * math.sqrt(variance / n)
    return Interval(max(0.0, mean - half), min(1.0, mean + half))


class Tally:
    """Sums over the rows of one evaluator."""

    def __init__(self, prompt: str) -> None:
        self.n = 0
        self.evaluated = 0
        self.errors: Counter[str] = Counter()
        self._prompt = prompt
        self._total = self._squares = 0.0
        self._binary = True
        self._figures = ContextFigures()

    def add(self, outcome: Outcome) -> None:
        """Count one row."""
        self.n += 1
        if outcome.failure:
            self.errors[outcome.failure.kind.value] += 1
        if outcome.evaluation:
            score = outcome.evaluation.score
            self.evaluated += 1
            self._total += score
            self._squares += score**2
            self._binary &= score in (0, 1)
            self._figures.add(cast(Sequence[ContextVerdict], outcome.evaluation.outputs["contexts"]))

    @property
    def score(self) -> float | None:
        """Mean over the evaluated records, None if there are none."""
        return self._total / self.evaluated if self.evaluated else None

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the score: Wilson's for binary scores, else the normal approximation."""
        if not self.evaluated:
            return None
        if self._binary:
            return wilson_interval(self._total, self.evaluated)
        return normal_interval(self._total, self._squares, self.evaluated)

    @property
    def bounds(self) -> Interval | None:
        """The mean over all records if every failed one were 0, and if every failed one were 1."""
        failed = self.n - self.evaluated
        return Interval(self._total / self.n, (self._total + failed) / self.n) if self.n else None

    def summary(self) -> dict[str, object]:
        """The evaluator's block of the summary."""
        return {
            "prompt": self._prompt,
            "score": self.score,
            "n": self.n,
            "evaluated": self.evaluated,
            "errors": dict(sorted(self.errors.items())),
            "coverage": self.evaluated / self.n if self.n else None,
            "interval_95": _listed(self.interval),
            "bounds_if_failed": _listed(self.bounds),
            "figures": self._figures.result(),
        }


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [*interval]
