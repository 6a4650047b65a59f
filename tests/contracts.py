"""Holds files to the forms that are published of them, and more closely: there is nothing in them that no form names."""

import json
import stat
import tomllib
from collections.abc import Iterator, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import pyarrow as pa
import pyarrow.parquet as pq
import typer.main

from ctxrel.cli.app import app
from ctxrel.cli.commands.config import read_config
from ctxrel.cli.commands.forms import FORMS
from ctxrel.cli.contracts.parts import columns
from ctxrel.cli.contracts.row import FIXED_TOLD, OUTPUT_TOLD
from ctxrel.cli.runs.columns import FIRST, FURTHER, LAST
from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.decisions.asking import PROBABILITIES
from ctxrel.evaluators.definition import built_in_names
from ctxrel.evaluators.errors import DefinitionError, UsageError
from ctxrel.evaluators.outputs.columns import ColumnTypes, Scalar
from ctxrel.evaluators.outputs.reason import REASON
from ctxrel.evaluators.yaml_source import parse_yaml

Schema = dict[str, Any]
Validator = jsonschema_rs.Draft202012Validator
_SOMETIMES = ("requests", REASON, PROBABILITIES, *FURTHER)


@cache
def parameters() -> list[Any]:
    """Those of `ctxrel run`."""
    command: Any = typer.main.get_command(app)
    return list(command.commands["run"].params)


@cache
def form(name: str) -> Schema:
    """A form as `ctxrel schema` prints it."""
    return FORMS[name](parameters())


@cache
def reader(name: str) -> Validator:
    """What a user makes of a form."""
    return Validator(form(name), validate_formats=True)


@cache
def keeper(name: str) -> Validator:
    """The same with every object closed whose keys are named."""
    return Validator(closed(form(name)), validate_formats=True)


def closed(schema: Any) -> Any:  # noqa: ANN401  # any part of a schema
    """The schema, with no further key in any object that has required ones."""
    if isinstance(schema, list):
        return [closed(part) for part in schema]
    if not isinstance(schema, dict):
        return schema
    found = {key: closed(part) for key, part in schema.items()}
    return {"additionalProperties": False} | found if schema.get("type") and "required" in schema else found


@cache
def keeper_of(evaluator: str) -> tuple[str, Validator]:
    """Of the rows of a built-in evaluator, with its hash: there is no column that its outputs do not fill."""
    built_in = load_evaluator(evaluator, explain=True)
    outputs: ColumnTypes = {**built_in.column_types, PROBABILITIES: [Scalar.NUMBER]}
    told = {name: {"null": True} for name in outputs} | FIXED_TOLD | OUTPUT_TOLD
    types: ColumnTypes = {**FIRST, **outputs, **LAST, **FURTHER}
    return built_in.prompt, Validator(closed(columns(types, told, sometimes=_SOMETIMES)))


def check_row(row: Any) -> None:  # noqa: ANN401  # whatever a file holds
    """Raise for a row that is not what the forms say."""
    keeper("row").validate(row)
    name = row["evaluator"]
    if name in built_in_names():
        prompt, exact = keeper_of(name)
        if row["prompt"] == prompt:
            exact.validate(row)


def check_answer(arguments: Sequence[str], printed: bytes) -> None:
    """Raise for rows or an object on standard output that are not what their form says."""
    command = arguments[0] if arguments else ""
    if command == "run" and printed.startswith(b'{"index"'):
        for line in printed.splitlines():
            check_row(json.loads(line))
    if command in FORMS and "--json" in arguments and printed:
        keeper(command).validate(json.loads(printed))


def check_files(folder: Path) -> None:
    """Raise for a file in the folder that is not what its form says.

    Of results and summaries those that a run has written: they are private, and what a test makes up itself is not.
    """
    for path in sorted(folder.rglob("*")):
        read = _READ.get(path.name) or _READ.get(path.suffix)
        written = _check_table if path.match(_PARTS) else _WRITTEN.get(path.name)
        if read and path.is_file():
            read(path)
        if written and path.is_file() and stat.S_IMODE(path.stat().st_mode) == _PRIVATE:
            written(path)


def _check_summary(path: Path) -> None:
    keeper("summary").validate(json.loads(path.read_bytes()))


def _check_lines(path: Path) -> None:
    for line in path.read_bytes().splitlines(keepends=True):
        if line.endswith(b"\n"):  # else it was cut by the end of its process
            check_row(json.loads(line))


def _check_table(path: Path) -> None:
    for row in rows_of(pq.read_table(path)):
        check_row(row)


def rows_of(table: pa.Table) -> Iterator[Schema]:
    """A table's rows as JSON Lines would have them, but for columns that an evaluator does not fill: they are not there."""
    wanted = form("row")["required"]
    for row in table.to_pylist():
        found = {name: value for name, value in row.items() if value is not None or name in wanted}
        for name in {"kept", "input"} & found.keys():
            found[name] = json.loads(found[name])
        yield found


def _check_evaluator(path: Path) -> None:
    """What `prompts check` takes the form takes."""
    try:
        source = parse_yaml(path.read_text(encoding="utf-8-sig"), str(path))
        load_evaluator(str(path))
    except (DefinitionError, UnicodeDecodeError):
        return
    reader("evaluator").validate(source.value)


def _check_config(path: Path) -> None:
    """What a run takes the form takes."""
    try:
        read_config(path, parameters())
    except UsageError:
        return
    reader("config").validate(tomllib.loads(path.read_text(encoding="utf-8-sig")))


_PRIVATE = 0o600
_PARTS = "results/part-*.parquet"
_READ = {".yaml": _check_evaluator, "ctxrel.toml": _check_config}
"""What people write, by the names of files, or what they end in."""
_WRITTEN = {
    "summary.json": _check_summary,
    "results.jsonl": _check_lines,
    "results.jsonl.part": _check_lines,
    "results.parquet": _check_table,
}
"""What runs write."""
