"""Figures of the retrieval: the same numbers as trec_eval's, and counts within bounded memory."""

import random
from collections.abc import Sequence

import ir_measures
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from ir_measures import AP, RR, P, Qrel, ScoredDoc, nDCG

from ctxrel.evaluators.case import Case, number_statements
from ctxrel.evaluators.figures import (
    CUTOFFS,
    ContextFact,
    ContextFigures,
    DistinctContexts,
    average_precision,
    context_fact,
    ndcg,
    precision_at,
    ratio,
    reciprocal_rank,
)

Ranking = Sequence[bool]
MEASURES = {**{P @ k: f"precision_at_{k}" for k in CUTOFFS}, RR: "mrr", AP: "map", nDCG: "ndcg"}
NO_FIGURES = {
    "no_contexts": 0,
    "none_relevant": 0,
    "contexts": 0,
    "relevant_contexts": 0,
    "statements": 0,
    "relevant_statements": 0,
    "context_precision": None,
    "mrr": None,
    "map": None,
    "ndcg": None,
    "precision_at_1": None,
    "precision_at_3": None,
    "precision_at_5": None,
    "precision_at_10": None,
    "first_relevant_rank": None,
    "never_relevant": None,
}


def fact_of(ranking: Ranking) -> ContextFact:
    """The fact of contexts with one statement each, all of them with texts of their own."""
    return ContextFact(tuple(ranking), tuple(range(1, len(ranking) + 1)), len(ranking), sum(ranking))


def result_of(*facts: ContextFact) -> dict[str, float | int | None]:
    figures = ContextFigures()
    for fact in facts:
        figures.add(fact)
    return figures.result()


def by_trec_eval(ranking: Ranking) -> dict[str, float]:
    """What ir_measures says of one ranking; nothing was judged where nothing was retrieved."""
    if not ranking:
        return dict.fromkeys(MEASURES.values(), 0.0)
    judged = [Qrel("q", f"d{place}", int(relevant)) for place, relevant in enumerate(ranking)]
    run = [ScoredDoc("q", f"d{place}", float(len(ranking) - place)) for place in range(len(ranking))]
    return {MEASURES[found.measure]: found.value for found in ir_measures.iter_calc(list(MEASURES), judged, run)}


def expect_trec_eval(rankings: Sequence[Ranking]) -> None:
    expected = [by_trec_eval(ranking) for ranking in rankings]
    result = result_of(*map(fact_of, rankings))
    for name in MEASURES.values():
        mean = sum(values[name] for values in expected) / len(rankings)
        assert result[name] == pytest.approx(mean, abs=1e-9), name


@given(st.lists(st.lists(st.booleans(), max_size=15), min_size=1, max_size=8))
@settings(max_examples=100, deadline=None)
def test_like_trec_eval(rankings: list[list[bool]]) -> None:
    """Means over any verdicts are those of trec_eval; a record without a relevant context counts as 0."""
    expect_trec_eval(rankings)


@pytest.mark.parametrize("share", [0.0, 0.05, 0.3, 0.8, 1.0])
def test_like_trec_eval_in_long_rankings(share: float) -> None:
    """The same for rankings of up to a hundred contexts."""
    chance = random.Random(7)
    expect_trec_eval([[chance.random() < share for _ in range(chance.randint(0, 100))] for _ in range(30)])


@given(st.lists(st.booleans(), max_size=30))
@settings(max_examples=100, deadline=None)
def test_one_ranking_like_trec_eval(ranking: list[bool]) -> None:
    """Each figure by itself."""
    expected = by_trec_eval(ranking)
    ours = {f"precision_at_{k}": precision_at(ranking, k) for k in CUTOFFS}
    ours |= {"mrr": reciprocal_rank(ranking), "map": average_precision(ranking), "ndcg": ndcg(ranking)}
    assert ours == pytest.approx(expected, abs=1e-9)


