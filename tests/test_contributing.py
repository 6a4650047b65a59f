"""What CONTRIBUTING.md says of adding things works: its examples are put into a copy of the code and used."""

import json
import os
import re
import shlex
import shutil
import subprocess
import sys
import tomllib
from pathlib import Path
from typing import NamedTuple

import pytest
from conftest import read_rows
from servers.loopback import Answer, LoopbackServer, completion

from ctxrel.evaluators.judges.endpoint import DEFAULT_MODEL

ROOT = Path(__file__).parent.parent
PAGE = (ROOT / "CONTRIBUTING.md").read_text(encoding="utf-8")
_BLOCK = re.compile(r"(?:^`([\w./]+)`:\n\n)?^```(\w+)\n(.*?)^```$", re.DOTALL | re.MULTILINE)
_MOST_LINES = 40


class Block(NamedTuple):
    """A fenced block."""

    path: str
    """The file it belongs to; empty for commands."""
    language: str
    text: str


def section(heading: str) -> str:
    return PAGE.split(f"\n## {heading}\n")[1].split("\n## ", maxsplit=1)[0]


def blocks(heading: str) -> list[Block]:
    return [Block(*found) for found in _BLOCK.findall(section(heading))]


def patched(text: str, diff: str) -> str:
    """The text with the lines that a diff adds; what stands around them has to be there once."""
    for hunk in diff.split("@@\n"):
        lines = hunk.splitlines(keepends=True)
        before = "".join(line[1:] for line in lines if line[0] == " ")
        after = "".join(line[1:] for line in lines)
        assert text.count(before) == 1, before
        text = text.replace(before, after)
    return text


class Copy:
    """A copy of the code, in which somebody works."""

    def __init__(self, folder: Path) -> None:
        self._home = folder
        for room in ("cli", "evaluators", "prompts"):
            shutil.copytree(ROOT / room, folder / "ctxrel" / room, ignore=shutil.ignore_patterns("__pycache__"))
        shutil.copytree(ROOT / "sample_data", "sample_data")
        Path("prompts").symlink_to(folder / "ctxrel" / "prompts")

    def follow(self, heading: str) -> list[str]:
        """Do what a section says; what its commands print on standard output."""
        written = []
        for path, language, text in blocks(heading):
            if path:
                file = self._home / "ctxrel" / path
                assert file.exists() == (language == "diff")
                file.write_text(patched(file.read_text(), text) if language == "diff" else text, encoding="utf-8")
                written.append(file)
        lint(written)
        return [
            self._run(line) for _, language, text in blocks(heading) if language == "bash" for line in text.splitlines()
        ]

    def _run(self, line: str) -> str:
        program = f"{shlex.quote(sys.executable)} -m ctxrel.cli"
        done = subprocess.run(
            ["bash", "-c", re.sub("^ctxrel ", f"{program} ", line)],
            env={**os.environ, "PYTHONPATH": str(self._home)}, capture_output=True, text=True, timeout=60, check=False,
        )  # fmt: skip
        assert done.returncode == 0, done.stderr
        return done.stdout


def lint(files: list[Path]) -> None:
    """Examples are written as the house is."""
    code = [str(file) for file in files if file.suffix == ".py"]
    settings = ["--no-cache", "--quiet", "--config", str(ROOT / "pyproject.toml"), *code]
    for command in ("check", "format --check"):
        if code:
            subprocess.run([sys.executable, "-m", "ruff", *command.split(), *settings], check=True)


@pytest.fixture
def copy(tmp_path_factory: pytest.TempPathFactory) -> Copy:
    return Copy(tmp_path_factory.mktemp("copy"))


def test_an_evaluator(copy: Copy, server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> None:
    """A new YAML file in prompts/ is an evaluator by its name."""
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    server.models = Answer(body={"object": "list", "data": [{"id": DEFAULT_MODEL, "created": 1, "object": "model"}]})
    server.script = lambda _: completion(json.dumps({"names_source": True, "source": "the manual"}))
    _, rendered, _ = copy.follow("Add an evaluator")
    assert "such as a document" in rendered
    rows = read_rows(Path("support_en.ctxrel"))
    assert [(row["evaluator"], row["score"], row["source"]) for row in rows] == [("names_source", 1, "the manual")] * 3


def test_a_format(copy: Copy) -> None:
    """A reader and its line in formats.py read a log, and inspect tells the format."""
    _, inspected, _ = copy.follow("Add a format of logs")
    assert inspected.startswith("log.rec: recfile, ")
    (row,) = read_rows(Path("log.ctxrel"))
    assert (row["id"], row["question"], len(row["contexts"])) == ("1", "Who wrote Emma?", 2)


def test_a_broken_entry_of_the_format(copy: Copy) -> None:
    """What the example does not understand is one record's problem."""
    copy.follow("Add a format of logs")
    Path("bad.rec").write_text("question: q?\ncontexts: c\n\nquestion: q?\nnothing\n\n\nquestion: q?\ncontexts: c\n")
    copy._run("ctxrel run bad.rec --model offline --max-errors 1")
    rows = read_rows(Path("bad.ctxrel"))
    assert [row["status"] for row in rows] == ["evaluated", "error", "evaluated"]
    assert rows[1]["error"]["message"] == "bad.rec:5: a line without 'Field: value'"


def test_a_judge(copy: Copy) -> None:
    """A judge and its line are a name for --model."""
    copy.follow("Add a judge")
    rows = read_rows(Path("support_en.ctxrel"))
    assert {row["model"] for row in rows if row["contexts"]} == {"first"}
    for row in rows:
        assert [context["spans"][0][0] for context in row["contexts"]] == [0] * len(row["contexts"])


def test_a_command(copy: Copy) -> None:
    """A module and its lines are a command."""
    assert json.loads(copy.follow("Add a command")[-1]) == {"context_relevance": {"bad_input": 1}}


@pytest.mark.parametrize("heading", re.findall(r"^## (Add .*)$", PAGE, re.MULTILINE))
def test_examples_are_short(heading: str) -> None:
    """Whatever is added takes fewer than forty lines."""
    for block in blocks(heading):
        assert len(block.text.splitlines()) < _MOST_LINES, block.path


def test_rooms() -> None:
    """The map has every room, and the top of the house."""
    packages = tomllib.loads((ROOT / "pyproject.toml").read_text())["tool"]["setuptools"]["packages"]
    told = re.findall(r"^\| `([\w.]+)` \|", section("The rooms"), re.MULTILINE)
    assert set(told) == {name.removeprefix("ctxrel.") for name in packages}
