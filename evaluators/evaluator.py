"""What an evaluator does: it makes requests of records, and scores of replies."""

from collections.abc import Mapping
from dataclasses import dataclass, replace
from typing import Any

import orjson

from .case import CONTEXTS, Case, number_statements
from .definition import Definition, Example, fill_placeholders, load_definition
from .errors import Failure, FailureKind
from .outputs.columns import ColumnTypes
from .outputs.output import Figures, UnfitExample
from .outputs.reason import REASON, reason
from .prompt import Prompt, Request
from .record import Record
from .replies import Reply, read_object

Verdict = tuple[Any, ...]
"""What was read from a reply: one entry for each output, of the output's own type."""


@dataclass(frozen=True, kw_only=True, slots=True)
class Evaluation:
    """The judgement of one record."""

    score: float | None
    """Within the evaluator's range; None where it gives none."""
    outputs: dict[str, object]
    """The evaluator's own columns of the result row."""
    facts: tuple[object, ...]
    """What the evaluator's figures count, one entry for each output."""


@dataclass(frozen=True, slots=True)
class Task:
    """What is asked about one record, or about a part of it, in one request."""

    case: Case
    evaluator: "Evaluator"

    @property
    def crowded(self) -> bool:
        """Whether it asks more at once than a request may, whatever its length."""
        return False

    def request(self) -> Request | None:
        """The request, None where the verdict is clear without."""
        idle = all(output.idle(self.case) for output in self.evaluator.asked)
        return None if idle else Request(self.evaluator.static, self.case.render())

    def nothing(self) -> Verdict:
        """The verdict where there was nothing to ask."""
        return tuple(output.nothing() for output in self.evaluator.outputs)

    def read(self, reply: Reply) -> Verdict:
        """The verdict of a reply. Raises Failure."""
        value = read_object(reply)
        return tuple(output.read(value, self.case) for output in self.evaluator.outputs)

    def halves(self) -> "tuple[Task, Task] | None":
        """Two smaller tasks whose verdicts unite to this one's; None where it cannot be divided."""
        parts = self.case.halves() if self.evaluator.divisible else None
        return parts and (replace(self, case=parts[0]), replace(self, case=parts[1]))

    def after(self, verdict: Verdict) -> "Task":
        """The task as it is once an earlier part of the record has its verdict."""
        found: dict[str, object] = {}
        for output, part in zip(self.evaluator.outputs, verdict, strict=True):
            found |= output.found(part)
        return replace(self, case=replace(self.case, found=found)) if found else self

    def unite(self, first: Verdict, second: Verdict) -> Verdict:
        """The verdict over two parts."""
        parts = zip(self.evaluator.outputs, first, second, strict=True)
        return tuple(output.unite(one, other) for output, one, other in parts)


class Evaluator:
    """Turns records into tasks and verdicts into evaluations, as its definition says."""

    def __init__(self, definition: Definition, *, explain: bool = False) -> None:
        """With `explain` the judge is asked for a reason as well. Raises DefinitionError."""
        self.definition = definition
        self.name = definition.name
        self.prompt = definition.version
        """`name@hash` of the definition."""
        self.inputs = definition.inputs
        """Kinds of what it needs of a record, by name."""
        self.asked = definition.outputs
        self.outputs = definition.outputs
        if explain and REASON not in {output.name for output in self.outputs}:
            self.outputs = (*self.outputs, reason())
        self.range = definition.scoring.range
        self.better = definition.better
        """Which scores are the good ones, `higher` or `lower`."""
        self.divisible = CONTEXTS in self.inputs and all(output.divisible for output in self.outputs)
        self.examples: list[tuple[str, str]] = []
        """The worked examples as the judge is shown them: input and reply."""
        self._cites = any(output.divisible for output in self.asked)
        self._numbered = any(output.numbered for output in self.asked)
        self.static = Prompt(
            name=self.outputs[0].name,
            system=self._system(),
            schema=self._schema(),
            parameters=definition.parameters,
            form="+".join(output.kind for output in self.outputs) + " of " + ", ".join(sorted(self.inputs)),
        )

    @property
    def empty_outputs(self) -> dict[str, object]:
        """The outputs of a record that could not be judged."""
        return {name: value for output in self.outputs for name, value in output.empty().items() if name != "score"}

    @property
    def column_types(self) -> ColumnTypes:
        """What each of its own columns of the result row holds."""
        return {name: kind for output in self.outputs for name, kind in output.types().items() if name != "score"}

    def task(self, record: Record) -> Task:
        """What is to be asked about a record. Raises Failure (`bad_input`) where it lacks an input."""
        for name in self.inputs:
            if problem := record.problems.get(name):
                raise Failure(FailureKind.BAD_INPUT, problem)
        return Task(self.case({name: record.input(name) for name in self.inputs}), self)

    def case(self, inputs: Mapping[str, object]) -> Case:
        """Inputs as the judge is to be shown them."""
        if not self._cites:  # nobody asks which sentences there are
            return Case(inputs)
        contexts = inputs[CONTEXTS]
        assert isinstance(contexts, tuple)  # noqa: S101  # records and examples hold no other
        return Case(inputs, number_statements(contexts), self._numbered)

    def evaluate(self, task: Task, verdict: Verdict) -> Evaluation:
        """Score and columns of the whole record of a task."""
        case, scoring = task.case, self.definition.scoring
        pairs = list(zip(self.outputs, verdict, strict=True))
        scored, value = pairs[scoring.position]
        columns: dict[str, object] = {}
        for output, part in pairs:
            columns |= output.columns(part, case)
        if scoring.rule == "value":  # the row has it already
            columns.pop("score", None)
        return Evaluation(
            score=scoring.score(value, scored.marks(value, case)),
            outputs=columns,
            facts=tuple(output.fact(part, case) for output, part in pairs),
        )

    def figures(self) -> list[Figures | None]:
        """New figures, one entry for each output."""
        return [output.figures() for output in self.outputs]

    def _schema(self) -> dict[str, object] | None:
        """JSON schema of the reply; None where a value can be anything, which strict schemas cannot say."""
        keys = {key: value for output in self.outputs for key, value in output.schema().items()}
        if not all(keys.values()):
            return None
        return {"type": "object", "properties": keys, "required": list(keys), "additionalProperties": False}

    def _system(self) -> str:
        """The system message: instructions with output format and examples filled in. Raises DefinitionError."""
        forms = [form for output in self.outputs for form in output.form().items()]
        output_format = "{" + ", ".join(f'"{key}": {form}' for key, form in forms) + "}"
        self.examples = [self._render_example(example) for example in self.definition.examples]
        examples = "\n\n".join(f"Input: {shown}\nOutput: {reply}" for shown, reply in self.examples)
        fillings = {**self.definition.inserts, "output_format": output_format, "examples": examples}
        return fill_placeholders(self.definition.instructions, fillings)

    def _render_example(self, example: Example) -> tuple[str, str]:
        case = self.case(example.inputs)
        reply: dict[str, object] = {}
        try:
            for output in self.asked:
                reply |= output.example(example.outputs, case)
        except UnfitExample as unfit:
            example.source.fail((*example.place, "outputs", *unfit.place), str(unfit))
        if len(self.outputs) > len(self.asked) and example.reason:
            reply[REASON] = example.reason
        return case.render(), orjson.dumps(reply).decode()


def load_evaluator(name_or_path: str, *, explain: bool = False) -> Evaluator:
    """The evaluator of a built-in name or a YAML file. Raises DefinitionError."""
    return Evaluator(load_definition(name_or_path), explain=explain)
