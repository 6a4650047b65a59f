"""Charts as SVG of the page's own style, each with the table it shows."""

from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from .survey import LANGUAGE, Breakdown, EvaluatorSurvey

_MOST_SCORES = 12
"""Different scores that have a bar each; more of them are put into bins."""
_BINS = 10
_MOST_COUNTS = 16
_WIDTH, _HEIGHT = 560, 260
_ROW_HEIGHT = 30
_LONGEST_LABEL = 28


@dataclass(frozen=True, kw_only=True)
class Chart:
    """A chart and its table."""

    title: str
    note: str
    svg: str
    columns: Sequence[str]
    rows: Sequence[Sequence[str]]


@dataclass(frozen=True, kw_only=True)
class _Bars:
    """What a chart of bars shows."""

    labels: Sequence[str]
    values: Sequence[float | None]
    written: Callable[[float], str]
    most: float | None = None
    """Where the axis ends, None to find out."""
    lying: bool = False


def charts_of(name: str, survey: EvaluatorSurvey, breakdowns: Sequence[Breakdown]) -> list[Chart]:
    """The charts of an evaluator, without those that have nothing to show."""
    found = [
        _scores(survey),
        _ranks(survey),
        _context_counts(survey),
        *(_breakdown(name, survey, breakdown) for breakdown in breakdowns),
        _errors(survey),
    ]
    return [chart for chart in found if chart]


def _scores(survey: EvaluatorSurvey) -> Chart | None:
    counts = Counter(round(score, 6) for score in survey.scores)
    if not counts:
        return None
    if len(counts) <= _MOST_SCORES:
        values = sorted({*counts, 0.0, 1.0} if set(counts) <= {0.0, 1.0} else counts)
        labels, heights = [f"{value:.4g}" for value in values], [counts[value] for value in values]
    else:
        labels, heights = _bins(counts)
    return _counted("Scores", "Records by their score.", "score", labels, heights)


def _bins(counts: Mapping[float, int]) -> tuple[list[str], list[int]]:
    low, high = min(counts), max(counts)
    if low >= 0 and high <= 1:
        low, high = 0.0, 1.0
    width = (high - low) / _BINS
    heights = [0] * _BINS
    for score, count in counts.items():
        heights[min(_BINS - 1, int((score - low) / width))] += count
    return [f"{low + place * width:.3g}–{low + (place + 1) * width:.3g}" for place in range(_BINS)], heights


def _context_counts(survey: EvaluatorSurvey) -> Chart | None:
    counts = survey.context_counts
    if not counts:
        return None
    most = max(counts)
    last = min(most, _MOST_COUNTS)
    heights = [counts[number] for number in range(last)] + [sum(c for n, c in counts.items() if n >= last)]
    labels = [*map(str, range(last)), f"{last}+" if most > last else str(last)]
    return _counted("Contexts per record", "Records by how many contexts were retrieved.", "contexts", labels, heights)


def _ranks(survey: EvaluatorSurvey) -> Chart | None:
    contexts, relevant = survey.ranks.contexts, survey.ranks.relevant
    if not contexts:
        return None
    ranks = sorted(contexts)
    shares = [relevant[rank] / contexts[rank] for rank in ranks]
    bars = _Bars(labels=[*map(str, ranks)], values=shares, written=_percent, most=1.0)
    rows = [
        [str(rank), f"{contexts[rank]:,}", f"{relevant[rank]:,}", _percent(share)]
        for rank, share in zip(ranks, shares, strict=True)
    ]
    note = "Share of the contexts at each rank of the retrieval that are relevant."
    return Chart(
        title="Relevance by rank",
        note=note,
        svg=_draw(bars, f"Relevance by rank. {note}"),
        columns=["rank", "contexts", "relevant", "share"],
        rows=rows,
    )


def _errors(survey: EvaluatorSurvey) -> Chart | None:
    if not survey.errors:
        return None
    kinds = survey.errors.most_common()
    labels, heights = [kind for kind, _ in kinds], [count for _, count in kinds]
    return _counted("Errors", "Records that could not be judged, by kind.", "error", labels, heights, lying=True)


