"""Context relevance judged by words alone: the offline baseline, in need of no model, key or network.

A sentence scores by two shares, each from 0 to 1: `coverage`, how much of the question it holds, and `opening`, how
much of the subject that its context opens with the question names.
"""

import re
import unicodedata
from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

# Chosen on human-labelled public records. Accuracy and Cohen's kappa as shipped, then in five folds over all sets, each
# fold with the threshold that suits the others: ClapNQ (en, 300 pairs) 0.74 0.49, 0.74 0.47; MIRACL (ko, 652 pairs)
# 0.73 0.45, 0.72 0.44; MIRACL (12 languages, 467 pairs) 0.62 0.24, 0.61 0.22, by left-out language 0.63 0.24;
# NoMIRACL (en, 200 records of ten near misses) 0.51 0.02, 0.51 0.01, which is chance. Thresholds from 0.38 to 0.48
# change no kappa by more than 0.07.
VERSION = "1"  # part of the store's key: a change of what the judge answers needs another
THRESHOLD = 0.44  # score from which a sentence is relevant
NEAR_BEST = 0.8  # share of the best coverage from which a sentence counts beside the best one
MOST_SENTENCES = 2
STEM_LENGTH = 5  # letters by which words between spaces are compared
PLURAL_LENGTH = 4  # letters from which a final s is dropped
FULL_LENGTH = 5  # letters from which such a word weighs fully; the function words of most languages are shorter
NUMBER_WEIGHT = 1.5  # numbers tell near misses apart
SMALL_WEIGHT = 0.5  # for pairs of characters with a function character among them
UNNUMBERED = 0.5  # factor on the coverage of a sentence without the number that the question asks for
HEADING_LENGTH = 80  # characters of the longest heading, which is no statement and not scored
LONGEST = 100_000  # characters of a question or sentence that are looked at
OPENING_SHARE = 0.3  # share of the opening in a score; the coverage has the rest
OPENING_WEIGHT = 2.0  # weight of the first terms that make up an opening

_HANGUL = "\uac00-\ud7a3"
# Thai, Lao, Burmese, Khmer, kana and Chinese characters.
_UNSPACED = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3005\u3041-\u309f\u30a1-\u30fa\u30fc\u3400-\u9fff\U00020000-\U0003ffff"
)
_INDIC = "\u0900-\u0963\u0966-\u0dff"  # with the vowel signs, which \w leaves out
_WORD = re.compile(rf"[{_HANGUL}]+|[{_UNSPACED}]+|(?:[^\W_{_HANGUL}{_UNSPACED}]|[{_INDIC}])+")
_HANGUL_FIRST = re.compile(f"[{_HANGUL}]")
_PAIRED_FIRST = re.compile(f"[{_HANGUL}{_UNSPACED}]")
_ACCENT = re.compile("[\u0300-\u036f\u0640\u064b-\u0652]")
_CLOSED = re.compile(r"[.!?:;…。！？।؟][\s\"')\]”’」』]*$")
_ASKS_NUMBER = re.compile(
    r"^\W*(?:\w+ )?when\b|\b(?:what|which) (?:year|date)|\bhow (?:many|much|long|old|far|large|big|tall|high|often)\b"
    r"|언제|몇|얼마|[년연]도|いつ|いくつ|何[年月日人個歳]|何时|什么时候|哪年|多少|几[年月日个人岁次种]"
    r"|\bwann\b|\bwie ?viel|\bcuan[dt]|\bquand\b|\bcombien\b|когда|сколько"
    r"|متى|\bكم\b|\bkapan|\bberapa|milloin|kuinka|कब|कितन|چند"
)
_SMALL_ENGLISH = re.compile(
    "a|an|the|of|in|on|at|to|for|by|with|from|as|is|are|was|were|be|been|do|does|did|has|have|had|will|would|can"
    "|could|should|may|might|must|and|or|but|not|no|if|that|this|these|those|it|its|he|she|they|them|his|her|their"
    "|there|i|you|we|my|your|our|me|us|so|such|than|then|also|most|some|any|all|about|between|after|before|into"
    "|during|over|under|up|out|who|whom|whose|what|which|when|where|why|how|many|much|long|often|old|far|name|list"
    "|describe|explain|tell|give|find|mean|called|used|get"
)
_SMALL_KOREAN = re.compile(
    "(?:무엇|무슨|뭐|뭔|누구|누가|언제|어디|어딘|어느|어떤|어떻|왜|얼마|몇|있|[하되][는나]|인가).*"
    "|총|가장|및|때|년도|연도|년|이름|사람|뜻|의미|것|곳|는|가|의|란|수|개"
)
_SMALL_CHARACTER = re.compile("[\u3041-\u309f的是了在有哪些什么谁何吗呢和与及为于之多少个几怎样]")
_KOREAN_ENDING = re.compile(
    "(?<=..)(?:[은는던인을]가요?|[니나]요?|[을까]까요?|는지|습니까|이?란|에서는?|으?로|에는|까지|부터|에게|이?라[는고]"
    "|[은는이가을를의에와과도인])$"
)
_SYLLABLE_AND_PARTICLE = re.compile(".[은는이가을를의에와과도]")


