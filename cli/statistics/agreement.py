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
    sums = PairSums()
    for (label, verdict), count in table.items():
        sums.add(label, verdict, count)
    return sums.kappa


class PairSums:
    """What kappa takes of pairs of grades, whatever their number."""

    def __init__(self) -> None:
        self.n = 0
        self._distance = self._squares = self._first = self._second = 0.0

    def add(self, first: float, second: float, count: int = 1) -> None:
        """Count a pair so many times."""
        self.n += count
        self._distance += count * (first - second) ** 2
        self._squares += count * (first**2 + second**2)
        self._first += count * first
        self._second += count * second

    @property
    def mean_of_second(self) -> float | None:
        """The mean of the second grades, None where there are none."""
        return self._second / self.n if self.n else None

    @property
    def kappa(self) -> float | None:
        """Kappa with squared weights; None where all grades are alike, or there are none."""
        if not self.n:
            return None
        expected = self._squares / self.n - 2 * (self._first / self.n) * (self._second / self.n)
        return 1 - self._distance / self.n / expected if expected > _ROUNDING else None


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
