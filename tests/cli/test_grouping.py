"""Groups of options: one parameter of a command, several options on the command line."""

from dataclasses import dataclass
from inspect import signature
from typing import Annotated

import pytest
import typer
from typer.testing import CliRunner

from ctxrel.cli.commands.grouping import with_groups


@dataclass(frozen=True, kw_only=True)
class Pace:
    """A group."""

    most: Annotated[int, typer.Option("-m", "--most", max=9, help="At most so many.")]
    words: Annotated[list[str] | None, typer.Option(help="Words.")] = None


@dataclass(frozen=True, kw_only=True)
class Hurry(Pace):
    """A group that has the options of another before its own."""

    fast: Annotated[bool, typer.Option("--fast", help="In a hurry.")] = False


def command(name: str, *, before: bool = False, pace: Hurry, after: bool = False) -> None:
    """Say what was given."""
    typer.echo(f"{name} {before} {pace} {after}")


def test_order_of_options() -> None:
    """A group's options stand where the group does, with their defaults; the help is the command's."""
    made = with_groups(command)
    assert list(signature(made).parameters) == ["name", "before", "most", "words", "fast", "after"]
    assert made.__doc__ == command.__doc__


@pytest.mark.parametrize(
    ("words", "said"),
    [
        (["x", "-m", "3"], "x False Hurry(most=3, words=None, fast=False) False"),
        (
            ["x", "--most", "9", "--words", "a", "--words", "b", "--fast", "--after"],
            "x False Hurry(most=9, words=['a', 'b'], fast=True) True",
        ),
        (["x"], "Missing option '-m' / '--most'"),
        (["x", "-m", "10"], "less than or equal to 9"),
    ],
)
def test_values(words: list[str], said: str) -> None:
    """The command is given the group, made of what its options were given."""
    app = typer.Typer(rich_markup_mode=None)
    app.command()(with_groups(command))
    assert said in CliRunner().invoke(app, words).output


def test_called_from_python(capsys: pytest.CaptureFixture[str]) -> None:
    """What is not given has its default, as in the command itself; what has none is asked for."""
    made = with_groups(command)
    made("x", most=2)
    assert capsys.readouterr().out == "x False Hurry(most=2, words=None, fast=False) False\n"
    with pytest.raises(TypeError, match="most"):
        made("x")
