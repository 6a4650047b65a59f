"""Parts of JSON Schemas (2020-12), each with a sentence on what it stands for."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...evaluators.outputs.columns import ColumnType, ColumnTypes, Scalar
from ..runs.columns import SCHEMA_VERSION

Schema = dict[str, Any]
DIALECT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = {Scalar.TEXT: "string", Scalar.INTEGER: "integer", Scalar.NUMBER: "number", Scalar.BOOLEAN: "boolean"}


def document(name: str, title: str, told: str, body: Schema) -> Schema:
    """A schema that stands for itself: its id names the file's kind and the version of the forms."""
    head = {"$schema": DIALECT, "$id": f"urn:ctxrel:schema:{SCHEMA_VERSION}:{name}"}
    return {**head, "title": title, "description": told, **body}


def text(told: str, **more: object) -> Schema:
    """A text."""
    return {"description": told, "type": "string", **more}


def integer(told: str, **more: object) -> Schema:
    """A whole number, 0 or more unless `minimum` says otherwise."""
    return {"description": told, "type": "integer", "minimum": 0, **more}


def number(told: str, **more: object) -> Schema:
    """A number."""
    return {"description": told, "type": "number", **more}


def boolean(told: str) -> Schema:
    """True or false."""
    return {"description": told, "type": "boolean"}


def choice(told: str, values: Sequence[object]) -> Schema:
    """One of several texts."""
    return text(told, enum=[str(value) for value in values])


def listing(told: str, items: Schema, **more: object) -> Schema:
    """A list."""
    return {"description": told, "type": "array", "items": items, **more}


def mapping(told: str, values: Schema, **more: object) -> Schema:
    """An object whose keys are names of the user's, or a list that is not closed."""
    return {"description": told, "type": "object", "additionalProperties": values, **more}


def entries(told: str, properties: Mapping[str, Schema], *, sometimes: Sequence[str] = ()) -> Schema:
    """An object of known keys, all of them there but for those that are so `sometimes`; later versions may add some."""
    required = [name for name in properties if name not in sometimes]
    return {"description": told, "type": "object", "properties": dict(properties), "required": required}


def closed(schema: Schema) -> Schema:
    """The same object without any further key: what people write, where one is a slip."""
    return {**schema, "additionalProperties": False}


def nullable(schema: Schema) -> Schema:
    """The same, or null."""
    more = {"enum": [*schema["enum"], None]} if "enum" in schema else {}
    return {**schema, "type": [schema["type"], "null"], **more}


def column(kind: ColumnType, told: Mapping[str, Schema], path: str) -> Schema:
    """What a column of result rows holds, or a part of one.

    `told` has by path what the type does not say: a sentence for each name, whether it may be `null`, and bounds.
    """
    said = dict(told.get(path, {}) if path.endswith("[]") else told[path])
    may_be_null = said.pop("null", False)
    found = {**said, **_typed(kind, told, path)}
    return nullable(found) if may_be_null else found


def _typed(kind: ColumnType, told: Mapping[str, Schema], path: str) -> Schema:
    if isinstance(kind, list):
        return {"type": "array", "items": column(kind[0], told, f"{path}[]")}
    if isinstance(kind, dict):
        return columns(kind, told, f"{path}.")
    return {"type": _TYPES[kind]} if kind in _TYPES else {}


def columns(kinds: ColumnTypes, told: Mapping[str, Schema], path: str = "", *, sometimes: Sequence[str] = ()) -> Schema:
    """An object of columns, all of them there but for those that are so `sometimes`."""
    properties = {name: column(kind, told, f"{path}{name}") for name, kind in kinds.items()}
    return {"type": "object", "properties": properties, "required": [n for n in kinds if n not in sometimes]}
