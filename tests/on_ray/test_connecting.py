"""Clusters that a run cannot have."""

import signal
import socket
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import RunCommand, read_summary
from ray_runs import on_ray, records
from servers.cluster import MARKS, RayCluster
from servers.loopback import LoopbackServer

pytestmark = [*MARKS, pytest.mark.filterwarnings("default")]
WriteLog = Callable[..., Path]


@pytest.fixture
def closed_port() -> Iterator[int]:
    """A port at which nobody listens."""
    with socket.socket() as bound:
        bound.bind(("127.0.0.1", 0))
        yield bound.getsockname()[1]


def test_nobody_there(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path, closed_port: int) -> None:
    """Without a Ray at the address the run fails in a sentence, at once, and its summary says so."""
    log = write_log(records(1))
    done = ctxrel("run", log, "-m", "offline", "--engine", "ray", "--ray-address", f"127.0.0.1:{closed_port}")
    assert done.returncode == 1, done.stderr
    last = done.stderr.splitlines()[-1]
    assert f"no Ray at '127.0.0.1:{closed_port}': " in last
    assert last.endswith("start one with `ray start`, or leave out --ray-address for a Ray of the run's own")
    assert "Traceback" not in done.stderr
    summary = read_summary(tmp_path / "log.ctxrel")
    assert (summary["status"], summary["requests"]["sent"]) == ("failed", 0)


@pytest.mark.parametrize("address", ["ray://head:10001", "local", "head", "head:port"])
def test_no_address(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path, address: str) -> None:
    """What is neither auto nor HOST:PORT is a mistake, and nothing is written."""
    done = ctxrel("run", write_log(records(1)), "-m", "offline", "--engine", "ray", "--ray-address", address)
    assert done.returncode == 2
    assert f"--ray-address {address!r}: give auto, or HOST:PORT" in done.stderr
    assert not (tmp_path / "log.ctxrel").exists()


def test_no_token(
    running: RayCluster,
    ctxrel: RunCommand,
    server: LoopbackServer,
    write_log: WriteLog,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A cluster that asks for a token is told from one that is not there."""
    monkeypatch.setenv("RAY_AUTH_MODE", "token")
    monkeypatch.setenv("RAY_AUTH_TOKEN", "another")
    done = ctxrel(*on_ray(running, server, write_log(records(1))), timeout=300)
    assert done.returncode == 1, done.stderr
    assert (
        "it asks for another token, or has ended; give the command RAY_AUTH_MODE=token" in done.stderr.splitlines()[-1]
    )


def test_no_ray_that_nobody_asked_for() -> None:
    """A call that comes after Ray was shut down, as from a run that was stopped at once, starts none."""
    script = (
        "from ctxrel.cli.runs.engine import prepare_ray; prepare_ray(None)\n"
        "import ray\n"
        "try:\n    ray.put(1)\n"
        "except Exception as error:\n    print(type(error).__name__, ray.is_initialized())\n"
    )
    done = subprocess.run([sys.executable, "-c", script], capture_output=True, text=True, timeout=120, check=True)
    assert done.stdout == "RaySystemError False\n"


def test_sigterm_before_anything_is_judged(monkeypatch: pytest.MonkeyPatch) -> None:
    """It ends the command with the code that it has without Ray, whose own handler exits with 15, now or later."""
    import ray  # noqa: PLC0415  # an extra

    from ctxrel.cli.runs.ray_cluster import cluster  # noqa: PLC0415

    before = signal.getsignal(signal.SIGTERM)
    monkeypatch.setattr(ray, "init", lambda **_: signal.signal(signal.SIGTERM, lambda *_: sys.exit(15)))
    monkeypatch.setattr(ray, "shutdown", lambda: None)
    with cluster(None):
        assert signal.getsignal(signal.SIGTERM) == before
    monkeypatch.setattr(ray, "init", lambda **_: sys.exit(15))
    with pytest.raises(SystemExit) as ended, cluster(None):
        pass
    assert ended.value.code == 143


def test_other_version(monkeypatch: pytest.MonkeyPatch) -> None:
    """A cluster of another Ray or Python is told apart, in one sentence."""
    import ray  # noqa: PLC0415  # an extra
    from ray._private.utils import check_version_info  # noqa: PLC0415

    from ctxrel.cli.runs.ray_cluster import cluster  # noqa: PLC0415
    from ctxrel.evaluators.errors import RunError  # noqa: PLC0415

    def refuse(**_: object) -> None:
        check_version_info({"ray_version": "2.59.1", "python_version": "3.12.1"}, "node 10.0.0.7")

    monkeypatch.setattr(ray, "init", refuse)
    with pytest.raises(RunError) as told, cluster("auto"):
        pass
    assert str(told.value).startswith("no Ray at 'auto': Ray 2.59.1 with Python 3.12.1 runs there, and Ray ")
    assert str(told.value).endswith(" here; install the same versions on all machines")
