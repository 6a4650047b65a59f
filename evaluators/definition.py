"""An evaluator's definition: a YAML file people edit, checked before anything is sent."""

import re
from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from importlib import resources
from pathlib import Path
from typing import Any

from . import checks
from .case import CONTEXTS
from .decisions.asking import DECISIONS, Decisions, read_decisions, with_threshold
from .errors import DefinitionError
from .outputs.building import build_outputs
from .outputs.output import Output
from .outputs.reason import REASON
from .prompt import digest
from .scoring import Scoring, read_scoring
from .yaml_source import Place, Source, parse_yaml, read_yaml

PLACEHOLDERS = ("output_format", "examples")
INPUT_KINDS = ("text", "texts", "contexts", "json")
"""One text; a list of texts; the retrieved contexts; any value."""
_SCORE = "score"
BETTER = "better"
HIGHER, LOWER = "higher", "lower"
"""Which scores are the good ones."""
REQUIRED = ("instructions", "inputs", "outputs", "scoring")
OPTIONAL = ("name", "description", BETTER, "examples", "parameters", DECISIONS)
EXTENDING = ("name", "description", "outputs", "scoring", BETTER, DECISIONS)
_UNASKED = (BETTER, DECISIONS)
"""Keys that change nothing of what is asked in a chat, nor a score."""
NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
INPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
_PLURALS = {"questions": "question", "predicted_answers": "answer", "answers": "answer"}
"""Haystack's examples name single inputs so."""
_PLACEHOLDER = re.compile(r"\{\{\s*(\w*)\s*\}\}")
RESERVED = frozenset({"model", "messages", "response_format", "stream", "n", "tools", "functions", "timeout"})
_DEPTH = 8


@dataclass(frozen=True, kw_only=True)
class Example:
    """A worked record shown to the judge."""

    source: Source
    place: Place
    """Where it stands in the file, for messages."""
    inputs: Mapping[str, object]
    outputs: Mapping[str, object]
    reason: str | None
    """Why, shown only where reasons are asked for."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What an evaluator asks and how its reply becomes a score."""

    content: Mapping[str, object]
    """The file's values but for `better` and `decisions`, with those of the file that it extends."""
    name: str
    description: str
    inputs: Mapping[str, str]
    """Kinds (INPUT_KINDS) by name, in the order in which the judge sees them."""
    outputs: tuple[Output[Any], ...]
    instructions: str
    scoring: Scoring
    better: str
    """HIGHER or LOWER."""
    examples: tuple[Example, ...]
    parameters: dict[str, object]
    inserts: Mapping[str, str] = field(default_factory=dict)
    """Further texts that go into the instructions as they are, by the names of their placeholders."""
    decisions: Decisions | None = None
    """How it is asked by predicates; None where it is not."""

    @property
    def version(self) -> str:
        """`name@hash`, the hash over everything in `content`, comments aside."""
        content = {**self.content, **self.inserts}
        return f"{self.name}@{digest(content, size=4).hex()}"


def built_in_names() -> list[str]:
    """Names of the evaluators that come with ctxrel."""
    return sorted(
        entry.name.removesuffix(".yaml")
        for entry in resources.files("ctxrel.prompts").iterdir()
        if entry.name.endswith(".yaml")
    )


def built_in_text(name: str) -> str:
    """The YAML text of a built-in evaluator. Raises DefinitionError for an unknown name."""
    if name not in built_in_names():
        hint = checks.closest(name, built_in_names())
        raise DefinitionError(f"no evaluator {name!r}; {hint} (a file of your own ends in .yaml)")
    return resources.files("ctxrel.prompts").joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def load_definition(name_or_path: str) -> Definition:
    """The definition of a built-in evaluator by name, or of a YAML file. Raises DefinitionError."""
    return _load(name_or_path, Path(), 0)


def _load(name_or_path: str, folder: Path, depth: int) -> Definition:
    path = folder / name_or_path
    is_path = path.suffix in (".yaml", ".yml") or "/" in name_or_path
    if is_path or (name_or_path not in built_in_names() and _is_file(path)):
        return check_definition(read_yaml(path), default_name=path.stem, folder=path.parent, depth=depth)
    source = parse_yaml(built_in_text(name_or_path), f"prompts/{name_or_path}.yaml")
    return check_definition(source, default_name=name_or_path, depth=depth)


def check_definition(source: Source, *, default_name: str, folder: Path = Path(), depth: int = 0) -> Definition:
    """The definition a YAML source holds. Raises DefinitionError with file and line.

    `folder` is where a file that it extends is looked for; `depth` how many files extend this one.
    """
    definition = read_definition(source, default_name=default_name, folder=folder, depth=depth)
    for position, output in enumerate(definition.outputs):
        if output.name == _SCORE and (definition.scoring.rule, definition.scoring.position) != ("value", position):
            source.fail(("outputs", _SCORE), "an output called 'score' has to be the score: scoring: {value: score}")
    return definition


