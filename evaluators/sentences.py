"""Contexts taken apart into sentences whose spans point back into the text."""

import re
from typing import NamedTuple

import sentencex

from .jsontext import replace_surrogates

_SCRIPTS = (
    ("ko", re.compile(r"[\uac00-\ud7a3\u1100-\u11ff]")),
    ("ja", re.compile(r"[\u3040-\u30ff]")),
    ("zh", re.compile(r"[\u4e00-\u9fff]")),
    ("hi", re.compile(r"[\u0900-\u097f]")),
    ("bn", re.compile(r"[\u0980-\u09ff]")),
    ("te", re.compile(r"[\u0c00-\u0c7f]")),
    ("ta", re.compile(r"[\u0b80-\u0bff]")),
    ("th", re.compile(r"[\u0e00-\u0e7f]")),
    ("ar", re.compile(r"[\u0600-\u06ff]")),
    ("he", re.compile(r"[\u0590-\u05ff]")),
    ("ru", re.compile(r"[\u0400-\u04ff]")),
    ("el", re.compile(r"[\u0370-\u03ff]")),
)
# A line of prose that its exporter wrapped goes on below: it is long, ends in no sentence mark,
# and the next line starts, unindented, with a small letter.
_WRAPPED_LENGTH = 40
_LIST_MARKER = re.compile(r"\s*[(\[]?(\d{1,3}|[A-Za-z가-하])[.)\]]\s*")
_SENTENCE_END = re.compile(r"[.!?:;…。！？؟।|][\"')\]”’»」』]*\s*$")


class Sentence(NamedTuple):
    """One sentence of a text; `text[start:end]` is the sentence itself, without white space around."""

    start: int
    end: int


def language_of(text: str) -> str:
    """The language whose sentence rules fit the text's script (`en` where Latin or unknown)."""
    if text.isascii():
        return "en"
    head = text[:2000]
    counts = {language: len(pattern.findall(head)) for language, pattern in _SCRIPTS}
    if counts["ja"] and counts["ja"] + counts["zh"] > counts["ko"]:
        return "ja"
    language, count = max(counts.items(), key=lambda item: item[1])
    return language if count * 4 >= len(head.split()) else "en"


def split_sentences(text: str) -> list[Sentence]:
    """Sentences of `text` in order, as character spans; lines of tables, lists and code count as sentences."""
    text = replace_surrogates(text)
    language = language_of(text)
    sentences: list[Sentence] = []
    for start, block in _blocks(text):
        position = start
        for piece in _pieces(language, block):
            stripped = piece.strip()
            if stripped:
                at = position + len(piece) - len(piece.lstrip())
                sentences.append(Sentence(at, at + len(stripped)))
            position += len(piece)
    return sentences


def _pieces(language: str, block: str) -> list[str]:
    """The segmenter's pieces, with list markers and abbreviations it cut off joined to what follows."""
    pieces: list[str] = []
    for piece in sentencex.segment(language, block):
        if pieces and (_LIST_MARKER.fullmatch(pieces[-1]) or _inside_word(pieces[-1], piece)):
            pieces[-1] += piece
        else:
            pieces.append(piece)
    return pieces


def _inside_word(before: str, after: str) -> bool:
    """Whether the cut is no sentence's end: an ASCII full stop with an ASCII letter or digit right behind it."""
    return before[-1] == "." and after[0].isascii() and after[0].isalnum()


def _blocks(text: str) -> list[tuple[int, str]]:
    """Lines with their offsets, hard-wrapped lines of one paragraph kept together."""
    if "\n" not in text:
        return [(0, text)]
    blocks: list[tuple[int, str]] = []
    start = position = 0
    lines = text.splitlines(keepends=True)
    for line, following in zip(lines, [*lines[1:], ""], strict=True):
        position += len(line)
        if not _goes_on(line, following):
            blocks.append((start, text[start:position]))
            start = position
    return blocks


def _goes_on(line: str, following: str) -> bool:
    return len(line) > _WRAPPED_LENGTH and following[:1].islower() and not _SENTENCE_END.search(line)
