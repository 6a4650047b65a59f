"""A run as a Prometheus text file, for the textfile collector of node_exporter."""

import datetime as dt
from collections.abc import Iterator, Mapping
from pathlib import PurePath
from typing import Any, NamedTuple

from .stability import stability_figures

STATUSES = ("complete", "interrupted", "budget", "pending", "failed")

HELP = {
    "ctxrel_run_status": "1 for how the run ended, 0 for the other ways.",
    "ctxrel_run_end_timestamp_seconds": "When the run ended, Unix time.",
    "ctxrel_run_duration_seconds": "How long the run took.",
    "ctxrel_score": "Mean score over the evaluated records.",
    "ctxrel_score_lower_bound": "Lower end of the score's 95 % interval.",
    "ctxrel_score_upper_bound": "Upper end of the score's 95 % interval.",
    "ctxrel_coverage_ratio": "Evaluated rows by all rows.",
    "ctxrel_rows": "Rows of the evaluator.",
    "ctxrel_evaluated_rows": "Rows that have a verdict.",
    "ctxrel_error_rows": "Rows that are errors, by kind.",
    "ctxrel_figure": "A figure of the evaluator's block of the summary.",
    "ctxrel_stability": "A figure of the evaluator's stability, by its name in the summary.",
    "ctxrel_gate_met": "1 for a gate that is met, 0 for one that is not; absent where the run did not end.",
    "ctxrel_requests": "Requests of the run: sent, answered from the store, not needed.",
    "ctxrel_tokens": "Tokens that the run paid for.",
    "ctxrel_cost_usd": "What the run cost.",
}
"""Every metric and what it tells."""


class _Sample(NamedTuple):
    metric: str
    labels: dict[str, str]
    value: float


def prometheus_text(summary: Mapping[str, Any]) -> str:
    """Gauges in the text exposition format, 0.0.4, those of an evaluator with the labels `evaluator` and `model`.

    All have the label `run`, the name of the run's folder, so that the files of two logs can stand side by side.
    """
    configuration = summary["configuration"]
    run = {"run": PurePath(configuration["output"] or configuration["inputs"][0]).name}
    model = {**run, "model": summary["judge"]["model"]}
    samples = [*_of_run(summary, run, model)]
    for name, block in summary["evaluators"].items():
        samples += _of_evaluator(block, {**run, "evaluator": name, "model": model["model"]})
    lines = []
    for metric, text in HELP.items():
        own = [sample for sample in samples if sample.metric == metric]
        if own:
            lines += [f"# HELP {metric} {text}", f"# TYPE {metric} gauge"]
            lines += [f"{metric}{{{_labels(sample.labels)}}} {float(sample.value)!r}" for sample in own]
    return "\n".join(lines) + "\n"


def _of_run(summary: Mapping[str, Any], run: dict[str, str], model: dict[str, str]) -> Iterator[_Sample]:
    for status in dict.fromkeys((*STATUSES, summary["status"])):
        yield _Sample("ctxrel_run_status", {**run, "status": status}, status == summary["status"])
    ended = dt.datetime.fromisoformat(summary["timings"]["ended"]).timestamp()
    yield _Sample("ctxrel_run_end_timestamp_seconds", run, ended)
    yield _Sample("ctxrel_run_duration_seconds", run, summary["timings"]["seconds"])
    for outcome in ("sent", "reused", "not_needed"):
        yield _Sample("ctxrel_requests", {**model, "outcome": outcome}, summary["requests"][outcome])
    for kind, tokens in summary["tokens"].items():
        yield _Sample("ctxrel_tokens", {**model, "kind": kind.removesuffix("_tokens")}, tokens)
    cost = total_cost(summary)
    if cost is not None:
        yield _Sample("ctxrel_cost_usd", model, cost)
    for gate in summary["gates"]:
        if gate["met"] is not None:
            yield _Sample(
                "ctxrel_gate_met", {**model, "evaluator": gate["evaluator"], "gate": gate["gate"]}, gate["met"]
            )


def _of_evaluator(block: Mapping[str, Any], labels: dict[str, str]) -> Iterator[_Sample]:
    low, high = block["interval_95"] or (None, None)
    found = {
        "ctxrel_score": block["score"],
        "ctxrel_score_lower_bound": low,
        "ctxrel_score_upper_bound": high,
        "ctxrel_coverage_ratio": block["coverage"],
        "ctxrel_rows": block["n"],
        "ctxrel_evaluated_rows": block["evaluated"],
    }
    yield from (_Sample(metric, labels, value) for metric, value in found.items() if value is not None)
    for kind, count in block["errors"].items():
        yield _Sample("ctxrel_error_rows", {**labels, "kind": kind}, count)
    for figure, value in block["figures"].items():
        if isinstance(value, (int, float)):
            yield _Sample("ctxrel_figure", {**labels, "figure": figure}, value)
    for name, _, value, *_ in stability_figures(block["stability"]) if block.get("stability") else ():
        if value is not None:
            yield _Sample("ctxrel_stability", {**labels, "figure": name}, value)


def total_cost(summary: Mapping[str, Any]) -> float | None:
    """What a run cost in USD, None where that is not known."""
    cost = summary.get("cost")
    value = cost.get("total") if isinstance(cost, Mapping) else cost
    return float(value) if isinstance(value, (int, float)) else None


def _labels(labels: Mapping[str, str]) -> str:
    return ",".join(f'{name}="{_escaped(value)}"' for name, value in labels.items())


def _escaped(value: str) -> str:
    return value.replace("\\", "\\\\").replace("\n", "\\n").replace('"', '\\"')
