"""A run's whole input: every file checked before the first record is judged."""

import glob
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from ...evaluators.errors import InputError
from ...evaluators.record import Record
from .carrying import Carrying
from .fields import Fields, Layout, Needs
from .finding import find_layout
from .recognising import SUFFIXES, open_file, open_pipe
from .sampling import Entry, Sample, Selection, draw
from .source import Source

STDIN = "-"
STDIN_NAME = "<stdin>"
EVERYTHING = Selection()
NOTHING = Carrying()
_NO_COLUMNS: Mapping[str, object] = {}
_SHOWN = (".jsonl", ".ndjson", ".json", ".csv", ".tsv", ".parquet", ".arrow", ".feather", ".ipc")
_PROBED = 50
"""Rows by which the fields of a file are recognised."""


class Position(NamedTuple):
    """A record and how much of the input is read with it."""

    record: Record
    fraction: float | None
    """0 to 1; None where the input's size is unknown."""
    carried: Mapping[str, object] = _NO_COLUMNS
    """Further columns of its rows."""


class Log:
    """Records of one or several files, in order."""

    def __init__(self, parts: Sequence[tuple[Source, Layout]], selection: Selection, carrying: Carrying) -> None:
        self.selection = selection
        self.sample: Sample | None = None
        """What was drawn, None before and where no sample is wanted."""
        self.firsts: list[int] = []
        """Positions of the files' first records, as far as the last reading came."""
        self._carrying = carrying
        self._parts = parts

    @property
    def names(self) -> list[str]:
        """The files, as they are named in messages."""
        return [source.name for source, _ in self._parts]

    @property
    def size(self) -> int | None:
        """Bytes in all, None where a pipe is among the files."""
        sizes = [source.size for source, _ in self._parts]
        return None if None in sizes else sum(size or 0 for size in sizes)

    def layouts(self) -> dict[str, list[str]]:
        """Each layout in a line, with the files it holds for."""
        found: dict[str, list[str]] = {}
        for source, layout in self._parts:
            found.setdefault(layout.describe(), []).append(source.name)
        return found

    def draw(self) -> None:
        """Draw the sample, if one is wanted: reads the whole log. Raises InputError."""
        if self.selection.sample:
            self.sample = draw(self.entries(), self.selection, keep=self.size is None)

    def records(self) -> Iterator[Position]:
        """The selected records in input order. Raises InputError where a file cannot be read on."""
        entries = self.sample.entries(self.entries()) if self.sample else self.selection.first(self.entries())
        most = len(self.sample.keys) if self.sample else self.selection.limit
        for count, entry in enumerate(entries, start=1):
            fraction = max(count / most, entry.fraction or 0.0) if most else entry.fraction
            yield self.position(entry, fraction)

    def part(self, number: int) -> "Log":
        """One of its files as a log of its own, without limit and sample."""
        return Log(self._parts[number : number + 1], Selection(where=self.selection.where), self._carrying)

    def position(self, entry: Entry, fraction: float | None = None) -> Position:
        """The record of an entry."""
        return Position(entry.layout.record(entry.row, entry.position), fraction, self._carrying.of(entry.row))

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """All entries, selected or not; the first one has the position `first`. Raises InputError."""
        total = self.size
        index = first
        before = 0.0
        self.firsts = []
        for source, layout in self._parts:
            self.firsts.append(index)
            for row in source.rows(self._carrying.columns(layout.columns | self.selection.columns)):
                yield Entry(row, layout, index, (before + row.done) / total if total else None)
                index += 1
            before += source.size or 0


def open_log(
    inputs: Sequence[str],
    fields: Fields,
    needs: Needs,
    *,
    selection: Selection = EVERYTHING,
    carrying: Carrying = NOTHING,
) -> Log:
    """The log of files, folders, globs and `-`. Raises InputError for any that cannot be read."""
    sources = [open_pipe(STDIN_NAME, 0) if name == STDIN else open_file(Path(name)) for name in _expand(inputs)]
    return Log([(source, _lay_out(source, fields, needs)) for source in sources], selection, carrying)


def _expand(inputs: Sequence[str]) -> list[str]:
    if inputs.count(STDIN) > 1:
        raise InputError("standard input (-) can be read only once")
    return [name for given in inputs for name in _matches(given)]


def _matches(given: str) -> list[str]:
    path = Path(given)
    if not given:
        raise InputError("an input is empty text; is a variable unset?")
    if given == STDIN or path.is_file() or (path.exists() and not path.is_dir()):
        return [given]
    if path.is_dir():
        found = sorted(
            str(entry) for entry in path.iterdir() if entry.name.lower().endswith(SUFFIXES) and entry.is_file()
        )
        what = f"the folder {given!r} holds no {', '.join(_SHOWN)} file (folders in it are not read)"
    else:
        found = sorted(name for name in glob.glob(given, recursive=True) if Path(name).is_file())  # noqa: PTH207
        what = f"no file {given!r}"
    if not found:
        raise InputError(f"{what}; check the path")
    return found


def _lay_out(source: Source, fields: Fields, needs: Needs) -> Layout:
    """The layout by the first rows; a pipe is asked for no more of them than it takes."""
    if source.size is not None:
        return find_layout(source.peek(_PROBED), fields, needs, source.name)
    for most in range(1, _PROBED):
        rows = source.peek(most)
        try:
            return find_layout(rows, fields, needs, source.name)
        except InputError:
            if len(rows) < most:
                raise
    return find_layout(source.peek(_PROBED), fields, needs, source.name)
