"""Intervals, tests and agreement against established implementations, and by simulation."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from random import Random
from statistics import fmean, variance
from typing import Literal

import krippendorff
import numpy as np
import pytest
from scipy import stats
from sklearn import metrics

from ctxrel.cli.statistics.agreement import accuracy, alpha, confusion, kappa, kappa_of, precision, recall
from ctxrel.cli.statistics.bootstrap import bootstrap_interval, quantile
from ctxrel.cli.statistics.clusters import Clusters
from ctxrel.cli.statistics.control import control_band
from ctxrel.cli.statistics.intervals import Interval, wilson_interval
from ctxrel.cli.statistics.moments import Moments
from ctxrel.cli.statistics.paired import Difference, mcnemar, mean_difference, ratio
from ctxrel.cli.statistics.prediction import corrected_mean, labels_mean
from ctxrel.cli.statistics.strata import Stratum, mean_variance, stratified_interval, weighted_mean
from ctxrel.evaluators.outputs.output import UNIT


def moments(values: Sequence[float]) -> Moments:
    found = Moments()
    for value in values:
        found.add(value)
    return found


def coverage(truth: float, times: int, make: Callable[[Random], Interval | None]) -> float:
    """How often an interval holds the truth."""
    random = Random(20261130)
    held = 0
    for _ in range(times):
        interval = make(random)
        assert interval is not None
        held += interval.low <= truth <= interval.high
    return held / times


def test_moments() -> None:
    """Mean and variance, also of two parts put together."""
    random = Random(1)
    values = [random.gauss(5, 2) for _ in range(50)]
    whole, part = moments(values[:20]), moments(values[20:])
    whole.merge(part)
    whole.merge(Moments())
    assert (whole.n, whole.mean, whole.variance) == pytest.approx((50, fmean(values), variance(values)))


def test_quantile() -> None:
    """Quantiles between the numbers, as numpy has them."""
    values = sorted([3.0, 1.0, 4.0, 1.5, 9.0])
    for share in (0, 0.025, 0.3, 0.975, 1):
        assert quantile(values, share) == pytest.approx(np.quantile(values, share))


@pytest.mark.parametrize(("up", "down"), [(0, 0), (0, 1), (3, 9), (10, 10), (40, 90), (480, 520), (0, 1000)])
def test_mcnemar_exact(up: int, down: int) -> None:
    """The two-sided binomial test of the pairs that changed."""
    expected = stats.binomtest(up, up + down, 0.5).pvalue if up + down else 1.0
    assert mcnemar(up, down) == pytest.approx(expected)


@pytest.mark.parametrize(("up", "down"), [(500, 501), (700, 600), (5000, 4800)])
def test_mcnemar_of_many(up: int, down: int) -> None:
    """Chi-squared with the continuity correction."""
    assert mcnemar(up, down) == pytest.approx(stats.chi2.sf((abs(up - down) - 1) ** 2 / (up + down), 1))


@pytest.mark.parametrize("grades", [(0, 1), (1, 2, 3, 4, 5)], ids=["binary", "grades"])
@pytest.mark.parametrize("seed", range(5))
def test_agreement(grades: tuple[int, ...], seed: int) -> None:
    """Accuracy, precision, recall, kappa and confusion as scikit-learn has them."""
    random = Random(seed)
    labels = random.choices(grades, k=80)
    verdicts = [label if random.random() < 0.6 else random.choice(grades) for label in labels]
    pairs = list(zip(map(float, labels), map(float, verdicts), strict=True))
    assert accuracy(pairs).value == pytest.approx(metrics.accuracy_score(labels, verdicts))
    assert kappa(pairs).value == pytest.approx(metrics.cohen_kappa_score(labels, verdicts, weights="quadratic"))
    for grade in grades:
        given = {"labels": [grade], "average": "macro"}
        assert precision(pairs, grade).value == pytest.approx(metrics.precision_score(labels, verdicts, **given))
        assert recall(pairs, grade).value == pytest.approx(metrics.recall_score(labels, verdicts, **given))
    matrix = metrics.confusion_matrix(labels, verdicts)
    counts = confusion(pairs)
    assert [[counts.get((one, other), 0) for other in grades] for one in grades] == matrix.tolist()


def test_agreement_of_nothing() -> None:
    """What is not defined is None: a class that was never given, kappa where there is but one class."""
    assert precision([(0, 0), (1, 0)], 1) == (None, None)
    assert kappa([(1, 1)] * 9) == (None, None)


@pytest.mark.parametrize(("grades", "level"), [((0, 1), "nominal"), ((0, 1), "interval"), ((1, 2, 3, 4), "interval")])
@pytest.mark.parametrize("seed", range(4))
def test_alpha(grades: tuple[int, ...], level: Literal["nominal", "interval"], seed: int) -> None:
    """Krippendorff's alpha of three raters, of whom some say nothing, as the package krippendorff has it."""
    random = Random(seed)
    truth = random.choices(grades, k=60)
    rated = [
        [(t if random.random() < 0.7 else random.choice(grades)) if random.random() < 0.8 else None for t in truth]
        for _ in range(3)
    ]
    table = np.array([[np.nan if value is None else value for value in rater] for rater in rated], dtype=float)
    units = [[float(value) for value in unit if value is not None] for unit in zip(*rated, strict=True)]
    expected = krippendorff.alpha(reliability_data=table, level_of_measurement=level)
    assert alpha(units).value == pytest.approx(expected)


