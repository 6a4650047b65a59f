"""A Ray cluster of two processors, for as long as the tests of a module run."""

import os
import secrets
import shutil
import signal
import socket
import subprocess
import sys
import tempfile
import time
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path
from typing import Self

import pytest


def _has_ray() -> bool:
    try:
        version("ray")
    except PackageNotFoundError:
        return False
    return True


MARKS = [
    pytest.mark.ray,
    pytest.mark.skipif(not _has_ray(), reason="Ray is not installed: pip install 'ctxrel[ray]'"),
    pytest.mark.skipif(sys.platform != "linux", reason="processes are found by /proc"),
]
_START_SECONDS = 120.0


class RayCluster:
    """The cluster, in processes of its own while it is used as a context manager."""

    def __init__(self) -> None:
        self.environment = {"RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
        """What lets a driver in."""

    def __enter__(self) -> Self:
        # Sockets' paths may have 107 bytes; pytest's own folders are too deep.
        self.folder = Path(tempfile.mkdtemp(prefix="ray-", dir="/tmp"))
        with socket.socket() as probe:
            probe.bind(("127.0.0.1", 0))
            port = probe.getsockname()[1]
        self.address = f"127.0.0.1:{port}"
        command = [
            str(Path(sys.executable).with_name("ray")), "start", "--head", "--block", "--disable-usage-stats",
            f"--port={port}", "--num-cpus=2", "--object-store-memory=200000000",
            "--include-dashboard=false", f"--temp-dir={self.folder}",
        ]  # fmt: skip
        with (self.folder / "started.log").open("wb") as said:
            self._process = subprocess.Popen(
                command,
                stdout=said,
                stderr=said,
                env=os.environ | self.environment | {"RAY_TEST_KEY": KEY},
                start_new_session=True,
            )
        self._wait()
        return self

    def _wait(self) -> None:
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and self._process.poll() is None:
            said = (self.folder / "started.log").read_text(encoding="utf-8", errors="replace")
            if "Ray runtime started" in said:
                return
            time.sleep(0.1)
        raise AssertionError((self.folder / "started.log").read_text(encoding="utf-8", errors="replace"))

    def __exit__(self, *_: object) -> None:
        self._process.send_signal(signal.SIGTERM)
        try:
            self._process.wait(60)
        finally:
            os.killpg(self._process.pid, signal.SIGKILL) if self._process.poll() is None else None
            shutil.rmtree(self.folder, ignore_errors=True)


KEY = "sk-not-a-real-key-0123456789"
"""In the cluster's environment, under RAY_TEST_KEY."""
