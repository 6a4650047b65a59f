"""How far a judge agrees with people, and what the corpus scores once its errors are taken out."""

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from statistics import fmean
from typing import Any

from ...evaluators.errors import InputError, UsageError
from ...evaluators.outputs.output import UNIT, Range
from ..statistics.agreement import Cell, Estimate, accuracy, alpha, confusion, kappa, precision, recall
from ..statistics.intervals import Interval
from ..statistics.prediction import Corrected, corrected_mean, labels_mean
from .labels import Labels
from .rows import ResultsFile, Verdict

THRESHOLD = 0.5
_MOST_GRADES = 20


@dataclass(kw_only=True)
class _Scores:
    """The scores of one evaluator in one file."""

    labels: list[float] = field(default_factory=list)
    labelled: list[float] = field(default_factory=list)
    """The judge's, of the same records."""
    others: list[float] = field(default_factory=list)
    """The judge's, of records without a label."""
    not_judged: int = 0
    """Labelled records without a score."""
    prompts: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    ratings: dict[str, list[float]] = field(default_factory=dict)

    def add(self, verdict: Verdict, labels: Mapping[str, float], ratings: Mapping[str, list[float]]) -> None:
        """Count a row."""
        if verdict.prompt:
            self.prompts[verdict.prompt] += 1
        if verdict.model:
            self.models[verdict.model] += 1
        if verdict.id in ratings:
            self.ratings[verdict.id] = ratings[verdict.id]
        if verdict.score is None:
            self.not_judged += verdict.id in labels
        elif verdict.id in labels:
            self.labels.append(labels[verdict.id])
            self.labelled.append(verdict.score)
        else:
            self.others.append(verdict.score)


def calibrate(
    results: ResultsFile, labels: Labels, *, evaluators: list[str] | None, threshold: float | None
) -> list[dict[str, Any]]:
    """A block for each evaluator (all, or those named) as JSON can hold it. Raises InputError and UsageError."""
    found: dict[str, _Scores] = {}
    one = labels.labels()
    for verdict in results.verdicts():
        if evaluators is None or verdict.evaluator in evaluators:
            found.setdefault(verdict.evaluator, _Scores()).add(verdict, one, labels.ratings)
    if not found:
        raise InputError(f"{results.name!r} holds no rows of {' or '.join(evaluators or ['any evaluator'])}")
    blocks = [_block(results.name, name, scores, labels, threshold) for name, scores in found.items() if scores.labels]
    if not blocks:
        raise InputError(
            f"no id of the labels is the id of a judged record in {results.name!r}; "
            "ids have to agree, --id-field names where they stand in the labels"
        )
    return blocks


def _block(results: str, name: str, scores: _Scores, labels: Labels, threshold: float | None) -> dict[str, Any]:
    least = _threshold(name, scores, labels, threshold)
    verdicts = scores.labelled if least is None else [float(score >= least) for score in scores.labelled]
    pairs = list(zip(scores.labels, verdicts, strict=True))
    bounds = _bounds(scores)
    several = [ratings for ratings in scores.ratings.values() if len(ratings) > 1]
    return {
        "results": results,
        "evaluator": name,
        "models": sorted(scores.models),
        "prompts": sorted(scores.prompts),
        "labelled": len(pairs),
        "unlabelled": len(scores.others),
        "not_judged": scores.not_judged,
        "threshold": least,
        **_agreement(pairs),
        "raters": {"records": len(several), "alpha": _estimate(alpha(several))} if several else None,
        "score": {
            "judge": fmean([*scores.labelled, *scores.others]),
            "labels": _mean(labels_mean(scores.labels, bounds)),
            "corrected": _mean(corrected_mean(scores.labels, scores.labelled, scores.others, bounds)),
        },
    }


def _threshold(name: str, scores: _Scores, labels: Labels, given: float | None) -> float | None:
    """From which score on a verdict is a 1; None where labels are grades, as the scores are. Raises UsageError."""
    if not labels.binary:
        if given is not None:
            raise UsageError(f"--threshold {given:g} is for labels that are 0 and 1; these are grades")
        return None
    highest = max((*scores.labelled, *scores.others))
    if given is None and highest > 1:
        raise UsageError(
            f"scores of {name} go up to {highest:g} and labels are 0 and 1; say from which score on it is a 1 "
            "with --threshold"
        )
    return THRESHOLD if given is None else given


def _bounds(scores: _Scores) -> Range:
    values = (*scores.labels, *scores.labelled, *scores.others)
    least, most = min(values), max(values)
    return UNIT if least >= 0 and most <= 1 else Range(least, most)


def _agreement(pairs: list[Cell]) -> dict[str, Any]:
    grades = sorted({value for pair in pairs for value in pair})
    beyond_chance = {"kappa": _estimate(kappa(pairs))}
    if len(grades) > _MOST_GRADES:  # no classes, but numbers
        return {"confusion": None, "accuracy": None, "classes": None, **beyond_chance}
    return {
        "confusion": [{"label": label, "verdict": verdict, "n": n} for (label, verdict), n in confusion(pairs).items()],
        "accuracy": _estimate(accuracy(pairs)),
        "classes": [
            {
                "class": grade,
                "precision": _estimate(precision(pairs, grade)),
                "recall": _estimate(recall(pairs, grade)),
            }
            for grade in grades
        ],
        **beyond_chance,
    }


def _estimate(found: Estimate) -> dict[str, object]:
    return {"value": found.value, "interval_95": _listed(found.interval)}


def _mean(found: Corrected) -> dict[str, object]:
    return {"mean": found.mean, "interval_95": _listed(found.interval), "weight": found.weight}


def _listed(interval: Interval | None) -> list[float] | None:
    return None if interval is None else [*interval]
