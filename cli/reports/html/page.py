"""The page around the records: headline, charts, what the run cost, and how it was configured."""

import base64
import json
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from hashlib import sha256
from importlib import resources
from importlib.util import find_spec
from typing import Any

from ....evaluators.errors import UsageError
from ...runs.gates import is_low_good
from ..rows import ResultsFile
from ..stability import stability_figures
from .charts import Chart, charts_of
from .survey import EvaluatorSurvey, Survey

_SCRIPTS = ("record.js", "list.js")
_DATA = "<!-- the records -->"
_STATES = {
    "complete": "complete",
    "interrupted": "interrupted",
    "failed": "ended early",
    "budget": "stopped at its budget",
    "pending": "waiting for its batches",
    None: "without an end",
}
_TOKENS = {
    "input_tokens": "input tokens",
    "cached_tokens": "… of these cached",
    "output_tokens": "output tokens",
    "reasoning_tokens": "… of these reasoning",
}


@dataclass(frozen=True, kw_only=True)
class Page:
    """What stands before the records, and after them."""

    head: bytes
    tail: bytes


@dataclass(frozen=True, kw_only=True)
class Headline:
    """The figures of an evaluator, as they are written."""

    name: str
    score: str
    interval: str
    facts: Sequence[tuple[str, str]]
    figures: Sequence[tuple[str, str]]
    stability: Sequence[Sequence[str]]
    """What further opinions come to, row by row: its meaning, the figure, its interval, and of how many it is."""
    charts: Sequence[Chart]


def check_packages() -> None:
    """Raise UsageError where the packages of the extra are not installed."""
    if not all(map(find_spec, ("jinja2", "pygal"))):
        raise UsageError("the report needs Jinja2 and pygal: pip install 'ctxrel[report]'")


def render_page(run: ResultsFile, survey: Survey, shown: int, notes: Sequence[str]) -> Page:
    """The page of a run with so many records in it. Raises UsageError."""
    import jinja2  # noqa: PLC0415  # an extra

    files = resources.files(__package__)
    style = files.joinpath("report.css").read_text(encoding="utf-8")
    script = "\n".join(files.joinpath(name).read_text(encoding="utf-8") for name in _SCRIPTS)
    environment = jinja2.Environment(
        autoescape=True, undefined=jinja2.StrictUndefined, trim_blocks=True, lstrip_blocks=True
    )
    template = environment.from_string(files.joinpath("report.html").read_text(encoding="utf-8"))
    summary = run.summary or {}
    text: str = template.render(
        policy=content_policy(style, script),
        style=style,
        script=script,
        name=run.folder.resolve().name,
        state=_STATES.get(summary.get("status"), "without an end"),
        complete=summary.get("status") == "complete",
        facts=_facts(run, survey),
        notes=[*_notes(run), *notes],
        headlines=headlines_of(run, survey),
        costs=_costs(summary, survey),
        configuration=json.dumps(summary.get("configuration"), indent=2, ensure_ascii=False) if summary else None,
        evaluators=[*survey.evaluators],
        kinds=sorted({kind for found in survey.evaluators.values() for kind in found.errors}),
        filters=survey.filters(),
        records=survey.records,
        shown=shown,
    )
    head, tail = text.split(_DATA)
    return Page(head=head.encode(errors="replace"), tail=tail.encode(errors="replace"))


def content_policy(style: str, script: str) -> str:
    """The page's Content-Security-Policy: its own style and script by their hashes, nothing else, no address at all."""
    return (
        f"default-src 'none'; script-src '{_hash(script)}'; style-src '{_hash(style)}'; img-src data:; "
        "base-uri 'none'; form-action 'none'; require-trusted-types-for 'script'; trusted-types 'none'"
    )


def _hash(text: str) -> str:
    return f"sha256-{base64.b64encode(sha256(text.encode()).digest()).decode()}"


def headlines_of(run: ResultsFile, survey: Survey) -> list[Headline]:
    """Per evaluator what the summary says of it, or what its rows add up to, and its charts."""
    blocks = (run.summary or {}).get("evaluators") or {}
    breakdowns = survey.breakdowns()
    return [
        _headline(name, found, blocks.get(name) or {}, charts_of(name, found, breakdowns))
        for name, found in survey.evaluators.items()
    ]


