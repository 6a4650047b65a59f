"""An evaluator's definition: a YAML file people edit, checked before anything is sent."""

import difflib
import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from importlib import resources
from pathlib import Path

from .errors import DefinitionError
from .prompt import digest
from .yaml_source import Place, Source, parse_yaml, read_yaml

PLACEHOLDERS = ("output_format", "examples")
SCORINGS = ("any", "share")
_REQUIRED = ("instructions", "inputs", "outputs", "scoring")
_OPTIONAL = ("name", "description", "examples", "parameters")
_INPUTS = ("question", "contexts")
_NAME = re.compile(r"[A-Za-z][A-Za-z0-9_-]{0,63}")
_OUTPUT = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
# The other columns of a result row.
_ROW_KEYS = frozenset(
    {
        "index",
        "id",
        "evaluator",
        "status",
        "score",
        "question",
        "contexts",
        "model",
        "prompt",
        "usage",
        "error",
        "requests",
    }
)
_PLACEHOLDER = re.compile(r"\{\{\s*(\w*)\s*\}\}")
_RESERVED = frozenset({"model", "messages", "response_format", "stream", "n", "tools", "functions", "timeout"})


@dataclass(frozen=True, kw_only=True)
class Example:
    """A worked record shown to the judge."""

    question: str
    contexts: tuple[str, ...]
    relevant_statements: tuple[str, ...]
    place: Place
    """Where it stands in the file, for messages."""


@dataclass(frozen=True, kw_only=True)
class Definition:
    """What an evaluator asks and how its reply becomes a score."""

    source: Source
    name: str
    description: str
    instructions: str
    output: str
    """The reply's key under which the numbers of the cited sentences stand."""
    scoring: str
    """One of SCORINGS."""
    examples: tuple[Example, ...]
    parameters: dict[str, object]

    @property
    def version(self) -> str:
        """`name@hash`, the hash over everything in the file but its comments."""
        return f"{self.name}@{digest(self.source.value, size=4).hex()}"


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
        close = difflib.get_close_matches(name, built_in_names(), n=1)
        hint = f"did you mean {close[0]!r}?" if close else f"there are: {', '.join(built_in_names())}"
        raise DefinitionError(f"no evaluator {name!r}; {hint} (a file of your own ends in .yaml)")
    return resources.files("ctxrel.prompts").joinpath(f"{name}.yaml").read_text(encoding="utf-8")


def load_definition(name_or_path: str) -> Definition:
    """The definition of a built-in evaluator by name, or of a YAML file. Raises DefinitionError."""
    path = Path(name_or_path)
    is_path = path.suffix in (".yaml", ".yml") or "/" in name_or_path
    if is_path or (path.is_file() and name_or_path not in built_in_names()):
        return check_definition(read_yaml(path), default_name=path.stem)
    return check_definition(
        parse_yaml(built_in_text(name_or_path), f"prompts/{name_or_path}.yaml"), default_name=name_or_path
    )


def check_definition(source: Source, *, default_name: str) -> Definition:
    """The definition a YAML source holds. Raises DefinitionError with file and line."""
    fields = _mapping(source, (), source.value, required=_REQUIRED, optional=_OPTIONAL)
    name = _text(source, ("name",), fields.get("name", default_name))
    if not _NAME.fullmatch(name):
        source.fail(("name",), f"the name {name!r} may hold letters, digits, '_' and '-' and starts with a letter")
    if fields["inputs"] != list(_INPUTS):
        source.fail(("inputs",), f"inputs must be [{', '.join(_INPUTS)}]")
    output = _output(source, fields["outputs"])
    examples = _examples(source, fields.get("examples") or [], output)
    return Definition(
        source=source,
        name=name,
        description=_text(source, ("description",), fields.get("description") or ""),
        instructions=_instructions(source, fields["instructions"], examples=bool(examples)),
        output=output,
        scoring=_choice(source, ("scoring",), fields["scoring"], SCORINGS),
        examples=examples,
        parameters=_parameters(source, fields.get("parameters") or {}),
    )


