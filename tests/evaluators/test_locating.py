"""What a judge wrote is found where it stands, whole and nowhere else; what it invented is not."""

import random
import re
import time
import unicodedata

import pytest
from hypothesis import assume, given, settings
from hypothesis import strategies as st

from ctxrel.evaluators.locating import SIMILARITY, Haystack, Place


def find(text: str, *contexts: str) -> Place | None:
    return Haystack(contexts).find(text)


def passage(place: Place | None, *contexts: str) -> str | None:
    return contexts[place.context][place.start : place.end] if place else None


def decomposed(text: str) -> str:
    return unicodedata.normalize("NFD", text)


@pytest.mark.parametrize(
    ("context", "text", "expected"),
    [
        pytest.param("One. Two is here. Three.", "Two is here.", "Two is here.", id="as it is"),
        pytest.param("Two is here.", "Two is here.", "Two is here.", id="the whole context"),
        pytest.param("One. Two  is\n here. Three.", " Two is here. ", "Two  is\n here.", id="white space"),
        pytest.param("One. Two is here. Three.", "Two\u00a0is\u2003\there.", "Two is here.", id="odd spaces"),
        pytest.param("Zwei\u3000ist hier。三", "Zwei ist hier。", "Zwei\u3000ist hier。", id="ideographic space"),
        pytest.param("One. TWO Is Here. Three.", "two is here.", "TWO Is Here.", id="case"),
        pytest.param("Die STRASSE ist lang.", "Die Straße", "Die STRASSE", id="sharp s"),
        pytest.param("Die Straße ist lang.", "STRASSE", "Straße", id="sharp s the other way"),
        pytest.param("Er sagte „nein“ dazu.", 'sagte "nein" dazu', "sagte „nein“ dazu", id="low quotes"),
        pytest.param("She said “no” to it.", "said 'no' to it", "said “no” to it", id="curly quotes"),
        pytest.param("Il dit «non» à cela.", 'dit "non" à cela', "dit «non» à cela", id="guillemets"),
        pytest.param("彼は「いいえ」と言った。", '彼は"いいえ"と言った', "彼は「いいえ」と言った", id="corner brackets"),
        pytest.param("It's Ada's.", "It\u2019s Ada\u2018s.", "It's Ada's.", id="apostrophes"),
        pytest.param("1990\u20131995 \u2014 long ago", "1990-1995 - long ago", "1990\u20131995 \u2014 long ago", id="dashes"),
        pytest.param("It was \u22125 °C.", "-5 °C", "\u22125 °C", id="minus"),
        pytest.param("앞. 서울에 있다. 뒤.", decomposed("서울에 있다."), "서울에 있다.", id="Korean, written in parts"),
        pytest.param(
            decomposed("앞. 서울에 있다. 뒤."), "서울에 있다.", decomposed("서울에 있다."), id="Korean in parts in the context"
        ),
        pytest.param(decomposed("값은 값"), "값은", decomposed("값은"), id="Korean, last part of a syllable"),
        pytest.param("値段は５００円です。", "値段は500円", "値段は５００円", id="full-width digits"),
        pytest.param("ＡＢＣ　社の株", "abc 社", "ＡＢＣ　社", id="full-width letters"),
        pytest.param("The ﬁrst oﬃce", "first office", "ﬁrst oﬃce", id="ligatures"),
        pytest.param("The first office", "ﬁrst oﬃce", "first office", id="ligatures the other way"),
        pytest.param("Le café est là.", decomposed("café est là"), "café est là", id="accents in parts"),
        pytest.param(decomposed("Le café fermé."), "café", decomposed("café"), id="accents in parts in the context"),
        pytest.param(decomposed("Tiếng Việt"), "tiếng việt", decomposed("Tiếng Việt"), id="two marks on one letter"),
        pytest.param("E = mc² and x₁", "e = mc2 and x1", "E = mc² and x₁", id="raised and lowered digits"),
        pytest.param("Wait… what?", "Wait... what?", "Wait… what?", id="ellipsis"),
        pytest.param("| a | b |\n| 1 | 2 |", "| a | b | | 1 | 2 |", "| a | b |\n| 1 | 2 |", id="lines of a table"),
        pytest.param("ქართული ენა", "ქართული", "ქართული", id="a script without case"),
        pytest.param("👩‍👩‍👧 came. 👍🏽 said.", "👍🏽 said.", "👍🏽 said.", id="emoji"),
        pytest.param("  padded text  ", "padded text", "padded text", id="white space around it"),
        pytest.param("서울은 크다.", "서울", "서울", id="a Korean noun before its particle"),
        pytest.param("東京は大きい。", "大きい", "大きい", id="a script without spaces"),
    ],
)  # fmt: skip
def test_verbatim(context: str, text: str, expected: str) -> None:
    """White space, case, quotes, dashes and forms of characters make no difference; the span is the whole passage."""
    place = find(text, "Something else.", context)
    assert place
    assert (place.context, place.similarity) == (1, 1.0)
    assert passage(place, "Something else.", context) == expected
    assert context.count(expected) >= 1


