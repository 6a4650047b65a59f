"""Hand-written records for the lexical judge: question, contexts in sentences, numbers of the relevant sentences."""

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxrel.evaluators.judges.lexical import relevant_sentences

CASES: list[tuple[str, str, list[list[str]], list[int]]] = [
    (
        "english: the sentence that answers, not its neighbour",
        "Where does the Harbour Museum keep its model ships?",
        [["The museum cafe opens at nine.", "The Harbour Museum keeps its model ships in the east wing."]],
        [2],
    ),
    (
        "english: nothing shared but function words",
        "Where does the Harbour Museum keep its model ships?",
        [["Tomatoes need water in the morning.", "They are to be picked when they are red."]],
        [],
    ),
    (
        "english: inflected forms meet",
        "Which bakeries deliver sourdough loaves?",
        [["Our bakery delivers sourdough loaf by loaf."]],
        [1],
    ),
    (
        "english: a question for a number prefers the sentence that has one",
        "How many rooms does the Lindau guest house have?",
        [["The Lindau guest house has rooms with a view of the lake.", "The Lindau guest house has 14 rooms."]],
        [2],
    ),
    (
        "english: a number in the question tells near misses apart",
        "What changed in release 4.2 of the parser?",
        [["Release 3.9 of the scanner added colours."], ["Release 4.2 of the parser changed how comments are read."]],
        [2],
    ),
    (
        "english: numbers count through all contexts",
        "Who repairs the clock tower?",
        [["Bread is sold on Mondays."], ["The square was paved again.", "A smith repairs the clock tower."]],
        [3],
    ),
    (
        "english: a heading is no statement",
        "How are oak barrels toasted?",
        [["Toasted oak barrels", "The cooper holds oak barrels over a fire until they are toasted."]],
        [2],
    ),
    (
        "english: lines without sentence marks are statements, not headings",
        "What colour is the oak cabinet?",
        [["Oak cabinet, colour brown", "Pine shelf, colour white"]],
        [1],
    ),
    (
        "english: two sentences as good as each other",
        "Is the old ferry still running?",
        [["The old ferry is running again.", "Ask whether the ferry is running.", "Swimming is not allowed."]],
        [1, 2],
    ),
    (
        "korean: particles and endings do not matter",
        "도서관의 휴관일은 언제인가요?",
        [["시립 도서관은 강변에 있다.", "도서관 휴관일은 매월 둘째 월요일과 1월 1일이다."]],
        [2],
    ),
    (
        "korean: a noun of one syllable",
        "왕의 침실은 어디인가요?",
        [["왕과 왕비의 침실은 이 층에 있다."]],
        [1],
    ),
    (
        "korean: another subject",
        "도서관의 휴관일은 언제인가요?",
        [["김치는 배추를 소금에 절여 만든다.", "된장은 콩으로 만든다."]],
        [],
    ),
    (
        "chinese: words without spaces",
        "图书馆的开放时间是什么?",
        [["公园里有一个湖。", "图书馆的开放时间是上午九点到下午五点。"]],
        [2],
    ),
    (
        "japanese: kanji and katakana carry the question",
        "美術館のレストランはどこにありますか?",
        [["駅前に本屋があります。", "美術館のレストランは三階です。"]],
        [2],
    ),
    ("thai: words without spaces", "ห้องสมุดเปิดกี่โมง", [["แมวนอนหลับ"], ["ห้องสมุดเปิดเก้าโมงเช้า"]], [2]),
    ("no accents typed", "Donde esta la estacion de autobuses?", [["La estación de autobuses está al norte."]], [1]),
    ("empty question", "", [["A sentence."]], []),
    ("question of marks alone", "?! …", [["A sentence."]], []),
    ("no contexts", "Who repairs the clock tower?", [], []),
    ("contexts without sentences", "Who repairs the clock tower?", [[], ["", " "], []], []),
    ("sentences of marks and emoji", "Who repairs the clock tower?", [["!!! 🎉", "…"]], []),
    ("lone surrogates", "Who repairs the \ud800 clock?", [["\udfff A smith repairs the clock."]], [1]),
    ("a megabyte", "Who repairs the clock?", [["hay " * 250_000, "A smith repairs the clock."]], [2]),
]


@pytest.mark.parametrize(("question", "contexts", "expected"), [case[1:] for case in CASES], ids=[c[0] for c in CASES])
def test_cases(question: str, contexts: list[list[str]], expected: list[int]) -> None:
    """The baseline finds what shares the question's words, in any script, and nothing else."""
    assert relevant_sentences(question, contexts) == expected


def test_alone() -> None:
    """A record's verdict depends on nothing but the record: not on what was judged before."""
    first = [relevant_sentences(question, contexts) for _, question, contexts, _ in CASES]
    second = [relevant_sentences(question, contexts) for _, question, contexts, _ in reversed(CASES)]
    assert first == second[::-1]


@given(st.text(), st.lists(st.lists(st.text(max_size=30), max_size=4), max_size=3))
def test_any_text(question: str, contexts: list[list[str]]) -> None:
    """Whatever the text, the answer is ascending numbers of sentences that are there."""
    numbers = relevant_sentences(question, contexts)
    assert numbers == sorted(set(numbers))
    assert set(numbers) <= set(range(1, sum(map(len, contexts)) + 1))