def test_bootstrap_is_that_of_scipy() -> None:
    """The percentile interval agrees with scipy's within what 2,000 draws leave to chance, and does not change."""
    random = Random(3)
    values = [random.gauss(0, 1) for _ in range(200)]
    found = bootstrap_interval(values, fmean)
    theirs = stats.bootstrap((values,), np.mean, method="percentile", n_resamples=9999, rng=1).confidence_interval
    assert found == pytest.approx((theirs.low, theirs.high), abs=0.02)
    assert found == bootstrap_interval(values, fmean)


def test_bootstrap_of_the_undefined() -> None:
    """A statistic that most draws do not define has no interval."""
    assert bootstrap_interval([1, 2], lambda _: None) is None


def test_difference_of_nothing_but_ties() -> None:
    """No difference in 50 pairs is no proof of none: the interval goes as far as Wilson's."""
    found = mean_difference([(0.0, 1)] * 50)
    most = wilson_interval(0, 50).high
    assert found == Difference(0, Interval(-most, most), "wilson")
    assert mean_difference([(1.0, 2)]) == Difference(0.5, None, "bootstrap")


def test_difference_of_many_is_normal() -> None:
    """Beyond 10,000 clusters the interval is the normal one, and agrees with the bootstrap of as many."""
    random = Random(5)
    values = [random.choice((-1.0, 0.0, 0.0, 1.0, 1.0)) for _ in range(12_000)]
    found = mean_difference([(value, 1) for value in values])
    half = 1.959964 * stats.sem(values)
    assert found.method == "normal"
    assert found.interval == pytest.approx((fmean(values) - half, fmean(values) + half))


def ppi_case() -> tuple[list[float], list[float], list[float]]:
    random = Random(42)
    labels = [float(random.random() < 0.6) for _ in range(120)]
    scores = [min(1.0, max(0.0, 0.7 * label + 0.15 + random.gauss(0, 0.15))) for label in labels]
    others = [min(1.0, max(0.0, 0.7 * (random.random() < 0.6) + 0.15 + random.gauss(0, 0.15))) for _ in range(2000)]
    return labels, scores, others


def test_corrected_mean() -> None:
    """Mean and interval are those of the authors' package with this weight, which has the least variance.

    ppi_py 0.2.3: ppi_mean_pointestimate and ppi_mean_ci with lam=1.2126088, classical_mean_ci. The package brings
    numba, pandas and statsmodels along, 250 MB, and is therefore no dependency of the tests.
    """
    labels, scores, others = ppi_case()
    found = corrected_mean(labels, scores, others, UNIT)
    assert found.weight == pytest.approx(1.2126088)
    assert found.mean == pytest.approx(0.57044431)
    assert found.interval == pytest.approx((0.53418695, 0.60670166), abs=2e-4)  # its variances divide by n
    assert labels_mean(labels, UNIT).interval == pytest.approx((0.51234775, 0.68765225), abs=4e-4)


