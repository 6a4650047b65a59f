"""Contexts taken apart into sentences whose spans point back into the text."""

import re
from collections.abc import Iterator
from itertools import pairwise
from typing import NamedTuple

import sentencex

from .jsontext import replace_surrogates

# Scripts that fill whole blocks of 256 characters are told by the blocks alone, the others by their characters where
# one of their blocks occurs.
_BLOCKS = {
    "ko": (0x11, *range(0xAC, 0xD8)),
    "zh": range(0x4E, 0xA0),
    "ar": (0x06,),
    "ru": (0x04,),
}
_CODES = {language: bytes((place,)) for place, language in enumerate(_BLOCKS, start=1)}
_BLOCK_TABLE = bytes(
    next((_CODES[language][0] for language, blocks in _BLOCKS.items() if block in blocks), 0) for block in range(256)
)
_PARTS_OF_BLOCKS = {
    "ja": (0x30, re.compile(r"[\u3040-\u30ff]")),
    "hi": (0x09, re.compile(r"[\u0900-\u097f]")),
    "bn": (0x09, re.compile(r"[\u0980-\u09ff]")),
    "te": (0x0C, re.compile(r"[\u0c00-\u0c7f]")),
    "ta": (0x0B, re.compile(r"[\u0b80-\u0bff]")),
    "th": (0x0E, re.compile(r"[\u0e00-\u0e7f]")),
    "he": (0x05, re.compile(r"[\u0590-\u05ff]")),
    "el": (0x03, re.compile(r"[\u0370-\u03ff]")),
}
# Function words that tell languages of the Latin script apart: their rules differ ("3. Oktober", "pág. 3").
_FUNCTION_WORDS = {
    "en": frozenset(["the", "of", "and", "is", "was", "to", "by", "for", "with", "that"]),
    "de": frozenset(["der", "die", "das", "und", "ist", "wurde", "von", "mit", "nicht", "für"]),
    "es": frozenset(["el", "los", "las", "es", "del", "por", "una", "que", "con", "fue"]),
    "fr": frozenset(["le", "les", "est", "des", "du", "et", "une", "dans", "qui", "sur"]),
    "it": frozenset(["il", "gli", "della", "di", "che", "è", "una", "nel", "sono", "per"]),
    "pt": frozenset(["os", "das", "dos", "foi", "uma", "não", "em", "ao", "que", "com"]),
    "nl": frozenset(["de", "het", "een", "van", "en", "niet", "zijn", "werd", "voor", "met"]),
    "fi": frozenset(["ja", "on", "oli", "se", "ei", "hän", "myös", "kuin", "joka", "sekä"]),
}
_SMALL_WORDS = frozenset(word for words in _FUNCTION_WORDS.values() for word in words)
_DENSE = ("ko", "ja", "zh")
"""Languages that say with one character what takes three letters."""
_NO_LETTERS = bytes(byte for byte in range(128) if not chr(byte).isalpha())
_HEAD = 2000
"""Characters by which the language is told."""
_WRAPPED_LENGTH = 60
_WRAPPED_PARAGRAPH = 3
_WIDE_SCRIPT = re.compile(r"[\u1100-\u11ff\u3040-\u30ff\u3400-\u9fff\uac00-\ud7a3]")
_SENTENCE_END = re.compile(r"[.!?:;…。！？؟।|][\"')\]”’»」』]*\s*$")
_MARKED_LINE = re.compile(r"\s|[-*+•·|>#(\[{]|\d{1,3}[.)]\s|$")
_COLUMNS = re.compile(r"\t|  |[;|=<>{}]")
_PROSE_WORDS = 5
_INITIAL = re.compile(r"(?:^|[\W_])[A-Z]\.$")
_ODD_SPACE = re.compile(r"[^\S \n\r]")
_LIST_MARKER = re.compile(r"\s*[(\[]?(\d{1,3}|[A-Za-z가나다라마바사아자차카타파하])[.)\]]\s*")
# Ends that the segmenter leaves inside a piece.
_MISSED_END = re.compile(r"(?<=[。！？])(?=[0-9A-Za-z])|(?<=\u17d4)(?=\s*\S)")


class Sentence(NamedTuple):
    """One sentence of a text; `text[start:end]` is the sentence itself, without white space around."""

    start: int
    end: int


def language_of(text: str) -> str:
    """The language whose sentence rules fit the text: by script, and by function words where the script is Latin."""
    head = text[:_HEAD]
    if not head.isascii():
        language, prevails = _script_of(head)
        if prevails:
            return language
    words = _SMALL_WORDS.intersection(head.lower().split())
    hits = {language: len(words & small) for language, small in _FUNCTION_WORDS.items()} if words else {"en": 0}
    language = max(hits, key=hits.__getitem__)
    return language if hits[language] > max(1, hits["en"]) else "en"


