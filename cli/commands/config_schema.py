"""The form of a config file: the options of `ctxrel run`, as `config` reads them."""

from collections.abc import Sequence
from enum import Enum
from typing import Any

from ..contracts.parts import Schema, closed, document, entries
from .config import CONFIG, TABLE, kind_of, long_name, options_of

_TYPES: dict[type, str] = {int: "integer", float: "number", bool: "boolean"}


def config_schema(parameters: Sequence[Any]) -> Schema:
    """The form of a config file, by the parameters of `ctxrel run`."""
    options = {long_name(parameter): _option(parameter) for parameter in options_of(parameters)}
    table = closed(entries(f"Options of ctxrel {TABLE}, by their long names.", options, sometimes=[*options]))
    return document(
        "config",
        "The config file of ctxrel",
        f"{CONFIG}, as ctxrel init writes it; the command line wins over it.",
        {"type": "object", "properties": {TABLE: table}, "additionalProperties": False},
    )


def _option(parameter: Any) -> Schema:  # noqa: ANN401  # Typer's Click is vendored and has no public types
    default = parameter.default.value if isinstance(parameter.default, Enum) else parameter.default
    found: Schema = {"description": parameter.help}
    single = _single(parameter)
    found |= {"type": "array", "items": single} if parameter.multiple else single
    return found if default is None else {**found, "default": default}


def _single(parameter: Any) -> Schema:  # noqa: ANN401  # as above
    kind = kind_of(parameter)
    if issubclass(kind, Enum):
        return {"type": "string", "enum": [choice.value for choice in kind]}
    bounds = {"minimum": parameter.min, "maximum": parameter.max}
    return {"type": _TYPES.get(kind, "string"), **{name: bound for name, bound in bounds.items() if bound is not None}}
