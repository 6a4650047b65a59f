"""Parquet, read row group by row group."""

from collections.abc import Callable, Iterator, Sequence
from itertools import islice
from typing import TYPE_CHECKING, Any

from ...evaluators.errors import InputError
from .place import Place
from .source import Row

if TYPE_CHECKING:
    import pyarrow as pa
    import pyarrow.parquet as pq

MAGIC = b"PAR1"
_BATCH = 256


class ParquetFile:
    """A Parquet file of any number of row groups."""

    format = "Parquet"
    packing: str | None = None

    def __init__(self, place: Place) -> None:
        self.name = place.name
        self.size = place.size
        self._place = place

    def peek(self, most: int) -> list[Row]:
        """The first rows, with all columns."""
        return list(islice(self._read(None, batch=most), most))

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:
        """All rows with the named columns. Raises InputError."""
        return self._read(columns, batch=_BATCH)

    def _read(self, columns: frozenset[str] | None, *, batch: int) -> Iterator[Row]:
        import pyarrow as pa  # noqa: PLC0415  # 0.15 s that a JSON Lines log need not pay
        import pyarrow.parquet as pq  # noqa: PLC0415

        try:
            # pre_buffer would hold the whole file in memory.
            with (
                self._place.open_arrow() as stream,
                pq.ParquetFile(stream, pre_buffer=False, buffer_size=1 << 20) as file,
            ):
                yield from self._rows(file, columns, batch)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = " ".join(str(getattr(error, "strerror", None) or error).split())
            raise InputError(f"cannot read {self.name!r} as Parquet: {reason}") from None

    def _rows(self, file: "pq.ParquetFile", columns: frozenset[str] | None, batch: int) -> Iterator[Row]:
        names = file.schema_arrow.names
        check_names(self.name, names)
        # A dot in a column's name reads as a path below: then all columns are read.
        chosen = None if columns is None or any("." in name for name in names) else [n for n in names if n in columns]
        total = max(file.metadata.num_rows, 1)
        number = 0
        for group in range(file.num_row_groups):
            for part in file.iter_batches(batch_size=batch, row_groups=[group], columns=chosen):
                for value in values_of(part):
                    number += 1
                    yield Row(f"{self.name}:row {number}", value, None, (self.size or 0) * number / total)


def check_names(name: str, columns: Sequence[str]) -> None:
    """Raise InputError where two columns have one name: which of them is meant, nobody can tell."""
    if twice := [column for column in dict.fromkeys(columns) if columns.count(column) > 1]:
        raise InputError(f"{name!r} has two columns {twice[0]!r}; rename one of them")


def values_of(batch: "pa.RecordBatch") -> list[dict[str, object]]:
    """The rows of a batch."""
    names = batch.schema.names
    columns = [_column(column) for column in batch.columns]
    return [dict(zip(names, row, strict=True)) for row in zip(*columns, strict=True)]


def _column(column: "pa.Array[Any]") -> Sequence[object]:
    """A column's values; what Python cannot hold (nanoseconds, far dates) as text, else as nulls."""
    import pyarrow as pa  # noqa: PLC0415

    kind = _in_microseconds(column.type)
    readings: tuple[Callable[[], Sequence[object]], ...] = (
        lambda: _as_type(column, kind).to_pylist(),
        lambda: column.cast(pa.string()).to_pylist(),
        column.to_pylist,
    )
    for read in readings:
        try:
            return read()
        except (ValueError, OverflowError, pa.ArrowException):
            continue
    return [None] * len(column)


def _as_type(column: "pa.Array[Any]", kind: "pa.DataType") -> "pa.Array[Any]":
    return column if kind == column.type else column.cast(kind)


def _in_microseconds(kind: "pa.DataType") -> "pa.DataType":
    """A type without nanoseconds, which become objects of pandas where that is installed, else errors."""
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(kind, pa.StructType):
        return pa.struct([field.with_type(_in_microseconds(field.type)) for field in kind])
    if isinstance(kind, pa.ListType):
        return pa.list_(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    if isinstance(kind, pa.LargeListType):
        return pa.large_list(kind.value_field.with_type(_in_microseconds(kind.value_type)))
    if isinstance(kind, pa.TimestampType) and kind.unit == "ns":
        return pa.timestamp("us", kind.tz)
    if isinstance(kind, pa.DurationType) and kind.unit == "ns":
        return pa.duration("us")
    return pa.time64("us") if kind == pa.time64("ns") else kind
