"""The machine-readable account of a run."""

import datetime as dt
from collections.abc import Mapping
from dataclasses import dataclass
from importlib.metadata import version
from typing import Any

import orjson

from ...evaluators.errors import BudgetReached, NotFinished, RunError
from ...evaluators.judges.asking import Asker
from ...evaluators.replies import Usage
from ..records.sampling import Sample, Selection
from .columns import SCHEMA_VERSION
from .runner import Course, Interrupted

STATUSES = ("complete", "interrupted", "budget", "pending", "failed")
"""How a run can end."""
_ENDED_BY = {Interrupted: "interrupted", BudgetReached: "budget", NotFinished: "pending"}


@dataclass(frozen=True, kw_only=True)
class Setting:
    """What a run was asked to do."""

    files: list[str]
    fields: list[str]
    """The layouts of the files, a line each."""
    results: str | None
    """Name of the file in the run's folder that holds the rows; None for standard output."""
    results_hash: str | None
    """Of all rows, where they are complete and in a file."""
    size: int | None
    """Bytes of the files, None where they are not known."""
    selection: Selection
    sample: Sample | None
    """What was drawn, None where no sample was wanted."""
    hash: str
    """Over everything but the input that the rows depend on."""
    configuration: Mapping[str, object]
    """Effective options; no secret is among them."""
    started: dt.datetime


def build_summary(course: Course, asker: Asker, setting: Setting, *, error: RunError | None) -> dict[str, object]:
    """The summary as it goes into summary.json; `error` is why the run ended early.

    `status` is `complete`, `interrupted`, `budget` (a cap is reached), `pending` (batches are under way) or `failed`;
    tokens and cost are those that this run paid for.
    """
    ended = dt.datetime.now(dt.UTC)
    return {
        "schema": SCHEMA_VERSION,
        "version": version("ctxrel"),
        "status": _status(error),
        "error": str(error) if error else None,
        "results": setting.results,
        "results_hash": setting.results_hash,
        "setting": setting.hash,
        "evaluators": {name: tally.summary() for name, tally in course.tallies.items()},
        "gates": [],
        "judge": {
            "model": asker.judge.model,
            "description": asker.judge.description,
            "models": dict(course.models),
            "notices": asker.judge.notices(),
        },
        "input": {
            "files": setting.files,
            "fields": setting.fields,
            "records": course.records,
            "population": setting.sample.population if setting.sample else course.records,
            "sample": _sample(setting),
            "size": setting.size,
            "fingerprint": course.hashes and course.hashes.fingerprint,
            "ids": course.hashes and course.hashes.ids,
        },
        "requests": {
            "sent": asker.sent,
            "reused": course.reused,
            "not_needed": course.unasked,
            "failed": {kind.value: count for kind, count in sorted(asker.failed.items())},
        },
        "concurrency": asker.limiter.growth.summary(),
        "tokens": asker.usage._asdict(),
        "batch": None,
        "cost": asker.budget.bill.summary(),
        "budget": asker.budget.summary(),
        "timings": {
            "started": setting.started.isoformat(timespec="seconds"),
            "ended": ended.isoformat(timespec="seconds"),
            "seconds": round((ended - setting.started).total_seconds(), 3),
        },
        "configuration": setting.configuration,
    }


def _status(error: RunError | None) -> str:
    if error is None:
        return "complete"
    return _ENDED_BY.get(type(error), "failed")


def add_batches(
    summary: dict[str, Any], block: dict[str, object], timings: list[dict[str, object]], usage: Usage
) -> None:
    """Tell in a summary of the batches of the run, and count what they have brought as paid by it."""
    summary["batch"] = block
    summary["timings"]["batches"] = timings
    summary["tokens"] = Usage(**summary["tokens"]).plus(usage)._asdict()


def _sample(setting: Setting) -> dict[str, object] | None:
    """What the judged records stand for, None where they are all there are or the first ones."""
    selection, sample = setting.selection, setting.sample
    if not sample and not selection.where:
        return None
    described = selection.describe()
    if not sample:
        return described
    drawn = {"drawn": len(sample.keys), "interval_of": "population"}
    return described | drawn | ({"strata": sample.summary()} if selection.by else {})


def summary_again(before: Mapping[str, Any], asker: Asker, setting: Setting) -> dict[str, object]:
    """The summary of a run that found everything as the one before had left it."""
    now = build_summary(Course(tallies={}), asker, setting, error=None)
    requests = before["requests"]
    reused = {**requests, "sent": 0, "reused": requests["sent"] + requests["reused"], "failed": {}}
    same = {
        name: before[name] for name in ("results", "results_hash", "evaluators", "input", "engine") if name in before
    }
    judge: Any = now["judge"]
    cost = _cost_again(now["cost"], before.get("cost"))
    return {**now, **same, "judge": {**judge, "models": before["judge"]["models"]}, "requests": reused, "cost": cost}


def _cost_again(now: object, before: object) -> object:
    """The cost of a run that paid for nothing, and has saved what the one before had paid or saved."""
    if not isinstance(now, dict) or not isinstance(before, dict):
        return now
    return {**now, "saved_by_store": round(before["total"] + before["saved_by_store"], 12)}


def summary_bytes(summary: dict[str, object]) -> bytes:
    """The summary as indented JSON."""
    return orjson.dumps(summary, option=orjson.OPT_INDENT_2 | orjson.OPT_APPEND_NEWLINE)
