"""Kind `quotes`: the judge copies statements out of the contexts, and each is looked up there."""

from collections.abc import Iterable
from typing import NamedTuple

from ..case import Case, Statement
from ..figures import ContextFact, ContextFigures, context_fact
from ..locating import Haystack, Place
from .citations import context_verdicts
from .columns import CONTEXT_VERDICTS, SPAN, ColumnTypes, Scalar
from .examples import text_list
from .output import UNIT, Marks, Reply, UnfitExample, texts_of

LOCATIONS = "locations"


class Quote(NamedTuple):
    """A statement as the judge wrote it."""

    text: str
    place: Place | None
    """None where it stands in no context: then it counts for nothing."""


class QuoteFact(NamedTuple):
    """What is counted of one record."""

    retrieval: ContextFact
    quotes: int
    unlocated: int


class Quotes:
    """Relevant statements in the judge's words."""

    kind = "quotes"
    rules = ("any", "share")
    numbered = False
    divisible = True
    range = UNIT

    def __init__(self, name: str) -> None:
        self.name = name

    def schema(self) -> dict[str, object]:
        """JSON schema (strict) of each of its keys in the reply."""
        return {self.name: {"type": "array", "items": {"type": "string"}}}

    def form(self) -> dict[str, str]:
        """What stands for each of its keys where the output format is described."""
        return {self.name: "[statements copied from the contexts]"}

    def example(self, outputs: Reply, case: Case) -> dict[str, object]:
        """The example's statements, each of which has to stand in its contexts. Raises UnfitExample."""
        texts = text_list(outputs[self.name], (self.name,))
        haystack = Haystack(case.texts)
        for index, text in enumerate(texts):
            place = haystack.find(text)
            if place is None or place.similarity < 1:
                raise UnfitExample(
                    (self.name, index), f"the statement {text!r} stands in no context of the example; copy it verbatim"
                )
        return {self.name: texts}

    def idle(self, case: Case) -> bool:
        """Whether no context holds any text."""
        return not any(case.contexts)

    def nothing(self) -> list[Quote]:
        """No statement."""
        return []

    def read(self, reply: Reply, case: Case) -> list[Quote]:
        """The statements and where they stand. Raises Failure."""
        texts = texts_of(reply, self.name)
        haystack = Haystack(case.texts if texts else ())
        return [Quote(text, haystack.find(text)) for text in texts]

    def found(self, verdict: list[Quote]) -> dict[str, object]:  # noqa: ARG002  # parts are judged by themselves
        """Nothing."""
        return {}

    def unite(self, first: list[Quote], second: list[Quote]) -> list[Quote]:
        """The statements of both."""
        return first + second

    def columns(self, verdict: list[Quote], case: Case) -> dict[str, object]:
        """The statements, where each stands, and a verdict for each context."""
        return {
            self.name: [quote.text for quote in verdict],
            LOCATIONS: [_location(quote.place) for quote in verdict],
            "contexts": context_verdicts(case, _covered(verdict, case)),
        }

    def empty(self) -> dict[str, object]:
        """Empty lists."""
        return {self.name: [], LOCATIONS: [], "contexts": []}

    def types(self) -> ColumnTypes:
        """What each of its columns holds."""
        location: ColumnTypes = {
            "located": Scalar.BOOLEAN,
            "context": Scalar.INTEGER,
            "span": SPAN,
            "similarity": Scalar.NUMBER,
        }
        return {self.name: [Scalar.TEXT], LOCATIONS: [location], "contexts": CONTEXT_VERDICTS}

    def marks(self, verdict: list[Quote], case: Case) -> Marks:
        """One for each sentence of the contexts that a located statement covers."""
        return Marks(len(_covered(verdict, case)), sum(map(len, case.contexts)))

    def fact(self, verdict: list[Quote], case: Case) -> QuoteFact:
        """Which contexts were relevant, and how many statements were invented."""
        unlocated = sum(quote.place is None for quote in verdict)
        return QuoteFact(context_fact(case, _covered(verdict, case)), len(verdict), unlocated)

    def figures(self) -> "QuoteFigures":
        """Figures of the retrieval, and counts of statements that stand nowhere."""
        return QuoteFigures()


class QuoteFigures:
    """Sums over evaluated records."""

    def __init__(self) -> None:
        self._retrieval = ContextFigures()
        self._quotes = self._unlocated = 0

    def add(self, fact: QuoteFact) -> None:
        """Count one record."""
        self._retrieval.add(fact.retrieval)
        self._quotes += fact.quotes
        self._unlocated += fact.unlocated

    def result(self) -> dict[str, float | int | None]:
        """The retrieval's figures; `quotes` and how many of them stand in no context."""
        return {**self._retrieval.result(), "quotes": self._quotes, "unlocated": self._unlocated}


def _location(place: Place | None) -> dict[str, object]:
    if place is None:
        return {"located": False, "context": None, "span": None, "similarity": None}
    span = (place.start, place.end)
    return {"located": True, "context": place.context, "span": span, "similarity": place.similarity}


def _covered(quotes: Iterable[Quote], case: Case) -> set[int]:
    """Numbers of the sentences that located quotes cover."""
    places = [quote.place for quote in quotes if quote.place]
    return {statement.number for statement in case.statements for place in places if _covers(place, statement)}


def _covers(place: Place, statement: Statement) -> bool:
    """Whether a quote takes up half of a sentence, or half of it stands there: a sentence beside it is only touched."""
    if statement.context != place.context:
        return False
    overlap = min(statement.end, place.end) - max(statement.start, place.start)
    return 2 * overlap >= min(statement.end - statement.start, place.end - place.start)
