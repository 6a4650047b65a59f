"""A run, or a comparison, in a page of Markdown, for the job pages of CI servers."""

from collections.abc import Mapping, Sequence
from typing import Any

from ...evaluators.wording import counted
from ..runs.opinions.telling import stability_lines
from . import figures


def markdown_summary(summary: Mapping[str, Any]) -> str:
    """A heading, a table of the evaluators, lines on their stability, a table of the gates; no text of a record."""
    judge, counts = summary["judge"], summary["input"]
    parts = [f"## ctxrel: {summary['status']}", ""]
    if summary["error"]:
        parts += [f"**{_cell(summary['error'])}**", ""]
    drawn = f"{counts['records']:,} of " if counts["population"] != counts["records"] else ""
    parts += [
        f"{drawn}{counted(counts['population'], 'record')}, judged by {_cell(judge['description'])}.",
        "",
    ]
    rows = [
        [
            _cell(name),
            figures.number(block["score"]),
            figures.interval(block["interval_95"]),
            f"{block['evaluated']:,}",
            figures.errors(block),
        ]
        for name, block in summary["evaluators"].items()
    ]
    parts += _table(["evaluator", "score", "95 % interval", "evaluated", "errors"], rows)
    if lines := [*stability_lines(summary)]:
        parts += ["", *(f"- {_cell(line)}" for line in lines)]
    if gates := summary["gates"]:
        words = {True: "met", False: "**not met**", None: "not told"}
        told = [
            [_cell(gate["gate"]), _cell(gate["evaluator"]), words[gate["met"]], _cell(gate["message"])]
            for gate in gates
        ]
        parts += ["", *_table(["gate", "evaluator", "", ""], told)]
    return "\n".join(parts) + "\n"


def markdown_comparison(baseline: str, found: Mapping[str, Any]) -> str:
    """A heading, notes, a table of the evaluators and one of errors and tokens; no text of a record is in it."""
    parts = [f"## ctxrel: {_cell(baseline)} → {_cell(found['name'])}", ""]
    blocks = found["evaluators"]
    parts += _table(
        figures.COMPARED, [[*map(_cell, figures.comparison_row(name, block))] for name, block in blocks.items()]
    )
    sides = [
        [_cell(name), when, f"{side['rows']:,}", figures.errors(side), f"{side['tokens']:,}"]
        for name, block in blocks.items()
        for when, side in (("before", block["before"]), ("after", block["after"]))
    ]
    parts += ["", *_table(["evaluator", "", "rows", "errors", "tokens"], sides)]
    if found["warnings"]:
        parts += ["", *(f"- {_cell(warning)}" for warning in found["warnings"])]
    return "\n".join(parts) + "\n"


def _table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> list[str]:
    lines = [columns, ["---"] * len(columns), *rows]
    return [f"| {' | '.join(line)} |" for line in lines]


def _cell(text: str) -> str:
    """Text that stands for itself in a cell."""
    for sign in "\\`*_|<>[]":
        text = text.replace(sign, f"\\{sign}")
    return " ".join(text.split())