@pytest.mark.parametrize("skill", [-0.9, 0.0, 0.1, 0.9])
def test_corrected_is_never_wider(skill: float) -> None:
    """Whatever the judge is worth, its help costs nothing; a good one narrows the interval."""
    random = Random(7)
    narrower = 0
    for _ in range(200):
        n = random.choice((2, 5, 30))
        truth = [float(random.random() < 0.7) for _ in range(n + 300)]
        judged = [t if random.random() < abs(skill) else float(random.random() < 0.5) for t in truth]
        judged = [1 - verdict for verdict in judged] if skill < 0 else judged
        found = corrected_mean(truth[:n], judged[:n], judged[n:], UNIT)
        alone = labels_mean(truth[:n], UNIT)
        assert found.interval
        assert alone.interval
        width = found.interval.high - found.interval.low
        assert width <= alone.interval.high - alone.interval.low
        narrower += width < 0.9 * (alone.interval.high - alone.interval.low)
    assert skill in (0.0, 0.1) or narrower > 100


def test_corrected_without_others() -> None:
    """Where everything is labelled, or one record only, the labels stand alone."""
    assert corrected_mean([1, 0, 1], [1, 0, 0], [], UNIT) == labels_mean([1, 0, 1], UNIT)
    assert corrected_mean([1], [1], [0, 1], UNIT) == (1, None, 0)


def test_control_band() -> None:
    """Mean ± 2.66 mean moving ranges: the flow rates of the NIST handbook, 6.3.2.2."""
    flow = [49.6, 47.6, 49.9, 51.3, 47.8, 51.2, 52.6, 52.4, 53.6, 52.1]
    assert control_band(flow) == pytest.approx((45.8, 50.81, 55.8), abs=0.05)
    assert control_band([1, 2]) is None


def test_weighted_mean() -> None:
    """Strata count by their sizes, worked out by hand: Cochran's formulas."""
    strata = [Stratum(900, moments([1, 1, 0, 0])), Stratum(100, moments([1, 1, 1, 0])), Stratum(50, Moments())]
    assert weighted_mean(strata) == pytest.approx(0.9 * 0.5 + 0.1 * 0.75)
    expected = 0.81 * (1 - 4 / 900) * (1 / 3) / 4 + 0.01 * (1 - 4 / 100) * 0.25 / 4
    assert mean_variance(strata) == pytest.approx(expected)


def test_strata_that_are_alike_or_whole() -> None:
    """All ones leave room below; a population that was judged whole leaves none."""
    alike = stratified_interval([Stratum(900, moments([1] * 10)), Stratum(100, moments([1] * 10))], UNIT, binary=True)
    assert alike
    assert alike.high == pytest.approx(1)
    assert 0.6 < alike.low < 0.8
    whole = stratified_interval([Stratum(2, moments([1, 0])), Stratum(1, moments([1]))], UNIT, binary=True)
    assert whole == pytest.approx((2 / 3, 2 / 3))


def test_design_effect() -> None:
    """Each score four times over tells as much as once: the effect is four times C / (C - 1) · (n - 1) / n."""
    clusters, single = Clusters(), Clusters()
    for number in range(50):
        single.add(number << 32, number % 2)
        for _ in range(4):
            clusters.add(number << 32, number % 2)
    assert clusters.design_effect == pytest.approx(4 * 50 / 49 * 199 / 200)
    assert single.design_effect == 1


def test_clusters_in_bounded_memory() -> None:
    """Of more clusters than are kept a sample tells nearly the same."""
    random = Random(2)
    few, all_of_them = Clusters(tracked=500), Clusters()
    for _ in range(5000):
        key, score = random.getrandbits(64), float(random.random() < 0.4)
        for _ in range(3):
            value = score if random.random() < 0.8 else 1 - score
            few.add(key, value)
            all_of_them.add(key, value)
    assert few.design_effect == pytest.approx(all_of_them.design_effect, rel=0.1)
    assert len(few._sums) <= 500


def clustered(random: Random) -> list[list[float]]:
    """Questions asked one to six times, whose answers mostly agree; the mean is 0.6 whatever the question."""
    found = []
    for _ in range(80):
        inclination = random.betavariate(1.2, 0.8)
        found.append([float(random.random() < inclination) for _ in range(random.randint(1, 6))])
    return found


