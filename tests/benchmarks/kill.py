"""What is left after SIGKILL in the middle: `python tests/benchmarks/kill.py [--haystack PYTHON] [--records N]`.

Replies take 50 ms; ctxrel has 8 in flight, Haystack's evaluator one. A reply counts as paid as soon as the endpoint has
its request. Once half of the records were answered the process is killed, looked at and started again. A result is
usable if it is on disk: whatever a library gives back when all is done is gone with its process.
"""

import argparse
import os
import signal
import sqlite3
import subprocess
import sys
import tempfile
import time
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import ctxrel, heading, load, measure, write_log
from benchmarks.peers import haystack, haystack_environment, haystack_version
from servers.fast import FastServer

RECORDS = 1000
DELAY_MS = 50
IN_FLIGHT = 8
POLL_SECONDS = 0.02
CONTEXT_BYTES = 2000


class Leftovers(NamedTuple):
    """What a kill has cost."""

    paid: int
    usable: int
    sent_again: int
    """Requests beyond one per record, over both runs."""


def kill_halfway(
    server: FastServer, command: list[str], environment: Mapping[str, str], records: int, usable: Callable[[], int]
) -> Leftovers:
    """Start, kill, look, start again."""
    start = server.counts()
    child = subprocess.Popen(
        command, env={**os.environ, **environment}, stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while server.counts().answered - start.answered < records / 2:
        assert child.poll() is None, f"ended before it was killed: {command}"
        time.sleep(POLL_SECONDS)
    child.send_signal(signal.SIGKILL)
    child.wait()
    time.sleep(2 * DELAY_MS / 1000)
    paid, left = server.counts().received - start.received, usable()
    measure(command, environment)
    return Leftovers(paid, left, server.counts().received - start.received - records)


def stored_replies(store: Path) -> int:
    """How many replies a store holds."""
    db = sqlite3.connect(store)
    (count,) = db.execute("SELECT count(*) FROM replies").fetchone()
    db.close()
    return int(count)


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--haystack", metavar="PYTHON", help="of an environment with haystack-ai")
    parser.add_argument("--records", type=int, default=RECORDS)
    arguments = parser.parse_args()
    records: int = arguments.records
    others = [haystack_version(arguments.haystack)] if arguments.haystack else []
    print(heading(others=others))
    print(f"{'':20} {'records':>8} {'paid at the kill':>16} {'usable of them':>14} {'sent again':>10}")
    with tempfile.TemporaryDirectory() as name, FastServer() as server:
        folder, url = Path(name), server.url(delay_ms=DELAY_MS)
        log, output = folder / "log.jsonl", folder / "out"
        write_log(log, records, context_bytes=CONTEXT_BYTES)
        command = ctxrel(log, output, "--concurrency", str(IN_FLIGHT), url=url)
        killed = {"ctxrel": kill_halfway(server, command, {}, records, lambda: stored_replies(output / "store.sqlite"))}
        if arguments.haystack:
            command = haystack(arguments.haystack, log, limit=records)
            killed[others[0]] = kill_halfway(server, command, haystack_environment(url), records, lambda: 0)
    for who, left in killed.items():
        print(f"{who:20} {records:8} {left.paid:16} {left.usable:14} {left.sent_again:10}")
    print(f"{load()} at the end")


if __name__ == "__main__":
    main()
