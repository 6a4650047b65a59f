"""Two runs over the same records: which is better, by how much, and where they differ."""

from collections import Counter
from collections.abc import Callable, Iterable
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ...evaluators.errors import InputError
from ...evaluators.outputs.output import UNIT, Range
from ..runs.gates import low_in
from ..statistics.paired import ClusterSum, Difference, mcnemar, mean_difference
from .joining import Baseline, Pair, Side
from .metrics import total_cost
from .rows import ResultsFile

Sink = Callable[[dict[str, object]], None]
"""Takes a record whose score changed."""
_SHOWN = 20
_QUESTION = 100
"""Characters of a question that are shown."""


@dataclass(kw_only=True)
class _Pairs:
    """The pairs of one evaluator, summed up."""

    side: Side = field(default_factory=Side)
    before: list[float] = field(default_factory=list)
    after: list[float] = field(default_factory=list)
    clusters: dict[int, ClusterSum] = field(default_factory=dict)
    unpaired: int = 0
    """Rows of the second run that the first one has none for."""
    other_questions: int = 0
    changes: Counter[str] = field(default_factory=Counter)
    shown: list[dict[str, object]] = field(default_factory=list)

    def add(self, pair: Pair) -> None:
        """Count a pair."""
        difference = pair.after - pair.before
        self.before.append(pair.before)
        self.after.append(pair.after)
        self.other_questions += not pair.same_question
        total, n = self.clusters.get(pair.cluster, (0.0, 0))
        self.clusters[pair.cluster] = (total + difference, n + 1)

    @property
    def binary(self) -> bool:
        """Whether there is no score but 0 and 1."""
        return {*self.before, *self.after} <= {0, 1}

    @property
    def bounds(self) -> Range:
        """Between which the scores are, as far as one can see."""
        scores = (*self.before, *self.after)
        least, most = min(scores), max(scores)
        return UNIT if least >= 0 and most <= 1 else Range(least, most)


def compare(baseline: Baseline, other: ResultsFile, *, low_is_good: Iterable[str], on_change: Sink) -> dict[str, Any]:
    """What another run differs in, as JSON can hold it. Raises InputError where nothing can be joined.

    Every record whose score changed is handed to `on_change`.
    """
    names = baseline.name_for(_evaluators_of(other))
    if not baseline.sides:
        raise InputError(f"{baseline.results.name!r} holds no rows: nothing was judged")
    if not names:
        raise InputError(
            f"{baseline.results.name!r} and {other.name!r} have no evaluator in common: "
            f"{', '.join(baseline.sides)}; {', '.join(_evaluators_of(other)) or 'none'}"
        )
    found = {name: _Pairs() for name in names}
    for verdict, kept in baseline.rows(other, names):
        pairs = found[verdict.evaluator]
        pairs.side.add(verdict)
        pairs.unpaired += kept is None
        pair = baseline.pair(verdict, kept)
        if pair:
            pairs.add(pair)
            if pair.before != pair.after:
                _tell(pairs, pair, other.name, on_change)
    if not any(pairs.before for pairs in found.values()):
        raise InputError(
            f"no record has a score in both {baseline.results.name!r} and {other.name!r}; ids have to agree"
        )
    low = {*low_is_good, *(low_in(other.summary) if other.summary else ())}
    blocks = {
        name: _block(baseline.sides[names[name]], pairs, low_is_good=name in low) for name, pairs in found.items()
    }
    return {
        "name": other.name,
        "warnings": [*_warnings(baseline, other, names, found)],
        "evaluators": blocks,
        "cost": {"before": _cost(baseline.results), "after": _cost(other)},
    }


def _evaluators_of(results: ResultsFile) -> list[str]:
    if results.summary:
        return list(results.summary["evaluators"])
    return list(dict.fromkeys(verdict.evaluator for verdict in results.verdicts()))


