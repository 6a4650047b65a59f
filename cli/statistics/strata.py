"""What a sample drawn by strata says about the whole: weights by the strata's sizes."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...evaluators.outputs.output import Range
from .intervals import Interval, around, wilson_interval
from .moments import Moments


class Stratum(NamedTuple):
    """The scores of one part of a population."""

    population: int
    scores: Moments


def weighted_mean(strata: Sequence[Stratum]) -> float:
    """The mean of the population: the strata's means weighted by their sizes.

    Cochran, Sampling Techniques, 3rd ed. (1977), ch. 5. A stratum without a score has no weight.
    """
    known = [stratum for stratum in strata if stratum.scores.n]
    whole = sum(stratum.population for stratum in known)
    return sum(stratum.population * stratum.scores.mean for stratum in known) / whole


def mean_variance(strata: Sequence[Stratum]) -> float:
    """The variance of the weighted mean: Σ W² (1 - n/N) s² / n (Cochran, ch. 5).

    A stratum with a single score has no variance of its own and takes that of all scores.
    """
    known = [stratum for stratum in strata if stratum.scores.n]
    whole = sum(stratum.population for stratum in known)
    pooled = Moments()
    for _, scores in known:
        pooled.merge(scores)
    return sum(
        (population / whole) ** 2
        * max(0.0, 1 - scores.n / population)
        * (scores.variance if scores.n > 1 else pooled.variance)
        / scores.n
        for population, scores in known
    )


def stratified_interval(
    strata: Sequence[Stratum], bounds: Range, *, binary: bool, design_effect: float = 1.0
) -> Interval | None:
    """The 95 % interval of the weighted mean; None of fewer than two scores.

    Of binary scores it is Wilson's for as many independent ones as vary as much (Korn and Graubard, Survey
    Methodology 24 (1998) 193), else the normal approximation; a point where all of the population has a score.
    """
    known = [stratum for stratum in strata if stratum.scores.n]
    mean = weighted_mean(known)
    if all(scores.n >= population for population, scores in known):
        return Interval(mean, mean)
    variance = mean_variance(known) * design_effect
    if variance == 0:
        return _of_equals(known, mean, bounds, design_effect)
    if binary and 0 < mean < 1:
        n = mean * (1 - mean) / variance
        return wilson_interval(mean * n, n)
    return around(mean, math.sqrt(variance), bounds) if sum(scores.n for _, scores in known) > 1 else None


def _of_equals(known: Sequence[Stratum], mean: float, bounds: Range, design_effect: float) -> Interval | None:
    """Each stratum's scores are alike: as much is known as of ones and zeros with this mean, which vary most."""
    if bounds.low is None or bounds.high is None:
        return None
    whole = sum(population for population, _ in known)
    # As many independent scores as these weights leave: Kish, Survey Sampling (1965), ch. 11.
    inverse = sum(
        (population / whole) ** 2 * max(0.0, 1 - scores.n / population) / scores.n for population, scores in known
    )
    n = 1 / (inverse * design_effect)
    width = bounds.high - bounds.low
    share = wilson_interval(n * (mean - bounds.low) / width, n)
    return Interval(bounds.low + width * share.low, bounds.low + width * share.high)
