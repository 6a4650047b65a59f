"""Hand-written records for the support of statements: statement, contexts in sentences, numbers of the sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxrel.evaluators.judges.support import MOST_SENTENCES, Support, supporting_sentences

BRIDGE = [
    ["The old bridge was built in 1912 by the engineer Otto Brandt.", "It is 140 metres long.", "Boats pass below it."],
    ["Tomatoes need water in the morning.", "The bridge does not carry trains."],
]
LIBRARY = [
    ["시립 도서관은 강변에 있다.", "도서관 휴관일은 매월 둘째 월요일과 1월 1일이다."],
    ["김치는 배추를 소금에 절여 만든다.", "도서관은 주말에 책을 빌려주지 않는다."],
]
CASES: list[tuple[str, str, list[list[str]], list[int]]] = [
    ("in the contexts' words", "The old bridge was built in 1912.", BRIDGE, [1]),
    ("inflected and reordered", "Otto Brandt, an engineer, built the old bridges.", BRIDGE, [1]),
    ("of two sentences", "The old bridge, built by Otto Brandt, is 140 metres long.", BRIDGE, [1, 2]),
    ("numbers count through all contexts", "Tomatoes need water each morning.", BRIDGE, [4]),
    ("a list item", "2. The old bridge was built in 1912.", BRIDGE, [1]),
    ("a citation's number is none of the statement's", "The old bridge was built in 1912 [7].", BRIDGE, [1]),
    ("commas within numbers", "The town has 12500 people.", [["The town has 12,500 people."]], [1]),
    ("another subject", "Herons nest on the roof of the town hall.", BRIDGE, []),
    ("a wrong number", "The old bridge was built in 1913 by the engineer Otto Brandt.", BRIDGE, []),
    ("a wrong name", "The old bridge was built in 1912 by the engineer Anna Brandt.", BRIDGE, []),
    ("a negation of its own", "The old bridge was not built in 1912.", BRIDGE, []),
    ("a negation that is there", "The bridge doesn't carry trains.", BRIDGE, [5]),
    ("the writer, not the contexts", "I love that the old bridge was built in 1912.", BRIDGE, []),
    ("a speaker that is there", "I paid the loan early.", [["Years ago I paid the car loan early."]], [1]),
    ("a question states nothing", "Is the old bridge 140 metres long?", BRIDGE, []),
    ("function words state nothing", "It is.", BRIDGE, []),
    ("no knowledge", "I'm sorry, I don't have that information.", BRIDGE, []),
    ("german nouns are no names", "Der Turm ist laut Plan 30 Meter hoch.", [["Der Turm ist 30 Meter hoch."]], [1]),
    ("korean: particles and endings do not matter", "도서관은 매월 둘째 월요일이 휴관일입니다.", LIBRARY, [2]),
    ("korean: another subject", "박물관은 지하철역 근처에서 전시회를 연다.", LIBRARY, []),
    ("korean: a wrong number", "도서관 휴관일은 매월 둘째 월요일과 5월 1일이다.", LIBRARY, []),
    ("korean: a negation of its own", "시립 도서관은 강변에 있지 않다.", LIBRARY, []),
    ("korean: a negation that is there", "도서관은 주말에 책을 빌려주지 않습니다.", LIBRARY, [4]),
    ("chinese: supported", "图书馆上午9点开放。", [["公园里有一个湖。", "图书馆的开放时间是上午9点。"]], [2]),
    ("chinese: a wrong number", "图书馆上午8点开放。", [["公园里有一个湖。", "图书馆的开放时间是上午9点。"]], []),
    ("japanese", "美術館のレストランは3階にあります。", [["美術館のレストランは3階です。"], ["本屋は駅前です。"]], [1]),
    ("no contexts", "The old bridge was built in 1912.", [], []),
    ("contexts without sentences", "The old bridge was built in 1912.", [[], ["", " "], []], []),
    ("empty statement", "", BRIDGE, []),
    ("statement of marks alone", "?! … **", BRIDGE, []),
    ("lone surrogates", "The old \ud800 bridge was built.", [["\udfff The old bridge was built."]], [1]),
    ("a megabyte", "The old bridge was built.", [["hay " * 250_000, "The old bridge was built."]], [2]),
]


@pytest.mark.parametrize(("statement", "contexts", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_cases(statement: str, contexts: list[list[str]], expected: list[int]) -> None:
    """A statement rests on the sentences that hold its words, and on none if a number, name or negation is its own."""
    assert supporting_sentences(statement, contexts) == expected


def test_prepared() -> None:
    """One preparation serves any statements in any order, and no verdict depends on another."""
    support = Support(BRIDGE)
    statements = [statement for _, statement, contexts, _ in CASES if contexts is BRIDGE]
    alone = [supporting_sentences(statement, BRIDGE) for statement in statements]
    assert [support.sentences_for(statement) for statement in statements] == alone
    assert [support.sentences_for(statement) for statement in reversed(statements)] == alone[::-1]


def test_most_sentences() -> None:
    """A statement of too many sentences' words cites a few at most."""
    colours = ["white", "green", "amber", "black", "brown"]
    contexts = [[f"A {colour} tower stands by the harbour." for colour in colours]]
    assert supporting_sentences("White, green, amber, black, brown.", contexts) == []
    assert (
        len(supporting_sentences("A white, green and amber tower stands by the harbour.", contexts)) == MOST_SENTENCES
    )


@given(st.text(), st.lists(st.lists(st.text(max_size=30), max_size=4), max_size=3))
def test_any_text(statement: str, contexts: list[list[str]]) -> None:
    """Whatever the text, the answer is a few ascending numbers of sentences that are there, twice the same."""
    numbers = supporting_sentences(statement, contexts)
    assert numbers == supporting_sentences(statement, contexts) == sorted(set(numbers))
    assert set(numbers) <= set(range(1, sum(map(len, contexts)) + 1))
    assert len(numbers) <= MOST_SENTENCES
