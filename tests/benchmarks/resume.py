"""A finished run, run again: `python tests/benchmarks/resume.py [--records N]`.

Records of 1 kB and an endpoint that answers at once. Start-up is left out of the CPU per million records.
"""

import argparse
import hashlib
import sys
import tempfile
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import ctxrel, heading, load, measure, write_log
from servers.fast import FastServer

CONTEXT_BYTES = 920
"""With question, id and JSON a record is one kB."""
FEW = 10


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", type=int, default=50_000)
    records: int = parser.parse_args().records
    print(heading())
    print(
        f"{'run':12} {'records':>9} {'requests':>9} {'wall s':>8} {'CPU s':>8} {'CPU s/million':>13} {'peak MB':>8}  {'rows'}"
    )
    with tempfile.TemporaryDirectory() as name, FastServer() as server:
        folder = Path(name)
        log, output = folder / "log.jsonl", folder / "out"
        write_log(log, records, context_bytes=CONTEXT_BYTES)
        start_up = measure(ctxrel(log, folder / "few", "--limit", str(FEW), url=server.url())).cpu
        rows = ""
        for run in ("first", "again", "once more"):
            before = server.counts().received
            cost = measure(ctxrel(log, output, url=server.url()))
            sent = server.counts().received - before
            before_rows, rows = rows, hashlib.sha256((output / "results.jsonl").read_bytes()).hexdigest()
            per_million = 1e6 * (cost.cpu - start_up) / (records - FEW)
            same = "identical" if rows == before_rows else "new" if not before_rows else "OTHER ROWS"
            print(
                f"{run:12} {records:9,} {sent:9,} {cost.wall:8.1f} {cost.cpu:8.1f} {per_million:13.0f} {cost.peak:8.1f}  {same}",
                flush=True,
            )
    print(f"start-up {start_up:.2f} s of CPU; {load()} at the end")


if __name__ == "__main__":
    main()
