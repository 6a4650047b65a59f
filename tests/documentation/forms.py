"""docs/schema, and the pages of docs/reference that tell the keys of files, made from the forms of `ctxrel schema`."""

import json
import textwrap
from collections.abc import Iterator, Mapping
from pathlib import Path
from typing import Any

from contracts import form

from ctxrel.cli.commands.forms import FORMS

DOCS = Path(__file__).parents[2] / "docs"
Schema = dict[str, Any]
_OWN = "NAME"
"""Stands for a key that is not fixed."""
_ANSWERS = ("estimate", "inspect", "check", "compare", "calibrate", "trend", "doctor")
"""Forms of what commands print; all on one page."""
_PAGES = {
    "row": ("rows", "The keys of a result row", "How rows are read and what their columns are in Parquet: [results](../results.md)."),
    "summary": ("summary", "The keys of summary.json", "What the figures mean and how intervals are made: [evaluators](../evaluators.md#figures), [trust](../trust.md)."),
    "evaluator": ("evaluator-yaml", "The keys of an evaluator's YAML", "What the kinds and rules do: [evaluators](../evaluators.md)."),
    "prices": ("prices-yaml", "The keys of a price list", "What is done with it: [cost](../cost.md)."),
}  # fmt: skip
"""By the name of a form: the page's name, its title, and where to read on. A config file's keys are options of ctxrel run."""


def pages() -> Iterator[tuple[Path, str]]:
    """Every file with its text."""
    for name in FORMS:
        text = json.dumps(form(name), ensure_ascii=False, indent=2)
        yield DOCS / "schema" / f"{name}.json", f"{text}\n"
    for name, (page, title, further) in _PAGES.items():
        yield DOCS / "reference" / f"{page}.md", _page(name, title, further)
    yield DOCS / "reference" / "answers.md", _page_of_answers()


def _page(name: str, title: str, further: str) -> str:
    schema = form(name)
    told = f"{schema['description']} The same for programs: [{name}.json](../schema/{name}.json). {further}"
    parts = [f"# {title}\n", f"{textwrap.fill(told, 120, break_on_hyphens=False)}\n", _table(rows_of(schema))]
    for columns in schema.get("$defs", {}).values():
        parts += [f"## {columns['title']}\n", f"{columns['description']}\n", _table(rows_of(columns))]
    return "\n".join(parts)


def _page_of_answers() -> str:
    parts = ["# What commands print with --json\n"]
    for name in _ANSWERS:
        schema = form(name)
        told = f"{schema['description']} The same for programs: [{name}.json](../schema/{name}.json)."
        parts += [f"## ctxrel {name}\n", f"{told}\n", _table(rows_of(schema))]
    return "\n".join(parts)


def _table(rows: Iterator[tuple[str, str, str]]) -> str:
    lines = ["| key | value | |", "|---|---|---|", *(f"| {path} | {value} | {told} |" for path, value, told in rows)]
    return "\n".join(lines) + "\n"


def rows_of(schema: Schema, path: str = "") -> Iterator[tuple[str, str, str]]:
    """Each key below a schema: its path, what it holds, and what it means."""
    for name, part in _keys(schema).items():
        if not isinstance(part, Mapping) or not part:
            continue
        here = f"{path}{name}" if not path or name.startswith("[]") else f"{path}.{name}"
        if part.get("description"):
            yield f"`{here}`", _value(part), part["description"].replace("|", "\\|")
        yield from rows_of(dict(part), here)


def _keys(schema: Schema) -> dict[str, Schema]:
    """The keys below a schema, those of its alternatives and its list's items included."""
    found: dict[str, Schema] = dict(schema.get("properties", {}))
    found |= {f"*{pattern.strip('^$')}": part for pattern, part in schema.get("patternProperties", {}).items()}
    if isinstance(schema.get("additionalProperties"), dict):
        found[_OWN] = schema["additionalProperties"]
    for part in schema.get("anyOf", []):
        found |= {name: below for name, below in _keys(part).items() if name not in found}
    if "items" in schema:
        found |= {
            f"[]{name}" if name.startswith("[]") else f"[].{name}": part
            for name, part in _keys(schema["items"]).items()
        }
    return found


def _value(schema: Schema) -> str:
    """What a key holds, in a word or two."""
    if "const" in schema:
        return f"`{json.dumps(schema['const'])}`"
    if "enum" in schema:
        return ", ".join("null" if value is None else f"`{value}`" for value in schema["enum"])
    kinds = schema.get("type") or [part["type"] for part in schema.get("anyOf", []) if "type" in part]
    words = list(dict.fromkeys([kinds] if isinstance(kinds, str) else kinds))
    told = [_list(schema) if word == "array" else _WORDS[word] for word in words]
    return " or ".join(told) + _bounds(schema) if words else "any value"


def _list(schema: Schema) -> str:
    kind = str(schema.get("items", {}).get("type"))
    return f"list of {_PLURALS[kind]}" if kind in _PLURALS else "list"


_WORDS = {
    "string": "text",
    "integer": "whole number",
    "number": "number",
    "boolean": "true or false",
    "object": "object",
    "null": "null",
}
_PLURALS = {
    "string": "texts",
    "integer": "whole numbers",
    "number": "numbers",
    "boolean": "truth values",
    "object": "objects",
    "array": "lists",
}


def _bounds(schema: Schema) -> str:
    low, high = schema.get("minimum"), schema.get("maximum")
    if low is not None and high is not None:
        return f", {low:,} to {high:,}".replace(".0", "")
    return ""
