"""`ctxrel compare`: two or more runs over the same records."""

from collections.abc import Iterator
from contextlib import contextmanager
from enum import StrEnum
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any

import orjson
import typer

from ...evaluators.checks import closest
from ...evaluators.errors import GateNotMet, UsageError
from ..console import one_line, show_table, write_error, write_json, write_out
from ..reports.figures import COMPARED, comparison_row, signed, signed_interval
from ..runs.results import ResultsFile
from . import options as opt

if TYPE_CHECKING:
    from ..reports.comparing import Sink

EPILOG = "Example: ctxrel compare support_en.ctxrel other.ctxrel"
_SHOWN = 5


class FailOn(StrEnum):
    """What makes a comparison fail."""

    REGRESSION = "regression"


def compare(
    runs: Annotated[
        list[Path],
        typer.Argument(metavar="A B...", help="Folders of runs, or files of rows; A is what others are compared with."),
    ],
    *,
    rows: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write every record whose score changed as JSON Lines.")
    ] = None,
    fail_on: Annotated[
        FailOn | None, typer.Option(help="Exit 3 where a score is worse: its whole interval is.")
    ] = None,
    lower_is_better: Annotated[
        list[str] | None, typer.Option(metavar="EVALUATOR", help="Its high scores are the bad ones; repeatable.")
    ] = None,
    markdown: Annotated[
        Path | None, typer.Option(metavar="FILE", help="Write the comparison as Markdown, as for a pull request.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Compare runs over the same records.

    Told are the difference with its interval, what changed, errors, tokens and cost.
    """
    from ..reports.comparing import compare as compare_runs  # noqa: PLC0415  # 10 ms that others need not pay
    from ..reports.files import ReportFiles, write_report  # noqa: PLC0415
    from ..reports.joining import Baseline  # noqa: PLC0415
    from ..reports.markdown import markdown_comparison  # noqa: PLC0415
    from ..reports.rows import open_results  # noqa: PLC0415

    if len(runs) < 2:  # noqa: PLR2004  # what is compared are pairs
        raise UsageError(f"{str(runs[0])!r} alone cannot be compared; name a second run")
    ReportFiles(markdown=markdown).check()
    first, *others = (open_results(run) for run in runs)
    if rows and rows.exists() and any(rows.samefile(each.path) for each in (first, *others)):
        raise UsageError(f"--rows {str(rows)!r} holds the rows of a run; name another file")
    baseline = Baseline(first)
    low_is_good = lower_is_better or []
    with _rows_into(rows) as sink:
        found = [compare_runs(baseline, other, low_is_good=low_is_good, on_change=sink) for other in others]
    for name in low_is_good:
        if all(name not in each["evaluators"] for each in found):
            raise UsageError(f"--lower-is-better {name}: there is no such evaluator; {closest(name, baseline.sides)}")
    if markdown:
        write_report(markdown, "\n".join(markdown_comparison(baseline.results.name, each) for each in found))
    if as_json:
        write_json({"baseline": baseline.results.name, "comparisons": found})
    else:
        for each in found:
            _show(baseline.results.name, each)
    if fail_on:
        _refuse_regression(baseline.results.name, found)


@contextmanager
def _rows_into(path: Path | None) -> "Iterator[Sink]":
    """What writes changed records, into a file that is there when all are. Raises OutputError."""
    if path is None:
        yield lambda _: None
        return
    file = ResultsFile(path)
    complete = False
    try:
        yield lambda row: file.write(orjson.dumps(row, option=orjson.OPT_APPEND_NEWLINE))
        complete = True
    finally:
        file.finish(complete=complete)
        if not complete:
            path.with_name(str(file.name)).unlink()


def _refuse_regression(baseline: str, found: list[dict[str, Any]]) -> None:
    worse = [
        f"{name} is {block['verdict']} in {each['name']} than in {baseline}: {signed(block['difference'])} "
        f"({signed_interval(block['interval_95'])})"
        for each in found
        for name, block in each["evaluators"].items()
        if block["regression"]
    ]
    if worse:
        raise GateNotMet("\nctxrel: ".join(worse))


def _show(baseline: str, found: dict[str, Any]) -> None:
    for warning in found["warnings"]:
        write_error(f"note: {warning}")
    rows = [comparison_row(name, block) for name, block in found["evaluators"].items()]
    show_table(f"{baseline} -> {found['name']}", COMPARED, rows, to_stderr=False)
    sides = [
        [
            name,
            when,
            f"{side['rows']:,}",
            f"{sum(side['errors'].values()):,}",
            _percent(side["error_rate"]),
            f"{side['tokens']:,}",
        ]
        for name, block in found["evaluators"].items()
        for when, side in (("before", block["before"]), ("after", block["after"]))
    ]
    show_table("", ["evaluator", "", "rows", "errors", "", "tokens"], sides, to_stderr=False)
    cost = found["cost"]
    if cost["before"] is not None and cost["after"] is not None:
        write_out(f"cost: {cost['before']:.4f} -> {cost['after']:.4f} USD")
    for block in found["evaluators"].values():
        changed = [
            [row["change"], f"{row['before']:g} -> {row['after']:g}", one_line(row["id"]), one_line(row["question"])]
            for row in block["changed"][:_SHOWN]
        ]
        if changed:
            more = block["up"] + block["down"] - len(changed)
            show_table("", ["changed", "score", "id", "question"], changed, to_stderr=False)
            if more:
                write_out(f"and {more:,} more; --rows FILE writes them all")


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"
