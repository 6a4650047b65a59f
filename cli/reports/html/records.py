"""The rows of a run as the page takes them: whole, and record by record."""

from collections.abc import Iterator
from itertools import groupby
from pathlib import Path
from typing import Any

import orjson

from ....evaluators.errors import InputError
from ...records.source import Row as Entry
from ..parts import is_table, rows_at

Row = dict[str, Any]
_JSON_COLUMNS = ("kept", "input")
"""Carried columns, which Parquet holds as JSON text."""
_COLUMNS = frozenset({"index", "id", "evaluator", "status", "score", "question", "error"})
_NULLABLE = _COLUMNS | {"model", "prompt", "cost", "kept", "input", "majority"}
"""Columns whose null says something of the row; any other is null where another evaluator fills it."""


def whole_rows(path: Path) -> Iterator[Row]:
    """The rows of a run with all their columns, in the order of the records. Raises InputError."""
    read = _row_of_table if is_table(path) else _row
    return map(read, rows_at(path))


def records_of(path: Path) -> Iterator[list[Row]]:
    """The rows of each record, one for each evaluator. Raises InputError."""
    for _, group in groupby(whole_rows(path), key=lambda row: row["index"]):
        yield list(group)


def _row(entry: Entry) -> Row:
    if entry.value is None or not entry.value.keys() >= _COLUMNS:
        raise InputError(f"{entry.where}: this is no row of a run; run the same command again")
    return entry.value


def _row_of_table(entry: Entry) -> Row:
    row = _row(entry)
    carried = {name: orjson.loads(text) for name in _JSON_COLUMNS if isinstance(text := row.get(name), str)}
    # A column that only other evaluators have is null in these rows, which have none in JSON Lines.
    return {name: value for name, value in {**row, **carried}.items() if value is not None or name in _NULLABLE}
