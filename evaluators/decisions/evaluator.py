"""An evaluator that is asked by predicates: one for each sentence, or one for each truth value."""

from collections.abc import Mapping
from dataclasses import dataclass, replace

import orjson

from ..case import Case
from ..definition import Definition, load_definition
from ..errors import UsageError
from ..evaluator import Evaluator, Task, Verdict
from ..outputs.claims import ANSWER
from ..prompt import Request
from ..record import Record
from ..replies import Reply, read_object
from ..sentences import split_sentences
from .answers import read_answers
from .asking import ANSWERED, DECISIONS, MOST_QUESTIONS
from .outputs import DecidedClaims, DecidedOutput, decided


@dataclass(frozen=True, slots=True)
class DecidingTask(Task):
    """The predicates about one record, or about a part of it."""

    outputs: tuple[DecidedOutput, ...]

    @property
    def crowded(self) -> bool:
        """Whether there are more predicates than a request may have."""
        return len(self.questions()) > MOST_QUESTIONS

    def questions(self) -> dict[str, str]:
        """The predicates by their names."""
        return {name: text for output in self.outputs for name, text in output.questions(self.case).items()}

    def request(self) -> Request | None:
        """The request, the record beside its predicates; None where there is nothing to ask."""
        questions = self.questions()
        if not questions:
            return None
        asked = {"input": self.case.render(), "questions": questions}
        return Request(self.evaluator.static, orjson.dumps(asked).decode())

    def read(self, reply: Reply) -> Verdict:
        """The verdict of a reply. Raises Failure."""
        probabilities = read_answers(read_object(reply), self.questions())
        return tuple(output.read(probabilities, self.case) for output in self.outputs)

    def halves(self) -> "tuple[Task, Task] | None":
        """Two smaller tasks: with fewer predicates where there are too many, else with fewer contexts."""
        if not self.evaluator.divisible or not self.crowded:
            return Task.halves(self)
        parts = next((parts for output in self.outputs if (parts := output.halves(self.case))), None)
        return parts and (replace(self, case=parts[0]), replace(self, case=parts[1]))


class DecidingEvaluator(Evaluator):
    """Gives the rows that its definition promises, out of probabilities."""

    def __init__(self, definition: Definition) -> None:
        """Raises UsageError for an evaluator that probabilities cannot answer."""
        decisions = definition.decisions
        if decisions is None:
            raise UsageError(_refusal(definition))
        self._decided = tuple(decided(output, decisions) for output in definition.outputs)
        self._instructions = decisions.instructions
        # Its rows depend on the threshold, and those of a judge that writes do not.
        content = {**definition.content, DECISIONS: decisions.content}
        super().__init__(replace(definition, content=content, outputs=self._decided, parameters={}))

    def case(self, inputs: Mapping[str, object]) -> Case:
        """Inputs as the judge is to be shown them, the sentences of an answer under their numbers."""
        case = super().case(inputs)
        answer = inputs.get(ANSWER)
        if not isinstance(answer, str) or not any(isinstance(output, DecidedClaims) for output in self._decided):
            return case
        return case.with_input(ANSWER, number_answer(answer))

    def task(self, record: Record) -> DecidingTask:
        """What is to be asked about a record. Raises Failure (`bad_input`) where it lacks an input."""
        return DecidingTask(super().task(record).case, self, self._decided)

    def _schema(self) -> None:
        return None

    def _system(self) -> str:
        return self._instructions


def number_answer(answer: str) -> dict[str, str]:
    """The sentences of an answer by their numbers, from 1."""
    spans = enumerate(split_sentences(answer), start=1)
    return {str(number): answer[start:end] for number, (start, end) in spans}


def load_deciding_evaluator(name_or_path: str, *, explain: bool = False) -> DecidingEvaluator:
    """The evaluator of a built-in name or a YAML file. Raises UsageError where probabilities cannot answer it."""
    return make_deciding_evaluator(load_definition(name_or_path), explain=explain)


def make_deciding_evaluator(definition: Definition, *, explain: bool = False) -> DecidingEvaluator:
    """The evaluator of a definition. Raises UsageError where probabilities cannot answer it."""
    if explain:
        raise UsageError("the Decisions API writes no text, so it gives no reasons; leave out explain, or ask by chat")
    return DecidingEvaluator(definition)


def _refusal(definition: Definition) -> str:
    """Why an evaluator without `decisions` cannot be asked, and what to do."""
    unfit = next((output for output in definition.outputs if output.kind not in ANSWERED), None)
    if unfit:
        return (
            f"the Decisions API answers with probabilities and writes no text: it cannot answer {definition.name!r}, "
            f"whose output {unfit.name!r} is of the kind {unfit.kind!r}; ask it by chat, or judge by "
            "context_relevance, context_relevance_graded or faithfulness"
        )
    return (
        f"{definition.name!r} does not say what the Decisions API is to be asked; "
        "add the key 'decisions' to its YAML (docs/decisions.md), or ask it by chat"
    )
