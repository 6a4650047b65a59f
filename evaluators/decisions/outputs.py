"""Outputs as probabilities answer them: the rows of the kinds they stand for, and the probabilities beside."""

from collections.abc import Callable, Mapping
from typing import Any, cast

from ..case import Case
from ..figures import ContextFact
from ..outputs.citations import Citations
from ..outputs.claims import ANSWER, Claim, ClaimFact, ClaimFigures, Claims
from ..outputs.columns import ColumnTypes, Scalar
from ..outputs.output import Figures, Marks, Output, Range, Reply
from .asking import PROBABILITIES, Decisions, fill_number, probability_column

Probabilities = dict[str, float]
"""By the names of the predicates: the number of a sentence, or the name of an output."""


class DecidedOutput:
    """What outputs of all kinds have in common when predicates are asked; a verdict is Probabilities."""

    numbered = divisible = False

    def __init__(self, output: Output[Any], predicate: str, threshold: float) -> None:
        self.output = output
        """The output that it stands for."""
        self.predicate = predicate
        self.threshold = threshold

    @property
    def name(self) -> str:
        """The column in the row, or the first of several."""
        return self.output.name

    @property
    def kind(self) -> str:
        """The kind as it stands in the YAML."""
        return self.output.kind

    @property
    def rules(self) -> tuple[str, ...]:
        """The scoring rules that can be applied to it."""
        return self.output.rules

    @property
    def range(self) -> Range:
        """Of its marks."""
        return self.output.range

    def schema(self) -> dict[str, object]:
        """Nothing: the endpoint has a form of its own."""
        return {}

    def form(self) -> dict[str, str]:
        """Nothing, for the same reason."""
        return {}

    def example(self, outputs: Reply, case: Case) -> dict[str, object]:  # noqa: ARG002  # none is shown
        """Nothing: worked examples are for judges that write."""
        return {}

    def questions(self, case: Case) -> dict[str, str]:
        """The predicates by their names."""
        raise NotImplementedError

    def halves(self, case: Case) -> tuple[Case, Case] | None:  # noqa: ARG002  # there is one predicate
        """Two cases with fewer predicates each; None where there are none."""
        return None

    def idle(self, case: Case) -> bool:
        """Whether there is nothing to ask."""
        return not self.questions(case)

    def nothing(self) -> Probabilities:
        """No probability."""
        return {}

    def read(self, reply: Reply, case: Case) -> Probabilities:
        """Its own of the probabilities that the whole reply holds."""
        probabilities = cast("Mapping[str, float]", reply)
        return {name: probabilities[name] for name in self.questions(case)}

    def found(self, verdict: Probabilities) -> dict[str, object]:  # noqa: ARG002  # parts are judged by themselves
        """Nothing."""
        return {}

    def unite(self, first: Probabilities, second: Probabilities) -> Probabilities:
        """The probabilities of both; the higher one where both parts were asked the same."""
        return {name: max(first.get(name, 0.0), second.get(name, 0.0)) for name in {**first, **second}}

    def columns(self, verdict: Probabilities, case: Case) -> dict[str, object]:
        """Its columns in the row of an evaluated record."""
        raise NotImplementedError

    def empty(self) -> dict[str, object]:
        """Its columns in the row of a record that could not be judged."""
        raise NotImplementedError

    def types(self) -> ColumnTypes:
        """Those of the output, and a probability for each of its predicates."""
        return {**self.output.types(), PROBABILITIES: [Scalar.NUMBER]}

    def marks(self, verdict: Probabilities, case: Case) -> Marks:
        """What a scoring rule sees."""
        raise NotImplementedError

    def fact(self, verdict: Probabilities, case: Case) -> object:
        """What its figures count of a verdict."""
        raise NotImplementedError

    def figures(self) -> Figures | None:
        """Those of the output."""
        return self.output.figures()


class DecidedCitations(DecidedOutput):
    """Sentences of the contexts, each with the probability that it is relevant."""

    numbered = divisible = True

    def __init__(self, output: Citations, predicate: str, threshold: float) -> None:
        super().__init__(output, predicate, threshold)
        self._citations = output

    def questions(self, case: Case) -> dict[str, str]:
        """One predicate for each sentence."""
        return {
            str(statement.number): fill_number(self.predicate, statement.number)
            for context in case.contexts
            for statement in context
        }

    def halves(self, case: Case) -> tuple[Case, Case] | None:
        """Halves of the contexts, or of the sentences of one."""
        return case.halves()

    def columns(self, verdict: Probabilities, case: Case) -> dict[str, object]:
        """Those of citations, and a probability for each sentence of the contexts."""
        probabilities = [verdict[str(statement.number)] for statement in case.statements]
        return {**self._citations.columns(self._cited(verdict), case), PROBABILITIES: probabilities}

    def empty(self) -> dict[str, object]:
        """Empty lists."""
        return {**self._citations.empty(), PROBABILITIES: []}

    def marks(self, verdict: Probabilities, case: Case) -> Marks:
        """One for each relevant statement."""
        return self._citations.marks(self._cited(verdict), case)

    def fact(self, verdict: Probabilities, case: Case) -> ContextFact:
        """Which contexts were relevant."""
        return self._citations.fact(self._cited(verdict), case)

    def _cited(self, verdict: Probabilities) -> set[int]:
        return {int(number) for number, probability in verdict.items() if probability >= self.threshold}


