"""Which of a series of numbers fall out of what the series does by chance."""

from collections.abc import Sequence
from itertools import pairwise
from statistics import fmean
from typing import NamedTuple

_FACTOR = 3 / 1.128
"""Three standard deviations in units of the mean moving range of two; d2 = 1.128."""
FEWEST = 3
"""Numbers without which there is no band."""


class Band(NamedTuple):
    """What a series does by chance."""

    low: float
    centre: float
    high: float


def control_band(values: Sequence[float]) -> Band | None:
    """Mean ± 3 standard deviations, these by the mean moving range: the limits of a chart of individuals.

    NIST/SEMATECH e-Handbook of Statistical Methods, 6.3.2.2; Wheeler and Chambers, Understanding Statistical Process
    Control (1992). None of fewer than three numbers.
    """
    if len(values) < FEWEST:
        return None
    centre = fmean(values)
    half = _FACTOR * fmean(abs(after - before) for before, after in pairwise(values))
    return Band(centre - half, centre, centre + half)
