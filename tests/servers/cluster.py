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
        self._head = self._start(
            "head", ["--head", f"--port={port}", "--include-dashboard=false", f"--temp-dir={self.folder}"]
        )
        return self

    def add_node(self) -> "subprocess.Popen[bytes]":
        """Another node of two processors, in a process group of its own; it is for the caller to end it."""
        return self._start("node", [f"--address={self.address}"])

    def _start(self, name: str, how: list[str]) -> "subprocess.Popen[bytes]":
        command = [
            str(Path(sys.executable).with_name("ray")), "start", *how, "--block", "--disable-usage-stats",
            "--num-cpus=2", "--object-store-memory=200000000",
        ]  # fmt: skip
        told = self.folder / f"{name}.log"
        environment = os.environ | self.environment | {"RAY_TEST_KEY": KEY}
        with told.open("wb") as said:
            process = subprocess.Popen(command, stdout=said, stderr=said, env=environment, start_new_session=True)
        deadline = time.monotonic() + _START_SECONDS
        while time.monotonic() < deadline and process.poll() is None:
            if "Ray runtime started" in told.read_text(encoding="utf-8", errors="replace"):
                return process
            time.sleep(0.1)
        raise AssertionError(told.read_text(encoding="utf-8", errors="replace"))

    def __exit__(self, *_: object) -> None:
        self._head.send_signal(signal.SIGTERM)
        try:
            self._head.wait(60)
        finally:
            os.killpg(self._head.pid, signal.SIGKILL) if self._head.poll() is None else None
            shutil.rmtree(self.folder, ignore_errors=True)


KEY = "sk-not-a-real-key-0123456789"
"""In the cluster's environment, under RAY_TEST_KEY."""