class DecidedClaims(DecidedOutput):
    """The answer's own sentences, each with the probability that the contexts support it; without evidence.

    Its cases hold the answer as `number_answer` gives it.
    """

    divisible = True

    def __init__(self, output: Claims, predicate: str, threshold: float) -> None:
        super().__init__(output, predicate, threshold)
        self._claims = output

    def questions(self, case: Case) -> dict[str, str]:
        """One predicate for each sentence of the answer, none where there is no context."""
        sentences = _sentences(case) if any(case.contexts) else {}
        return {number: fill_number(self.predicate, number) for number in sentences}

    def halves(self, case: Case) -> tuple[Case, Case] | None:
        """Halves of the answer, each with all contexts; None where a single sentence is left."""
        sentences = list(_sentences(case).items())
        middle = len(sentences) // 2
        return (
            (case.with_input(ANSWER, dict(sentences[:middle])), case.with_input(ANSWER, dict(sentences[middle:])))
            if middle
            else None
        )

    def columns(self, verdict: Probabilities, case: Case) -> dict[str, object]:
        """Those of claims, the evidence empty, and a probability for each statement."""
        columns = self._claims.columns(self._supported(verdict, case), case)
        return {**columns, PROBABILITIES: list(verdict.values())}

    def empty(self) -> dict[str, object]:
        """Empty lists."""
        return {**self._claims.empty(), PROBABILITIES: []}

    def marks(self, verdict: Probabilities, case: Case) -> Marks:
        """One for each supported statement."""
        return self._claims.marks(self._supported(verdict, case), case)

    def fact(self, verdict: Probabilities, case: Case) -> ClaimFact:
        """What is counted."""
        return self._claims.fact(self._supported(verdict, case), case)

    def figures(self) -> "DecidedClaimFigures":
        """Counts of statements."""
        return DecidedClaimFigures()

    def _supported(self, verdict: Probabilities, case: Case) -> list[Claim]:
        sentences = _sentences(case)
        return [
            Claim(sentences[number], probability >= self.threshold, frozenset())
            for number, probability in verdict.items()
        ]


class DecidedClaimFigures(ClaimFigures):
    """The figures of claims, but for those of the evidence, which nobody was asked for."""

    def result(self) -> dict[str, float | int | None]:
        """Counts as of claims; `supported_without_evidence` is null."""
        return {**super().result(), "supported_without_evidence": None}


class DecidedBoolean(DecidedOutput):
    """A statement about the whole record, with the probability that it is true."""

    def questions(self, case: Case) -> dict[str, str]:  # noqa: ARG002  # the same for each
        """The one predicate."""
        return {self.name: self.predicate}

    def columns(self, verdict: Probabilities, case: Case) -> dict[str, object]:  # noqa: ARG002  # the verdict holds all
        """Whether it counts as true, and the probability."""
        return {self.name: self._true(verdict), probability_column(self.name): verdict[self.name]}

    def empty(self) -> dict[str, object]:
        """Nulls."""
        return {self.name: None, probability_column(self.name): None}

    def types(self) -> ColumnTypes:
        """A truth value and its probability."""
        return {**self.output.types(), probability_column(self.name): Scalar.NUMBER}

    def marks(self, verdict: Probabilities, case: Case) -> Marks:  # noqa: ARG002  # the verdict holds all
        """1 where it counts as true."""
        return Marks(int(self._true(verdict)), 1)

    def fact(self, verdict: Probabilities, case: Case) -> bool:  # noqa: ARG002  # the verdict holds all
        """Whether it counts as true."""
        return self._true(verdict)

    def _true(self, verdict: Probabilities) -> bool:
        return verdict[self.name] >= self.threshold


_DECIDED: dict[str, Callable[[Any, str, float], DecidedOutput]] = {
    "citations": DecidedCitations,
    "claims": DecidedClaims,
    "boolean": DecidedBoolean,
}


def decided(output: Output[Any], decisions: Decisions) -> DecidedOutput:
    """The output as probabilities answer it."""
    return _DECIDED[output.kind](output, decisions.predicates[output.name], decisions.threshold)


def _sentences(case: Case) -> Mapping[str, str]:
    return cast("Mapping[str, str]", case.inputs[ANSWER])
