"""What a run adds up to, kept up to date row by row."""

import math
from collections import Counter
from collections.abc import Mapping
from hashlib import blake2b
from typing import Any

from ...evaluators.evaluator import Evaluator
from ...evaluators.judging import Outcome
from ...evaluators.outputs.output import UNIT
from ..statistics.clusters import Clusters
from ..statistics.intervals import Interval, effective_size, normal_interval, wilson_interval
from ..statistics.moments import Moments
from ..statistics.strata import Stratum, stratified_interval, weighted_mean


def cluster_of(question: str) -> int | None:
    """The cluster of rows that a question's rows belong to; None where there is no question."""
    digest = blake2b(question.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) if question else None


class Tally:
    """Sums over the rows of one evaluator."""

    def __init__(
        self,
        evaluator: Evaluator,
        *,
        population: int | None = None,
        strata: Mapping[str | None, int] | None = None,
    ) -> None:
        """`population` is how many records there are where those judged are a random sample of them.

        `strata` is the same for each value of the field by which they were drawn.
        """
        self.n = 0
        self.evaluated = 0
        self.errors: Counter[str] = Counter()
        self._evaluator = evaluator
        self._population = population
        self._repaired = 0
        self._total = 0.0
        self._moments = Moments()
        self._strata = {value: Stratum(size, Moments()) for value, size in (strata or {}).items()}
        self._failed: Counter[str | None] = Counter()
        self._clusters = Clusters()
        self._binary = evaluator.range == UNIT
        self._figures = evaluator.figures()

    def add(self, outcome: Outcome, *, cluster: int | None = None, stratum: str | None = None) -> None:
        """Count one row; `cluster` is what it has in common with others that tell the same (`cluster_of`)."""
        self.n += 1
        self._repaired += outcome.repaired
        if outcome.failure:
            self.errors[outcome.failure.kind.value] += 1
        if evaluation := outcome.evaluation:
            self.evaluated += 1
            if evaluation.score is not None:
                self._add_score(evaluation.score, cluster, stratum)
            for figures, fact in zip(self._figures, evaluation.facts, strict=True):
                if figures:
                    figures.add(fact)
        else:
            self._failed[stratum] += 1

    def _add_score(self, score: float, cluster: int | None, stratum: str | None) -> None:
        self._total += score
        self._moments.add(score)
        self._binary &= score in (0, 1)
        if cluster is not None:
            self._clusters.add(cluster, score)
        if self._strata:
            self._strata[stratum].scores.add(score)

    @property
    def score(self) -> float | None:
        """Mean over the evaluated records, None if there are none or the evaluator gives no score.

        Of a sample drawn by strata it is that of the whole population.
        """
        if not self._moments.n:
            return None
        return weighted_mean([*self._strata.values()]) if self._strata else self._total / self._moments.n

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the score: Wilson's for binary scores, else the normal approximation.

        Of a random sample it is that of the mean over the whole population. Where questions repeat, it is that of
        fewer scores, by the design effect (`Clusters`).
        """
        moments = self._moments
        if not moments.n:
            return None
        effect = self._clusters.design_effect
        if self._strata:
            strata = [*self._strata.values()]
            return stratified_interval(strata, self._evaluator.range, binary=self._binary, design_effect=effect)
        mean, n = self._total / moments.n, float(moments.n)
        if self._population is not None:
            n = effective_size(moments.n, self._population)
        if math.isinf(n):
            return Interval(mean, mean)
        if self._binary:
            return wilson_interval(mean * n / effect, n / effect)
        if moments.n < 2:  # noqa: PLR2004
            return None
        return normal_interval(mean, moments.variance * effect, n, self._evaluator.range)

    @property
    def bounds(self) -> Interval | None:
        """The mean over all records if every failed one had the lowest score there is, and if it had the highest.

        None where there is no such score.
        """
        low, high = self._evaluator.range
        if not self._moments.n + self._failed.total() or low is None or high is None:
            return None
        return Interval(self._mean_if_failed(low), self._mean_if_failed(high))

    def _mean_if_failed(self, score: float) -> float:
        if not self._strata:
            failed = self._failed.total()
            return (self._total + failed * score) / (self._moments.n + failed)
        parts = []
        for value, (population, scores) in self._strata.items():
            filled = Moments()
            filled.merge(scores)
            for _ in range(self._failed[value]):
                filled.add(score)
            parts.append(Stratum(population, filled))
        return weighted_mean(parts)

    def summary(self) -> dict[str, object]:
        """The evaluator's block of the summary."""
        figures: dict[str, Any] = {}
        for part in self._figures:
            figures |= part.result() if part else {}
        return {
            "prompt": self._evaluator.prompt,
            "score": self.score,
            "better": self._evaluator.better,
            "n": self.n,
            "evaluated": self.evaluated,
            "errors": dict(sorted(self.errors.items())),
            "coverage": self.evaluated / self.n if self.n else None,
            "repaired": self._repaired,
            "interval_95": _listed(self.interval),
            "design_effect": self._clusters.design_effect,
            "bounds_if_failed": _listed(self.bounds),
            "figures": figures,
        }


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [*interval]
