"""The threshold that labelled data asks for: pure functions of probabilities, so that tuning costs no request."""

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from ..errors import UsageError
from .asking import DEFAULT_THRESHOLD, PROBABILITIES


class Agreement(NamedTuple):
    """How far verdicts at a threshold agree with labels."""

    threshold: float
    accuracy: float
    """Share of equal verdicts."""
    kappa: float
    """Cohen's kappa (Educ. Psychol. Meas. 20 (1960) 37); 0 where chance explains everything."""


def record_probability(row: Mapping[str, Any]) -> float:
    """The probability from which a record of context relevance scores 1: its likeliest sentence's, 0 without any.

    `row` is a result row. Raises KeyError for one without probabilities.
    """
    return max(row[PROBABILITIES], default=0.0)


def agreement_at(threshold: float, probabilities: Sequence[float], labels: Sequence[bool]) -> Agreement:
    """The agreement of labels with what counts as true at a threshold."""
    pairs = list(zip(probabilities, labels, strict=True))
    called = sum(probability >= threshold for probability in probabilities)
    both = sum(label and probability >= threshold for probability, label in pairs)
    return _agreement(threshold, len(pairs), sum(map(bool, labels)), called, both)


def tune_threshold(probabilities: Sequence[float], labels: Sequence[bool]) -> Agreement:
    """The threshold with the highest kappa, and among equals the one nearest to 0.5.

    A probability and a label for each record, or for each sentence. Thresholds lie midway between neighbouring
    probabilities. It is fitted to these labels: judge it by others. Raises UsageError where nothing can be tuned.
    """
    if len(probabilities) != len(labels):
        raise UsageError(f"{len(probabilities)} probabilities and {len(labels)} labels; give a label for each")
    if len({bool(label) for label in labels}) < 2:  # noqa: PLR2004  # true and false
        raise UsageError("a threshold is tuned with labels of both kinds, true and false")
    ranked = sorted(zip(probabilities, labels, strict=True), reverse=True)
    positive = sum(map(bool, labels))
    best: list[Agreement] = []
    both = 0
    for called, (probability, label) in enumerate(ranked, start=1):
        both += bool(label)
        below = ranked[called][0] if called < len(ranked) else 0.0
        if below < probability or called == len(ranked):
            best.append(_agreement(_between(below, probability), len(ranked), positive, called, both))
    return max(best, key=lambda found: (found.kappa, -abs(found.threshold - DEFAULT_THRESHOLD)))


def _between(below: float, probability: float) -> float:
    """A threshold that parts the two: in the middle, or at 0.5 where that lies between them."""
    if below < DEFAULT_THRESHOLD <= probability:
        return DEFAULT_THRESHOLD
    middle = (below + probability) / 2
    return middle if middle > below else probability  # next to each other there is no middle


def _agreement(threshold: float, n: int, positive: int, called: int, both: int) -> Agreement:
    observed = (n - positive - called + 2 * both) / n
    expected = (positive * called + (n - positive) * (n - called)) / n**2
    return Agreement(threshold, observed, (observed - expected) / (1 - expected) if expected < 1 else 0.0)