def _headline(name: str, found: EvaluatorSurvey, block: Mapping[str, Any], charts: Sequence[Chart]) -> Headline:
    score = block.get("score", found.score)
    interval = block.get("interval_95", found.interval)
    bounds = block.get("bounds_if_failed")
    facts = [("evaluated", f"{found.evaluated:,} of {found.rows:,}")]
    if failed := found.rows - found.evaluated:
        facts.append(("errors", f"{failed:,}"))
        if bounds:
            facts.append(("mean if all errors had the least or the most", f"{bounds[0]:.3f} to {bounds[1]:.3f}"))
    if is_low_good(block):
        facts.append(("low scores", "are the good ones"))
    if block.get("prompt"):
        facts.append(("prompt", str(block["prompt"])))
    return Headline(
        name=name,
        score=_number(score),
        interval=f"95 % interval {interval[0]:.3f} to {interval[1]:.3f}" if interval else "no interval",
        facts=facts,
        figures=_figures(block.get("figures") or {}),
        stability=_stability(block.get("stability")),
        charts=charts,
    )


def _figures(figures: Mapping[str, object]) -> list[tuple[str, str]]:
    """The evaluator's own figures that are numbers."""
    return [
        (name.replace("_", " "), f"{value:,}" if isinstance(value, int) else f"{value:.3f}")
        for name, value in figures.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    ]


def _stability(block: Mapping[str, Any] | None) -> list[list[str]]:
    if not block:
        return []
    rows = [
        [
            figure.meaning,
            _number(figure.value),
            f"{figure.interval[0]:.3f} to {figure.interval[1]:.3f}" if figure.interval else "–",
            "–" if figure.n is None else f"{figure.n:,}",
        ]
        for figure in stability_figures(block)
    ]
    if errors := sum(block["errors"].values()):
        rows.append(["further answers that are errors", f"{errors:,}", "–", f"{block['opinions']:,}"])
    return rows


def _number(value: float | None) -> str:
    return "–" if value is None else f"{value:.3f}"


def _facts(run: ResultsFile, survey: Survey) -> list[tuple[str, str]]:
    """What was judged, by whom and when."""
    summary = run.summary or {}
    facts = [("records", f"{survey.records:,}")]
    if judge := summary.get("judge"):
        facts.append(("judge", str(judge["description"])))
    if told := summary.get("input"):
        files = told["files"]
        facts.append(("log", ", ".join(files[:3]) + (f" and {len(files) - 3:,} more" if files[3:] else "")))
    if timings := summary.get("timings"):
        facts.append(("ended", str(timings["ended"]).replace("T", " ").replace("+00:00", " UTC")))
    return facts


def _notes(run: ResultsFile) -> list[str]:
    """What has to be known before the figures are believed."""
    summary = run.summary
    notes = [run.torn] if run.torn else []
    if summary is None:
        return [f"The run has not ended, or was killed: this page is about the rows in {run.path.name} so far.", *notes]
    if summary.get("status") != "complete":
        notes.append(f"The run did not judge its whole log: {summary.get('error') or summary.get('status')}.")
    if sample := (summary.get("input") or {}).get("sample"):
        conditions = " and ".join(sample.get("where") or [])
        if sample.get("drawn") is not None:
            population = summary["input"]["population"]
            notes.append(f"The records are {sample['drawn']:,} of {population:,}, drawn by chance.")
        if sample.get("by"):
            notes.append(
                f"They were drawn by {sample['by']}: a score counts each for as many as the log has of its value, "
                "charts and tables count records."
            )
        if conditions:
            notes.append(f"The records are those that meet {conditions}.")
    notices = (summary.get("judge") or {}).get("notices") or []
    return notes + [str(notice) for notice in notices]


def _costs(summary: Mapping[str, Any], survey: Survey) -> list[tuple[str, str, str]]:
    """What was paid: its name, in this run, and behind all rows."""
    paid = summary.get("tokens") or {}
    costs = [
        (told, f"{paid[name]:,}" if name in paid else "–", f"{survey.usage[name]:,}")
        for name, told in _TOKENS.items()
        if paid.get(name) or survey.usage[name]
    ]
    if (requests := summary.get("requests")) and costs:
        costs.insert(0, ("requests", f"{requests['sent']:,}", f"{requests['sent'] + requests['reused']:,}"))
    cost = summary.get("cost")
    if isinstance(cost, Mapping) and isinstance(cost.get("total"), (int, float)):
        currency = cost.get("currency", "USD")
        behind = "–" if survey.cost is None else f"{survey.cost:,.4f}"
        costs.append((f"cost, {currency}", f"{cost['total']:,.4f}", behind))
    return costs
