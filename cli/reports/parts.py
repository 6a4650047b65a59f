"""The files that hold a run's rows: one, or a folder of them after a run on Ray."""

import heapq
from collections.abc import Iterator
from itertools import chain, pairwise
from pathlib import Path

from ...evaluators.errors import InputError
from ..records.formats import LINES
from ..records.parquet import MAGIC
from ..records.place import LocalFile
from ..records.recognising import open_file
from ..records.source import Row, printable
from ..records.streams import File, StreamedFile
from ..runs.folder import PART

_INDEX = "index"
_UNFINISHED = ".part"
"""What the name of rows ends in while their run goes on, and after one that did not end."""
_PARTS = f"{PART}*.parquet"


def holds_rows(path: Path) -> bool:
    """Whether there is a file of rows, or a folder of such files."""
    return path.is_file() or path.is_dir()


def holds_parts(folder: Path) -> bool:
    """Whether this is a folder of files of rows, and not the run's, which may have any name."""
    return any(folder.glob(_PARTS))


def is_table(path: Path) -> bool:
    """Whether rows are in Parquet, in one file or several. Raises InputError."""
    if path.is_dir():
        return True
    try:
        with path.open("rb") as stream:
            return stream.read(len(MAGIC)) == MAGIC
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None


def is_torn(path: Path) -> bool:
    """Whether the last line of rows is cut off, and left out, since their run has not ended. Raises InputError."""
    if path.suffix != _UNFINISHED or is_table(path) or not (size := path.stat().st_size):
        return False
    return not _ends_a_line(path, size)


def rows_at(path: Path, columns: frozenset[str] | None = None) -> Iterator[Row]:
    """The rows of a file in its order; those of a folder's files in the order of the records. Raises InputError.

    A last line that is cut off is left out where the run has not ended; else rows are missing, and that is an error.
    """
    if path.is_file() and not path.stat().st_size:  # of a run that ended before its first row
        return iter(())
    if is_table(path):
        return _rows_of_table(path, columns)
    # The suffix of unfinished rows does not tell that they are lines, where there is but one.
    source = StreamedFile(File(LocalFile(path)), LINES) if path.suffix == _UNFINISHED else open_file(path)
    return _whole(path, source.rows(columns))


def _rows_of_table(path: Path, columns: frozenset[str] | None) -> Iterator[Row]:
    if not path.is_dir():
        return open_file(path).rows(columns)
    wanted = None if columns is None else columns | {_INDEX}
    return heapq.merge(*(open_file(part).rows(wanted) for part in _parts(path)), key=_index)


def _whole(path: Path, rows: Iterator[Row]) -> Iterator[Row]:
    """The rows without a last one that is cut off. Raises InputError where the run that wrote them has ended."""
    for row, following in pairwise(chain(rows, [None])):
        if row and following is None and not _ends_a_line(path, int(row.done)):
            if path.suffix == _UNFINISHED:
                return
            if row.value is None:
                raise InputError(
                    f"{row.where}: the last row is cut off, and others may be missing; "
                    "run the same `ctxrel run` again, or copy the file once more"
                )
        if row:
            yield row


def _ends_a_line(path: Path, end: int) -> bool:
    """Whether a line ends before this byte."""
    with path.open("rb") as stream:
        stream.seek(end - 1)
        return stream.read(1) == b"\n"


def _parts(folder: Path) -> list[Path]:
    """The files in a folder, none where a run had no rows. Raises InputError where the run has not named them yet."""
    parts = sorted(folder.glob(_PARTS))
    if not parts and any(folder.iterdir()):
        raise InputError(
            f"{printable(folder)!r} holds rows of a run that was killed or still goes on; "
            "run the same `ctxrel run` again to go on"
        )
    return parts


def _index(row: Row) -> int:
    """The position of a row's record. Raises InputError."""
    index = row.value.get(_INDEX) if row.value else None
    if not isinstance(index, int):
        raise InputError(f"{row.where}: no row of a run: it has no {_INDEX!r}")
    return index
