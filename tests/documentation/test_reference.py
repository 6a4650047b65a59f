"""The page of commands is the app's, and the page of exit codes too."""

import re
from pathlib import Path

from documentation.reference import _MORE, PAGE, commands, reference

from ctxrel.cli.app import EXIT_FAILED, EXIT_GATE, EXIT_NOT_FINISHED, EXIT_USAGE
from ctxrel.cli.reports.metrics import STATUSES

RUNNING = (Path(__file__).parents[2] / "docs" / "running.md").read_text(encoding="utf-8")


def test_page_is_up_to_date() -> None:
    """Every command, argument and option with its default stands there in the words of the help."""
    said = "made anew by: python tests/documentation/reference.py"
    assert PAGE.read_text(encoding="utf-8") == reference(), said


def test_every_page_is_of_an_option() -> None:
    """No page is named for an option that there is no more."""
    options = {name for _, command in commands() for parameter in command.params for name in parameter.opts}
    assert _MORE.keys() <= options


def test_exit_codes() -> None:
    """The table has every code, and every status of a summary that goes with one."""
    section = RUNNING.split("\n## Exit codes\n")[1].split("\n## ")[0]
    codes = {int(code) for cell in re.findall(r"^\| ([\d, ]+) \|", section, re.MULTILINE) for code in cell.split(", ")}
    assert codes == {0, EXIT_FAILED, EXIT_USAGE, EXIT_GATE, EXIT_NOT_FINISHED, 129, 130, 143}
    assert set(re.findall(r"`(\w+)`", section.split("for programs")[1].split(".")[0])) == set(STATUSES)