def test_no_records() -> None:
    """Without records there are counts of 0 and no means."""
    assert result_of() == NO_FIGURES


def test_by_hand() -> None:
    """Three records worked out on paper: relevant at ranks 2 and 3; not at all; nothing retrieved."""
    first = ContextFact((False, True, True, False), (11, 12, 13, 11), 9, 3)
    second = ContextFact((False, False), (14, 15), 4, 0)
    third = ContextFact((), (), 0, 0)
    assert result_of(first, second, third) == {
        "no_contexts": 1,
        "none_relevant": 2,
        "contexts": 6,
        "relevant_contexts": 2,
        "statements": 13,
        "relevant_statements": 3,
        "context_precision": pytest.approx(2 / 4 / 3),
        "mrr": pytest.approx(1 / 2 / 3),
        "map": pytest.approx((1 / 2 + 2 / 3) / 2 / 3),
        "ndcg": pytest.approx((0.6309297535714574 + 0.5) / (1 + 0.6309297535714574) / 3),
        "precision_at_1": 0.0,
        "precision_at_3": pytest.approx(2 / 3 / 3),
        "precision_at_5": pytest.approx(2 / 5 / 3),
        "precision_at_10": pytest.approx(2 / 10 / 3),
        "first_relevant_rank": 2.0,
        "never_relevant": pytest.approx(3 / 5),
    }


@pytest.mark.parametrize(
    ("rankings", "expected"),
    [
        pytest.param([[True]], 1, id="first"),
        pytest.param([[False, False, True, True]], 3, id="third"),
        pytest.param([[False, True], [True, False], [False, False, False, True]], 7 / 3, id="mean"),
        pytest.param([[False, True], [False, False], []], 2, id="only of those that have one"),
        pytest.param([[False], []], None, id="none has one"),
    ],
)
def test_first_relevant_rank(rankings: list[list[bool]], expected: float | None) -> None:
    """The mean rank, from 1, over the records with a relevant context."""
    assert result_of(*map(fact_of, rankings))["first_relevant_rank"] == pytest.approx(expected)


@pytest.mark.parametrize(
    ("contexts", "numbers", "expected"),
    [
        pytest.param([], set(), {"no_contexts": 1, "none_relevant": 1, "contexts": 0}, id="no contexts"),
        pytest.param(["", " \n"], set(), {"no_contexts": 1, "none_relevant": 1, "contexts": 2}, id="blank ones"),
        pytest.param(["A one. B two."], set(), {"no_contexts": 0, "none_relevant": 1, "contexts": 1}, id="none relevant"),
        pytest.param(["", "A one. B two."], {1, 2}, {"no_contexts": 0, "none_relevant": 0, "contexts": 2}, id="relevant"),
    ],
)  # fmt: skip
def test_counts(contexts: list[str], numbers: set[int], expected: dict[str, int]) -> None:
    """A record whose contexts hold no text has none; a blank one keeps its rank and is not among the distinct ones."""
    case = Case({"contexts": contexts}, number_statements(contexts))
    result = result_of(context_fact(case, numbers))
    assert {name: result[name] for name in expected} == expected
    filled = [context for context in contexts if context.strip()]
    assert result["never_relevant"] == (None if not filled else 0.0 if numbers else 1.0)
    assert result["relevant_contexts"] == (1 if numbers else 0)
    assert result["first_relevant_rank"] == (2 if numbers else None)


def test_a_fact_from_a_case() -> None:
    """Verdicts by context, a hash for each text, the same for the same text, 0 for a blank one."""
    contexts = ["A one. B two.", " ", "A one. B two.", "C three.", "\ud800"]
    fact = context_fact(Case({"contexts": contexts}, number_statements(contexts)), {3, 5})
    assert (fact.relevant, fact.statements, fact.relevant_statements) == ((False, False, True, True, False), 6, 2)
    assert fact.texts[0] == fact.texts[2]
    assert fact.texts[1] == 0
    assert len({*fact.texts}) == 4
    assert all(0 <= text < 1 << 64 for text in fact.texts)


