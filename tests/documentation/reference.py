"""docs/reference and docs/schema, made from the code: `python tests/documentation/reference.py` writes them."""

import sys
from collections.abc import Iterator
from enum import Enum
from pathlib import Path
from typing import Any

sys.path.insert(0, str(Path(__file__).parents[1]))

from documentation import forms
from typer.main import get_command

from ctxrel.cli.app import app

PAGE = Path(__file__).parents[2] / "docs" / "reference" / "commands.md"
_TOP = """\
# Commands and options

<!-- Made from the app: python tests/documentation/reference.py writes this page, and a test compares it. -->

The same as `ctxrel COMMAND --help`, on one page. What the exit codes say: [Exit codes](../running.md#exit-codes).
"""
_MORE = {
    "--api": "decisions.md",
    "--batch": "batch.md",
    "--concurrency": "running.md#how-many-requests-are-in-flight",
    "--config": "options.md#a-config-file",
    "--engine": "ray.md",
    "--evaluator": "evaluators.md",
    "--explain": "judge.md#reasons",
    "--fail-under": "trust.md#gates",
    "--format": "results.md",
    "--insecure": "privacy.md",
    "--keep": "options.md#what-rows-carry-along",
    "--labels": "trust.md#calibrate",
    "--max-cost": "cost.md#during-caps",
    "--max-input-tokens": "judge.md#long-records",
    "--metrics-file": "trust.md#gates",
    "--model": "local-models.md",
    "--prices": "cost.md#prices",
    "--question-field": "logs.md#fields-and-paths",
    "--repeat": "trust.md#stability",
    "--rows": "trust.md#compare",
    "--sample": "options.md#a-part-of-the-log",
    "--schema": "logs.md#the-exports-of-other-tools",
    "--store": "running.md#night-after-night",
    "--where": "options.md#a-part-of-the-log",
}
"""Pages that say more about an option."""


def reference() -> str:
    """The text of the page."""
    return "\n".join([_TOP, *(_section(name, command) for name, command in commands())])


def commands() -> Iterator[tuple[str, Any]]:
    """Every command with its whole name, the app itself first."""
    root = get_command(app)
    yield "ctxrel", root
    yield from _within("ctxrel", root)


def _within(name: str, group: Any) -> Iterator[tuple[str, Any]]:  # noqa: ANN401  # Typer's Click is vendored and has no public types
    for short, command in group.commands.items():
        if hasattr(command, "commands"):
            yield from _within(f"{name} {short}", command)
        else:
            yield f"{name} {short}", command


def _section(name: str, command: Any) -> str:  # noqa: ANN401  # the same
    paragraphs = [" ".join(part.split()) for part in command.help.split("\n\n")]
    rows = [_row(parameter) for parameter in command.params]
    table = ["\n".join(["| | default | |", "|---|---|---|", *rows])] if rows else []
    example = command.epilog.removeprefix("Example: ")
    return "\n\n".join([f"## {name}", *paragraphs, *table, f"Example: `{example}`\n"])


def _row(parameter: Any) -> str:  # noqa: ANN401  # the same
    cells = [_names(parameter), _default(parameter), _meaning(parameter)]
    return f"| {' | '.join(_escaped(cell) for cell in cells)} |"


def _escaped(cell: str) -> str:
    """Neither a cell of its own nor a tag."""
    return cell.replace("|", "\\|").replace("<", "\\<")


def _names(parameter: Any) -> str:  # noqa: ANN401  # the same
    if parameter.param_type_name == "argument":
        return f"`{parameter.metavar or parameter.name.upper()}`"
    *short, long = sorted(parameter.opts, key=len)
    value = "" if parameter.is_flag else f" {parameter.metavar or _choices(parameter)}"
    return ", ".join(f"`{name}`" for name in [*short, f"{long}{value}"])


def _choices(parameter: Any) -> str:  # noqa: ANN401  # the same
    kind = parameter.type_descriptor.annotation
    return "|".join(map(_plain, kind)) if issubclass(kind, Enum) else str(parameter.name).upper()


def _default(parameter: Any) -> str:  # noqa: ANN401  # the same
    if parameter.required:
        return "required"
    default = parameter.default
    if default is None or default is False or not str(default):
        return ""
    return ", ".join(f"`{_plain(each)}`" for each in (default if isinstance(default, (list, tuple)) else [default]))


def _plain(value: object) -> str:
    if isinstance(value, Enum):
        return str(value.value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def _meaning(parameter: Any) -> str:  # noqa: ANN401  # the same
    meaning = (parameter.help or "").strip().removesuffix(".")
    if parameter.min is not None and parameter.max is not None and parameter.max < 2**31:
        meaning += f"; from {parameter.min:g} to {parameter.max:g}"
    page = _MORE.get(max(parameter.opts, key=len))
    return f"{meaning}: [more](../{page})" if page else meaning


if __name__ == "__main__":
    for path, text in [(PAGE, reference()), *forms.pages()]:
        path.parent.mkdir(exist_ok=True)
        path.write_text(text, encoding="utf-8")
