"""What reading one file on Ray costs, without judging: `python tests/benchmarks/readers.py [--records N]`.

Records of 1 kB in one file, which one reader reads, through two actors that do nothing to a sink that keeps nothing.
CPU of the reader and of the driver for each record, and how many records a second each of them could do with a processor
of its own: the whole cluster judges no more of one file. Needs the extra ray.
"""

import argparse
import sys
import tempfile
import time
import warnings
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import heading, load, record, write_log

from ctxrel.cli.runs.engine import prepare_ray

prepare_ray(None)  # before Ray is imported

import pyarrow as pa  # noqa: E402
import pyarrow.parquet as pq  # noqa: E402
from ray.data import ActorPoolStrategy, DataContext, read_datasource  # noqa: E402
from ray.data.datasource import Datasink  # noqa: E402

from ctxrel.cli.records import Fields, open_log  # noqa: E402
from ctxrel.cli.records.log import Position  # noqa: E402
from ctxrel.cli.records.pieces import Piece  # noqa: E402
from ctxrel.cli.runs.ray_cluster import cluster  # noqa: E402
from ctxrel.cli.runs.ray_files import LogSource  # noqa: E402
from ctxrel.cli.runs.survey import survey  # noqa: E402

RECORDS = 100_000
BATCHES = (64, 512)
CONTEXT_BYTES = 920
NEEDS = {"question": "text", "contexts": "contexts"}
ROWS_PER_FILE = 20_480


class Timed:
    """A piece that notes the CPU seconds of its reader's process from the first record to the last."""

    def __init__(self, piece: Piece, note: Path) -> None:
        self._piece = piece
        self._note = note

    def records(self) -> Iterator[Position]:
        started = time.process_time()
        yield from self._piece.records()
        self._note.write_text(str(time.process_time() - started), encoding="ascii")


class Nothing:
    """Judges nothing."""

    async def __call__(self, table: pa.Table) -> pa.Table:
        return pa.table({"records": [len(table.column("records")[0])]})


class Nowhere(Datasink):  # type: ignore[misc]  # Ray's types are not looked at
    """Counts what it is given."""

    def __init__(self, batch: int) -> None:
        self.records = 0
        self._batch = batch

    @property
    def min_rows_per_write(self) -> int:
        return ROWS_PER_FILE // self._batch

    def write(self, blocks: Iterable[pa.Table], ctx: Any) -> int:  # noqa: ANN401
        return sum(sum(block.to_pydict()["records"]) for block in blocks)

    def on_write_complete(self, write_result: Any) -> None:  # noqa: ANN401
        self.records = sum(write_result.write_returns)


def never() -> bool:
    return False


def measure(piece: Piece, batch: int, note: Path) -> tuple[float, float, int]:
    """CPU seconds of the reader and of the driver, and the records that came through."""
    context = DataContext.get_current()
    context.enable_progress_bars = context.print_on_execution_start = False
    context.target_max_block_size = 1
    source = LogSource([Timed(piece, note)], batch, never)  # type: ignore[list-item]  # as much of a piece as is used
    sink = Nowhere(batch)
    started = time.process_time()
    read_datasource(source, override_num_blocks=1, num_cpus=0.25).map_batches(
        Nothing,
        batch_size=None,
        batch_format="pyarrow",
        zero_copy_batch=True,
        compute=ActorPoolStrategy(size=2, max_concurrent_calls_per_actor=3, max_tasks_in_flight_per_actor=4),
        num_cpus=0.5,
    ).write_datasink(sink, ray_remote_args={"num_cpus": 0.25})
    return float(note.read_text(encoding="ascii")), time.process_time() - started, sink.records


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=RECORDS)
    count = parser.parse_args().records
    warnings.simplefilter("ignore")
    print(heading("ray", "pyarrow"))
    print(f"{'file':12} {'batch':>6}  {'reader, µs':>10} {'records/s':>10}  {'driver, µs':>10} {'records/s':>10}")
    with tempfile.TemporaryDirectory() as name, cluster(None):
        lines, table = Path(name, "log.jsonl"), Path(name, "log.parquet")
        write_log(lines, count, context_bytes=CONTEXT_BYTES)
        rows = pa.Table.from_pylist([record(n, context_bytes=CONTEXT_BYTES) for n in range(count)])
        pq.write_table(rows, table, row_group_size=5000)
        for path in (lines, table):
            (piece,) = survey(open_log([str(path)], Fields(), NEEDS)).pieces
            for batch in BATCHES:
                *taken, found = measure(piece, batch, Path(name, "note"))
                assert found == count
                cells = "  ".join(f"{1e6 * seconds / count:10.0f} {count / seconds:10,.0f}" for seconds in taken)
                print(f"{path.name:12} {batch:6}  {cells}", flush=True)
    print(f"{load()} at the end")


if __name__ == "__main__":
    main()
