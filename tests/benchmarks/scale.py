"""Peak memory and time over the length of a log: `python tests/benchmarks/scale.py [--sizes N,N...] [--parquet [MB]]`.

Records of 1 kB, once with the offline judge and once with an endpoint that answers at once. `--sizes 1000000` takes
some twenty minutes and 3 GB in the temporary folder; `--parquet` adds a file of 500 MB (one row group per 50 MB).
"""

import argparse
import shutil
import subprocess
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import Cost, ctxrel, heading, load, measure, record, write_log
from servers.fast import FastServer

SIZES = "1000,10000,100000"
CONTEXT_BYTES = 920
"""With question, id and JSON a record is one kB."""
PARQUET_CONTEXT_BYTES = 10_000
ROW_GROUP_BYTES = 50_000_000
BYTES_NEEDED = 3
"""In the temporary folder, for each byte of a log: store, rows and the log itself."""


def write_parquet(path: Path, size: int) -> int:
    """A Parquet file of about so many bytes, uncompressed, a row group at a time; how many records it has."""
    import pyarrow as pa  # noqa: PLC0415  # in a child only: what this process holds would count as its children's peak
    import pyarrow.parquet as pq  # noqa: PLC0415  # the same

    schema = pa.schema({"id": pa.string(), "question": pa.string(), "contexts": pa.list_(pa.string())})
    count = 0
    with pq.ParquetWriter(path, schema, compression="none", use_dictionary=False) as writer:
        while path.stat().st_size < size:
            most = min(ROW_GROUP_BYTES, size) // PARQUET_CONTEXT_BYTES
            rows = [record(n, context_bytes=PARQUET_CONTEXT_BYTES, contexts=5) for n in range(count, count + most)]
            writer.write_table(pa.Table.from_pylist(rows, schema))
            count += most
    return count


def line(judge: str, name: str, count: int, size: float, cost: Cost) -> str:
    """A line of the table."""
    per_record = 1000 * cost.cpu / count
    return (
        f"{judge:9} {name:8} {count:9,} {size:7.0f} {cost.peak:9.1f} {cost.wall:8.1f} {cost.cpu:8.1f} {per_record:8.2f}"
    )


def has_room(folder: Path, size: int) -> bool:
    """Whether a log of so many bytes can be judged there; says so if not."""
    needed, free = BYTES_NEEDED * size, shutil.disk_usage(folder).free
    if needed > free:
        print(
            f"skipped {size / 1e6:.0f} MB: {folder} has {free / 1e6:.0f} MB free and {needed / 1e6:.0f} MB are needed"
        )
    return needed <= free


def measure_log(log: Path, count: int, server: FastServer) -> None:
    """Print a line for each judge."""
    size = log.stat().st_size / 1e6
    for judge, url in (("offline", None), ("endpoint", server.url())):
        output = log.with_name("out")
        print(line(judge, log.suffix[1:], count, size, measure(ctxrel(log, output, url=url))), flush=True)
        shutil.rmtree(output)
    log.unlink()


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--sizes", default=SIZES, help=f"records, {SIZES} by default")
    parser.add_argument("--parquet", type=int, nargs="?", const=500, metavar="MB", help="and a Parquet file")
    parser.add_argument("--write-parquet", type=Path, help=argparse.SUPPRESS)
    arguments = parser.parse_args()
    if arguments.write_parquet:
        print(write_parquet(arguments.write_parquet, arguments.parquet * 1_000_000))
        return
    print(heading("aiohttp", "pyarrow", "sentencex"))
    print(f"{'judge':9} {'format':8} {'records':>9} {'MB':>7} {'peak MB':>9} {'wall s':>8} {'CPU s':>8} {'ms/rec':>8}")
    with tempfile.TemporaryDirectory() as name, FastServer() as server:
        folder = Path(name)
        for count in [int(size) for size in arguments.sizes.split(",") if size]:
            if has_room(folder, count * 1000):
                write_log(folder / "log.jsonl", count, context_bytes=CONTEXT_BYTES)
                measure_log(folder / "log.jsonl", count, server)
        if arguments.parquet and has_room(folder, arguments.parquet * 1_000_000):
            log = folder / "log.parquet"
            command = [sys.executable, __file__, "--parquet", str(arguments.parquet), "--write-parquet", str(log)]
            done = subprocess.run(command, check=True, capture_output=True, text=True)
            measure_log(log, int(done.stdout), server)
    idle = measure([sys.executable, "-c", "pass"]).peak
    print(f"an interpreter that does nothing: {idle:.1f} MB as measured here; {load()} at the end")


if __name__ == "__main__":
    main()
