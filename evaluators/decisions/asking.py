"""How an evaluator is asked by predicates: the `decisions` of its YAML."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from .. import checks
from ..outputs.output import Output
from ..yaml_source import Place, Source

DECISIONS = "decisions"
"""The key of the YAML."""
_PLACE: Place = (DECISIONS,)
DEFAULT_THRESHOLD = 0.5
OF_SENTENCES = ("citations", "claims")
"""Kinds of outputs for which each sentence gets a predicate of its own."""
ANSWERED = (*OF_SENTENCES, "boolean")
"""Kinds of outputs that a probability can answer."""
MOST_QUESTIONS = 400
"""Predicates that the endpoint takes in one request."""
PROBABILITIES = "statement_probabilities"
"""The column beside those of outputs that are about sentences."""
NUMBER = "{{number}}"
PREDICATES, INSTRUCTIONS, THRESHOLD = "predicates", "instructions", "threshold"
REQUIRED = (PREDICATES, INSTRUCTIONS)
OPTIONAL = (THRESHOLD,)


@dataclass(frozen=True, kw_only=True)
class Decisions:
    """What a judge is asked that answers predicates and writes nothing."""

    content: Mapping[str, object]
    """As the YAML has it."""
    instructions: str
    """What is said before every record."""
    predicates: Mapping[str, str]
    """A statement by the name of each output, whose truth is asked for; `{{number}}` stands for a sentence's number."""
    threshold: float = DEFAULT_THRESHOLD
    """The probability from which a predicate counts as true; no request depends on it."""


def read_decisions(source: Source, value: object, outputs: Sequence[Output[Any]]) -> Decisions:
    """The decisions of a definition with these outputs. Raises DefinitionError."""
    fields = checks.mapping(source, _PLACE, value, required=REQUIRED, optional=OPTIONAL)
    for output in outputs:
        if output.kind not in ANSWERED:
            source.fail(
                _PLACE,
                f"a probability answers no output of the kind {output.kind!r}, as {output.name!r} is: "
                f"only {', '.join(ANSWERED)}",
            )
    _refuse_collisions(source, outputs)
    inside = (*_PLACE, PREDICATES)
    given = checks.mapping(source, inside, fields[PREDICATES], required=[output.name for output in outputs])
    instructions = checks.text(source, (*_PLACE, INSTRUCTIONS), fields[INSTRUCTIONS]).strip()
    if not instructions:
        source.fail((*_PLACE, INSTRUCTIONS), "the instructions are empty")
    return Decisions(
        content=fields,
        instructions=instructions,
        predicates={output.name: _predicate(source, (*inside, output.name), given, output) for output in outputs},
        threshold=_threshold(source, fields.get(THRESHOLD, DEFAULT_THRESHOLD)),
    )


def with_threshold(source: Source, value: object, base: Decisions | None) -> Decisions:
    """The decisions of an evaluator that extends another, whose requests it shares. Raises DefinitionError."""
    if base is None:
        source.fail(_PLACE, "the evaluator that is extended has no decisions")
    fields = checks.mapping(source, _PLACE, value, required=(THRESHOLD,))
    threshold = _threshold(source, fields[THRESHOLD])
    return replace(base, content={**base.content, THRESHOLD: threshold}, threshold=threshold)


def probability_column(name: str) -> str:
    """The column beside that of a truth value."""
    return f"{name}_probability"


def _refuse_collisions(source: Source, outputs: Sequence[Output[Any]]) -> None:
    """No output may be called as a column of probabilities is."""
    columns = {PROBABILITIES, *(probability_column(output.name) for output in outputs)}
    if taken := next((output.name for output in outputs if output.name in columns), None):
        source.fail(_PLACE, f"the probabilities fill the column {taken!r}; give the output another name")


def _predicate(source: Source, place: Place, given: Mapping[str, object], output: Output[Any]) -> str:
    text = checks.text(source, place, given[output.name]).strip()
    wanted = int(output.kind in OF_SENTENCES)
    if not text:
        source.fail(place, "the predicate is empty")
    if text.count(NUMBER) != wanted:
        which = "holds {{number}} once" if wanted else "is about the whole record and holds no {{number}}"
        source.fail(place, f"the predicate of a {output.kind!r} output {which}")
    return text


def _threshold(source: Source, value: object) -> float:
    place = (*_PLACE, THRESHOLD)
    threshold = checks.number(source, place, value)
    if not 0 <= threshold <= 1:
        source.fail(place, f"expected a probability from 0 to 1, found {value!r}")
    return threshold


def fill_number(predicate: str, number: object) -> str:
    """The predicate about the sentence of that number."""
    return predicate.replace(NUMBER, str(number))
