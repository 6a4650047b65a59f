"""What the benchmarks share: logs of any length, children whose CPU and memory are measured, the table's heading."""

import datetime as dt
import json
import os
import platform
import subprocess
import sys
import time
from collections.abc import Mapping, Sequence
from importlib.metadata import version
from itertools import cycle, islice
from pathlib import Path
from typing import Any, NamedTuple

from servers.fast import MODEL

_WORDS = [
    "invoice",
    "refund",
    "customer",
    "password",
    "reset",
    "shipment",
    "battery",
    "charger",
    "manual",
    "warranty",
    "region",
    "account",
    "monthly",
    "plan",
    "upgrade",
    "support",
    "ticket",
    "answer",
    "device",
    "network",
    "router",
    "signal",
    "update",
    "version",
    "setting",
    "screen",
    "button",
    "light",
    "cable",
]


class Cost(NamedTuple):
    """What a child took."""

    wall: float
    """Seconds."""
    cpu: float
    """Seconds, user and system."""
    peak: float
    """Most resident memory, in MB (10^6 bytes)."""


class Failed(Exception):
    """A child ended with an error."""


def measure(command: Sequence[str], environment: Mapping[str, str] | None = None) -> Cost:
    """Run a command to its end. Raises Failed with its last words."""
    started = time.perf_counter()
    child = subprocess.Popen(
        command, env={**os.environ, **(environment or {})}, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE
    )
    assert child.stderr
    words = child.stderr.read().decode(errors="replace")  # ends with the child
    _, status, used = os.wait4(child.pid, 0)  # of this child alone; RUSAGE_CHILDREN keeps the largest peak of all
    wall = time.perf_counter() - started
    child.stderr.close()
    child.returncode = os.waitstatus_to_exitcode(status)
    if child.returncode:
        raise Failed(f"{' '.join(command)}: exit {child.returncode}\n{words[-2000:]}")
    return Cost(wall, used.ru_utime + used.ru_stime, used.ru_maxrss * 1024 / 1e6)


def ctxrel(log: Path, output: Path, *options: str, url: str | None = None) -> list[str]:
    """The command that judges a log, at an endpoint or with the offline judge."""
    judge = ["--model", MODEL, "--base-url", url] if url else ["--model", "offline"]
    command = [sys.executable, "-m", "ctxrel.cli", "run", str(log), "-o", str(output)]
    return [*command, "--progress", "none", *judge, *options]


def record(number: int, *, context_bytes: int, contexts: int = 2) -> dict[str, Any]:
    """A record like no other, whose contexts of some ten sentences per kB have about so many bytes in all."""
    words = islice(cycle(_WORDS), number % len(_WORDS), None)
    texts = []
    for place in range(contexts):
        text = f"Passage {place} of case {number}."
        while len(text) < context_bytes / contexts - 50:
            text += f" The {' '.join(islice(words, 12))} {len(text)}."
        texts.append(text)
    question = f"How does the {_WORDS[number % len(_WORDS)]} of case {number} work?"
    return {"id": f"r{number}", "question": question, "contexts": texts}


def write_log(path: Path, count: int, *, context_bytes: int) -> None:
    """A log of so many records, as JSON Lines."""
    with path.open("w", encoding="utf-8") as stream:
        for number in range(count):
            stream.write(json.dumps(record(number, context_bytes=context_bytes)) + "\n")


def load() -> str:
    """How busy the machine is with everything."""
    return f"load {os.getloadavg()[0]:.1f}"


def heading(*packages: str, others: Sequence[str] = ()) -> str:
    """Versions of what is measured, date and machine."""
    names = ["ctxrel", *packages]
    versions = ", ".join([f"{name} {version(name)}" for name in names] + list(others))
    python = f"Python {platform.python_version()}"
    date = dt.datetime.now(dt.UTC).date()
    return f"{versions}; {python}, {os.cpu_count()} cores ({_processor()}), {date}, {load()} at the start"


def _processor() -> str:
    for line in Path("/proc/cpuinfo").read_text(encoding="utf-8").splitlines():
        if line.startswith("model name"):
            return line.partition(":")[2].strip()
    return platform.machine()
