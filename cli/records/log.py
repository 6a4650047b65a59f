"""A run's whole input: every file checked before the first record is judged."""

import difflib
from collections.abc import Iterator, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from ...evaluators.errors import InputError
from ...evaluators.record import Record
from .carrying import Carrying
from .fields import Fields, Layout, Needs
from .finding import find_layout
from .inputs import Found, find_inputs
from .partition import PartitionedSource
from .recognising import open_file, open_pipe, open_place
from .sampling import Entry, Sample, Selection, draw, stratum_of
from .shape import Wanted
from .source import Row, Source

STDIN_NAME = "<stdin>"
EVERYTHING = Selection()
NOTHING = Carrying()
_NO_COLUMNS: Mapping[str, object] = {}
_PROBED = 50
"""Rows by which the fields of a file are recognised."""


class Position(NamedTuple):
    """A record and how much of the input is read with it."""

    record: Record
    fraction: float | None
    """0 to 1; None where the input's size is unknown."""
    carried: Mapping[str, object] = _NO_COLUMNS
    """Further columns of its rows."""
    stratum: str | None = None
    """The value of the field that the sample was drawn by."""


class Log:
    """Records of one or several files, in order."""

    def __init__(
        self,
        parts: Sequence[tuple[Source, Layout]],
        selection: Selection,
        carrying: Carrying,
        *,
        tells_files: bool = False,
        left_out: int = 0,
    ) -> None:
        """With `tells_files` rows have the name of their file; `left_out` files were found and not opened."""
        self.selection = selection
        self.left_out = left_out
        self.carried = ["file"] * tells_files + carrying.names
        """The further columns of its rows."""
        self.sample: Sample | None = None
        """What was drawn, None before and where no sample is wanted."""
        self.firsts: list[int] = []
        """Positions of the files' first records, as far as the last reading came."""
        self._carrying = carrying
        self._parts = parts

    @property
    def parts(self) -> Sequence[tuple[Source, Layout]]:
        """The files, each with where it keeps what a record is made of."""
        return self._parts

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

    def doubts(self) -> list[str]:
        """A sentence for each field that is to go along and that no file has at its beginning."""
        if not self._carrying.keep:
            return []
        rows = [row for source, _ in self._parts for row in _first_rows(source, self.selection)]
        names = {key for row in rows for key in row.value or {}}
        told = []
        for path in self._carrying.absent(rows):
            near = difflib.get_close_matches(path.text, names, n=1)
            hint = f"; did you mean {near[0]!r}?" if near else ""
            told.append(f"no record at the beginning has the field {path.text!r} of --keep{hint}")
        return told

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
        return Log(
            self._parts[number : number + 1],
            Selection(where=self.selection.where),
            self._carrying,
            tells_files="file" in self.carried,
        )

    def position(self, entry: Entry, fraction: float | None = None) -> Position:
        """The record of an entry."""
        carried = self._carrying.of(entry.row)
        if "file" in self.carried:
            carried = {"file": entry.file, **carried}
        record = entry.layout.record(entry.row, entry.position)
        return Position(record, fraction, carried, stratum_of(entry, self.selection.by))

    def entries(self, first: int = 0) -> Iterator[Entry]:
        """All entries, selected or not; the first one has the position `first`. Raises InputError."""
        total = self.size
        index = first
        before = 0.0
        self.firsts = []
        for source, layout in self._parts:
            self.firsts.append(index)
            for row in source.rows(self._carrying.columns(layout.columns | self.selection.columns)):
                yield Entry(row, layout, index, (before + row.done) / total if total else None, source.name)
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
    found = find_inputs(inputs)
    chosen = found.that_could_hold(selection.where)
    wanted = Wanted(fields.records, fields.schema.records if fields.schema else ())
    sources = [_open(each, wanted) for each in chosen]
    return Log(
        [(source, _lay_out(source, fields, needs, selection)) for source in sources],
        selection,
        carrying,
        tells_files=found.several,
        left_out=len(found.files) - len(chosen),
    )


def _open(found: Found, wanted: Wanted) -> Source:
    file = found.file
    if file is None:
        return open_pipe(STDIN_NAME, 0, wanted)
    source = open_file(file, wanted) if isinstance(file, Path) else open_place(file, wanted)
    return PartitionedSource(source, found.partition) if found.partition else source


def _lay_out(source: Source, fields: Fields, needs: Needs, selection: Selection) -> Layout:
    """The layout by the first rows that are meant; a pipe is asked for no more of them than it takes."""
    if source.size is not None:
        return find_layout(_first_rows(source, selection), fields, needs, source.name)
    for most in range(1, _PROBED):
        rows = source.peek(most)
        try:
            return find_layout(rows, fields, needs, source.name)
        except InputError:
            if len(rows) < most:
                raise
    return find_layout(source.peek(_PROBED), fields, needs, source.name)


def _first_rows(source: Source, selection: Selection) -> list[Row]:
    """The first rows that meet the conditions, the first ones of all where none does; of a pipe the very first."""
    if source.size is None:
        return source.peek(1)
    met = islice(filter(selection.takes, source.rows()), _PROBED) if selection.where else ()
    return list(met) or source.peek(_PROBED)
