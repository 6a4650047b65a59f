"""The rows of a run, as its folder holds them."""

import shlex
from collections.abc import Iterable, Iterator
from itertools import groupby
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ....evaluators.errors import InputError, UsageError
from ...records.parquet import MAGIC
from ...runs.folder import PARTS, SUMMARY, Format
from ..parts import holds_rows, rows_at

Row = dict[str, Any]
_JSON_COLUMNS = ("kept", "input")
"""Carried columns, which Parquet holds as JSON text."""
_COLUMNS = frozenset({"index", "id", "evaluator", "status", "score", "question", "error"})
_NULLABLE = _COLUMNS | {"model", "prompt", "cost", "kept", "input"}
"""Columns whose null says something of the row; any other is null where another evaluator fills it."""


class Run(NamedTuple):
    """A run in its folder."""

    folder: Path
    summary: dict[str, Any] | None
    """None where the run was killed before it could write one, or still goes on."""
    results: Path


def folder_of(given: Path) -> Path:
    """The folder of a run, where one of its files may be given. Raises UsageError."""
    if given.is_dir():
        return given
    if not given.exists():
        raise UsageError(f"no folder {str(given)!r}; name the output folder of a run, as log.ctxrel")
    if given.name in (SUMMARY, *(form.file for form in Format)):
        return given.parent
    raise UsageError(
        f"{str(given)!r} is no run's folder but a file; to judge a log: ctxrel run {shlex.quote(str(given))}"
    )


def find_run(folder: Path) -> Run:
    """The run that a folder holds, ended or not. Raises UsageError."""
    summary = _summary_of(folder / SUMMARY)
    # A run that began anew writes beside the rows of the one before, and has taken its summary away.
    usual = [f"{each}{part}" for part in (".part", "") for each in (*(form.file for form in Format), PARTS)]
    names = [summary["results"]] if summary and summary.get("results") else usual
    for name in names:
        if holds_rows(folder / name):
            return Run(folder, summary, folder / name)
    raise UsageError(
        f"{str(folder)!r} holds no {names[0]!r}; name the output folder of a run, or run `ctxrel run` first"
    )


def _summary_of(path: Path) -> dict[str, Any] | None:
    try:
        summary = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        return None
    except OSError as error:
        raise UsageError(f"cannot read {str(path)!r}: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise UsageError(f"{str(path)!r} is no JSON ({error.msg}); run the same `ctxrel run` again") from None
    if not isinstance(summary, dict) or not isinstance(summary.get("evaluators"), dict):
        raise UsageError(f"{str(path)!r} is no summary of a run; run the same `ctxrel run` again")
    return summary


def read_rows(path: Path) -> Iterator[Row]:
    """The rows of a results file, or of the files that Ray left, in the order of the records. Raises InputError.

    A last line that was cut off is left out.
    """
    try:
        if path.is_dir() or _is_parquet(path):
            yield from _rows_of_table(path)
            return
        with path.open("rb") as stream:
            for number, line in enumerate(stream, start=1):
                if not line.endswith(b"\n"):
                    return
                row = _row(line)
                if row is None:
                    raise InputError(f"{path}:{number}: this is no row of a run; run the same command again")
                yield row
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None


def _is_parquet(path: Path) -> bool:
    with path.open("rb") as stream:
        return stream.read(len(MAGIC)) == MAGIC


def _rows_of_table(path: Path) -> Iterator[Row]:
    """The rows of a Parquet file, or of a folder of them."""
    for entry in rows_at(path):
        if entry.value is None or not entry.value.keys() >= _COLUMNS:
            raise InputError(f"{entry.where}: this is no row of a run; run the same command again")
        carried = {name: orjson.loads(text) for name in _JSON_COLUMNS if isinstance(text := entry.value.get(name), str)}
        # A column that only other evaluators have is null in these rows, which have none in JSON Lines.
        row = {**entry.value, **carried}
        yield {name: value for name, value in row.items() if value is not None or name in _NULLABLE}


def _row(line: bytes) -> Row | None:
    """The row in a line, None where there is none."""
    try:
        row = orjson.loads(line)
    except orjson.JSONDecodeError:
        return None
    return row if isinstance(row, dict) and row.keys() >= _COLUMNS else None


def by_record(rows: Iterable[Row]) -> Iterator[list[Row]]:
    """The rows of each record, one for each evaluator."""
    for _, group in groupby(rows, key=lambda row: row["index"]):
        yield list(group)
