"""What docs/privacy.md and docs/judge.md say of requests, files and failures is so."""

import json
import os
import re
import stat
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand
from documentation.shell import ROOT
from servers.loopback import MODEL, LoopbackServer

from ctxrel.cli.app import app
from ctxrel.cli.runs.store_schema import SCHEMA_VERSION
from ctxrel.evaluators.errors import FailureKind

SECRETS = {"id": "Distinctive-id", "tenant": "Distinctive-tenant"}
RECORD: Record = {
    **SECRETS,
    "question": "Distinctive question?",
    "contexts": ["Distinctive context."],
    "answer": "Other.",
}
PRIVATE = {".lock", "report.html", "results.jsonl", "store.sqlite", "summary.json", "changed.jsonl"}
OPEN = {"gates.xml", "summary.md", "night.prom", "labels.jsonl", "log.jsonl"}


def page(name: str) -> str:
    return (ROOT / "docs" / name).read_text(encoding="utf-8")


@pytest.fixture
def open_umask() -> Iterator[None]:
    """The most careless umask."""
    before = os.umask(0)
    yield
    os.umask(before)


def here(*arguments: str) -> None:
    """Run the command in this process."""
    app(list(arguments), standalone_mode=False)


@pytest.fixture
def judged(server: LoopbackServer, write_log: Callable[..., Path]) -> Path:
    """A run over one record of a log in a folder with a telling name."""
    Path("Distinctive-folder").mkdir()
    write_log([RECORD], "Distinctive-folder/log.jsonl")
    here("run", "Distinctive-folder/log.jsonl", "-m", MODEL, "--base-url", server.url, "-o", "run")
    return Path("run")


@pytest.mark.usefixtures("judged")
def test_what_a_request_holds(server: LoopbackServer) -> None:
    """The named inputs of the record, and neither its id, its other fields nor the log's name; the headers listed."""
    (seen,) = server.seen
    assert seen.record == {"question": RECORD["question"], "contexts": [{"1": "Distinctive context."}]}
    assert set(seen.body) == {"model", "max_completion_tokens", "temperature", "response_format", "messages"}
    static = json.dumps([seen.body["messages"][0], {**seen.body, "messages": []}, seen.headers])
    assert "Distinctive" not in static
    told = set(re.findall(r"`([A-Z][\w-]+)(?:: ctxrel/VERSION)?`", page("privacy.md")))
    usual = {"Host", "Accept-Encoding", "Content-Length"}
    assert seen.headers.keys() - usual <= told


def test_what_files_hold(judged: Path) -> None:
    """Texts of records are in the rows, and in no store and no summary of an evaluator that cites."""
    held = {path.name: path.read_bytes() for path in judged.iterdir()}
    assert b"Distinctive question" in held.pop("results.jsonl")
    everything = b"".join(held.values())
    assert b"Distinctive question" not in everything
    assert b"Distinctive context" not in everything
    assert b"Distinctive-id" not in everything
    assert {path.name for path in Path.cwd().iterdir()} == {"Distinctive-folder", "run"}


@pytest.mark.usefixtures("open_umask")
def test_modes(write_log: Callable[..., Path], ctxrel: RunCommand) -> None:
    """What holds records is its owner's alone; what others are to read is as the umask says."""
    write_log([RECORD])
    options = ["--junit", "gates.xml", "--markdown", "summary.md", "--metrics-file", "night.prom"]
    here("run", "log.jsonl", "-m", "offline", *options)
    here("run", "log.jsonl", "-m", "offline", "-o", "other", "-e", "context_relevance_graded")
    assert ctxrel("report", "log.ctxrel").returncode == 0
    here("compare", "log.ctxrel", "other", "--rows", "changed.jsonl")
    assert ctxrel("label", "log.jsonl", "--labels", "labels.jsonl", stdin="y\n").returncode == 0
    files = [path for path in Path.cwd().rglob("*") if path.is_file()]
    assert {path.name for path in files} == PRIVATE | OPEN
    assert {path.name for path in files if stat.S_IMODE(path.stat().st_mode) & 0o077} == OPEN


def test_kinds_of_failures() -> None:
    """The table of the judge's page has every kind of failure."""
    section = page("judge.md").split("\n## Failures\n")[1].split("\n## ")[0]
    cells = " ".join(line.split("|")[1] for line in section.splitlines() if line.startswith("| `"))
    assert set(re.findall(r"`(\w+)`", cells)) == set(FailureKind)


def test_record_as_the_judge_sees_it(capsys: pytest.CaptureFixture[str]) -> None:
    """The record on the judge's page is one of the worked examples, as it is sent."""
    here("prompts", "show", "context_relevance", "--rendered")
    (shown,) = re.findall(r"```json\n(.*?)\n```", page("judge.md"), re.DOTALL)
    assert f"Input: {shown}\n" in capsys.readouterr().out


def test_versions_of_the_store() -> None:
    """The page on upgrading has a line for each version of the store."""
    section = page("upgrading.md").split("\n## The store\n")[1].split("\n## ")[0]
    told: list[Any] = re.findall(r"^\| (\d+) \|", section, re.MULTILINE)
    assert told == [str(number + 1) for number in range(SCHEMA_VERSION)]
