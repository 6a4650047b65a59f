"""The Korean README says what the English one does: the same parts, commands, tables, links and figures."""

import re
from collections import Counter
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
ENGLISH = (ROOT / "README.md").read_text(encoding="utf-8")
KOREAN = (ROOT / "README.ko.md").read_text(encoding="utf-8")
HEADINGS = {
    "ctxrel": "ctxrel",
    "Try it: no key, no network (Python 3.11 or newer, on Linux)": "써 보기: 키도 네트워크도 필요 없음 (Python 3.11 이상, Linux)",
    "What is kept when something goes wrong": "무언가 잘못되었을 때 남는 것",
    "Judge with an LLM": "LLM으로 판정하기",
    "What it judges": "무엇을 판정하는가",
    "What comes out": "결과물",
    "Around a run": "실행 전후에",
    "Beyond one machine": "머신 한 대로 모자랄 때",
    "Logs": "로그",
    "Work on it": "개발하기",
}
_FENCE = re.compile(r"^```\w*\n.*?^```$\n?", re.DOTALL | re.MULTILINE)


def headings(page: str) -> list[str]:
    return re.findall(r"^#+ (.*)$", _FENCE.sub("", page), re.MULTILINE)


def sections(page: str) -> list[str]:
    """The prose under each heading."""
    return re.split(r"^#+ .*$", _FENCE.sub("", page), flags=re.MULTILINE)[1:]


def code(text: str) -> Counter[str]:
    """What stands in backticks, broken lines joined."""
    return Counter(" ".join(found.split()) for found in re.findall(r"`([^`]+)`", text))


def figures(text: str) -> Counter[str]:
    """Numbers of the prose; those of code are compared as code."""
    return Counter(re.findall(r"\d[\d,.:-]*\d|\d", re.sub(r"`[^`]+`", "", text)))


def rows(text: str) -> list[Counter[str]]:
    """The code in each row of its tables."""
    return [code(line) for line in text.splitlines() if line.startswith("|")]


def test_headings() -> None:
    """The same headings, in the same order."""
    assert list(HEADINGS) == headings(ENGLISH)
    assert list(HEADINGS.values()) == headings(KOREAN)


def test_fenced_blocks() -> None:
    """The same commands and what they print, to the letter."""
    assert _FENCE.findall(KOREAN) == _FENCE.findall(ENGLISH)


@pytest.mark.parametrize("number", range(len(HEADINGS)), ids=HEADINGS)
def test_sections(number: int) -> None:
    """Each section has the same names of code, rows of tables, links, pictures and figures."""
    english, korean = sections(ENGLISH)[number], sections(KOREAN)[number]
    assert rows(korean) == rows(english)
    assert code(korean) == code(english)
    assert Counter(re.findall(r"\]\(([^)]+)\)", korean)) == Counter(re.findall(r"\]\(([^)]+)\)", english))
    assert figures(korean) == figures(english)


def test_one_voice() -> None:
    """Sentences end politely throughout."""
    prose = re.sub(r"^\|.*$", "", _FENCE.sub("", KOREAN), flags=re.MULTILINE)
    ends = re.findall(r"(\w+)[.](?=\s|$)", prose)
    assert [end for end in ends if re.search(r"[가-힣]", end) and not end.endswith("니다")] == []
