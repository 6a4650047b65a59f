"""The same run night after night: which nights fall out of what chance does."""

import glob
from collections.abc import Iterable, Mapping
from itertools import pairwise
from pathlib import Path
from typing import Any

from ...evaluators.errors import InputError
from ..records.source import printable
from ..runs.gates import is_low_good
from ..statistics.control import FEWEST, control_band
from .summaries import SUMMARY, read_summary

_WIDTH = 40
__all__ = ["FEWEST", "chart", "find_summaries", "trend"]


def find_summaries(given: Iterable[str]) -> list[Path]:
    """Files and folders, and what globs match, each run once. Raises InputError for what matches nothing."""
    found: dict[Path, Path] = {}
    for name in given:
        matches = [name] if Path(name).exists() else sorted(glob.glob(name, recursive=True))  # noqa: PTH207
        if not matches:
            raise InputError(f"no file {name!r}; name folders of runs or their summaries, as 'runs/*/summary.json'")
        for match in map(Path, matches):
            found.setdefault((match / SUMMARY if match.is_dir() else match).resolve(), match)
    return list(found.values())


def trend(paths: Iterable[Path], *, evaluators: list[str] | None) -> dict[str, Any]:
    """Each evaluator's nights in the order of time, with the band of chance, as JSON can hold it. Raises InputError."""
    read = [(path, read_summary(path)) for path in paths]
    read.sort(key=lambda pair: str(pair[1]["timings"]["started"]))
    names = dict.fromkeys(name for _, summary in read for name in summary["evaluators"])
    wanted = [name for name in names if evaluators is None or name in evaluators]
    if not wanted:
        raise InputError(
            f"no summary has a block of {' or '.join(evaluators or ['any evaluator'])}; known are {', '.join(names)}"
        )
    return {name: _series([pair for pair in read if name in pair[1]["evaluators"]], name) for name in wanted}


def _series(read: list[tuple[Path, dict[str, Any]]], name: str) -> dict[str, Any]:
    nights = [_night(path, summary, name) for path, summary in read]
    low_is_good = is_low_good(read[-1][1]["evaluators"][name])
    band = control_band([night["score"] for night in nights if night["counts"]])
    for night in nights:
        inside = band is None or not night["counts"] or band.low <= night["score"] <= band.high
        night["outside"] = not inside
        if band and not inside:
            night["side"] = "worse" if (night["score"] > band.centre) == low_is_good else "better"
    for before, after in pairwise(nights):
        after["changed"] = [key for key in ("prompt", "model", "models") if before[key] != after[key]]
    return {"band": band and band._asdict(), "nights": nights}


def _night(path: Path, summary: dict[str, Any], name: str) -> dict[str, Any]:
    block = summary["evaluators"][name]
    return {
        "summary": printable(path),
        "started": summary["timings"]["started"],
        "status": summary["status"],
        "score": block["score"],
        "interval_95": block["interval_95"],
        "evaluated": block["evaluated"],
        "n": block["n"],
        "prompt": block["prompt"],
        "model": summary["judge"]["model"],
        "models": sorted(summary["judge"].get("models") or {}),
        "counts": summary["status"] == "complete" and block["score"] is not None,
        "side": None,
        "changed": [],
    }


def chart(series: Mapping[str, Any]) -> list[str]:
    """A line for each night: its score as `o`, `X` outside of the band, whose ends are `|` and whose centre is `:`."""
    nights, band = series["nights"], series["band"]
    limits = [band[name] for name in ("low", "centre", "high")] if band else []
    scores = [night["score"] for night in nights if night["score"] is not None]
    if not scores:
        return [""] * len(nights)
    least, most = min([*scores, *limits]), max([*scores, *limits])

    def place(value: float) -> int:
        return round((value - least) / (most - least) * (_WIDTH - 1)) if most > least else _WIDTH // 2

    lines = []
    for night in nights:
        line = [" "] * _WIDTH
        for value, sign in zip(limits, "|:|", strict=False):
            line[place(value)] = sign
        if night["score"] is not None:
            line[place(night["score"])] = "X" if night["outside"] else "o"
        lines.append("".join(line))
    return lines
