"""Sentences are found in any language, and their spans point back into the text."""

from itertools import pairwise

import pytest
from hypothesis import given
from hypothesis import strategies as st

from ctxrel.evaluators.sentences import language_of, split_sentences


def pieces(text: str) -> list[str]:
    return [text[start:end] for start, end in split_sentences(text)]


@pytest.mark.parametrize(
    ("text", "expected"),
    [
        pytest.param("", [], id="empty"),
        pytest.param(" \n\t", [], id="blank"),
        pytest.param("One. Two!  Three?", ["One.", "Two!", "Three?"], id="English"),
        pytest.param(
            'Dr. Lind et al. (2020) left Oslo in Jan. 2020. He said "Hi. Bye." Then he left!',
            ["Dr. Lind et al. (2020) left Oslo in Jan. 2020.", 'He said "Hi. Bye."', "Then he left!"],
            id="abbreviations and quotes",
        ),
        pytest.param("Version 2.0.1 is out. See a.b.c for more.", ["Version 2.0.1 is out.", "See a.b.c for more."], id="dots in words"),
        pytest.param("수도는 서울이다. 인구는 950만 명(2020년)이다!", ["수도는 서울이다.", "인구는 950만 명(2020년)이다!"], id="Korean"),
        pytest.param("끝났다.그리고 갔다.", ["끝났다.", "그리고 갔다."], id="Korean without spaces"),
        pytest.param("北京是中国的首都。人口很多！你知道吗？", ["北京是中国的首都。", "人口很多！", "你知道吗？"], id="Chinese"),
        pytest.param("東京は首都です。人口は多い。", ["東京は首都です。", "人口は多い。"], id="Japanese"),
        pytest.param("यह एक वाक्य है। यह दूसरा है।", ["यह एक वाक्य है।", "यह दूसरा है।"], id="Hindi"),
        pytest.param("Steps:\n- open it\n- close it\n", ["Steps:", "- open it", "- close it"], id="list"),
        pytest.param("1. 첫째\n2. 둘째", ["1. 첫째", "2. 둘째"], id="numbered list"),
        pytest.param("| a | b |\n|---|---|\n| 1 | 2 |", ["| a | b |", "|---|---|", "| 1 | 2 |"], id="table"),
        pytest.param("def f(x):\n    return x\n\nprint(f(1))", ["def f(x):", "return x", "print(f(1))"], id="code"),
        pytest.param("a b\r\nc d\re f", ["a b", "c d", "e f"], id="line ends"),
        pytest.param(
            "This line was wrapped at some column by whatever had exported it and\ngoes on here. Then comes another.",
            ["This line was wrapped at some column by whatever had exported it and\ngoes on here.", "Then comes another."],
            id="hard-wrapped line",
        ),
        pytest.param(
            "The ferry to the northern islands was operated for years by the\nUnited Harbour Company, which sold it to its crew in the spring of\n"
            "1987. It still runs.",
            [
                "The ferry to the northern islands was operated for years by the\nUnited Harbour Company, which sold it to its crew in the spring of\n1987.",
                "It still runs.",
            ],
            id="hard-wrapped paragraph",
        ),
        pytest.param(
            "전입신고는 새로운 거주지로 이사한 날부터 십사 일 이내에 관할\n주민센터를 방문하거나 정부 누리집에서 온라인으로 신청하셔야만\n합니다. 늦으면 과태료가 있습니다.",
            [
                "전입신고는 새로운 거주지로 이사한 날부터 십사 일 이내에 관할\n주민센터를 방문하거나 정부 누리집에서 온라인으로 신청하셔야만\n합니다.",
                "늦으면 과태료가 있습니다.",
            ],
            id="hard-wrapped Korean",
        ),
        pytest.param(
            "2026-11-30 04:00:01 INFO  service started on port number 8080\n2026-11-30 04:00:02 INFO  service is ready to take requests \n2026-11-30 04:00:03 WARN  disk is nearly full on volume two.",
            ["2026-11-30 04:00:01 INFO  service started on port number 8080", "2026-11-30 04:00:02 INFO  service is ready to take requests", "2026-11-30 04:00:03 WARN  disk is nearly full on volume two."],
            id="server log",
        ),
        pytest.param("alice,thirty,Berlin,engineer,remote,full time,since two thousand\nberta,thirty,Vienna,engineer,remote,full time,since two thousand\ncarla,thirty,Madrid,engineer,remote,full time,since two thousand",
            ["alice,thirty,Berlin,engineer,remote,full time,since two thousand", "berta,thirty,Vienna,engineer,remote,full time,since two thousand", "carla,thirty,Madrid,engineer,remote,full time,since two thousand"],
            id="CSV of equal widths",
        ),
        pytest.param("It was built in 1889.It is in Paris. It is good.It is old.", ["It was built in 1889.", "It is in Paris.", "It is good.", "It is old."], id="no space after a full stop"),
        pytest.param("네. 맞습니다. 참. 거짓.", ["네.", "맞습니다.", "참.", "거짓."], id="short Korean sentences"),
        pytest.param("가. 첫째 항목\n나. 둘째 항목", ["가. 첫째 항목", "나. 둘째 항목"], id="Korean list"),
        pytest.param("Short lines\nthat stand\nalone", ["Short lines", "that stand", "alone"], id="short lines"),
        pytest.param("他是副书记。2021年他升职。", ["他是副书记。", "2021年他升职。"], id="Chinese before a digit"),
        pytest.param("「元気？」と言った。", ["「元気？」", "と言った。"], id="Japanese quote"),
        pytest.param("Er kam am 3. Oktober und das war gut. Dr. Meier war mit dabei.", ["Er kam am 3. Oktober und das war gut.", "Dr. Meier war mit dabei."], id="German"),
        pytest.param("La pág. 3 es del Sr. López. El fin.", ["La pág. 3 es del Sr. López.", "El fin."], id="Spanish"),
        pytest.param("no mark at the end", ["no mark at the end"], id="no mark"),
    ],
)  # fmt: skip
def test_split(text: str, expected: list[str]) -> None:
    """Sentences, and lines that are none."""
    assert pieces(text) == expected


