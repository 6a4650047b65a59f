"""The mean of human labels over a whole corpus, of which people labelled a part and the judge all."""

import math
from collections.abc import Sequence
from statistics import covariance, fmean, variance
from typing import NamedTuple

from ...evaluators.outputs.output import Range
from .intervals import Interval, around, normal_interval


class Corrected(NamedTuple):
    """A mean that stands for the corpus."""

    mean: float
    interval: Interval | None
    """95 %; None of fewer than two labels."""
    weight: float
    """How much the judge's scores count, 0 where they do not help."""


def corrected_mean(
    labels: Sequence[float], scores: Sequence[float], others: Sequence[float], bounds: Range
) -> Corrected:
    """The mean label of the corpus by prediction-powered inference with a tuned weight.

    Angelopoulos, Duchi and Zrnic, PPI++ (arXiv:2311.01453, 2023), for a mean: mean(labels) + w · (mean(others) -
    mean(scores)), `scores` being the judge's on the labelled records, `others` those on the rest. The labelled records
    are a random sample of all. The weight is the one of the least estimated variance,

        var(labels - w · scores) / n + w² · var(others) / N,

    so that the interval is never wider than that of the labels alone, which is the one with weight 0.
    """
    n = len(labels)
    if n < 2:  # noqa: PLR2004  # there is no variance of one
        return labels_mean(labels, bounds)
    of_labels, of_scores = variance(labels), variance(scores)
    of_others = variance(others) if len(others) > 1 else 0.0
    both = covariance(labels, scores)
    spread = of_scores / n + (of_others / len(others) if others else 0.0)
    weight = both / n / spread if others and spread > 0 else 0.0
    alone = labels_mean(labels, bounds)
    assert alone.interval is not None  # noqa: S101  # there are two labels
    mean = alone.mean + (weight * (fmean(others) - fmean(scores)) if weight else 0.0)
    least = max(0.0, (of_labels - 2 * weight * both) / n + weight**2 * spread)
    interval = around(mean, math.sqrt(least), bounds)
    # At a bound of the scores the labels' interval may have been cut to less.
    helps = weight != 0 and interval.high - interval.low <= alone.interval.high - alone.interval.low
    return Corrected(_within(mean, bounds), interval, weight) if helps else alone


def labels_mean(labels: Sequence[float], bounds: Range) -> Corrected:
    """The mean label without the judge."""
    mean = fmean(labels)
    interval = normal_interval(mean, variance(labels), len(labels), bounds) if len(labels) > 1 else None
    return Corrected(mean, interval, 0.0)


def _within(value: float, bounds: Range) -> float:
    low, high = bounds
    return min(max(value, value if low is None else low), math.inf if high is None else high)
