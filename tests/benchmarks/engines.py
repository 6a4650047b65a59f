"""The same run in one process and on Ray, side by side: `python tests/benchmarks/engines.py [--records N,N...]`.

Records of 1 kB against an endpoint in another process that answers after some milliseconds; two workers. Memory is the
most that all processes of the run had together at a time (proportional set size, looked at twice a second: what is
shared counts once); CPU is theirs together, the endpoint aside. Needs the extra ray.
"""

import argparse
import os
import shutil
import subprocess
import sys
import tempfile
import time
from pathlib import Path
from typing import NamedTuple

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import ctxrel, heading, load, write_log
from servers.fast import FastServer

RECORDS = "100,2000,20000"
DELAYS_MS = (0, 50)
IN_FLIGHT = 64
CONTEXT_BYTES = 920
LOOK_SECONDS = 0.5
ENGINES = {"one process": ["--format", "parquet"], "ray": ["--engine", "ray", "--ray-workers", "2"]}
_TICKS = os.sysconf("SC_CLK_TCK")


class Taken(NamedTuple):
    """What a run took, all of its processes together."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, as far as was seen."""
    peak: float
    """MB."""
    processes: int
    """The most at a time."""


def measure_all(command: list[str]) -> Taken:
    """Run a command, and look at it and at everything it starts."""
    started = time.perf_counter()
    peak = 0.0
    most = 0
    cpu: dict[int, float] = {}
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as child:
        while child.poll() is None:
            family = _family(child.pid)
            most = max(most, len(family))
            peak = max(peak, sum(map(_memory, family)))
            cpu |= {pid: seconds for pid in family if (seconds := _cpu(pid))}
            time.sleep(LOOK_SECONDS)
        said = child.stderr.read().decode() if child.stderr else ""
    wall = time.perf_counter() - started
    if child.returncode:
        raise SystemExit(f"{' '.join(command)}: exit {child.returncode}\n{said[-2000:]}")
    return Taken(wall, sum(cpu.values()), peak, most)


def _family(root: int) -> list[int]:
    """A process and all that descend from it."""
    parents: dict[int, int] = {}
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and (cells := _stat(int(folder.name))):
            parents[int(folder.name)] = int(cells[1])
    family = [root]
    for member in family:
        family += [pid for pid, parent in parents.items() if parent == member]
    return family


def _stat(pid: int) -> list[str]:
    """The cells of a process's line from its state on; none where it is gone."""
    try:
        return Path(f"/proc/{pid}/stat").read_text(encoding="utf-8").rpartition(") ")[2].split()
    except OSError:
        return []


def _cpu(pid: int) -> float:
    cells = _stat(pid)
    return (int(cells[11]) + int(cells[12])) / _TICKS if cells else 0.0


def _memory(pid: int) -> float:
    """MB of a process, what it shares with others in parts."""
    try:
        for line in Path(f"/proc/{pid}/smaps_rollup").read_text(encoding="ascii").splitlines():
            if line.startswith("Pss:"):
                return int(line.split()[1]) * 1024 / 1e6
    except OSError:
        pass
    return 0.0


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--records", default=RECORDS)
    sizes = [int(size) for size in parser.parse_args().records.split(",")]
    print(heading("ray", "pyarrow"))
    print(
        f"{'ms':>4} {'records':>8}  {'engine':12} {'seconds':>8} {'records/s':>10} {'CPU s':>7} {'MB':>6} {'processes':>9}"
    )
    with tempfile.TemporaryDirectory() as name, FastServer() as server:
        log, output = Path(name) / "log.jsonl", Path(name) / "out"
        for size in sizes:
            write_log(log, size, context_bytes=CONTEXT_BYTES)
            for delay in DELAYS_MS:
                for engine, options in ENGINES.items():
                    command = ctxrel(log, output, "-c", str(IN_FLIGHT), *options, url=server.url(delay_ms=delay))
                    taken = measure_all(command)
                    shutil.rmtree(output)
                    print(
                        f"{delay:4} {size:8,}  {engine:12} {taken.wall:8.1f} {size / taken.wall:10.0f} {taken.cpu:7.1f} "
                        f"{taken.peak:6.0f} {taken.processes:9}",
                        flush=True,
                    )
    print(f"{load()} at the end")


if __name__ == "__main__":
    main()