@pytest.mark.parametrize(
    ("text", "language"),
    [
        ("plain", "en"),
        ("naïve café", "en"),
        ("", "en"),
        ("Das ist der Turm und die Brücke", "de"),
        ("El puente es una obra del siglo", "es"),
        ("Le pont est dans la ville", "fr"),
        ("한국어 문장", "ko"),
        ("API 서버는 한국어로 응답한다", "ko"),
        ("これは日本語です", "ja"),
        ("这是中文", "zh"),
        ("Это русский", "ru"),
        ("هذا نص", "ar"),
        ("An English text that names 서울 once among its many words", "en"),
    ],
)
def test_language(text: str, language: str) -> None:
    """The script decides whose rules are used."""
    assert language_of(text) == language


@pytest.mark.parametrize("space", ["\u00a0", "\u2003", "\u3000", "\u0085", "\u2028", "\t"])
def test_odd_spaces(space: str) -> None:
    """Spaces that are no plain ones are spaces: `vitamine C .` once brought the segmenter down."""
    text = f"La vitamine C{space}. Elle est bonne."
    assert "".join("".join(piece.split()) for piece in pieces(text)) == "LavitamineC.Elleestbonne."


def test_a_segmenter_that_fails(monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the segmenter gives up a line is one sentence; an interrupt is none of its failures."""
    panic = type("PanicException", (BaseException,), {})

    def give_up(error: type[BaseException]) -> None:
        def segment(_language: str, _text: str) -> list[str]:
            raise error

        monkeypatch.setattr("sentencex.segment", segment)

    give_up(panic)
    assert pieces("One. Two.\nThree.") == ["One. Two.", "Three."]
    give_up(KeyboardInterrupt)
    with pytest.raises(KeyboardInterrupt):
        pieces("One.")


@given(st.text())
def test_nothing_is_lost(text: str) -> None:
    """All that is no white space is in exactly one sentence, in order; a sentence has no white space around."""
    spans = split_sentences(text)
    assert "".join("".join(text[start:end].split()) for start, end in spans) == "".join(text.split())
    assert all(before.end <= after.start for before, after in pairwise(spans))
    assert all(text[start:end] == text[start:end].strip() != "" for start, end in spans)
