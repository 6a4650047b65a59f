"""What the tests of recipes share: a shell, and the endpoint that a default run asks."""

import os
import shutil
import subprocess
import sys
from collections.abc import Iterator, Mapping
from pathlib import Path

import pytest
from servers.loopback import Answer, LoopbackServer

SAMPLES = Path(__file__).parent.parent.parent / "sample_data"


class Shell:
    """Runs a recipe's blocks word for word, in the current folder."""

    def __init__(self, programs: Path) -> None:
        self._programs = programs
        self.add("ctxrel", f'exec "{sys.executable}" -m ctxrel.cli "$@"')
        self.add("python", f'exec "{sys.executable}" "$@"')

    def add(self, name: str, script: str) -> None:
        """Put a program before all others."""
        path = self._programs / name
        path.write_text(f"#!/bin/sh\n{script}\n", encoding="utf-8")
        path.chmod(0o755)

    def run(
        self, block: str, *, code: int = 0, stdin: str = "", environment: Mapping[str, str] | None = None
    ) -> "subprocess.CompletedProcess[str]":
        """What a block leaves; it ends with its first command that fails."""
        done = subprocess.run(
            ["bash", "-eo", "pipefail", "-c", block],
            env={**os.environ, **(environment or {})}, input=stdin, capture_output=True, text=True, encoding="utf-8", timeout=120, check=False,
        )  # fmt: skip
        assert done.returncode == code, f"{block}\n{done.stdout}\n{done.stderr}"
        assert "Traceback" not in done.stderr, done.stderr
        return done


@pytest.fixture
def shell(tmp_path_factory: pytest.TempPathFactory, monkeypatch: pytest.MonkeyPatch) -> Shell:
    """A shell whose `ctxrel` is the one under test."""
    programs = tmp_path_factory.mktemp("bin")
    monkeypatch.setenv("PATH", f"{programs}:/usr/local/bin:/usr/bin:/bin")
    return Shell(programs)


def serving(*models: str) -> Answer:
    """A listing of models."""
    return Answer(body={"object": "list", "data": [{"id": name, "created": 1, "object": "model"} for name in models]})


@pytest.fixture
def endpoint(monkeypatch: pytest.MonkeyPatch) -> Iterator[LoopbackServer]:
    """The endpoint that is asked where a command names none; it serves the default model."""
    with LoopbackServer(models=serving("gpt-6-luna")) as running:
        monkeypatch.setenv("OPENAI_BASE_URL", running.url)
        monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
        yield running


@pytest.fixture
def samples() -> None:
    """The samples where the recipes look for them."""
    shutil.copytree(SAMPLES, "sample_data")
