"""`results.parquet`: the same rows as a table whose columns have the same types whatever the rows hold."""

import io
from pathlib import Path
from typing import TYPE_CHECKING, Any

import orjson

from ...evaluators.outputs.columns import ColumnTypes, Scalar
from .columns import arrow_schema
from .results import ResultsFile

if TYPE_CHECKING:
    from _typeshed import ReadableBuffer

_BATCH_ROWS = 512
"""Rows that become Arrow at once: few enough to hold up no request."""
_GROUP_ROWS = 1 << 16
_GROUP_BYTES = 16 << 20
"""Of rows as JSON: a row group is written when it has either number."""


class ResultsTable:
    """A Parquet file, growing as `results.parquet.part` by row groups until the run is complete.

    A file that was ended early is readable; one whose process was killed is not, and loses nothing: its replies are in
    the store.
    """

    def __init__(self, path: Path, types: ColumnTypes) -> None:
        import pyarrow as pa  # noqa: PLC0415  # 0.15 s that JSON Lines need not pay
        import pyarrow.parquet as pq  # noqa: PLC0415

        self.backlog = 0
        self._file = ResultsFile(path)
        self._schema = arrow_schema(types)
        self._json = [name for name, kind in types.items() if kind is Scalar.JSON]
        self._rows: list[bytes] = []
        self._batches: list[pa.RecordBatch] = []
        self._gathered = self._bytes = 0
        self._writer = pq.ParquetWriter(pa.PythonFile(_Sink(self._file), "w"), self._schema, compression="zstd")

    @property
    def name(self) -> str | None:
        """The file that holds the rows now."""
        return self._file.name

    @property
    def hash(self) -> str | None:
        """Of the file, where it is complete."""
        return self._file.hash

    def write(self, row: bytes) -> None:
        """Add a row. Raises OutputError."""
        self._rows.append(row)
        self._gathered += 1
        self._bytes += len(row)
        full = self._gathered >= _GROUP_ROWS or self._bytes >= _GROUP_BYTES
        if full or len(self._rows) >= _BATCH_ROWS:
            self._convert()
        if full:
            self._write_group()

    def flush(self) -> None:
        """Nothing: rows are seen when their row group is complete."""

    def finish(self, *, complete: bool) -> None:
        """End the file, so that it can be read; give a complete one its name. Raises OutputError."""
        ended = False
        try:
            self._convert()
            self._write_group()
            self._writer.close()
            ended = True
        finally:
            self._file.finish(complete=complete and ended)

    def _convert(self) -> None:
        """Make Arrow of the rows that wait for it."""
        import pyarrow as pa  # noqa: PLC0415

        if self._rows:
            rows = [self._values(row) for row in self._rows]
            self._rows.clear()
            self._batches.append(pa.RecordBatch.from_pylist(rows, schema=self._schema))

    def _values(self, row: bytes) -> dict[str, Any]:
        values: dict[str, Any] = orjson.loads(row)
        for name in self._json:
            if values.get(name) is not None:
                values[name] = orjson.dumps(values[name]).decode()
        return values

    def _write_group(self) -> None:
        import pyarrow as pa  # noqa: PLC0415

        if self._batches:
            table = pa.Table.from_batches(self._batches)
            self._batches.clear()
            self._gathered = self._bytes = 0
            self._writer.write_table(table, row_group_size=_GROUP_ROWS)


class _Sink(io.RawIOBase):
    """What Arrow writes a file into; whoever opened the file closes it."""

    def __init__(self, file: ResultsFile) -> None:
        self._file = file
        self._written = 0

    def writable(self) -> bool:
        return True

    def write(self, data: "ReadableBuffer", /) -> int:
        piece = bytes(data)
        self._file.write(piece)
        self._written += len(piece)
        return len(piece)

    def tell(self) -> int:
        return self._written
