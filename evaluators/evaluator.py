"""What an evaluator is, and the one that judges contexts by citations."""

import difflib
from dataclasses import dataclass
from typing import Protocol

from .citations import (
    NumberedRecord,
    citation_schema,
    locate_statement,
    number_statements,
    read_citations,
    render_citations,
    render_record,
)
from .definition import Definition, Example, fill_placeholders, load_definition
from .prompt import Prompt, Request
from .record import Record
from .replies import Reply, read_object
from .scoring import SCORERS


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The judgement of one record."""

    score: float
    """Between 0 and 1."""
    outputs: dict[str, list[object]]
    """The evaluator's own columns of the result row."""


class Task(Protocol):
    """What is asked about one record in one request."""

    def request(self) -> Request | None:
        """The request, None where there is nothing to ask."""

    def read(self, reply: Reply) -> set[int]:
        """The verdict of a reply. Raises Failure."""

    def halves(self) -> "tuple[Task, Task] | None":
        """Two smaller tasks whose verdicts unite to this one's; None where it cannot be divided."""


class Evaluator(Protocol):
    """Turns records into tasks and verdicts into evaluations."""

    name: str
    prompt: str
    """`name@hash` of the definition."""
    empty_outputs: dict[str, list[object]]
    """The outputs of a record that could not be judged."""

    def task(self, record: Record) -> Task:
        """What is to be asked about a record."""

    def evaluate(self, task: Task, verdict: set[int]) -> Evaluation:
        """The evaluation that a verdict stands for."""


@dataclass(frozen=True, slots=True)
class CitationTask:
    """A numbered record to be judged by citing its relevant statements."""

    record: NumberedRecord
    static: Prompt

    def request(self) -> Request | None:
        """The request, None where no context holds any text."""
        return Request(self.static, render_record(self.record)) if any(self.record.contexts) else None

    def read(self, reply: Reply) -> set[int]:
        """Numbers of the relevant statements. Raises Failure."""
        return read_citations(self.record, read_object(reply), self.static.name)

    def halves(self) -> "tuple[CitationTask, CitationTask] | None":
        """Two tasks with half of the contexts each, None for a single context."""
        parts = self.record.halves()
        return parts and (CitationTask(parts[0], self.static), CitationTask(parts[1], self.static))


class CitationEvaluator:
    """Judges which sentences of the contexts are relevant to the question."""

    def __init__(self, definition: Definition) -> None:
        self.definition = definition
        self.name = definition.name
        self.prompt = definition.version
        self.empty_outputs: dict[str, list[object]] = {definition.output: [], "contexts": []}
        self._score = SCORERS[definition.scoring]
        self.static = Prompt(
            name=definition.output,
            system=render_system(definition),
            schema=citation_schema(definition.output),
            parameters=definition.parameters,
        )

    def task(self, record: Record) -> CitationTask:
        """The record, its statements numbered."""
        return CitationTask(number_statements(record.question, record.contexts), self.static)

    def evaluate(self, task: Task, verdict: set[int]) -> Evaluation:
        """Score, relevant statements verbatim, and a verdict with character spans for each context."""
        assert isinstance(task, CitationTask)  # noqa: S101  # its own task() made it
        statements = task.record.statements
        relevant = [statement for statement in statements if statement.number in verdict]
        return Evaluation(
            score=self._score(len(relevant), len(statements)),
            outputs={
                self.definition.output: [statement.text for statement in relevant],
                "contexts": [
                    _context_verdict(len(context), [(s.start, s.end) for s in context if s.number in verdict])
                    for context in task.record.contexts
                ],
            },
        )


def _context_verdict(statements: int, spans: list[tuple[int, int]]) -> dict[str, object]:
    return {"relevant": bool(spans), "statements": statements, "relevant_statements": len(spans), "spans": spans}


def load_evaluator(name_or_path: str) -> CitationEvaluator:
    """The evaluator of a built-in name or a YAML file. Raises DefinitionError."""
    return CitationEvaluator(load_definition(name_or_path))


def render_system(definition: Definition) -> str:
    """The system message: instructions with output format and examples filled in. Raises DefinitionError."""
    examples = "\n\n".join(_render_example(definition, example) for example in definition.examples)
    output_format = f'{{"{definition.output}": [numbers of sentences]}}'
    return fill_placeholders(definition.instructions, {"output_format": output_format, "examples": examples})


def _render_example(definition: Definition, example: Example) -> str:
    record = number_statements(example.question, example.contexts)
    numbers: set[int] = set()
    for index, statement in enumerate(example.relevant_statements):
        found = locate_statement(record, statement)
        if not found:
            place = (*example.place, "outputs", definition.output, index)
            definition.source.fail(
                place,
                f"the statement {statement!r} is no sentence of the example's contexts; copy it verbatim"
                f"{_nearest(statement, record)}",
            )
        numbers.update(found)
    return f"Input: {render_record(record)}\nOutput: {render_citations(definition.output, sorted(numbers))}"


def _nearest(text: str, record: NumberedRecord) -> str:
    near = difflib.get_close_matches(text, [statement.text for statement in record.statements], n=1)
    return f", the nearest is {near[0]!r}" if near else ""
