"""Where a text that a judge wrote stands in the contexts, if it stands there at all."""

import re
import unicodedata
from bisect import bisect_right
from collections.abc import Sequence
from typing import NamedTuple

from rapidfuzz import fuzz
from rapidfuzz.distance import Indel

SIMILARITY = 90.0
"""Least similarity, from 0 to 100, of a passage that counts as the text: rapidfuzz's partial ratio, 100 less the share
of insertions and deletions. A word in ten may differ, which is what judges change when they mean to copy."""
_NOT_VERBATIM = 0.9999
_FUZZY_LENGTH = 12
"""Characters, without white space, of the shortest text that may differ from the passage."""
_LONGEST_FUZZY = 2000
"""Characters of the longest such text: what it takes to look for one grows steeply with its length."""
_PIECE = 8
_LEAST_PIECES = 0.25
"""Share of a text's pieces of so many characters that a context has to hold for a closer look: what was made up fails
this at a hundredth of the cost."""
_LONGEST_CLUSTER = 32
_QUOTES = str.maketrans(
    dict.fromkeys(
        '\u2018\u2019\u201a\u201b\u2032\u201c\u201d\u201e\u201f\u2033\u00ab\u00bb`\u2039\u203a\u300c\u300d\u300e\u300f"',
        "'",
    )
)
_DASHES = str.maketrans(dict.fromkeys("\u2010\u2011\u2012\u2013\u2014\u2015\u2212", "-"))
# Latin, Greek and Cyrillic letters with their accents, and digits. Korean sets spaces too, but its particles follow.
_SPACED = re.compile(r"[A-Za-z\u00c0-\u024f\u0370-\u03ff\u0400-\u052f\u1e00-\u1fff\u0300-\u036f]|\d")


class Place(NamedTuple):
    """A passage of a context; `contexts[context][start:end]`, in code points."""

    context: int
    start: int
    end: int
    similarity: float
    """1 where the text is verbatim but for white space, case, quotes and forms of Unicode."""


class Haystack:
    """Contexts made ready for looking up any number of texts."""

    def __init__(self, contexts: Sequence[str]) -> None:
        self._contexts = [_Normal.of(text) for text in contexts]

    def find(self, text: str) -> Place | None:
        """The first verbatim passage, else the most similar one of at least SIMILARITY; None without one."""
        wanted = _Normal.of(text).text
        if not wanted:
            return None
        is_fuzzy = _FUZZY_LENGTH <= len(wanted) <= _LONGEST_FUZZY
        return self._verbatim(wanted) or (self._similar(wanted) if is_fuzzy else None)

    def _verbatim(self, wanted: str) -> Place | None:
        for number, context in enumerate(self._contexts):
            at = context.text.find(wanted)
            while at >= 0:
                if context.whole_words(at, at + len(wanted)):
                    return Place(number, *context.span(at, at + len(wanted)), 1.0)
                at = context.text.find(wanted, at + 1)
        return None

    def _similar(self, wanted: str) -> Place | None:
        best: Place | None = None
        for number, context in enumerate(self._contexts):
            found = _similar_part(wanted, context.text, max(SIMILARITY, best.similarity * 100 if best else 0.0))
            if found and (best is None or found.similarity > best.similarity):
                best = Place(number, *context.span(found.start, found.end), found.similarity)
        return best


class _Part(NamedTuple):
    start: int
    end: int
    similarity: float


def _similar_part(wanted: str, text: str, least: float) -> _Part | None:
    """The part of a text that is most like what is wanted; not verbatim, which was looked for before."""
    if not _holds_pieces(text, wanted):
        return None
    if len(text) <= len(wanted):  # partial_ratio would look for the text in what is wanted
        score = fuzz.ratio(wanted, text, score_cutoff=least)
        return _Part(0, len(text), min(score / 100, _NOT_VERBATIM)) if score else None
    found = fuzz.partial_ratio_alignment(wanted, text, score_cutoff=least)
    if not found:
        return None
    # The window is as long as what is wanted, and may reach into what stands beside it.
    window = text[found.dest_start : found.dest_end]
    same = [code for code in Indel.opcodes(wanted, window) if code.tag == "equal"]
    if not same:
        return None
    start, end = found.dest_start + same[0].dest_start, found.dest_start + same[-1].dest_end
    return _Part(start, end, min(round(found.score / 100, 4), _NOT_VERBATIM))


def _holds_pieces(text: str, wanted: str) -> bool:
    pieces = [wanted[place : place + _PIECE] for place in range(0, len(wanted) - _PIECE + 1, _PIECE)]
    return sum(piece in text for piece in pieces) >= _LEAST_PIECES * len(pieces)


def same_text(text: str) -> str:
    """What two texts have in common that differ in white space, case, quotes, dashes and forms of Unicode only."""
    return _Normal.of(text).text


class _Normal(NamedTuple):
    """A text without white space, in one case and one form of its characters."""

    source: str
    text: str
    origins: list[int]
    """For each character of `text` the position in `source` it comes from."""

    @classmethod
    def of(cls, source: str) -> "_Normal":
        folded: list[str] = []
        origins: list[int] = []
        for start, end in _clusters(source):
            piece = source[start:end]
            plain = piece if piece.isascii() else unicodedata.normalize("NFKC", piece)
            for character in plain.translate(_QUOTES).translate(_DASHES).casefold():
                if not character.isspace():
                    folded.append(character)
                    origins.append(start)
        return cls(source, "".join(folded), origins)

    def span(self, start: int, end: int) -> tuple[int, int]:
        """The characters of the source that `text[start:end]` comes from."""
        first, after = self.origins[start], bisect_right(self.origins, self.origins[end - 1], end)
        stop = self.origins[after] if after < len(self.origins) else len(self.source)
        while stop > first and self.source[stop - 1].isspace():
            stop -= 1
        return first, stop

    def whole_words(self, start: int, end: int) -> bool:
        """Whether the passage begins and ends where words of the source do, as far as its script has spaces."""
        origins = self.origins
        if (start and origins[start - 1] == origins[start]) or (
            end < len(origins) and origins[end - 1] == origins[end]
        ):
            return False  # a part of a character, as of ¼
        first, last = self.span(start, end)
        return not (_inside_word(self.source, first) or _inside_word(self.source, last))


def _clusters(text: str) -> list[tuple[int, int]]:
    """Characters with the marks that combine with them."""
    if text.isascii():
        return [(place, place + 1) for place in range(len(text))]
    starts: list[int] = []
    for place, character in enumerate(text):
        if place == 0 or place - starts[-1] >= _LONGEST_CLUSTER or not _joins(character):
            starts.append(place)
    return list(zip(starts, [*starts[1:], len(text)], strict=True))


def _joins(character: str) -> bool:
    """Whether a character changes the form of the one before: an accent, a vowel sign, a part of a Hangul syllable."""
    return unicodedata.category(character)[0] == "M" or "\u1160" <= character <= "\u11ff" or character in "\uff9e\uff9f"


def _inside_word(text: str, place: int) -> bool:
    """Whether a place is between two letters or digits of a script that sets spaces between words."""
    if not 0 < place < len(text):
        return False
    return bool(_SPACED.match(text, place - 1) and _SPACED.match(text, place))
