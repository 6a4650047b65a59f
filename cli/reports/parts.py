"""The files that hold a run's rows: one, or a folder of them after a run on Ray."""

import heapq
from collections.abc import Iterator
from pathlib import Path

from ...evaluators.errors import InputError
from ..records.recognising import open_file
from ..records.source import Row, printable

_INDEX = "index"
_PART = "part-*.parquet"


def holds_rows(path: Path) -> bool:
    """Whether there is a file of rows, or a folder of such files."""
    return path.is_file() or path.is_dir()


def holds_parts(folder: Path) -> bool:
    """Whether this is a folder of files of rows, and not the run's, which may have any name."""
    return any(folder.glob(_PART))


def rows_at(path: Path, columns: frozenset[str] | None = None) -> Iterator[Row]:
    """The rows of a file in its order; those of a folder's files in the order of the records. Raises InputError."""
    if path.is_file() and not path.stat().st_size:  # of a run that ended before its first row
        return iter(())
    if not path.is_dir():
        return open_file(path).rows(columns)
    wanted = None if columns is None else columns | {_INDEX}
    return heapq.merge(*(open_file(part).rows(wanted) for part in _parts(path)), key=_index)


def _parts(folder: Path) -> list[Path]:
    """The files in a folder, none where a run had no rows. Raises InputError where the run has not named them yet."""
    parts = sorted(folder.glob(_PART))
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
