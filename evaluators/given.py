"""What evaluators for Python are given, as a definition has it."""

from collections.abc import Mapping, Sequence
from typing import Any, get_args, get_origin

import orjson

from .case import CONTEXTS
from .errors import UsageError

_TYPES: dict[str, Any] = {
    "list": list,
    "list[str]": list[str],
    "list[list]": list[list[Any]],
    "list[list[str]]": list[list[str]],
}


def type_text(kind: object) -> str:
    """A list type as it is written down: what it holds matters as far as it makes a difference."""
    item = next(iter(get_args(kind)), None)
    if item is str:
        return "list[str]"
    if not _is_list(item):
        return "list"
    return "list[list[str]]" if str in get_args(item) else "list[list]"


def type_of(text: object) -> object:
    """The list type that was written down. Raises UsageError."""
    if text not in _TYPES:
        raise UsageError(f"{text!r} is none of the types {', '.join(_TYPES)}")
    return _TYPES[str(text)]


def input_kinds(inputs: Sequence[tuple[str, Any]]) -> dict[str, str]:
    """Kinds by name, out of names and list types. Raises UsageError."""
    kinds: dict[str, str] = {}
    for pair in inputs if isinstance(inputs, list) and inputs else [None]:
        if not isinstance(pair, tuple) or len(pair) != 2 or not isinstance(pair[0], str) or not _is_list(pair[1]):  # noqa: PLR2004
            raise UsageError(f"inputs is a list of names and list types, as [('questions', list[str])], not {inputs!r}")
        name, kind = pair
        if name in kinds:
            raise UsageError(f"the input {name!r} stands twice")
        item = next(iter(get_args(kind)), None)
        kinds[name] = CONTEXTS if name == CONTEXTS else "text" if item is str else "texts" if _is_list(item) else "json"
    return kinds


def _is_list(kind: object) -> bool:
    return kind is list or get_origin(kind) is list


def output_kinds(outputs: object) -> Mapping[str, object]:
    """Kinds by name, out of names alone (any value) or with kinds. Raises UsageError."""
    if isinstance(outputs, Mapping):
        return dict(outputs)
    if not isinstance(outputs, list) or not all(isinstance(name, str) for name in outputs) or not outputs:
        raise UsageError(f"outputs is a list of names, or names with kinds, not {outputs!r}")
    if len(set(outputs)) < len(outputs):
        raise UsageError(f"an output stands twice: {outputs!r}")
    return dict.fromkeys(outputs, "json")


def instructions_of(instructions: object) -> str:
    """The instructions, which have to be a text. Raises UsageError."""
    if not isinstance(instructions, str):
        raise UsageError(f"instructions is a text, not {instructions!r}")
    return instructions


def plain_examples(examples: object) -> list[object]:
    """Examples as YAML would give them. Raises UsageError."""
    if not isinstance(examples, list):
        raise UsageError(f"examples is a list of dicts with 'inputs' and 'outputs', not {examples!r}")
    for example in examples:
        given = example if isinstance(example, dict) else {}
        parts = [given.get(key, {}) for key in ("inputs", "outputs")] if given else [None]
        if not all(isinstance(part, dict) and all(isinstance(key, str) for key in part) for part in parts):
            raise UsageError(f"each example has 'inputs' and 'outputs', dicts with names as keys; not {example!r}")
    try:
        plain: list[object] = orjson.loads(orjson.dumps(examples))
    except TypeError as error:
        raise UsageError(f"the examples hold something that JSON cannot hold: {error}") from None
    return plain