@pytest.mark.parametrize(
    ("text", "context"),
    [
        pytest.param("art", "The party is over.", id="inside"),
        pytest.param("part", "The party is over.", id="at the beginning"),
        pytest.param("arty", "The party is over.", id="at the end"),
        pytest.param("he party", "The party is over.", id="two words"),
        pytest.param("5", "It costs 150 euros.", id="digits"),
        pytest.param("1990", "Part no. 19901.", id="a number at the beginning of another"),
        pytest.param("cafe", decomposed("The café"), id="a letter without its mark"),
        pytest.param("cafe", "The café", id="a letter without its accent"),
    ],
)
def test_not_inside_of_words(text: str, context: str) -> None:
    """A word is not found within another one."""
    assert find(text, context) is None


@pytest.mark.parametrize(
    ("context", "span"),
    [
        pytest.param("party art", (6, 9), id="after a longer word"),
        pytest.param("art-house", (0, 3), id="before a hyphen"),
        pytest.param("(art)", (1, 4), id="in brackets"),
        pytest.param("state_of_art", (9, 12), id="after an underscore"),
    ],
)
def test_whole_words(context: str, span: tuple[int, int]) -> None:
    """The first place where it is a word by itself."""
    assert find("art", context) == Place(0, *span, 1.0)


LONG = "The suspension bridge over the river was opened by the mayor in June 1938 after six years of work."


@pytest.mark.parametrize(
    "text",
    [
        pytest.param(LONG.replace("mayor", "major"), id="a letter"),
        pytest.param(LONG.replace("opened", "inaugurated"), id="a word"),
        pytest.param(LONG.replace("suspension ", ""), id="a word left out"),
        pytest.param(LONG.replace("the mayor", "the old mayor"), id="a word put in"),
        pytest.param(LONG.replace(",", "").replace(".", ""), id="punctuation"),
    ],
)
def test_similar(text: str) -> None:
    """A copy with a word changed is located, and the similarity says that it is none to the letter."""
    contexts = ("Ferries had crossed it before.", f"Before. {LONG} After.")
    place = find(text, *contexts)
    assert place
    assert place.context == 1
    assert SIMILARITY / 100 <= place.similarity <= 1
    assert (place.similarity < 1) == (text not in LONG)
    found = passage(place, *contexts)
    assert found
    assert set(found.split()) >= set(LONG.removesuffix(".").split()[2:-2])


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("The ferry was sold to a museum in the north of Norway in 1941.", id="invented"),
        pytest.param("The suspension bridge is the longest in all of Europe, visitors say.", id="about the same"),
        pytest.param(" ".join(reversed(LONG.split())), id="the same words in another order"),
        pytest.param("ブリッジは1938年に市長によって開通されました。", id="in another language"),
    ],
)
def test_invented(text: str) -> None:
    """What does not stand there is not found."""
    assert find(text, LONG) is None


def test_short_texts_only_verbatim() -> None:
    """Of a few characters each may be the one that matters: 1938 is not 1939."""
    assert find("in June 1938", LONG) is not None
    assert find("in June 1939", LONG) is None
    assert find("the river wos", LONG) is None
    assert find("over the river wos opened by the mayor", LONG) is not None


