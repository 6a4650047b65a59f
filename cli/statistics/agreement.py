"""How far verdicts agree with labels, beyond chance and in each class."""

from collections import Counter
from collections.abc import Mapping, Sequence
from typing import NamedTuple

from .bootstrap import bootstrap_interval
from .intervals import Interval, wilson_interval

Cell = tuple[float, float]
"""A label and the verdict on the same record."""


class Estimate(NamedTuple):
    """A number and its 95 % interval; None where it is not defined."""

    value: float | None
    interval: Interval | None


def confusion(pairs: Sequence[Cell]) -> dict[Cell, int]:
    """How often each label met each verdict."""
    return dict(sorted(Counter(pairs).items()))


def accuracy(pairs: Sequence[Cell]) -> Estimate:
    """The share of verdicts that are the label."""
    return _share(sum(label == verdict for label, verdict in pairs), len(pairs))


def precision(pairs: Sequence[Cell], grade: float) -> Estimate:
    """Of the verdicts of a class, the share that is right."""
    given = [label for label, verdict in pairs if verdict == grade]
    return _share(given.count(grade), len(given))


def recall(pairs: Sequence[Cell], grade: float) -> Estimate:
    """Of the labels of a class, the share that was found."""
    found = [verdict for label, verdict in pairs if label == grade]
    return _share(found.count(grade), len(found))


def _share(part: int, whole: int) -> Estimate:
    """A share with Wilson's interval, which is no point at 0 and at 1, as the bootstrap's would be."""
    return Estimate(part / whole, wilson_interval(part, whole)) if whole else Estimate(None, None)


def kappa(pairs: Sequence[Cell]) -> Estimate:
    """Cohen's kappa, weighted by squared distance (which for two classes is the plain one), with a bootstrap interval.

    Cohen, Educ. Psychol. Meas. 20 (1960) 37 and Psychol. Bull. 70 (1968) 213. None where labels and verdicts are one
    and the same class throughout, so that chance explains all.
    """
    cells = sorted({*pairs})
    places = {cell: place for place, cell in enumerate(cells)}  # numbers are counted faster than pairs

    def statistic(drawn: Sequence[int]) -> float | None:
        return kappa_of({cells[place]: count for place, count in Counter(drawn).items()})

    drawn = [places[pair] for pair in pairs]
    return Estimate(statistic(drawn), bootstrap_interval(drawn, statistic))


def kappa_of(table: Mapping[Cell, int]) -> float | None:
    """Kappa of a confusion matrix with squared weights.

    The distance that chance would leave is that of independent draws: E(a - b)² = E a² + E b² - 2 · E a · E b.
    """
    n = sum(table.values())
    observed = sum(count * (label - verdict) ** 2 for (label, verdict), count in table.items()) / n
    squares = sum(count * (label**2 + verdict**2) for (label, verdict), count in table.items()) / n
    labels = sum(count * label for (label, _), count in table.items()) / n
    verdicts = sum(count * verdict for (_, verdict), count in table.items()) / n
    expected = squares - 2 * labels * verdicts
    return 1 - observed / expected if expected > _ROUNDING else None


_ROUNDING = 1e-12
_UnitSums = tuple[int, float, float, float]


def alpha(units: Sequence[Sequence[float]]) -> Estimate:
    """Krippendorff's alpha of several raters, one list of ratings for each record, with a bootstrap interval.

    The distance is the squared difference (interval data; for two classes the same as nominal). Krippendorff, Content
    Analysis, 4th ed. (2019), ch. 12. Records with fewer than two ratings do not count; None where all are alike.
    """
    sums = [_unit_sums(ratings) for ratings in units if len(ratings) > 1]
    return Estimate(_alpha(sums), bootstrap_interval(sums, _alpha)) if sums else Estimate(None, None)


def _unit_sums(ratings: Sequence[float]) -> _UnitSums:
    """Ratings, their sum, the sum of their squares, and the mean squared distance of each from the others, summed."""
    m, total, squares = len(ratings), sum(ratings), sum(rating**2 for rating in ratings)
    return m, total, squares, 2 * (m * squares - total**2) / (m - 1)


def _alpha(units: Sequence[_UnitSums]) -> float | None:
    n = sum(unit[0] for unit in units)
    total, squares = sum(unit[1] for unit in units), sum(unit[2] for unit in units)
    expected = 2 * (n * squares - total**2) / (n * (n - 1))
    observed = sum(unit[3] for unit in units) / n
    return 1 - observed / expected if expected > _ROUNDING else None
