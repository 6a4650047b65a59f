"""How Ray Data reads a log and writes rows: our readers and our rows in its blocks."""

import heapq
import os
import pickle
import time
from collections.abc import Callable, Iterable, Iterator, Sequence
from functools import partial
from itertools import islice
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple
from uuid import uuid4

import pyarrow as pa
from ray.data.block import BlockAccessor, BlockMetadata
from ray.data.datasource import Datasink, Datasource, ReadTask

from ...evaluators.costs.tariff import Tariff
from ...evaluators.outputs.columns import ColumnTypes
from ..records.log import Position
from ..records.pieces import Piece
from .batch import Line
from .folder import PART
from .packed import Counted, pack, pack_outcome, unpack, unpack_outcome
from .table import ResultsTable

if TYPE_CHECKING:
    from ray.data._internal.execution.interfaces import TaskContext

_RECORDS_PER_FILE = 20_480
_ASK_SECONDS = 1.0
# A batch is a single row of Ray's: it is never divided, so that a task which is tried again gives as many blocks.
_RECORDS: dict[str, pa.DataType] = {"records": pa.list_(pa.binary())}
_LINES: dict[str, pa.DataType] = {
    "index": pa.list_(pa.int64()),
    "rank": pa.list_(pa.int32()),
    "row": pa.list_(pa.binary()),
    "outcome": pa.list_(pa.binary()),
}


class LogSource(Datasource):  # type: ignore[misc]  # Ray's types are not looked at
    """A log as Ray Data's source: a reader for each file, and a block for each batch of records."""

    def __init__(self, pieces: Sequence[Piece], batch: int, ended: Callable[[], bool]) -> None:
        """`batch` is how many records a worker is handed at once."""
        super().__init__()
        self._pieces = pieces
        self._batch = batch
        self._ended = ended

    def get_name(self) -> str:
        """What Ray calls the reading."""
        return "Log"

    def estimate_inmemory_data_size(self) -> int | None:
        """Not known, and not asked for where the number of readers is given."""
        return None

    def get_read_tasks(
        self,
        parallelism: int,  # noqa: ARG002  # Ray's signature
        per_task_row_limit: int | None = None,  # noqa: ARG002
        data_context: object = None,  # noqa: ARG002
    ) -> list[ReadTask]:
        """A task for each file."""
        unknown = BlockMetadata(num_rows=None, size_bytes=None, input_files=None, exec_stats=None)
        return [ReadTask(partial(_read, piece, self._batch, self._ended), unknown) for piece in self._pieces]


def _read(piece: Piece, size: int, ended: Callable[[], bool]) -> Iterator[pa.Table]:
    """The records of a file, until the run is to end."""
    records = map(pack, piece.records())
    asked = time.monotonic()
    while batch := list(islice(records, size)):
        yield pa.Table.from_pydict({"records": [batch]}, schema=pa.schema(_RECORDS))
        if time.monotonic() - asked > _ASK_SECONDS:
            if ended():
                return
            asked = time.monotonic()


def records_of(table: pa.Table) -> list[Position]:
    """The records of batches."""
    batches: list[list[bytes]] = table.to_pydict()["records"]
    return [unpack(record) for batch in batches for record in batch]


def table_of(lines: Sequence[Line], ranks: dict[str, int]) -> pa.Table:
    """The rows of a batch on their way to a file."""
    columns: dict[str, list[Any]] = {
        "index": [[line.position for line in lines]],
        "rank": [[ranks[line.evaluator] for line in lines]],
        "row": [[line.row for line in lines]],
        "outcome": [[pack_outcome(line) for line in lines]],
    }
    return pa.Table.from_pydict(columns, schema=pa.schema(_LINES))


class Written(NamedTuple):
    """A file of rows, and what is counted of them beside it."""

    name: str
    rows: int
    first: int
    """Index of its first record."""


class RowsSink(Datasink):  # type: ignore[misc]  # as above
    """A folder of Parquet files, each in the order of the records; together they are in any order."""

    def __init__(self, folder: Path, types: ColumnTypes, batch: int) -> None:
        """`batch` is how many records come in a batch."""
        self.written: list[Written] = []
        self._batches = -(-_RECORDS_PER_FILE // batch)
        self._types = types
        self._folder = folder

    def get_name(self) -> str:
        """What Ray calls the writing."""
        return "Rows"

    @property
    def min_rows_per_write(self) -> int:
        """Batches that a file has, but for the last one."""
        return self._batches

    def write(self, blocks: Iterable[Any], ctx: "TaskContext") -> Written | None:  # noqa: ARG002  # Ray's signature
        """Write a file; a task that is tried again leaves an earlier one, which is not among those `written`."""
        lines = sorted(line for block in blocks for line in _lines(BlockAccessor.for_block(block).to_arrow()))
        if not lines:
            return None
        name = uuid4().hex
        rows = ResultsTable(self._folder / f"{name}.parquet", self._types)
        with open(self._folder / f"{name}.outcomes", "wb", opener=_private) as stream:
            for index, rank, row, outcome in lines:
                rows.write(row)
                pickle.dump((index, rank, outcome), stream, pickle.HIGHEST_PROTOCOL)
        rows.finish(complete=True)
        return Written(name, len(lines), lines[0][0])

    def on_write_complete(self, write_result: Any) -> None:  # noqa: ANN401  # Ray's
        """Take note of the files."""
        found = [each for each in write_result.write_returns if isinstance(each, tuple)]
        self.written = sorted((Written(*each) for each in found), key=lambda each: each.first)


def _lines(table: pa.Table) -> Iterator[tuple[int, int, bytes, bytes]]:
    """Index, rank, row and outcome of each line, batch by batch."""
    columns: dict[str, list[list[Any]]] = table.to_pydict()
    for batch in zip(*(columns[name] for name in _LINES), strict=True):
        yield from zip(*batch, strict=True)


def _private(path: str, flags: int) -> int:
    return os.open(path, flags, 0o600)


def counted(folder: Path, files: Sequence[Written], tariff: Tariff) -> Iterator[tuple[int, Counted]]:
    """Rank of the evaluator and what counts of each row, in the order in which one process writes them."""
    streams = [_outcomes(folder / f"{file.name}.outcomes") for file in files]
    for _, rank, outcome in heapq.merge(*streams, key=lambda entry: entry[:2]):
        yield rank, unpack_outcome(outcome, tariff)


def _outcomes(path: Path) -> Iterator[tuple[int, int, bytes]]:
    with path.open("rb") as stream:
        while True:
            try:
                yield pickle.load(stream)  # noqa: S301  # written by a process of this run
            except EOFError:
                return


def name_files(folder: Path, files: Sequence[Written]) -> None:
    """Give the files of rows their names, in the order of their first records, and remove all else."""
    for number, file in enumerate(files):
        (folder / f"{file.name}.parquet").rename(folder / f"{PART}{number:05}.parquet")
    for path in folder.iterdir():
        if not path.name.startswith(PART):
            path.unlink()
