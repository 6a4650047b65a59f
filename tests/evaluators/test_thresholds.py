"""A threshold out of labels."""

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from ctxrel.evaluators.decisions.threshold import agreement_at, record_probability, tune_threshold
from ctxrel.evaluators.errors import UsageError


def test_tuned_threshold() -> None:
    """The threshold parts the labels as well as any can, and says how well."""
    probabilities = [0.95, 0.9, 0.8, 0.7, 0.4, 0.2, 0.1]
    found = tune_threshold(probabilities, [True, True, True, False, False, False, False])
    assert found.threshold == pytest.approx(0.75)
    assert (found.accuracy, found.kappa) == (1, 1)
    assert agreement_at(0.5, probabilities, [True] * 3 + [False] * 4).accuracy == pytest.approx(6 / 7)
    assert tune_threshold([0.9, 0.2], [True, False]).threshold == 0.5
    row = {"statement_probabilities": [0.1, 0.7]}
    assert (record_probability(row), record_probability({"statement_probabilities": []})) == (0.7, 0)


@settings(deadline=None)
@given(st.lists(st.tuples(st.floats(0, 1), st.booleans()), min_size=2).filter(lambda p: len({b for _, b in p}) == 2))
def test_no_other_threshold_is_better(pairs: list[tuple[float, bool]]) -> None:
    """What is told of the tuned threshold is so, and no probability as a threshold agrees better."""
    probabilities, labels = [p for p, _ in pairs], [label for _, label in pairs]
    found = tune_threshold(probabilities, labels)
    assert agreement_at(found.threshold, probabilities, labels) == found
    assert all(agreement_at(p, probabilities, labels).kappa <= found.kappa + 1e-12 for p in probabilities)


@pytest.mark.parametrize(
    ("labels", "words"), [([True, True], "labels of both kinds"), ([True], "2 probabilities and 1 labels")]
)
def test_nothing_to_tune(labels: list[bool], words: str) -> None:
    """Labels that are all alike, or not one for each, tune nothing."""
    with pytest.raises(UsageError, match=words):
        tune_threshold([0.1, 0.9], labels)
