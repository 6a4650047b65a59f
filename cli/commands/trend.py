"""`ctxrel trend`: the same run night after night."""

from typing import Annotated, Any

import typer

from ..console import show_table, write_json, write_out
from ..reports import figures
from . import options as opt

EPILOG = "Example: ctxrel trend '*.ctxrel/summary.json'"


def trend(
    summaries: Annotated[
        list[str], typer.Argument(metavar="SUMMARY...", help="Folders of runs, their summaries, or globs in quotes.")
    ],
    *,
    evaluator: Annotated[
        list[str] | None, typer.Option("-e", "--evaluator", metavar="NAME", help="Only its scores; repeatable.")
    ] = None,
    as_json: opt.AsJson = False,
) -> None:
    """Show scores over time.

    The band tells what chance does, and which nights fall out of it.
    """
    from ..reports.trending import find_summaries  # noqa: PLC0415  # 5 ms that other commands need not pay
    from ..reports.trending import trend as trend_of  # noqa: PLC0415

    found = trend_of(find_summaries(summaries), evaluators=evaluator)
    if as_json:
        write_json({"evaluators": found})
        return
    for name, series in found.items():
        _show(name, series)


def _show(name: str, series: dict[str, Any]) -> None:
    from ..reports.trending import FEWEST, chart  # noqa: PLC0415

    band, nights = series["band"], series["nights"]
    rows = [
        [
            night["started"][:16].replace("T", " "),
            figures.number(night["score"]), figures.interval(night["interval_95"]),
            f"{night['evaluated']:,}", line, _remark(night),
        ]
        for night, line in zip(nights, chart(series), strict=True)
    ]  # fmt: skip
    show_table(name, ["started", "score", "95 % interval", "evaluated", "", ""], rows, to_stderr=False)
    if band is None:
        write_out(f"no band of chance: it takes {FEWEST} complete runs")
        return
    out = sum(night["outside"] for night in nights) or "none"
    limits = f"{band['low']:.3f} to {band['high']:.3f} around {band['centre']:.3f}"
    write_out(f"band of chance: {limits}; {out} of {len(nights)} outside")


def _remark(night: dict[str, Any]) -> str:
    parts = [f"outside, {night['side']}"] if night["outside"] else []
    if not night["counts"]:
        parts.append(f"{night['status']}, not counted" if night["status"] != "complete" else "no score")
    if night["changed"]:
        changed = ["model" if key == "models" else key for key in night["changed"]]
        parts.append(f"other {' and '.join(dict.fromkeys(changed))}")
    return ", ".join(parts)
