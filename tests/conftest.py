"""What all tests share: a clean environment, the command, a loopback endpoint."""

import json
import os
import subprocess
import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from contracts import check_answer, check_files
from hypothesis import HealthCheck, settings
from servers.loopback import LoopbackServer

# How fast examples are made depends on what else the machine does.
settings.register_profile("shared", deadline=None, suppress_health_check=[HealthCheck.too_slow])
settings.load_profile("shared")

Record = dict[str, Any]
RunCommand = Callable[..., "subprocess.CompletedProcess[str]"]


@pytest.fixture(autouse=True)
def clean_environment(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """No key, no endpoint and no proxy of the developer's; an empty working folder.

    The commands that tests start may keep their bytecode: without it each start takes twice the CPU.
    """
    monkeypatch.delenv("PYTHONDONTWRITEBYTECODE", raising=False)
    for name in os.environ:
        if name.upper().startswith(("OPENAI_", "AZURE_")) or name.upper().endswith("_PROXY") or name == "FORCE_COLOR":
            monkeypatch.delenv(name)
    monkeypatch.setenv("COLUMNS", "100")
    monkeypatch.chdir(tmp_path)


@pytest.fixture(autouse=True)
def files_as_published(tmp_path: Path) -> Iterator[None]:
    """Whatever runs and people have written in a test's folder is what its published form says."""
    yield
    check_files(tmp_path)


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """An endpoint that judges by a hash of the sentences."""
    with LoopbackServer() as running:
        yield running


@pytest.fixture
def ctxrel() -> RunCommand:
    """Run the command in a process of its own and hand back what it left."""

    def run(
        *arguments: str | Path, stdin: str | bytes = b"", timeout: float = 60
    ) -> "subprocess.CompletedProcess[str]":
        given = stdin.encode() if isinstance(stdin, str) else stdin
        done = subprocess.run(
            [sys.executable, "-m", "ctxrel.cli", *map(str, arguments)],
            input=given, capture_output=True, timeout=timeout, check=False,
        )  # fmt: skip
        assert b"Traceback" not in done.stderr, done.stderr.decode()
        check_answer([str(argument) for argument in arguments], done.stdout)
        return subprocess.CompletedProcess(done.args, done.returncode, done.stdout.decode(), done.stderr.decode())

    return run


@pytest.fixture
def write_log(tmp_path: Path) -> Callable[..., Path]:
    """Write records as JSON Lines."""

    def write(records: list[Record], name: str = "log.jsonl") -> Path:
        path = tmp_path / name
        path.write_text("".join(json.dumps(record, ensure_ascii=False) + "\n" for record in records), encoding="utf-8")
        return path

    return write


def wait_until_it_waits(process: "subprocess.Popen[bytes]") -> None:
    """Until a process that has started sleeps, as one does that waits for a pipe; one that loads and computes does not.

    A tenth of CPU time is used by then: less than Python and its packages take.
    """
    asleep = 0
    deadline = time.monotonic() + 60
    while asleep < 10:
        fields = Path(f"/proc/{process.pid}/stat").read_text(encoding="utf-8").rpartition(")")[2].split()
        ticks = int(fields[11]) + int(fields[12])
        asleep = asleep + 1 if fields[0] == "S" and ticks >= os.sysconf("SC_CLK_TCK") / 10 else 0
        assert time.monotonic() < deadline
        time.sleep(0.05)


def read_rows(folder: Path, name: str = "results.jsonl") -> list[Record]:
    """The rows of a run."""
    return [json.loads(line) for line in (folder / name).read_text(encoding="utf-8").splitlines()]


def read_summary(folder: Path) -> Record:
    """The summary of a run."""
    summary: Record = json.loads((folder / "summary.json").read_text(encoding="utf-8"))
    return summary
