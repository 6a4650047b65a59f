"""CSV and TSV: a header, then one record per row."""

import csv
import io
import re
from collections.abc import Iterator, Sequence
from functools import partial
from typing import Protocol, cast

from ...evaluators.errors import InputError
from ...evaluators.wording import counted
from .grouping import grouped, long_form
from .jsonl import is_utf16
from .source import Row
from .streams import Open, Reading

_DELIMITERS = ",\t;|"
_NAMES = {",": "CSV", "\t": "TSV"}
_HEAD = 1 << 13
_LONGEST_CELL = 2**31 - 1
_ESCAPED = re.compile("[\udc80-\udcff]")


class CSVReader(Protocol):
    """What csv.reader gives."""

    @property
    def line_num(self) -> int:
        """Lines that are read."""

    def __next__(self) -> list[str]: ...


def read_table(name: str, open_: Open) -> Iterator[Row]:
    """The rows of a file, whatever stands between its cells. Raises InputError."""
    with open_() as stream:
        head = stream.read(_HEAD)
    if is_utf16(head[:4]):  # further on a cell may hold NUL
        raise InputError(f"{name}:1: no UTF-8 text; save the log as UTF-8")
    yield from read_delimited(name, open_, delimiter=header_of(head)[0])


def reading_of_table(delimiter: str) -> Reading:
    """How a table is read whose delimiter is known."""
    name = _NAMES.get(delimiter, f"table with {delimiter!r} between its cells")
    return Reading(name, partial(read_delimited, delimiter=delimiter))


def header_of(head: bytes) -> tuple[str, list[str]]:
    """The delimiter and the names by the first line; a comma where several would do."""
    line = next(iter(head.decode("utf-8-sig", "replace").splitlines()), "")
    cells = {delimiter: next(csv.reader([line], delimiter=delimiter), []) for delimiter in _DELIMITERS}
    delimiter = max(cells, key=lambda delimiter: len(cells[delimiter]))
    return delimiter, cells[delimiter]


def read_delimited(name: str, open_: Open, *, delimiter: str) -> Iterator[Row]:
    """A row for each one below the header; cells are texts. Raises InputError."""
    csv.field_size_limit(_LONGEST_CELL)
    # What is no UTF-8 is one record's fault: it is escaped here and found below.
    with io.TextIOWrapper(cast("io.BufferedReader", open_()), "utf-8-sig", "surrogateescape", newline="") as text:
        table = csv.reader(text, delimiter=delimiter, strict=True)
        try:
            header = next((cells for cells in table if cells), [])
        except csv.Error as error:
            raise InputError(f"{name}:1: the header is not valid CSV: {error}") from None
        _check_header(name, header)
        rows = _rows(name, table, header)
        form = long_form(header)
        yield from grouped(rows, form) if form else rows


def _rows(name: str, table: "CSVReader", header: Sequence[str]) -> Iterator[Row]:
    while True:
        where = f"{name}:{table.line_num + 1}"
        try:
            cells = next(table)
        except StopIteration:
            return
        except csv.Error as error:
            at_end = "unexpected end" in str(error)
            why = "a quote that is opened here is never closed" if at_end else f"not valid CSV: {error}"
            yield Row(where, None, f"{where}: {why}", 0.0)
            continue
        if cells:
            yield _row(where, cells, header)


def _row(where: str, cells: Sequence[str], header: Sequence[str]) -> Row:
    if len(cells) != len(header):
        return Row(
            where,
            None,
            f"{where}: {counted(len(cells), 'cell')}, the header has {len(header)}; is a quote missing?",
            0.0,
        )
    if any(not cell.isascii() and _ESCAPED.search(cell) for cell in cells):
        return Row(where, None, f"{where}: not UTF-8; save the log as UTF-8", 0.0)
    # A column without a name is the index that pandas writes.
    return Row(where, {key: cell for key, cell in zip(header, cells, strict=True) if key}, None, 0.0)


def _check_header(name: str, header: Sequence[str]) -> None:
    if _ESCAPED.search("".join(header)):
        raise InputError(f"{name}:1: the header is not UTF-8; save the log as UTF-8")
    if twice := [key for key in header if key and header.count(key) > 1]:
        raise InputError(f"{name}:1: the header names {twice[0]!r} twice; rename one of them")
