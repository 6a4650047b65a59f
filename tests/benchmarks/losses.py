"""What a run loses, by evaluator: `python tests/benchmarks/losses.py --environments DIR [--only NAME] [--json FILE]`.

Every contestant judges the same 100 records in its own documented way, against a loopback endpoint that answers after
50 ms; every other record is relevant, so that the mean is 0.5. DIR holds an environment for each (made by `pip`
where it is missing). Measured: requests paid again after the end and after SIGKILL; what one failing record in ten
does to the mean, told or not; requests in flight; requests sent into a rate limit; whether an invented statement is
believed.
"""

import argparse
import json
import os
import signal
import subprocess
import sys
import tempfile
import time
from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.contestants.listing import CONTESTANTS, Contestant
from benchmarks.dialects import Fault, Script, record
from benchmarks.measuring import heading, load
from servers.loopback import LoopbackServer

RECORDS = 100
SECONDS = 300
"""After which a run is given up."""


@dataclass(kw_only=True)
class Run:
    """How a run went."""

    ended: str
    """`done`, `crashed: …`, `not done in …`."""
    requests: int
    most_in_flight: int
    told_to_wait: int = 0
    mean: float | None = None
    """The peer's own where it gives one, else over the scores it gives."""
    scored: int = 0
    """Records that have a score."""
    told: int = 0
    """Failures that are told of."""

    def __str__(self) -> str:
        if self.ended != "done":
            return self.ended
        mean = "none" if self.mean is None else f"{self.mean:.3f}"
        return f"mean {mean}, {self.scored} scored, {self.told} told as failed, {self.requests} requests"


@dataclass(kw_only=True)
class Bench:
    """A contestant in a folder of its own, with its environment."""

    contestant: Contestant
    environment: Path
    folder: Path

    def start(self, server: LoopbackServer) -> "subprocess.Popen[bytes]":
        """Its process."""
        command = self.contestant.command(self.environment, self.folder)
        variables = {**os.environ, **self.contestant.variables(server.url)}
        with (self.folder / "said.txt").open("wb") as said:
            return subprocess.Popen(command, cwd=self.folder, env=variables, stdout=said, stderr=said)

    def run(self, script: Script) -> Run:
        """To its end."""
        with LoopbackServer(script) as server:
            return self._finish(server, script)

    def twice(self, script: Script) -> Run:
        """To its end, and again; the requests are those of both."""
        with LoopbackServer(script) as server:
            self._finish(server, script)
            return self._finish(server, script)

    def killed(self, script: Script, after: int) -> Run:
        """Killed when so many requests have come in, then to its end; the requests are those of both."""
        with LoopbackServer(script) as server:
            child = self.start(server)
            while len(server.seen) < after and child.poll() is None:
                time.sleep(0.01)
            child.send_signal(signal.SIGKILL)
            child.wait()
            return self._finish(server, script)

    def _finish(self, server: LoopbackServer, script: Script) -> Run:
        child = self.start(server)
        try:
            code = child.wait(SECONDS)
            ended = "done" if code in self.contestant.good_exits else f"crashed: {self._last_words()}"
        except subprocess.TimeoutExpired:
            child.kill()
            child.wait()
            ended = f"not done in {SECONDS} s"
        run = Run(
            ended=ended,
            requests=len(server.seen),
            most_in_flight=server.most_in_flight,
            told_to_wait=script.told_to_wait,
        )
        if ended == "done":
            scores, run.told, run.mean = self.contestant.outcome(self.folder)
            kept = [score for score in scores if score is not None]
            run.scored = len(kept)
            run.mean = run.mean if run.mean is not None else sum(kept) / len(kept) if kept else None
        return run

    def _last_words(self) -> str:
        lines = (self.folder / "said.txt").read_text(encoding="utf-8", errors="replace").split("\n")
        return next((line.strip()[:150] for line in reversed(lines) if line.strip()), "")


def measure(contestant: Contestant, environment: Path, records: int) -> Iterator[tuple[str, Run]]:
    """Each property and what was seen of it."""

    def bench(stack: str) -> Bench:
        folder = Path(tempfile.mkdtemp(prefix=f"{stack}-", dir=root))
        with (folder / "log.jsonl").open("w", encoding="utf-8") as log:
            log.writelines(json.dumps(record(number)) + "\n" for number in range(records))
        return Bench(contestant=contestant, environment=environment, folder=folder)

    with tempfile.TemporaryDirectory() as root:
        whole = bench("whole").run(Script(dialect=contestant.dialect))
        yield "undisturbed", whole
        if whole.ended != "done":
            return
        yield "run twice", bench("twice").twice(Script(dialect=contestant.dialect))
        for name, share in (("half", 0.5), ("four fifths", 0.8)):
            killed = bench("kill").killed(Script(dialect=contestant.dialect), int(share * whole.requests))
            yield f"killed at {name}", killed
        for fault in (Fault.SERVER_ERROR, Fault.REFUSAL, Fault.INVALID):
            yield fault.value, bench("fault").run(Script(dialect=contestant.dialect, fault=fault))
        yield (
            "rate limit for 3 s",
            bench("limit").run(Script(dialect=contestant.dialect, closed_from=whole.requests // 4)),
        )
        if contestant.quotes:
            yield "invented statement", bench("invented").run(Script(dialect=contestant.dialect, fault=Fault.INVENTED))


def shown(name: str, run: Run) -> str:
    """A property in a line."""
    if name == "undisturbed":
        return f"{run}, at most {run.most_in_flight} in flight"
    return f"{run}, {run.told_to_wait} answered 429" if run.told_to_wait else str(run)


def main() -> None:
    """Print each contestant's account."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--environments", type=Path, required=True, metavar="DIR")
    parser.add_argument("--only", action="append", choices=list(CONTESTANTS))
    parser.add_argument("--records", type=int, default=RECORDS)
    parser.add_argument("--json", type=Path, metavar="FILE")
    arguments = parser.parse_args()
    print(heading())
    found: dict[str, Mapping[str, Any]] = {}
    for name in arguments.only or CONTESTANTS:
        contestant = CONTESTANTS[name]
        environment = contestant.install(arguments.environments.absolute())
        print(f"\n{name}: {contestant.version(environment)}; {contestant.way}", flush=True)
        found[name] = {}
        for what, run in measure(contestant, environment, arguments.records):
            found[name] = {**found[name], what: asdict(run)}
            print(f"  {what}: {shown(what, run)}", flush=True)
    print(f"\n{load()} at the end")
    if arguments.json:
        arguments.json.write_text(json.dumps(found, indent=1), encoding="utf-8")


if __name__ == "__main__":
    main()
