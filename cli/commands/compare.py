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
    as_json: opt.AsJson = False,
) -> None:
    """Compare runs over the same records: the difference with its interval, what changed, errors, tokens and cost."""
    from ..reports.comparing import compare as compare_runs  # noqa: PLC0415  # 10 ms that others need not pay
    from ..reports.joining import Baseline  # noqa: PLC0415
    from ..reports.rows import open_results  # noqa: PLC0415

    if len(runs) < 2:  # noqa: PLR2004  # what is compared are pairs
        raise UsageError(f"{str(runs[0])!r} alone cannot be compared; name a second run")
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
        f"{name} is {block['verdict']} in {each['name']} than in {baseline}: {_signed(block['difference'])} "
        f"({_interval(block['interval_95'])})"
        for each in found
        for name, block in each["evaluators"].items()
        if block["regression"]
    ]
    if worse:
        raise GateNotMet("\nctxrel: ".join(worse))


def _show(baseline: str, found: dict[str, Any]) -> None:
    for warning in found["warnings"]:
        write_error(f"note: {warning}")
    columns = ["evaluator", "joined", "before", "after", "difference", "95 % interval", "up", "down", "p", ""]
    rows = [
        [
            name, f"{block['joined']:,}", _number(block["score"]["before"]), _number(block["score"]["after"]),
            _signed(block["difference"]), _interval(block["interval_95"]), f"{block['up']:,}", f"{block['down']:,}",
            _p_value(block["mcnemar_p"]), block["verdict"],
        ]
        for name, block in found["evaluators"].items()
    ]  # fmt: skip
    show_table(f"{baseline} -> {found['name']}", columns, rows, to_stderr=False)
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


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _p_value(value: float | None) -> str:
    return "<0.001" if value is not None and value < 0.001 else _number(value)  # noqa: PLR2004  # three decimals


def _signed(value: float | None) -> str:
    return "-" if value is None else f"{value:+.3f}"


def _interval(value: list[float] | None) -> str:
    return "-" if value is None else f"{value[0]:+.3f} to {value[1]:+.3f}"


def _percent(value: float | None) -> str:
    return "-" if value is None else f"{100 * value:.3g} %"