class _Term(NamedTuple):
    """A word of the question as the units to look up in a sentence, all of which make the term found."""

    units: Sequence[str]
    weight: float


class _Question(NamedTuple):
    """A question made ready for any number of contexts."""

    terms: list[_Term]
    words: frozenset[str]
    units: frozenset[str]
    asks_number: bool


class _Scored(NamedTuple):
    """A sentence by its number in the record, with its score and the coverage within it."""

    number: int
    score: float
    coverage: float


def relevant_sentences(question: str, contexts: Sequence[Sequence[str]]) -> list[int]:
    """The numbers of the sentences relevant to `question`, in order; 1 is the first sentence of the first context."""
    scored = _scored(_prepared(question), contexts)
    relevant = [sentence for sentence in scored if sentence.score >= THRESHOLD]
    enough = NEAR_BEST * max((sentence.coverage for sentence in relevant), default=0.0)
    near = [sentence for sentence in relevant if sentence.coverage >= enough]
    best = sorted(near, key=lambda sentence: (-sentence.score, sentence.number))[:MOST_SENTENCES]
    return sorted(sentence.number for sentence in best)


def _prepared(question: str) -> _Question:
    """The question's terms; if function words are all it has, they count alike."""
    words = _words(question)
    terms = list(_terms(words)) or [_Term(_units([word]), 1.0) for word in words]
    asks_number = bool(_ASKS_NUMBER.search(_plain(question[:LONGEST]).lower()))
    return _Question(terms, frozenset(words), frozenset(_units(words)), asks_number)


def _scored(question: _Question, contexts: Sequence[Sequence[str]]) -> list[_Scored]:
    """Every sentence of the record with its score, headings left out."""
    scored: list[_Scored] = []
    before = 0
    for context in contexts:
        headings = int(_has_heading(context))
        scored += _scored_context(question, context[headings:], before + headings + 1)
        before += len(context)
    return scored


def _has_heading(context: Sequence[str]) -> bool:
    """Whether the first sentence is a heading: short and without a mark at its end, unlike one that follows."""
    if not context or len(context[0]) > HEADING_LENGTH or _CLOSED.search(context[0]):
        return False
    return any(len(sentence) > HEADING_LENGTH or _CLOSED.search(sentence) for sentence in context[1:])


def _scored_context(question: _Question, sentences: Sequence[str], first: int) -> Iterator[_Scored]:
    """The sentences of one context, numbered from `first`."""
    words = [_words(sentence) for sentence in sentences]
    opening = _share(_opening(words), question.units)
    for number, said in enumerate(words, first):
        coverage = _share(question.terms, frozenset(_units(said)))
        if question.asks_number and not _has_new_number(said, question):
            coverage *= UNNUMBERED
        yield _Scored(number, coverage + OPENING_SHARE * (opening - coverage), coverage)