def test_coverage_of_clustered_scores() -> None:
    """Of 95 % intervals over repeated questions 93 to 97 % hold; without the design effect far fewer."""

    def interval(random: Random, *, plain: bool = False) -> Interval:
        groups = clustered(random)
        clusters = Clusters()
        for group in groups:
            key = random.getrandbits(64)
            for score in group:
                clusters.add(key, score)
        scores = [score for group in groups for score in group]
        n = len(scores) / (1 if plain else clusters.design_effect)
        return wilson_interval(fmean(scores) * n, n)

    assert 0.93 <= coverage(0.6, 1500, interval) <= 0.97
    assert coverage(0.6, 500, lambda random: interval(random, plain=True)) < 0.9


def test_coverage_of_strata() -> None:
    """Samples of 40 of each of three languages, of very different size and score, stand for the whole."""
    sizes, shares = (5000, 800, 200), (0.8, 0.4, 0.1)
    populations = [
        [1.0] * round(size * share) + [0.0] * round(size * (1 - share))
        for size, share in zip(sizes, shares, strict=True)
    ]
    truth = sum(map(sum, populations)) / sum(sizes)

    def interval(random: Random) -> Interval | None:
        strata = [Stratum(len(each), moments(random.sample(each, 40))) for each in populations]
        return stratified_interval(strata, UNIT, binary=True)

    assert 0.93 <= coverage(truth, 1500, interval) <= 0.97


def test_coverage_of_prediction_powered_means() -> None:
    """The corrected mean's intervals hold the people's mean in 93 to 97 %, of a judge that is far off."""

    def interval(random: Random) -> Interval | None:
        truth = [float(random.random() < 0.55) for _ in range(1100)]
        judged = [1.0 if random.random() < (0.9 if label else 0.4) else 0.0 for label in truth]
        return corrected_mean(truth[:100], judged[:100], judged[100:], UNIT).interval

    assert 0.93 <= coverage(0.55, 1500, interval) <= 0.97


def test_coverage_of_paired_differences() -> None:
    """Bootstrap intervals of the difference between two judges, ids standing twice in some places."""

    def interval(random: Random) -> Interval | None:
        clusters = []
        for number in range(120):
            lean, n = random.gauss(0, 0.2), 1 + (number % 3 == 0)
            clusters.append((sum(random.gauss(0.1 + lean, 0.3) for _ in range(n)), n))
        return bootstrap_interval(clusters, ratio, replicates=500)

    assert 0.93 <= coverage(0.1, 500, interval) <= 0.97


def test_coverage_of_rare_changes() -> None:
    """The same of verdicts, of which four in a hundred turned to 1 and one to 0."""

    def interval(random: Random) -> Interval | None:
        changed = random.choices((0.0, 1.0, -1.0), (95, 4, 1), k=100)
        if not any(changed):
            return mean_difference([(0.0, 1)] * 100).interval
        return bootstrap_interval(changed, lambda drawn: sum(drawn) / 100, replicates=500)

    assert 0.93 <= coverage(0.03, 400, interval) <= 0.97


def test_coverage_of_kappa() -> None:
    """Bootstrap intervals of kappa over 150 labels; the true one is worked out from the probabilities."""
    table = {(0.0, 0.0): 35, (0.0, 1.0): 15, (1.0, 0.0): 10, (1.0, 1.0): 40}
    truth = kappa_of(table)
    assert truth is not None
    cells, counts = list(table), list(table.values())

    def interval(random: Random) -> Interval | None:
        drawn = random.choices(range(4), counts, k=150)
        return bootstrap_interval(
            drawn, lambda again: kappa_of({cells[place]: n for place, n in Counter(again).items()}), replicates=500
        )

    assert 0.93 <= coverage(truth, 500, interval) <= 0.97


def test_wilson_is_that_of_scipy() -> None:
    """Wilson's interval, of whole numbers, as scipy has it."""
    theirs = stats.binomtest(17, 40).proportion_ci(method="wilson")
    assert wilson_interval(17, 40) == pytest.approx((theirs.low, theirs.high))
    assert math.isclose(wilson_interval(0, 40).low, 0, abs_tol=1e-12)
