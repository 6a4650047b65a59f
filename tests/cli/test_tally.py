"""What a run adds up to."""

from statistics import fmean, variance

import pytest

from ctxrel.cli.console import duration, plain_table
from ctxrel.cli.runs.tally import Tally, cluster_of
from ctxrel.cli.statistics.intervals import normal_interval, wilson_interval
from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.errors import Failure, FailureKind
from ctxrel.evaluators.evaluator import Evaluation
from ctxrel.evaluators.figures import ContextFact
from ctxrel.evaluators.judging import Outcome


# Limits by statsmodels 0.15.0, proportion_confint(successes, n, method="wilson").
@pytest.mark.parametrize(
    ("successes", "n", "low", "high"),
    [
        (0, 1, 0.0, 0.793451),
        (1, 1, 0.206549, 1.0),
        (0, 10, 0.0, 0.277533),
        (5, 10, 0.236593, 0.763407),
        (81, 100, 0.722212, 0.874852),
        (999, 1000, 0.994357, 0.999823),
    ],
)
def test_wilson(successes: int, n: int, low: float, high: float) -> None:
    """Wilson's interval agrees with an established implementation, also at the ends."""
    assert wilson_interval(successes, n) == pytest.approx((low, high), abs=2e-6)


def test_normal() -> None:
    """The interval of other scores: mean 0.5, sample variance 1/12, n 4."""
    scores = [0.2, 0.4, 0.6, 0.8]
    interval = normal_interval(fmean(scores), variance(scores), 4)
    assert interval == pytest.approx((0.5 - 1.959964 * (0.0666667 / 4) ** 0.5, 0.5 + 1.959964 * (0.0666667 / 4) ** 0.5))
    assert normal_interval(1, 0, 1) is None


def evaluated(score: float, relevant: list[bool]) -> Outcome:
    fact = ContextFact(tuple(relevant), tuple(range(1, len(relevant) + 1)), 2 * len(relevant), sum(relevant))
    return Outcome(evaluation=Evaluation(score=score, outputs={}, facts=(fact,)))


def test_failures_are_outside_the_mean() -> None:
    """Failures lower the coverage, widen the bounds and leave the mean alone."""
    tally = Tally(load_evaluator("context_relevance"))
    for outcome in (
        evaluated(1, [True, False]),
        evaluated(0, [False]),
        Outcome(failure=Failure(FailureKind.TIMEOUT, "t")),
    ):
        tally.add(outcome)
    summary = tally.summary()
    assert (summary["score"], summary["n"], summary["evaluated"], summary["errors"]) == (0.5, 3, 2, {"timeout": 1})
    assert (summary["coverage"], summary["bounds_if_failed"]) == (2 / 3, [1 / 3, 2 / 3])


def test_nothing_yet() -> None:
    """Without a record there are no numbers, and no NaN."""
    summary = Tally(load_evaluator("context_relevance")).summary()
    assert (summary["score"], summary["coverage"], summary["interval_95"], summary["bounds_if_failed"]) == (None,) * 4


@pytest.mark.parametrize(
    ("seconds", "text"),
    [(0, "0 s"), (59.4, "59 s"), (60, "1 min"), (3540, "59 min"), (3600, "1 h 00 min"), (11100, "3 h 05 min")],
)
def test_duration(seconds: float, text: str) -> None:
    """Durations as people say them."""
    assert duration(seconds) == text


def test_plain_table() -> None:
    """Columns line up."""
    assert plain_table(["a", "long"], [["xyz", "1"]]) == "a    long\nxyz  1\n"


def test_questions_that_repeat() -> None:
    """A question asked five times over tells as much as once; rows without a question tell each for itself."""
    once, repeated, without = (Tally(load_evaluator("context_relevance")) for _ in range(3))
    for number in range(40):
        once.add(evaluated(number % 2, [True]), cluster=cluster_of(f"q{number}"))
        for _ in range(5):
            repeated.add(evaluated(number % 2, [True]), cluster=cluster_of(f"q{number}"))
            without.add(evaluated(number % 2, [True]), cluster=cluster_of(""))
    assert once.summary()["design_effect"] == without.summary()["design_effect"] == 1
    assert repeated.summary()["design_effect"] == pytest.approx(5, rel=0.03)
    assert repeated.interval == pytest.approx(once.interval, abs=0.003)
    assert without.interval == pytest.approx(wilson_interval(100, 200))


def test_strata_and_failures() -> None:
    """Failed records of a stratum weigh as many as they stand for in the bounds, and are outside of the mean."""
    tally = Tally(load_evaluator("context_relevance"), strata={"en": 900, "ko": 100})
    for stratum, score in (("en", 1), ("en", 0), ("ko", 1), ("ko", None)):
        failed = Outcome(failure=Failure(FailureKind.TIMEOUT, "t"))
        tally.add(failed if score is None else evaluated(score, [True]), stratum=stratum)
    assert tally.score == pytest.approx(0.9 * 0.5 + 0.1)
    assert tally.bounds == pytest.approx((0.9 * 0.5 + 0.1 * 0.5, 0.9 * 0.5 + 0.1))


def test_rows_without_a_score() -> None:
    """A verdict that gives no score is in neither end of the bounds."""
    tally = Tally(load_evaluator("context_relevance"))
    tally.add(Outcome(evaluation=Evaluation(score=None, outputs={}, facts=(ContextFact((), (), 0, 0),))))
    assert tally.bounds is None
    tally.add(evaluated(1, [True]))
    tally.add(Outcome(failure=Failure(FailureKind.TIMEOUT, "t")))
    assert tally.bounds == (0.5, 1)