def _script_of(head: str) -> tuple[str, bool]:
    """The language of the most frequent script but Latin, and whether it outweighs Latin."""
    blocks = head.encode("utf-16-le", "surrogatepass")[1::2]
    whole = blocks.translate(_BLOCK_TABLE)
    counts = {language: whole.count(code) for language, code in _CODES.items()}
    for language, (block, script) in _PARTS_OF_BLOCKS.items():
        if block in blocks:
            counts[language] = len(script.findall(head))
    if counts.get("ja"):
        counts["ja"] += counts["zh"]
    language = max(counts, key=counts.__getitem__)
    weight = 3 if language in _DENSE else 1
    latin = len(head.encode("ascii", "ignore").translate(None, _NO_LETTERS))
    return language, counts[language] * weight > latin


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
    """The segmenter's pieces: what it cut too often is joined, what it missed is cut."""
    pieces: list[str] = []
    for piece in _segment(language, block):
        is_marker = len(pieces) == 1 and _LIST_MARKER.fullmatch(pieces[0])
        if pieces and (is_marker or _inside_word(pieces[-1], piece)):
            pieces[-1] += piece
        else:
            pieces += _MISSED_END.split(piece) if _may_miss_an_end(piece) else [piece]
    return pieces


def _may_miss_an_end(piece: str) -> bool:
    """Whether a piece holds a mark that the segmenter does not always end at: quicker than the pattern itself."""
    return not piece.isascii() and ("。" in piece or "！" in piece or "？" in piece or "\u17d4" in piece)


def _segment(language: str, block: str) -> list[str]:
    """The segmenter's pieces, of the same lengths as in the block."""
    plain = (
        block if block.isascii() and block.isprintable() else _ODD_SPACE.sub(" ", block)
    )  # before a full stop some of these make the segmenter panic
    try:
        return list(sentencex.segment(language, plain))
    except BaseException as error:
        if type(error).__name__ != "PanicException":  # Rust's; it derives from BaseException
            raise
        return [plain]


def _inside_word(before: str, after: str) -> bool:
    """Whether the cut is no sentence's end: `a.b.c`, `3.5` and `U.S.` go on without a space, `done.Then` does not."""
    if before[-1] != "." or not after[0].isascii():
        return False
    return after[0].islower() or after[0].isdigit() or (after[0].isupper() and bool(_INITIAL.search(before)))


def _blocks(text: str) -> Iterator[tuple[int, str]]:
    """Lines with their offsets; lines of prose that were wrapped by whatever exported them are kept together."""
    start = position = 0
    for paragraph in _paragraphs(text):
        wrapped = _is_wrapped(paragraph)
        for line, following in zip(paragraph, [*paragraph[1:], ""], strict=True):
            position += len(line)
            if not following or not (wrapped or _goes_on(line, following)):
                yield start, text[start:position]
                start = position


def _paragraphs(text: str) -> Iterator[list[str]]:
    """Runs of lines up to and with a blank one."""
    paragraph: list[str] = []
    for line in text.splitlines(keepends=True):
        paragraph.append(line)
        if line.isspace():
            yield paragraph
            paragraph = []
    if paragraph:
        yield paragraph


def _goes_on(line: str, following: str) -> bool:
    """Whether a long line without a sentence mark goes on with a small letter below."""
    if len(line) <= _WRAPPED_LENGTH or not following[0].islower():
        return False
    return _is_prose(line.rstrip()) and not _SENTENCE_END.search(line)


def _is_wrapped(paragraph: list[str]) -> bool:
    """Whether every line is as full as it can be: the next one's first word would not have fitted."""
    lines = [line.rstrip() for line in paragraph if not line.isspace()]
    if len(lines) < _WRAPPED_PARAGRAPH or not all(map(_is_prose, lines[:-1])) or _MARKED_LINE.match(lines[-1]):
        return False
    width = max(map(len, lines))
    if width < (_WRAPPED_LENGTH // 2 if _WIDE_SCRIPT.search(lines[0]) else _WRAPPED_LENGTH):
        return False
    return all(len(line) + 1 + len(following.split(maxsplit=1)[0]) > width for line, following in pairwise(lines))


def _is_prose(line: str) -> bool:
    """Whether a line may be part of a wrapped paragraph: words with single spaces between, and no columns."""
    if _MARKED_LINE.match(line) or line[0].isdigit() or _COLUMNS.search(line):
        return False
    return line.count(" ") >= _PROSE_WORDS or bool(_WIDE_SCRIPT.search(line))
