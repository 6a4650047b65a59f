"""Arrow IPC, batch by batch: files (Feather) and streams."""

from collections.abc import Iterator
from itertools import islice
from typing import TYPE_CHECKING

from ...evaluators.errors import InputError
from .parquet import check_names, values_of
from .place import Place
from .source import Row

if TYPE_CHECKING:
    import pyarrow as pa

FILE_MAGIC = b"ARROW1"
STREAM_MAGIC = b"\xff\xff\xff\xff"
OLD_FEATHER_MAGIC = b"FEA1"
_BATCH = 256


class ArrowFile:
    """An Arrow IPC file or stream of any number of batches."""

    format = "Arrow"
    packing: str | None = None

    def __init__(self, place: Place) -> None:
        self.name = place.name
        self.size = place.size
        self._place = place

    def peek(self, most: int) -> list[Row]:
        """The first rows, with all columns."""
        return list(islice(self._read(None, most), most))

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:
        """All rows with the named columns. Raises InputError."""
        return self._read(columns, _BATCH)

    def _read(self, columns: frozenset[str] | None, most: int) -> Iterator[Row]:
        import pyarrow as pa  # noqa: PLC0415  # 0.15 s that a JSON Lines log need not pay

        number = 0
        try:
            with self._place.open_arrow() as stream:
                is_stream = stream.read(len(STREAM_MAGIC)) == STREAM_MAGIC
                stream.seek(0)
                for batch in _batches(stream, is_stream=is_stream):
                    check_names(self.name, batch.schema.names)
                    chosen = _chosen(batch, columns)
                    chosen.validate(full=True)  # a damaged file would end the process
                    behind = float(stream.tell()) if is_stream else 0.0
                    for start in range(0, chosen.num_rows, most):
                        for value in values_of(chosen.slice(start, most)):
                            number += 1
                            yield Row(f"{self.name}:row {number}", value, None, behind)
        except (pa.ArrowException, OSError, UnicodeDecodeError) as error:
            reason = " ".join(str(getattr(error, "strerror", None) or error).split())
            raise InputError(f"cannot read {self.name!r} as Arrow: {reason}") from None


def _batches(stream: "pa.NativeFile", *, is_stream: bool) -> Iterator["pa.RecordBatch"]:
    import pyarrow as pa  # noqa: PLC0415

    if is_stream:
        yield from pa.ipc.open_stream(stream)
        return
    file = pa.ipc.open_file(stream)
    for number in range(file.num_record_batches):
        yield file.get_batch(number)


def _chosen(batch: "pa.RecordBatch", columns: frozenset[str] | None) -> "pa.RecordBatch":
    """The batch with the columns that are read."""
    names = batch.schema.names
    # A dot in a column's name reads as a path below: then all columns are read.
    if columns is None or any("." in name for name in names):
        return batch
    return batch.select([name for name in names if name in columns])
