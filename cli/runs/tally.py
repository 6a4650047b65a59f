"""What a run adds up to, kept up to date row by row."""

import math
from collections import Counter
from typing import Any, NamedTuple

from ...evaluators.evaluator import Evaluator
from ...evaluators.judging import Outcome
from ...evaluators.outputs.output import UNIT, Range

_Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


class Interval(NamedTuple):
    """A 95 % interval of a mean."""

    low: float
    high: float


def wilson_interval(successes: float, n: float) -> Interval:
    """The 95 % interval of a share; Wilson, J. Am. Stat. Assoc. 22 (1927) 209, the score interval."""
    share = successes / n
    middle = (share + _Z**2 / (2 * n)) / (1 + _Z**2 / n)
    half = _Z / (1 + _Z**2 / n) * math.sqrt(share * (1 - share) / n + _Z**2 / (4 * n**2))
    return Interval(max(0.0, middle - half), min(1.0, middle + half))


def effective_size(n: int, population: int) -> float:
    """The size a sample from a population without end had if its mean varied as little as that of `n` of this one.

    The variance of a mean shrinks by (N - n) / (N - 1): Isserlis, J. R. Stat. Soc. 81 (1918) 75. Infinite where all
    are in the sample.
    """
    return n * (population - 1) / (population - n) if n < population else math.inf


def normal_interval(mean: float, variance: float, n: float, bounds: Range = UNIT) -> Interval | None:
    """The 95 % interval of a mean of `n` scores within bounds by the normal approximation; None for fewer than two.

    `variance` is the sample's.
    """
    if n < 2:  # noqa: PLR2004
        return None
    if variance == 0 and bounds.low is not None and bounds.high is not None:
        # All alike so far: no more is known than of as many ones and zeros with this mean, which vary most.
        width = bounds.high - bounds.low
        share = wilson_interval(n * (mean - bounds.low) / width, n)
        return Interval(bounds.low + width * share.low, bounds.low + width * share.high)
    half = _Z * math.sqrt(variance / n)
    low = mean - half if bounds.low is None else max(bounds.low, mean - half)
    return Interval(low, mean + half if bounds.high is None else min(bounds.high, mean + half))


class Tally:
    """Sums over the rows of one evaluator."""

    def __init__(self, evaluator: Evaluator, *, population: int | None = None) -> None:
        """`population` is how many records there are where those judged are a random sample of them."""
        self.n = 0
        self.evaluated = 0
        self.errors: Counter[str] = Counter()
        self._evaluator = evaluator
        self._population = population
        self._repaired = 0
        self._scored = 0
        self._total = self._mean = self._deviations = 0.0
        self._binary = evaluator.range == UNIT
        self._figures = evaluator.figures()

    def add(self, outcome: Outcome) -> None:
        """Count one row."""
        self.n += 1
        self._repaired += outcome.repaired
        if outcome.failure:
            self.errors[outcome.failure.kind.value] += 1
        if evaluation := outcome.evaluation:
            self.evaluated += 1
            if evaluation.score is not None:
                self._add_score(evaluation.score)
            for figures, fact in zip(self._figures, evaluation.facts, strict=True):
                if figures:
                    figures.add(fact)

    def _add_score(self, score: float) -> None:
        self._scored += 1
        self._total += score
        before = self._mean
        self._mean += (score - before) / self._scored  # Welford, Technometrics 4 (1962) 419
        self._deviations += (score - before) * (score - self._mean)
        self._binary &= score in (0, 1)

    @property
    def score(self) -> float | None:
        """Mean over the evaluated records, None if there are none or the evaluator gives no score."""
        return self._total / self._scored if self._scored else None

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the score: Wilson's for binary scores, else the normal approximation.

        Of a random sample it is that of the mean over the whole population.
        """
        if not self._scored:
            return None
        mean, n = self._total / self._scored, float(self._scored)
        if self._population is not None:
            n = effective_size(self._scored, self._population)
        if math.isinf(n):
            return Interval(mean, mean)
        if self._binary:
            return wilson_interval(mean * n, n)
        if self._scored < 2:  # noqa: PLR2004
            return None
        variance = self._deviations / max(1, self._scored - 1)
        return normal_interval(mean, variance, n, self._evaluator.range)

    @property
    def bounds(self) -> Interval | None:
        """The mean over all records if every failed one had the lowest score there is, and if it had the highest.

        None where there is no such score.
        """
        low, high = self._evaluator.range
        if not self.n or low is None or high is None:
            return None
        failed = self.n - self.evaluated
        return Interval((self._total + failed * low) / self.n, (self._total + failed * high) / self.n)

    def summary(self) -> dict[str, object]:
        """The evaluator's block of the summary."""
        figures: dict[str, Any] = {}
        for part in self._figures:
            figures |= part.result() if part else {}
        return {
            "prompt": self._evaluator.prompt,
            "score": self.score,
            "n": self.n,
            "evaluated": self.evaluated,
            "errors": dict(sorted(self.errors.items())),
            "coverage": self.evaluated / self.n if self.n else None,
            "repaired": self._repaired,
            "interval_95": _listed(self.interval),
            "bounds_if_failed": _listed(self.bounds),
            "figures": figures,
        }


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [*interval]
