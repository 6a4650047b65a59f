"""Records per second and CPU per record: `python tests/benchmarks/throughput.py [--haystack PYTHON] [--rounds N]`.

ctxrel, the openai package's client and bare aiohttp send the same requests (2 kB of contexts under the instructions of
context_relevance) to an endpoint in another process, in turn; Haystack's evaluator sends its own, shorter ones, one at
a time. Each runs in a child of its own, and a run of ten records is subtracted, which leaves out the start-up. The
clients send prepared requests and drop the replies, while ctxrel and Haystack read, split, check, keep and score.
"""

import argparse
import json
import shutil
import statistics
import sys
import tempfile
from collections.abc import Callable
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import Cost, ctxrel, heading, load, measure, record, write_log
from benchmarks.peers import haystack, haystack_environment, haystack_version
from servers.fast import MODEL, FastServer

from ctxrel.evaluators.evaluator import load_evaluator
from ctxrel.evaluators.record import Record

CONTEXT_BYTES = 2000
DELAYS_MS = (50, 0)
IN_FLIGHT = (8, 32, 128)
FEW = 10
START_UPS = 5
SECONDS = 4
"""What a measurement should take, by the records that are given to it."""
MOST = 6000
CLIENT = "openai create()"
CLIENTS = Path(__file__).with_name("clients.py")


class Speed(NamedTuple):
    """The cost of records without the start-up."""

    rate: float
    """Records per second."""
    cpu: float
    """Milliseconds of CPU per record."""


@dataclass(kw_only=True)
class Contestant:
    """A way to judge the first records of the log."""

    name: str
    run: Callable[[int, int, int], Cost]
    """By delay in milliseconds, requests in flight (0: as it pleases) and records."""
    usual_rate: float
    """Records per second without any delay, roughly: it decides how many records are given."""
    in_flight: tuple[int, ...] = IN_FLIGHT
    seconds: float = SECONDS

    @cached_property
    def start_up(self) -> float:
        """Seconds of CPU of a run of few records, the median of some."""
        return statistics.median(self.run(0, self.in_flight[0], FEW).cpu for _ in range(START_UPS))

    def records(self, delay_ms: int, in_flight: int) -> int:
        """As many as take some seconds."""
        rate = self.usual_rate
        if delay_ms:
            rate = min(rate, 1000 * (in_flight or IN_FLIGHT[-1]) / delay_ms)
        return int(min(MOST, max(5 * FEW, self.seconds * rate)))

    def speed(self, delay_ms: int, in_flight: int) -> Speed:
        """Measure once."""
        count = self.records(delay_ms, in_flight)
        few, many = self.run(delay_ms, in_flight, FEW), self.run(delay_ms, in_flight, count)
        return Speed((count - FEW) / (many.wall - few.wall), 1000 * (many.cpu - self.start_up) / (count - FEW))


def contestants(server: FastServer, folder: Path, python: str | None) -> list[Contestant]:
    """Everything that is measured, over a log in the folder."""
    log, bodies = folder / "log.jsonl", folder / "bodies.jsonl"
    write_log(log, MOST, context_bytes=CONTEXT_BYTES)
    write_bodies(bodies)

    def run_ctxrel(delay_ms: int, in_flight: int, count: int) -> Cost:
        fixed = ["--concurrency", str(in_flight)] if in_flight else []
        command = ctxrel(log, folder / "out", "--limit", str(count), *fixed, url=server.url(delay_ms=delay_ms))
        cost = measure(command)
        shutil.rmtree(folder / "out")
        return cost

    def run_client(client: str) -> Callable[[int, int, int], Cost]:
        def run(delay_ms: int, in_flight: int, count: int) -> Cost:
            url = server.url(delay_ms=delay_ms)
            return measure([sys.executable, str(CLIENTS), client, str(bodies), url, str(in_flight), str(count)])

        return run

    def run_haystack(delay_ms: int, _: int, count: int) -> Cost:
        assert python
        return measure(haystack(python, log, limit=count), haystack_environment(server.url(delay_ms=delay_ms)))

    everybody = [
        Contestant(name=CLIENT, run=run_client("openai"), usual_rate=350),
        Contestant(name="ctxrel", run=run_ctxrel, usual_rate=1300, in_flight=(*IN_FLIGHT, 0)),
        Contestant(name="aiohttp, bytes only", run=run_client("aiohttp"), usual_rate=6000),
    ]
    if python:
        everybody.append(Contestant(name="haystack", run=run_haystack, usual_rate=200, in_flight=(1,), seconds=12))
    return everybody


def write_bodies(path: Path) -> None:
    """The requests that ctxrel sends, as JSON Lines."""
    evaluator = load_evaluator("context_relevance")
    prompt = evaluator.static
    form = {"name": "reply", "strict": True, "schema": prompt.schema}
    with path.open("w", encoding="utf-8") as stream:
        for number in range(MOST):
            row = record(number, context_bytes=CONTEXT_BYTES)
            given = Record(
                index=number, id=row["id"], where="", question=row["question"], contexts=tuple(row["contexts"])
            )
            request = evaluator.task(given).request()
            assert request
            messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": request.user}]
            body = {"model": MODEL, "temperature": 0, "response_format": {"type": "json_schema", "json_schema": form}}
            stream.write(json.dumps({**body, "messages": messages}) + "\n")


def line(who: Contestant, delay_ms: int, in_flight: int, speeds: list[Speed], client: Speed) -> str:
    """A line of the table; the median where there were several rounds."""
    rate = statistics.median(speed.rate for speed in speeds)
    cpu = statistics.median(speed.cpu for speed in speeds)
    flying = str(in_flight or "found")
    count = who.records(delay_ms, in_flight)
    ratios = f"{rate / client.rate:9.2f} {cpu / client.cpu:8.2f}"
    return f"{delay_ms:5} {flying:>9}  {who.name:20} {count:7} {rate:9.0f} {cpu:10.2f} {ratios}"


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--haystack", metavar="PYTHON", help="of an environment with haystack-ai")
    parser.add_argument("--rounds", type=int, default=1, help="measurements of each line; the median is shown")
    arguments = parser.parse_args()
    others = [haystack_version(arguments.haystack)] if arguments.haystack else []
    print(heading("openai", "aiohttp", others=others))
    print(
        f"{'ms':>5} {'in flight':>9}  {'':20} {'records':>7} {'records/s':>9} {'CPU ms/rec':>10} {'× client':>9} {'CPU':>8}"
    )
    with tempfile.TemporaryDirectory() as name, FastServer() as server:
        everybody = contestants(server, Path(name), arguments.haystack)
        for delay_ms in DELAYS_MS:
            clients: dict[int, Speed] = {}
            for in_flight in (*IN_FLIGHT, 0, 1):
                there = [who for who in everybody if in_flight in who.in_flight]
                speeds: dict[str, list[Speed]] = {who.name: [] for who in there}
                for _ in range(arguments.rounds):
                    for who in there:
                        speeds[who.name].append(who.speed(delay_ms, in_flight))
                if CLIENT in speeds:
                    clients[in_flight] = Speed(*map(statistics.median, zip(*speeds[CLIENT], strict=True)))
                client = clients.get(in_flight) or max(clients.values())  # its best, where there is no like
                for who in there:
                    print(line(who, delay_ms, in_flight, speeds[who.name], client), flush=True)
        counts = server.counts()
    print(
        f"the endpoint took {1000 * counts.cpu_seconds / counts.received:.2f} ms of CPU per request; {load()} at the end"
    )


if __name__ == "__main__":
    main()