@pytest.mark.parametrize("text", ["", " ", "\n\t\u00a0\u3000"])
def test_blank_text(text: str) -> None:
    """Nothing stands nowhere."""
    assert find(text, LONG) is None


@pytest.mark.parametrize("contexts", [(), ("",), (" ", "\n")], ids=["none", "empty", "blank"])
def test_no_contexts(contexts: tuple[str, ...]) -> None:
    """In nothing stands nothing."""
    assert find(LONG, *contexts) is None
    assert find("a", *contexts) is None


def test_longer_than_the_context() -> None:
    """A context that stands in the text is not the text."""
    assert find(f"{LONG} And then some more was said about its toll.", LONG) is None
    assert find("opened by the mayor in June 1938", "by the mayor") is None


def test_first_of_several_verbatim_places() -> None:
    """The first one, and a verbatim one before one that is only similar."""
    assert find("It is so.", "Is it? It is so. It is so.", "It is so.") == Place(0, 7, 16, 1.0)
    similar = LONG.replace("mayor", "major")
    assert find(LONG, similar, f"So: {LONG}", LONG) == Place(1, 4, 4 + len(LONG), 1.0)


def test_best_of_several_similar_places() -> None:
    """The most similar one, wherever it stands; the first of equals."""
    text = LONG.replace("mayor", "Queen")
    worse, better = LONG.replace("June", "July").replace("six", "ten"), f"So: {LONG}"
    place = find(text, worse, better, worse)
    assert place
    assert (place.context, passage(place, worse, better)) == (1, LONG)
    again = find(text, worse, LONG, LONG)
    assert again
    assert again.context == 1


WORDS = st.text(st.characters(exclude_categories=["Cs"]), min_size=1, max_size=8)
SPACES = st.sampled_from([" ", "  ", "\n", "\t", "\u00a0", "\u3000", " \r\n"])
PIECES = st.sampled_from(["„x“", "—", "ﬁ", "é", "e\u0301", "한", decomposed("한국"), "Straße", "İ", "½", "\u0301", "\u0345", "ͅΑ", "ǰ", "\u200b", "ｶﾞ", "①"])  # fmt: skip


def normal(text: str) -> str:
    """Without white space and case; which dash or quotation mark it is does not matter."""
    text = re.sub("[\u2010-\u2015\u2212]", "-", text)
    text = re.sub('[\u2018-\u201f\u2032\u2033\u2039\u203a\u300c-\u300f\u00ab\u00bb`"]', "'", text)
    return "".join(unicodedata.normalize("NFKC", text).casefold().split())


@st.composite
def slices(draw: st.DrawFn) -> tuple[str, str]:
    """A context, and a part of it made of whole words."""
    words = draw(st.lists(WORDS | PIECES, min_size=1, max_size=12))
    parts = [part for word in words for part in (word, draw(SPACES))]
    first = draw(st.integers(0, len(words) - 1))
    last = draw(st.integers(first, len(words) - 1))
    return "".join(parts), "".join(parts[2 * first : 2 * last + 1])


@given(slices(), st.lists(WORDS, max_size=2))
@settings(max_examples=300, deadline=None)
def test_every_part_is_found(part: tuple[str, str], before: list[str]) -> None:
    """Any whole words of a context are found, and the span holds just what they say."""
    context, text = part
    assume(normal(text))
    contexts = (*before, context)
    place = find(text, *contexts)
    assert place
    assert place.similarity == 1.0
    found = passage(place, *contexts)
    assert found
    assert normal(found) == normal(text)


ANY = st.text(st.characters(), max_size=40) | st.lists(WORDS | PIECES | st.just("\ud800"), max_size=8).map(" ".join)


@given(ANY, st.lists(ANY, max_size=3))
@settings(max_examples=300, deadline=None)
def test_any_text(text: str, contexts: list[str]) -> None:
    """Nothing that a judge writes raises, and every place is within its context."""
    place = find(text, *contexts)
    if place:
        assert 0 <= place.context < len(contexts)
        assert 0 <= place.start < place.end <= len(contexts[place.context])
        assert SIMILARITY / 100 <= place.similarity <= 1


