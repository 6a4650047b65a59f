"""95 % intervals of means."""

import math
from typing import NamedTuple

from ...evaluators.outputs.output import UNIT, Range

Z = 1.959963984540054
"""The 97.5 % quantile of the normal distribution."""


class Interval(NamedTuple):
    """A 95 % interval."""

    low: float
    high: float


def wilson_interval(successes: float, n: float) -> Interval:
    """The 95 % interval of a share; Wilson, J. Am. Stat. Assoc. 22 (1927) 209, the score interval."""
    share = successes / n
    middle = (share + Z**2 / (2 * n)) / (1 + Z**2 / n)
    half = Z / (1 + Z**2 / n) * math.sqrt(share * (1 - share) / n + Z**2 / (4 * n**2))
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
    return around(mean, math.sqrt(variance / n), bounds)


def around(mean: float, error: float, bounds: Range) -> Interval:
    """The 95 % interval of an estimate with a standard error by the normal approximation, within bounds."""
    low, high = mean - Z * error, mean + Z * error
    return Interval(
        low if bounds.low is None else max(bounds.low, low), high if bounds.high is None else min(bounds.high, high)
    )
