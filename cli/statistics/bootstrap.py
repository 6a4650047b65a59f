"""Bootstrap intervals of whatever can be worked out of a list of units."""

from collections.abc import Callable, Sequence
from random import Random
from typing import TypeVar

from .intervals import Interval

REPLICATES = 2000
MOST_UNITS = 10_000
"""Beyond, a bootstrap takes minutes and tells what the normal approximation tells."""
_SEED = 20_261_130
Unit = TypeVar("Unit")


def bootstrap_interval(
    units: Sequence[Unit], statistic: Callable[[Sequence[Unit]], float | None], *, replicates: int = REPLICATES
) -> Interval | None:
    """The 95 % percentile interval of a statistic over units drawn with replacement, always the same for the same ones.

    Efron, Ann. Stat. 7 (1979) 1; Efron and Tibshirani, An Introduction to the Bootstrap (1993), ch. 13. `statistic`
    gives None where it is not defined for what was drawn; None here where that is so for more than half of the draws.
    """
    random = Random(_SEED)  # noqa: S311  # chance that nobody may guess is not needed
    values = [value for _ in range(replicates) if (value := statistic(random.choices(units, k=len(units)))) is not None]
    if len(values) < replicates / 2:
        return None
    values.sort()
    return Interval(quantile(values, 0.025), quantile(values, 0.975))


def quantile(ordered: Sequence[float], share: float) -> float:
    """A quantile of ordered numbers, between the two next to it (Hyndman and Fan, Am. Stat. 50 (1996) 361, type 7)."""
    place = share * (len(ordered) - 1)
    below = int(place)
    above = min(below + 1, len(ordered) - 1)
    return ordered[below] + (place - below) * (ordered[above] - ordered[below])