def _tell(pairs: _Pairs, pair: Pair, name: str, on_change: Sink) -> None:
    change = "up" if pair.after > pair.before else "down"
    verdict = pair.verdict
    row: dict[str, object] = {
        "results": name, "evaluator": verdict.evaluator, "id": verdict.id, "change": change,
        "before": pair.before, "after": pair.after, "question": _cut(verdict.question),
    }  # fmt: skip
    pairs.changes[change] += 1
    if len(pairs.shown) < _SHOWN:
        pairs.shown.append(row)
    on_change(row)


def _cut(text: str) -> str:
    return text if len(text) <= _QUESTION else f"{text[: _QUESTION - 2]} …"


def _block(before: Side, pairs: _Pairs, *, low_is_good: bool) -> dict[str, Any]:
    clusters = list(pairs.clusters.values())
    difference = mean_difference(clusters, pairs.bounds) if clusters else Difference(0.0, None, "bootstrap")
    up, down = pairs.changes["up"], pairs.changes["down"]
    independent = len(clusters) == len(pairs.before)
    interval = difference.interval
    return {
        "joined": len(pairs.before),
        "clusters": len(clusters),
        "score": {"before": _mean(pairs.before), "after": _mean(pairs.after)},
        "difference": difference.mean if clusters else None,
        "interval_95": interval and [*interval],
        "interval_method": difference.method,
        "mcnemar_p": mcnemar(up, down) if pairs.binary and independent and clusters else None,
        "up": up,
        "down": down,
        "verdict": (verdict := _verdict(difference)),
        "regression": verdict == ("higher" if low_is_good else "lower"),
        "changed": pairs.shown,
        "before": _side(before),
        "after": _side(pairs.side),
        "only_after": pairs.unpaired,
        "only_before": before.n - (pairs.side.n - pairs.unpaired),
    }


def _verdict(difference: Difference) -> str:
    """Whether the whole interval is on one side of no difference."""
    low, high = difference.interval or (0.0, 0.0)
    return "higher" if low > 0 else "lower" if high < 0 else "no clear difference"


def _mean(values: list[float]) -> float | None:
    return fmean(values) if values else None


def _side(side: Side) -> dict[str, object]:
    errors = side.errors.total()
    return {
        "rows": side.n,
        "errors": dict(sorted(side.errors.items())),
        "error_rate": errors / side.n if side.n else None,
        "tokens": side.tokens,
        "prompts": sorted(side.prompts),
        "models": sorted(side.models),
    }


def _cost(results: ResultsFile) -> float | None:
    return total_cost(results.summary) if results.summary else None


def _warnings(baseline: Baseline, other: ResultsFile, names: dict[str, str], found: dict[str, _Pairs]) -> Iterable[str]:
    for name, pairs in found.items():
        before = baseline.sides[names[name]]
        if names[name] != name:
            yield f"the evaluators have different names: {names[name]} and {name}"
        if before.prompts.keys() != pairs.side.prompts.keys():
            yield f"{name}: the prompts differ: {_listed(before.prompts)} and {_listed(pairs.side.prompts)}"
        if before.models.keys() != pairs.side.models.keys():
            yield f"{name}: the models differ: {_listed(before.models)} and {_listed(pairs.side.models)}"
        if pairs.other_questions:
            yield f"{name}: {pairs.other_questions:,} of {len(pairs.before):,} joined records have other questions"
    inputs = [_fingerprint(results) for results in (baseline.results, other)]
    if None not in inputs and inputs[0] != inputs[1]:
        yield "the inputs differ: other records, contexts or answers, or another order"
    for results in (baseline.results, other):
        yield from results.notes
        if results.summary and results.summary["status"] != "complete":
            yield f"the run in {results.name} is {results.summary['status']}, not complete"


def _listed(names: Counter[str]) -> str:
    return ", ".join(sorted(names)) or "none"


def _fingerprint(results: ResultsFile) -> str | None:
    found = results.summary and results.summary["input"].get("fingerprint")
    return str(found) if found else None