def _breakdown(name: str, survey: EvaluatorSurvey, breakdown: Breakdown) -> Chart | None:
    values = [value for value in breakdown.values if name in breakdown.shares[value]]
    shares = [breakdown.shares[value][name] for value in values]
    if not any(share.scored for share in shares):
        return None
    means = [share.mean for share in shares]
    unit = max(survey.scores) <= 1 and min(survey.scores) >= 0
    note = f"Mean score by the value of {breakdown.name}."
    if breakdown.name == LANGUAGE:
        note = "Mean score by the language of the question, told by its script and its small words."
    if breakdown.left_out:
        note += f" {breakdown.left_out:,} rarer values are left out."
    labels = [value or "(empty)" for value in values]
    bars = _Bars(labels=labels, values=means, written=_score, most=1.0 if unit else None, lying=True)
    rows = [
        [label, f"{share.rows:,}", f"{share.rows - share.scored:,}", "-" if share.mean is None else _score(share.mean)]
        for label, share in zip(labels, shares, strict=True)
    ]
    return Chart(
        title=f"Score by {breakdown.name}",
        note=note,
        svg=_draw(bars, f"Score by {breakdown.name}. {note}"),
        columns=[breakdown.name, "records", "without a score", "mean score"],
        rows=rows,
    )


def _counted(
    title: str, note: str, unit: str, labels: Sequence[str], heights: Sequence[int], *, lying: bool = False
) -> Chart:
    bars = _Bars(labels=labels, values=heights, written=_count, lying=lying)
    total = sum(heights)
    rows = [[label, f"{height:,}", _percent(height / total)] for label, height in zip(labels, heights, strict=True)]
    return Chart(
        title=title, note=note, svg=_draw(bars, f"{title}. {note}"), columns=[unit, "records", "share"], rows=rows
    )


def _draw(bars: _Bars, description: str) -> str:
    """The bars as SVG whose looks are in the page's style sheet: it holds neither style nor script."""
    import pygal  # noqa: PLC0415  # an extra

    kind = pygal.HorizontalBar if bars.lying else pygal.Bar
    height = 60 + _ROW_HEIGHT * len(bars.labels) if bars.lying else _HEIGHT
    chart = kind(
        js=[],
        css=[],
        no_prefix=True,
        disable_xml_declaration=True,
        show_legend=False,
        explicit_size=False,
        width=_WIDTH,
        height=height,
        margin=8,
        margin_top=20,
        margin_right=44 if bars.lying else 8,
        title=None,
        print_values=True,
        print_values_position="top",
        truncate_label=_LONGEST_LABEL,
        value_formatter=bars.written,
        range=(0, bars.most or max([value for value in bars.values if value] or [1])),
        max_scale=5,
        style=pygal.style.Style(label_font_size=13, major_label_font_size=13, value_font_size=13),
        classes=("chart", "lying" if bars.lying else "standing"),
    )
    # A lying chart starts at the bottom.
    order = -1 if bars.lying else 1
    chart.x_labels = list(bars.labels)[::order]
    chart.add("", list(bars.values)[::order])
    chart.add_xml_filter(lambda root: _cleaned(root, description))
    return str(chart.render(is_unicode=True))


def _cleaned(root: Any, description: str) -> Any:  # noqa: ANN401  # lxml's element or the standard library's
    """Without style, scripts, comments and what pygal's own script reads; with what it says for who cannot see it."""
    del root.attrib["id"]
    root.set("role", "img")
    root.set("aria-label", description)
    for parent in [*root.iter()]:
        for child in [*parent]:
            unwanted = not isinstance(child.tag, str) or child.tag.rpartition("}")[2] in ("defs", "title", "desc")
            if unwanted or child.get("class", "").startswith(("tooltip", "plot text-overlay-tooltip")):
                parent.remove(child)
    return root


def _count(value: float) -> str:
    return f"{value:,.0f}"


def _percent(value: float) -> str:
    return f"{100 * value:.1f}".removesuffix(".0") + "%"


def _score(value: float) -> str:
    return f"{value:.3f}".rstrip("0").rstrip(".")