def test_ratio() -> None:
    """No share of nothing."""
    assert (ratio(1, 4), ratio(0, 3), ratio(0, 0)) == (0.25, 0.0, None)


# Distinct contexts.


def hashes(number: int, seed: int = 5) -> list[int]:
    chance = random.Random(seed)
    return [chance.getrandbits(64) or 1 for _ in range(number)]


def never_relevant(seen: Sequence[tuple[int, bool]], tracked: int = 1 << 16) -> float | None:
    distinct = DistinctContexts(tracked)
    for text, relevant in seen:
        distinct.add(text, relevant=relevant)
    return distinct.never_relevant


@pytest.mark.parametrize("verdicts", [[False, True, False], [True, False], [False, False, True], [True]], ids=str)
def test_relevant_once_is_relevant(verdicts: list[bool]) -> None:
    """A text that was relevant to any of its questions counts as relevant, whatever came before and after."""
    assert never_relevant([(7, relevant) for relevant in verdicts]) == 0.0
    assert never_relevant([(8, False), *((7, relevant) for relevant in verdicts), (8, False)]) == 0.5


@given(st.lists(st.tuples(st.integers(1, 40), st.booleans()), max_size=200))
def test_exact_below_the_limit(seen: list[tuple[int, bool]]) -> None:
    """Up to as many texts as are tracked the share is exact."""
    texts = {text for text, _ in seen}
    relevant = {text for text, was in seen if was}
    assert never_relevant(seen, tracked=40) == (len(texts - relevant) / len(texts) if texts else None)


@pytest.mark.parametrize("share", [0.1, 0.5, 0.9])
def test_estimate_beyond_the_limit(share: float) -> None:
    """Of many more texts than are tracked the share is told within a few percent."""
    chance = random.Random(3)
    seen = [(text, chance.random() < share) for text in hashes(40_000)]
    exact = sum(not relevant for _, relevant in seen) / len(seen)
    assert never_relevant(seen, tracked=2_000) == pytest.approx(exact, abs=0.03)


def test_estimate_with_repeated_texts() -> None:
    """How often a text was retrieved does not weigh: a frequent one is one of them."""
    texts = hashes(20_000)
    chance = random.Random(3)
    relevant = {text for text in texts if chance.random() < 0.4}
    seen = [(text, text in relevant and chance.random() < 0.5) for text in texts]
    seen += [(text, text in relevant) for text in texts for _ in range(chance.choice((1, 1, 5)))]
    assert never_relevant(seen, tracked=2_000) == pytest.approx(0.6, abs=0.03)


def test_bounded_memory() -> None:
    """No more texts are kept than are tracked, and no fewer than a few of them."""
    distinct = DistinctContexts(100)
    for number, text in enumerate(hashes(20_000)):
        distinct.add(text, relevant=number % 3 == 0)
        assert len(distinct._relevant) <= 100
        assert number < 100 or len(distinct._relevant) > 10


@given(st.lists(st.tuples(st.integers(1, 2**64 - 1) | st.integers(1, 30), st.booleans()), max_size=80), st.randoms())
def test_order_does_not_matter(seen: list[tuple[int, bool]], chance: random.Random) -> None:
    """The same texts in any order, and seen any number of times, give the same share."""
    shuffled = [*seen, *seen]
    chance.shuffle(shuffled)
    assert never_relevant(shuffled, tracked=8) == never_relevant(seen, tracked=8)


def test_hashes_that_end_alike() -> None:
    """Texts whose hashes differ only in their highest bits end no run."""
    distinct = DistinctContexts(2)
    for text in (1 << 63, 1 << 62, 3 << 62, 1 << 61):
        distinct.add(text, relevant=False)
    assert distinct.never_relevant == 1.0