def _mapping(
    source: Source, place: Place, value: object, *, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, object]:
    if not isinstance(value, dict):
        start = "; start from: ctxrel prompts copy context_relevance" if value is None and not place else ""
        source.fail(place, f"expected keys ({', '.join(required)}), found {_kind(value)}{start}")
    known = (*required, *optional)
    for key in value:
        if key not in known:
            close = difflib.get_close_matches(key, known, n=1)
            hint = f"did you mean {close[0]!r}?" if close else f"known are {', '.join(known)}"
            source.fail((*place, key), f"unknown key {key!r}; {hint}")
    for key in required:
        if key not in value:
            source.fail(place, f"the key {key!r} is missing")
    return value


def _kind(value: object) -> str:
    return {dict: "keys", list: "a list", str: "a text", type(None): "nothing"}.get(type(value), repr(value))


def _text(source: Source, place: Place, value: object) -> str:
    if not isinstance(value, str):
        source.fail(place, f"expected a text, found {_kind(value)}; put the text in quotes")
    return value


def _texts(source: Source, place: Place, value: object) -> tuple[str, ...]:
    if not isinstance(value, list):
        source.fail(place, f"expected a list of texts, found {_kind(value)}")
    return tuple(_text(source, (*place, number), item) for number, item in enumerate(value))


def _choice(source: Source, place: Place, value: object, choices: Sequence[str]) -> str:
    if value not in choices:
        source.fail(place, f"{value!r} is none of: {', '.join(choices)}")
    return str(value)


def _output(source: Source, value: object) -> str:
    if not isinstance(value, dict) or list(value.values()) != ["citations"]:
        source.fail(("outputs",), "outputs must be one name and its kind, as in 'relevant_statements: citations'")
    (name,) = value
    if not _OUTPUT.fullmatch(name) or name in _ROW_KEYS:
        source.fail(("outputs", name), f"an output cannot be called {name!r}; choose letters, digits and '_'")
    return str(name)


def _instructions(source: Source, value: object, *, examples: bool) -> str:
    place = ("instructions",)
    text = _text(source, place, value)
    if not text.strip():
        source.fail(place, "the instructions are empty")
    found = _PLACEHOLDER.findall(text)
    for name in found:
        if name not in PLACEHOLDERS:
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


def _examples(source: Source, value: object, output: str) -> tuple[Example, ...]:
    if not isinstance(value, list):
        source.fail(("examples",), f"expected a list of examples, found {_kind(value)}")
    return tuple(_example(source, ("examples", number), item, output) for number, item in enumerate(value))


def _example(source: Source, place: Place, value: object, output: str) -> Example:
    parts = _mapping(source, place, value, required=("inputs", "outputs"))
    inputs, inside = parts["inputs"], (*place, "inputs")
    # Haystack's examples name the question in the plural.
    question = "questions" if isinstance(inputs, dict) and "questions" in inputs else "question"
    given = _mapping(source, inside, inputs, required=(question, "contexts"))
    wanted = _mapping(source, (*place, "outputs"), parts["outputs"], required=(output,))
    return Example(
        question=_text(source, (*inside, question), given[question]),
        contexts=_texts(source, (*inside, "contexts"), given["contexts"]),
        relevant_statements=_texts(source, (*place, "outputs", output), wanted[output]),
        place=place,
    )


def _parameters(source: Source, value: object) -> dict[str, object]:
    if not isinstance(value, dict):
        source.fail(("parameters",), f"expected request parameters, found {_kind(value)}")
    try:
        check_parameters(value)
    except DefinitionError as error:
        source.fail(("parameters",), str(error))
    return value


def check_parameters(parameters: dict[str, object]) -> None:
    """Raise DefinitionError for a request parameter that ctxrel sets itself, or that can mean nothing."""
    for name, value in parameters.items():
        if name in _RESERVED:
            raise DefinitionError(f"the request parameter {name!r} is set by ctxrel itself")
        if name in ("max_tokens", "max_completion_tokens") and not (value is None or type(value) is int):
            raise DefinitionError(f"the request parameter {name!r} is a whole number, not {value!r}")