def _has_new_number(words: Iterable[str], question: _Question) -> bool:
    """Whether a number stands among the words that the question does not hold."""
    return any(word[0].isnumeric() and word not in question.words for word in words)


def _opening(sentences: Sequence[Sequence[str]]) -> list[_Term]:
    """The first terms of a context, which tend to name its subject."""
    opening: list[_Term] = []
    weight = 0.0
    for term in _terms(sentences[0] if sentences else ()):
        opening.append(term)
        weight += term.weight
        if weight >= OPENING_WEIGHT:
            break
    return opening


def _share(terms: Sequence[_Term], held: frozenset[str]) -> float:
    """The weighted share of the terms, each by its share of units, that is held."""
    total = sum(term.weight for term in terms)
    found = sum(term.weight * sum(unit in held for unit in term.units) / len(term.units) for term in terms)
    return found / total if total else 0.0


def _terms(words: Iterable[str]) -> Iterator[_Term]:
    """The words that weigh something, as terms."""
    for word in words:
        if _PAIRED_FIRST.match(word) and not _HANGUL_FIRST.match(word):
            yield from map(_pair_term, _pairs(word))
            continue
        term = _korean_term(word) if _HANGUL_FIRST.match(word) else _Term([_stem(word)], _weight(word))
        if term.weight:
            yield term


def _korean_term(word: str) -> _Term:
    """A Korean word without its particle or ending, found by its pairs of syllables."""
    stem = _KOREAN_ENDING.sub("", word)
    if _SMALL_KOREAN.fullmatch(word) or _SMALL_KOREAN.fullmatch(stem):
        return _Term([stem], 0.0)
    # Two syllables may be a noun of one with its particle.
    units = [stem[0], stem] if _SYLLABLE_AND_PARTICLE.fullmatch(stem) else _pairs(stem)
    return _Term(units, 1.0)


def _pair_term(pair: str) -> _Term:
    """Two neighbouring characters of an unspaced script, each pair half a word."""
    return _Term([pair], SMALL_WEIGHT / 2 if _SMALL_CHARACTER.search(pair) else 0.5)


def _weight(word: str) -> float:
    """How much a word between spaces tells: numbers most, then acronyms and long words, function words nothing."""
    if word.isdigit():
        return NUMBER_WEIGHT
    if _SMALL_ENGLISH.fullmatch(word.lower()):
        return 0.0
    return 1.0 if word.isupper() else min(1.0, len(word) / FULL_LENGTH)


def _units(words: Iterable[str]) -> list[str]:
    """What the words can be found by: stems, or characters and their pairs where words are unspaced or inflected."""
    units: list[str] = []
    for word in words:
        if _PAIRED_FIRST.match(word):
            units += _pairs(word)
            units += word
        else:
            units.append(_stem(word))
    return units


def _pairs(word: str) -> list[str]:
    """The pairs of neighbouring characters; of a single character, itself."""
    return [word[i : i + 2] for i in range(len(word) - 1)] or [word]


def _stem(word: str) -> str:
    """The beginning of a word, in small letters and without a plural s."""
    word = word.lower()
    if len(word) >= PLURAL_LENGTH and word[-1] == "s" and word[-2] != "s":
        word = word[:-1]
    return word[:STEM_LENGTH]


def _words(text: str) -> list[str]:
    """The words of a text in order, cut where the script changes between spaced, unspaced and Korean."""
    return _WORD.findall(_plain(text[:LONGEST]))


def _plain(text: str) -> str:
    """The text in one form of its characters, without accents and vowel marks that writers leave out at will."""
    if text.isascii():
        return text
    return unicodedata.normalize("NFC", _ACCENT.sub("", unicodedata.normalize("NFKD", text)))