def read_definition(
    source: Source,
    *,
    default_name: str,
    folder: Path = Path(),
    depth: int = 0,
    inserts: Mapping[str, str] | None = None,
) -> Definition:
    """The same for an evaluator that fills no rows, where an output called `score` is one like any other.

    `inserts` are texts for further placeholders.
    """
    if isinstance(source.value, dict) and "extends" in source.value:
        return _extended(source, default_name, folder, depth)
    fields = checks.mapping(source, (), source.value, required=REQUIRED, optional=OPTIONAL)
    inputs = _inputs(source, fields["inputs"])
    outputs = build_outputs(source, fields["outputs"], inputs)
    examples = _examples(source, _given(fields, "examples", []), inputs, outputs)
    return Definition(
        content={key: value for key, value in fields.items() if key not in _UNASKED},
        name=_name(source, fields.get("name", default_name)),
        description=checks.text(source, ("description",), _given(fields, "description", "")),
        inputs=inputs,
        outputs=outputs,
        instructions=_instructions(source, fields["instructions"], inserts or {}, examples=bool(examples)),
        scoring=read_scoring(source, fields["scoring"], outputs),
        better=_better(source, fields, HIGHER),
        examples=examples,
        parameters=_parameters(source, _given(fields, "parameters", {})),
        inserts=inserts or {},
        decisions=read_decisions(source, fields[DECISIONS], outputs) if DECISIONS in fields else None,
    )


def _given(fields: Mapping[str, object], key: str, default: object) -> object:
    """The value of a key; the default where there is none, or nothing behind it."""
    value = fields.get(key)
    return default if value is None else value


def _extended(source: Source, default_name: str, folder: Path, depth: int) -> Definition:
    """A definition that asks what another one asks, and makes something else of the reply."""
    given: dict[str, object] = source.value if isinstance(source.value, dict) else {}
    if request := [key for key in given if key in (*REQUIRED, *OPTIONAL) and key not in EXTENDING]:
        source.fail(
            (request[0],),
            f"{request[0]!r} would change the request that this evaluator shares with {given['extends']!r}; copy that "
            "one instead and leave out 'extends'",
        )
    fields = checks.mapping(source, (), source.value, required=("extends",), optional=EXTENDING)
    if depth == _DEPTH:
        source.fail(("extends",), "evaluators extend each other without an end")
    name = checks.text(source, ("extends",), fields["extends"])
    if not _exists(name, folder):
        source.fail(("extends",), f"no evaluator {name!r}; {checks.closest(name, built_in_names())}")
    base = _load(name, folder, depth + 1)
    outputs = base.outputs
    if "outputs" in fields:
        outputs = build_outputs(source, fields["outputs"], base.inputs)
        if [_asked(output) for output in outputs] != [_asked(output) for output in base.outputs]:
            source.fail(
                ("outputs",), f"an evaluator that extends {base.name!r} reads the same reply; keep the names and kinds"
            )
    scoring = read_scoring(source, fields["scoring"], outputs) if "scoring" in fields else base.scoring
    own = {key: value for key, value in fields.items() if key not in ("extends", *_UNASKED)}
    return replace(
        base,
        content={**base.content, **own},
        name=_name(source, fields.get("name", default_name)),
        description=checks.text(source, ("description",), _given(fields, "description", base.description)),
        outputs=outputs,
        scoring=scoring,
        better=_better(source, fields, base.better),
        decisions=(
            with_threshold(source, fields[DECISIONS], base.decisions) if DECISIONS in fields else base.decisions
        ),
    )


def _asked(output: Output[Any]) -> tuple[object, ...]:
    """What the judge sees of an output."""
    return output.kind, output.schema(), output.form()


def _exists(name_or_path: str, folder: Path) -> bool:
    return name_or_path in built_in_names() or _is_file(folder / name_or_path)


def _is_file(path: Path) -> bool:
    try:
        return path.is_file()
    except (OSError, ValueError):  # a name that is none
        return False


def _name(source: Source, value: object) -> str:
    name = checks.text(source, ("name",), value)
    if not NAME.fullmatch(name):
        whose = "" if isinstance(source.value, dict) and "name" in source.value else " (the file's; add name: NAME)"
        source.fail(
            ("name",), f"the name {name!r}{whose} may hold letters, digits, '_' and '-' and starts with a letter"
        )
    return name


def _better(source: Source, fields: Mapping[str, object], default: str) -> str:
    return checks.choice(source, (BETTER,), fields.get(BETTER, default), (HIGHER, LOWER))


