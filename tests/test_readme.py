"""What the README and the help say is so."""

import json
import re
import shlex
import shutil
from pathlib import Path

import pytest
from conftest import RunCommand, read_rows
from documentation.terminal import COMMAND
from typer.main import get_command

from ctxrel.cli.app import EXIT_FAILED, EXIT_GATE, EXIT_NOT_FINISHED, EXIT_USAGE, app
from ctxrel.cli.reports.metrics import STATUSES

ROOT = Path(__file__).parent.parent
README = (ROOT / "README.md").read_text(encoding="utf-8")


def blocks(language: str) -> list[str]:
    return re.findall(rf"```{language}\n(.*?)```", README, re.DOTALL)


def command_line(text: str) -> list[str]:
    program, *arguments = shlex.split(text, comments=True)
    assert program == "ctxrel"
    return arguments


@pytest.fixture
def samples() -> None:
    shutil.copytree(ROOT / "sample_data", "sample_data")


def test_first_command() -> None:
    """The picture under the first command is of that command; tests/documentation holds what it shows."""
    install, run = blocks("bash")[0].strip().splitlines()
    assert install.endswith("pip install .")
    assert run == COMMAND
    assert "(docs/pictures/run.svg)" in README


@pytest.mark.usefixtures("samples")
def test_row_has_the_keys_shown(ctxrel: RunCommand) -> None:
    """The row in the README has the keys of a real one, in their order, and its statement is the sample's."""
    shown = json.loads(blocks("json")[0])
    ctxrel("run", "sample_data/support_en.jsonl", "-m", "offline")
    row = read_rows(Path("support_en.ctxrel"))[2]
    assert list(shown) == list(row)
    assert list(shown["contexts"][0]) == list(row["contexts"][0])
    assert list(shown["usage"]) == list(row["usage"])
    assert (shown["id"], shown["question"]) == (row["id"], row["question"])
    assert row["relevant_statements"][0].startswith(shown["relevant_statements"][0].rstrip("…"))
    assert shown["prompt"] == row["prompt"]


def examples() -> list[str]:
    """The examples at the end of every command's help."""
    root = get_command(app)
    groups = [root.commands[name] for name in ("prompts", "batch")]  # type: ignore[attr-defined]
    commands = [root, *root.commands.values(), *(each for group in groups for each in group.commands.values())]  # type: ignore[attr-defined]
    assert all(command.epilog.startswith("Example: ctxrel ") for command in commands)
    return list(dict.fromkeys(command.epilog.removeprefix("Example: ") for command in commands))


@pytest.mark.usefixtures("samples")
@pytest.mark.parametrize("example", examples())
def test_help_ends_with_an_example_that_runs(ctxrel: RunCommand, example: str) -> None:
    """Each command's help ends with an example, and it runs."""
    if "prompts check" in example:
        ctxrel("prompts", "copy", "context_relevance", "mine.yaml")
    if re.match("ctxrel (batch|calibrate|check|compare|label|report|trend)", example):  # of runs that are there
        for options in ([], ["-o", "other.ctxrel"]):
            ctxrel("run", "sample_data/support_en.jsonl", "-m", "offline", *options)
    assert ctxrel(*command_line(example)).returncode == 0


def test_exit_codes() -> None:
    """The README names every code but those of signals by what it means."""
    told = README[README.index("Exit codes:") :].split("\n\n")[0]
    for code in (EXIT_FAILED, EXIT_USAGE, EXIT_GATE, EXIT_NOT_FINISHED):
        assert re.search(rf"\b{code} [a-z]", told), code
    assert {f"`{status}`" for status in STATUSES} <= set(re.findall(r"`\w+`", README))
