"""Kind `citations`: the judge names sentences of the contexts by their numbers, and can invent none."""

from collections.abc import Iterable, Sequence

from ..case import Case, Statement
from ..figures import ContextFact, ContextFigures, context_fact
from .columns import CONTEXT_VERDICTS, ColumnTypes, Scalar
from .examples import numbers_of
from .output import UNIT, Marks, Reply, list_of, refuse

NUMBERS_FORM = "[numbers of sentences]"
NUMBERS_SCHEMA: dict[str, object] = {"type": "array", "items": {"type": "integer"}}


class Citations:
    """Numbers of relevant statements."""

    kind = "citations"
    rules = ("any", "share")
    numbered = divisible = True
    range = UNIT

    def __init__(self, name: str, *, report_all: bool = False) -> None:
        """With `report_all` rows hold every statement with 1 or 0 instead of the relevant ones."""
        self.name = name
        self._report_all = report_all

    def schema(self) -> dict[str, object]:
        """JSON schema (strict) of each of its keys in the reply."""
        return {self.name: NUMBERS_SCHEMA}

    def form(self) -> dict[str, str]:
        """What stands for each of its keys where the output format is described."""
        return {self.name: NUMBERS_FORM}

    def example(self, outputs: Reply, case: Case) -> dict[str, object]:
        """The numbers of the sentences that the example holds verbatim. Raises UnfitExample."""
        return {self.name: sorted(numbers_of(outputs, (self.name,), case))}

    def idle(self, case: Case) -> bool:
        """Whether no context holds any text."""
        return not any(case.contexts)

    def nothing(self) -> set[int]:
        """No citation."""
        return set()

    def read(self, reply: Reply, case: Case) -> set[int]:
        """The cited numbers. Raises Failure unless each is a statement of the case."""
        return read_numbers(list_of(reply, self.name), self.name, case)

    def found(self, verdict: set[int]) -> dict[str, object]:  # noqa: ARG002  # parts are judged by themselves
        """Nothing."""
        return {}

    def unite(self, first: set[int], second: set[int]) -> set[int]:
        """The citations of both."""
        return first | second

    def columns(self, verdict: set[int], case: Case) -> dict[str, object]:
        """The statements verbatim, and a verdict with character spans for each context."""
        if self._report_all:
            columns: dict[str, object] = {
                "statements": [statement.text for statement in case.statements],
                "statement_scores": [int(statement.number in verdict) for statement in case.statements],
            }
        else:
            columns = {self.name: [s.text for s in case.statements if s.number in verdict]}
        return columns | {"contexts": context_verdicts(case, verdict)}

    def empty(self) -> dict[str, object]:
        """Empty lists."""
        names = ("statements", "statement_scores") if self._report_all else (self.name,)
        return {name: [] for name in (*names, "contexts")}

    def types(self) -> ColumnTypes:
        """What each of its columns holds."""
        own: ColumnTypes = {self.name: [Scalar.TEXT]}
        if self._report_all:
            own = {"statements": [Scalar.TEXT], "statement_scores": [Scalar.INTEGER]}
        return own | {"contexts": CONTEXT_VERDICTS}

    def marks(self, verdict: set[int], case: Case) -> Marks:
        """One for each relevant statement."""
        return Marks(len(verdict), sum(map(len, case.contexts)))

    def fact(self, verdict: set[int], case: Case) -> ContextFact:
        """Which contexts were relevant."""
        return context_fact(case, verdict)

    def figures(self) -> ContextFigures:
        """Figures of the retrieval."""
        return ContextFigures()


def read_numbers(numbers: Sequence[object], key: str, case: Case) -> set[int]:
    """The numbers of a list. Raises Failure unless each is a statement of the case."""
    known = {statement.number for context in case.contexts for statement in context}
    for number in numbers:
        if type(number) is not int:  # True is an int, and no number of a statement
            refuse(f"{key!r} holds something that is no whole number")
        if number not in known:
            refuse(f"there is no statement {number}")
    return set(numbers)  # type: ignore[arg-type]  # each was found to be an int


def context_verdicts(case: Case, relevant: set[int]) -> list[dict[str, object]]:
    """For each context whether it is relevant, and the spans of its relevant statements."""
    return [
        _context_verdict(context, [(s.start, s.end) for s in context if s.number in relevant])
        for context in case.contexts
    ]


def _context_verdict(context: Sequence[Statement], spans: Iterable[tuple[int, int]]) -> dict[str, object]:
    spans = list(spans)
    return {
        "relevant": bool(spans),
        "statements": len(context),
        "relevant_statements": len(spans),
        "spans": spans,
    }
