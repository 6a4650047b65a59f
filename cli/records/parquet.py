"""Parquet, read row group by row group."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any

from ...evaluators.errors import InputError
from .source import Row, printable

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAGIC = b"PAR1"
_BATCH = 256


class ParquetFile:
    """A Parquet file of any number of row groups."""

    def __init__(self, path: Path) -> None:
        self.name = printable(path)
        self.size: int | None = path.stat().st_size
        self._path = path

    def peek(self, most: int) -> list[Row]:
        """The first rows, with all columns."""
        return list(islice(self._read(None, batch=most), most))

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:
        """All rows with the named columns. Raises InputError."""
        return self._read(columns, batch=_BATCH)

    def _read(self, columns: frozenset[str] | None, *, batch: int) -> Iterator[Row]:
        import pyarrow as pa  # noqa: PLC0415  # 0.15 s that a JSON Lines log need not pay

        try:
            with self._open() as file:
                yield from self._rows(file, columns, batch)
        except (pa.ArrowException, OSError) as error:
            reason = " ".join(str(error).split())
            raise InputError(f"cannot read {self.name!r} as Parquet: {reason}") from None

    def _open(self) -> "pq.ParquetFile":
        import pyarrow.parquet as pq  # noqa: PLC0415

        # pre_buffer would hold the whole file in memory.
        return pq.ParquetFile(self._path, pre_buffer=False, buffer_size=1 << 20)

    def _rows(self, file: "pq.ParquetFile", columns: frozenset[str] | None, batch: int) -> Iterator[Row]:
        names = file.schema_arrow.names
        # A dot in a column's name reads as a path below: then all columns are read.
        chosen = None if columns is None or any("." in name for name in names) else [n for n in names if n in columns]
        total = max(file.metadata.num_rows, 1)
        number = 0
        for group in range(file.num_row_groups):
            for part in file.iter_batches(batch_size=batch, row_groups=[group], columns=chosen):
                for value in values_of(part):
                    number += 1
                    yield Row(f"{self.name}:row {number}", value, None, (self.size or 0) * number / total)


def values_of(batch: "pa.RecordBatch") -> list[dict[str, object]]:
    """The rows of a batch."""
    names = batch.schema.names
    columns = [_column(column) for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _column(column: "pa.Array[Any]") -> Sequence[object]:
    """A column's values; what Python cannot hold (nanoseconds, far dates) as text, else as nulls."""
    import pyarrow as pa  # noqa: PLC0415

    readings: tuple[Callable[[], Sequence[object]], ...] = (
        column.to_pylist,
        lambda: column.cast(pa.string()).to_pylist(),
    )
    for read in readings:
        try:
            return read()
        except (ValueError, OverflowError, pa.ArrowException):
            continue
    return [None] * len(column)