@given(ANY.filter(lambda text: bool(text.strip())))
@settings(max_examples=200, deadline=None)
def test_a_text_stands_in_itself(text: str) -> None:
    """Whatever it holds."""
    place = find(text, text)
    assert place
    assert place.similarity == 1.0


def test_long_texts() -> None:
    """A whole document is found in itself, and what stands nowhere in it is told in time."""
    document = " ".join(f"Sentence number {number} says {number * 7919 % 1009}." for number in range(3000))
    haystack = Haystack([document])
    started = time.monotonic()
    assert haystack.find(document) is not None
    assert haystack.find("No sentence of the document says anything about the harbour.") is None
    assert time.monotonic() - started < 2


@pytest.mark.parametrize(
    ("text", "context"),
    [
        pytest.param("кот", "Который час?", id="Cyrillic"),
        pytest.param("caf", "The café", id="before an accented letter"),
        pytest.param("ber", "Das ist über alles.", id="after an umlaut"),
        pytest.param("5", "値段は５００円です。", id="full-width digits"),
        pytest.param("και", "Είναι δίκαιο.", id="Greek"),
    ],
)
def test_not_inside_of_words_of_other_alphabets(text: str, context: str) -> None:
    """Other alphabets have words and spaces as well."""
    assert find(text, context) is None


@pytest.mark.parametrize(
    "text",
    [
        pytest.param("আমি কোথাও যাব না", id="Bengali"),
        pytest.param("தமிழ் மொழி", id="Tamil"),
        pytest.param("മലയാളം പൊതു", id="Malayalam"),
    ],
)
def test_vowel_signs_in_parts(text: str) -> None:
    """Vowel signs that are written in two parts combine although they are of the class of letters."""
    assert decomposed(text) != text
    assert find(decomposed(text), text) == Place(0, 0, len(text), 1.0)
    assert find(text, decomposed(text)) == Place(0, 0, len(decomposed(text)), 1.0)


@pytest.mark.parametrize("text", ["The cat sat on the mat a", "So the cat sat on the mat"])
def test_a_little_longer_than_the_context(text: str) -> None:
    """A text of which the whole context is a part is not verbatim."""
    place = find(text, "The cat sat on the mat")
    assert place is None or place.similarity < 1


def test_many_places_inside_of_words() -> None:
    """A text that stands at every place of a context, but nowhere by itself, is told in time."""
    started = time.monotonic()
    assert find("a", "a" * 20_000) is None
    assert time.monotonic() - started < 0.5


@pytest.mark.parametrize(
    "quote",
    ["The first firing runs at 950 degreees.", "- The first firing runs at 950 degrees.", "The first firing runs at 950 degrees...", "1) The first firing runs at 950 degrees."],
)  # fmt: skip
def test_a_similar_passage_reaches_into_no_other_sentence(quote: str) -> None:
    """The span of a passage that is nearly the text ends where what they have in common ends."""
    context = "The kiln was bought in May. The first firing runs at 950 degrees. It cools for a day."
    place = find(quote, context)
    assert place
    assert passage(place, context) in ("The first firing runs at 950 degrees.", "The first firing runs at 950 degrees")


def test_what_was_made_up_costs_little() -> None:
    """Long statements that stand nowhere are found out without a close look at every context."""
    seeded = random.Random(5)
    words = ["".join(seeded.choices("abcdefghij", k=7)) for _ in range(3000)]
    contexts = [" ".join(seeded.choices(words, k=400)) for _ in range(40)]
    quotes = [" ".join("".join(seeded.choices("klmnopqrst", k=7)) for _ in range(200)) for _ in range(8)]
    haystack = Haystack(contexts)
    begun = time.process_time()
    assert [haystack.find(quote) for quote in quotes] == [None] * 8
    assert time.process_time() - begun < 20 * (0.05 + _cost_of_one(contexts))


def _cost_of_one(contexts: list[str]) -> float:
    begun = time.process_time()
    Haystack(contexts)
    return time.process_time() - begun