def _inputs(source: Source, value: object) -> dict[str, str]:
    """Kinds by name, out of a list of names or of names with kinds."""
    place = ("inputs",)
    if isinstance(value, list):
        names = checks.texts(source, place, value)
        if twice := next((name for name in names if names.count(name) > 1), None):
            source.fail(place, f"the input {twice!r} stands twice")
        value = {name: CONTEXTS if name == CONTEXTS else "text" for name in names}
    if not isinstance(value, dict) or not value:
        source.fail(place, f"expected names, as [question, contexts], found {checks.kind_of(value)}")
    kinds = {name: checks.choice(source, (*place, name), kind, INPUT_KINDS) for name, kind in value.items()}
    for name, kind in kinds.items():
        if not INPUT.fullmatch(name):
            source.fail((*place, name), f"an input cannot be called {name!r}; choose letters, digits and '_'")
        if name == "id":
            source.fail(
                (*place, name), "an input cannot be called 'id', which is the record's own; give it another name"
            )
        if (name == CONTEXTS) != (kind == CONTEXTS):
            source.fail((*place, name), "the input 'contexts', and no other, is of the kind 'contexts'")
        if name in ("question", "answer") and kind != "text":
            source.fail((*place, name), f"the input {name!r} is of the kind 'text'")
    return kinds


def _instructions(source: Source, value: object, inserts: Mapping[str, str], *, examples: bool) -> str:
    place = ("instructions",)
    text = checks.text(source, place, value)
    if not text.strip():
        source.fail(place, "the instructions are empty")
    found = _PLACEHOLDER.findall(text)
    for name in found:
        if name not in PLACEHOLDERS and name not in inserts:
            source.fail(
                place, f"unknown placeholder {{{{{name}}}}}; known are {{{{output_format}}}} and {{{{examples}}}}"
            )
    for name in PLACEHOLDERS if examples else ("output_format",):
        if found.count(name) != 1:
            source.fail(
                place, f"the placeholder {{{{{name}}}}} {'is missing' if name not in found else 'stands twice'}"
            )
    return text


def fill_placeholders(instructions: str, fillings: Mapping[str, str]) -> str:
    """The instructions with each placeholder replaced by its filling."""
    return _PLACEHOLDER.sub(lambda placeholder: fillings[placeholder[1]], instructions).strip()


def _examples(
    source: Source, value: object, inputs: Mapping[str, str], outputs: tuple[Output[Any], ...]
) -> tuple[Example, ...]:
    if not isinstance(value, list):
        source.fail(("examples",), f"expected a list of examples, found {checks.kind_of(value)}")
    return tuple(_example(source, ("examples", number), item, inputs, outputs) for number, item in enumerate(value))


def _example(
    source: Source, place: Place, value: object, inputs: Mapping[str, str], outputs: tuple[Output[Any], ...]
) -> Example:
    parts = checks.mapping(source, place, value, required=("inputs", "outputs"), optional=(REASON,))
    names = [output.name for output in outputs]
    further = [key for output in outputs for key in output.schema() if key not in names]
    reason = parts.get(REASON)
    return Example(
        source=source,
        place=place,
        inputs=_example_inputs(source, (*place, "inputs"), parts["inputs"], inputs),
        outputs=checks.mapping(source, (*place, "outputs"), parts["outputs"], required=names, optional=further),
        reason=None if reason is None else checks.text(source, (*place, REASON), reason),
    )


def _example_inputs(source: Source, place: Place, value: object, kinds: Mapping[str, str]) -> dict[str, object]:
    spelled = {
        _PLURALS.get(key, key) if _PLURALS.get(key, key) in kinds and key not in kinds else key: key
        for key in (value if isinstance(value, dict) else ())
    }
    given = checks.mapping(source, place, value, required=[spelled.get(name, name) for name in kinds])
    read = {"text": checks.text, "texts": checks.texts, "contexts": checks.texts, "json": lambda *given: given[-1]}
    return {name: read[kind](source, (*place, spelled[name]), given[spelled[name]]) for name, kind in kinds.items()}


def _parameters(source: Source, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        source.fail(("parameters",), f"expected request parameters, found {checks.kind_of(value)}")
    for name, parameter in value.items():
        try:
            check_parameters({name: parameter})
        except DefinitionError as error:
            source.fail(("parameters", name), str(error))
    return value


def check_parameters(parameters: Mapping[str, object]) -> None:
    """Raise DefinitionError for a request parameter that ctxrel sets itself, or that can mean nothing."""
    for name, value in parameters.items():
        if name in RESERVED:
            raise DefinitionError(f"the request parameter {name!r} is set by ctxrel itself")
        if name in ("max_tokens", "max_completion_tokens") and not (value is None or type(value) is int):
            raise DefinitionError(f"the request parameter {name!r} is a whole number, not {value!r}")
