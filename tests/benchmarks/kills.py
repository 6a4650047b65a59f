"""What a run leaves that is killed a hundred times: `python tests/benchmarks/kills.py`.

5,000 records, 16 in flight, an endpoint on a loopback port that takes 10 ms; `kill -9` and SIGTERM at random moments.
"""

import json
import os
import sys
import tempfile
import time
from importlib.metadata import version
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))

from servers.killing import kill_often
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, judge_by_hash

RECORDS, IN_FLIGHT = 5000, 16


def slowly(seen: Seen) -> Answer:
    """A good reply after 10 ms."""
    return Answer(body=judge_by_hash(seen).body, delay=0.01)


def rows(server: LoopbackServer, output: str, kills: int, stops: int) -> bytes:
    """The results of a run, after so many kills."""
    given = ["run", "log.jsonl", "-m", MODEL, "--base-url", server.url, "-o", output, "-c", str(IN_FLIGHT)]
    command = [sys.executable, "-m", "ctxrel.cli", *given]
    told = kill_often(server, command, kills=kills, stops=stops, requests=RECORDS)
    if told.errors:
        sys.exit(told.errors.decode())
    return Path(output, "results.jsonl").read_bytes()


def main() -> None:
    """Print the table."""
    print(f"ctxrel {version('ctxrel')}, {RECORDS:,} records, {IN_FLIGHT} in flight")
    print(f"{'kills':>6} {'stops':>6} {'requests':>9} {'repeated':>9} {'at most':>8} {'results':>10} {'seconds':>8}")
    with tempfile.TemporaryDirectory() as folder, LoopbackServer(slowly) as server:
        os.chdir(folder)
        with Path("log.jsonl").open("w", encoding="utf-8") as log:
            for number in range(RECORDS):
                contexts = [f"Item {number} is a thing. It weighs {number} g.", f"Nothing about {number * 7} here."]
                log.write(json.dumps({"question": f"What is item {number}?", "contexts": contexts}) + "\n")
        whole = b""
        for kills, stops in ((0, 0), (100, 0), (0, 20), (100, 20)):
            server.seen.clear()
            started = time.monotonic()
            left = rows(server, f"{kills}-{stops}", kills, stops)
            whole = whole or left
            repeated = len(server.seen) - RECORDS
            same = "identical" if left == whole else "DIFFERENT"
            seconds = time.monotonic() - started
            print(
                f"{kills:6} {stops:6} {len(server.seen):9} {repeated:9} {kills * IN_FLIGHT:8} {same:>10} {seconds:8.0f}"
            )
        os.chdir("/")


if __name__ == "__main__":
    main()
