"""Whether two runs over the same records differ: paired differences, and pairs that changed sides."""

import math
from collections.abc import Sequence
from typing import NamedTuple

from ...evaluators.outputs.output import UNIT, Range
from .bootstrap import MOST_UNITS, bootstrap_interval
from .intervals import Interval, around, wilson_interval

_EXACT = 1000
"""Discordant pairs up to which the binomial distribution is summed up."""
ClusterSum = tuple[float, int]
"""The differences of a cluster: their sum, and how many they are."""


class Difference(NamedTuple):
    """The mean of paired differences."""

    mean: float
    interval: Interval | None
    """95 %; None of a single cluster."""
    method: str
    """`bootstrap`, `normal` (of very many) or `wilson` (of none but zeros)."""


def mean_difference(clusters: Sequence[ClusterSum], bounds: Range = UNIT) -> Difference:
    """The mean over all pairs, with an interval that takes each cluster as a whole.

    `clusters` is not empty; `bounds` are those of the scores. Of more than 10,000 clusters the interval is the normal
    one of a ratio of two sums over clusters (Cochran, Sampling Techniques, 3rd ed. (1977), ch. 6). Where all
    differences are 0 it goes as far as one pair in so many can be expected to have changed unseen, by Wilson.
    """
    n = sum(size for _, size in clusters)
    mean = ratio(clusters)
    if all(total == 0 for total, _ in clusters):
        width = 1.0 if bounds.low is None or bounds.high is None else bounds.high - bounds.low
        most = width * wilson_interval(0, len(clusters)).high
        return Difference(0.0, Interval(-most, most), "wilson")
    if len(clusters) == 1:
        return Difference(mean, None, "bootstrap")
    if len(clusters) > MOST_UNITS:
        squares = sum((total - mean * size) ** 2 for total, size in clusters)
        error = math.sqrt(len(clusters) / (len(clusters) - 1) * squares) / n
        return Difference(mean, around(mean, error, Range(None, None)), "normal")
    if all(size == 1 for _, size in clusters):
        values = [total for total, _ in clusters]
        return Difference(mean, bootstrap_interval(values, _mean), "bootstrap")
    return Difference(mean, bootstrap_interval(clusters, ratio), "bootstrap")


def _mean(values: Sequence[float]) -> float:
    return math.fsum(values) / len(values)


def ratio(clusters: Sequence[ClusterSum]) -> float:
    """The mean over all pairs of clusters."""
    return sum(total for total, _ in clusters) / sum(size for _, size in clusters)


def mcnemar(up: int, down: int) -> float:
    """The two-sided p-value that as many pairs changed in one direction as in the other by chance.

    Exact, by the binomial distribution, up to 1,000 pairs that changed; beyond, by chi-squared with the continuity
    correction. McNemar, Psychometrika 12 (1947) 153; Edwards, Psychometrika 13 (1948) 185.
    """
    changed = up + down
    if changed <= _EXACT:
        tail = sum(math.comb(changed, count) for count in range(min(up, down) + 1))
        return min(1.0, tail / (1 << changed) * 2)
    squared = max(0, abs(up - down) - 1) ** 2 / changed
    return math.erfc(math.sqrt(squared / 2))
