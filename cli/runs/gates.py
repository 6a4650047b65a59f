"""Gates: how good a run has to be, asked of its summary once it is there."""

import math
import re
from collections.abc import Container, Mapping, Sequence
from dataclasses import dataclass
from enum import StrEnum
from typing import Any, NamedTuple

from ...evaluators.checks import closest
from ...evaluators.definition import LOWER
from ...evaluators.errors import UsageError
from ...evaluators.evaluator import Evaluator
from ...evaluators.outputs.output import Range

SCORE = "score"
MAX_ERRORS = "5%"
_COUNTS = ("n", "evaluated", "coverage")
_THRESHOLD = re.compile(r"(?:(?P<evaluator>[^.=]+)(?:\.(?P<figure>[^=]+))?=)?(?P<value>[^=]+)")


class GateOn(StrEnum):
    """What of a score has to reach a threshold."""

    SCORE = "score"
    LOWER_BOUND = "lower-bound"


class Threshold(NamedTuple):
    """What a figure has to reach."""

    evaluator: str | None
    """None for every evaluator whose high scores are the good ones."""
    figure: str
    value: float
    given: str
    """As it was written."""


class Allowance(NamedTuple):
    """How many rows may be errors."""

    most: int | None
    """At most so many, or `share` of them."""
    share: float
    given: str

    def allows(self, errors: int, n: int) -> bool:
        """Whether so many of `n` rows may be errors."""
        return errors <= (self.share * n if self.most is None else self.most)


FIVE_PERCENT = Allowance(None, 0.05, MAX_ERRORS)


class Gate(NamedTuple):
    """A gate and what came of it."""

    gate: str
    """As it was given on the command line."""
    evaluator: str
    figure: str
    threshold: float
    value: float | None
    """What was found; None where there is no such number."""
    met: bool | None
    """None where the run did not end, so that nobody can tell."""
    message: str
    """A sentence about it."""


@dataclass(frozen=True, kw_only=True)
class Gates:
    """All gates of a run."""

    fail_under: Sequence[Threshold] = ()
    gate_on: GateOn = GateOn.SCORE
    max_errors: Allowance = FIVE_PERCENT

    def describe(self) -> dict[str, object]:
        """The same as JSON can hold it."""
        given = [threshold.given for threshold in self.fail_under]
        return {"fail_under": given, "gate_on": self.gate_on.value, "max_errors": self.max_errors.given}

    def check(self, evaluators: Sequence[Evaluator]) -> None:
        """Raise UsageError for a threshold that no result of these evaluators could be held to."""
        low = {evaluator.name for evaluator in evaluators if evaluator.better == LOWER}
        self.check_names({evaluator.name: _figures_of(evaluator) for evaluator in evaluators}, low)
        for threshold in self.fail_under:
            for evaluator in evaluators:
                if threshold.figure == SCORE and _concerns(threshold, evaluator.name, low=evaluator.name in low):
                    _check_range(threshold, evaluator.name, evaluator.range)

    def check_names(self, known: Mapping[str, Sequence[str]], low: Container[str] = ()) -> None:
        """Raise UsageError for names that are not known; `known` are the figures of each evaluator.

        `low` are those whose low scores are the good ones.
        """
        for evaluator, figure, value, given in self.fail_under:
            scored = [name for name, names in known.items() if SCORE in names]
            if evaluator is None and scored and all(name in low for name in scored):
                name = scored[0]
                raise UsageError(
                    f"--fail-under {given}: low scores of {name} are the good ones; to hold it to this all the same "
                    f"write {name}={value:g}"
                )
            if evaluator is not None and evaluator not in known:
                raise UsageError(
                    f"--fail-under {given}: there is no evaluator {evaluator!r}; {closest(evaluator, known)}"
                )
            names = known[evaluator] if evaluator else [name for names in known.values() for name in names]
            if figure not in names:
                whose = evaluator or "no evaluator of this run"
                raise UsageError(f"--fail-under {given}: {_lacking(whose, figure)}; {closest(figure, names)}")


USUAL_GATES = Gates()


def _lacking(whose: str, figure: str) -> str:
    return f"{whose} gives a {figure}" if whose.startswith("no ") else f"{whose} has no figure {figure!r}"


def _figures_of(evaluator: Evaluator) -> list[str]:
    score = [] if evaluator.definition.scoring.rule == "none" else [SCORE]
    found = [
        name for figures in evaluator.figures() if figures for name, value in figures.result().items() if _fits(value)
    ]
    return [*score, *_COUNTS, *found]


def _fits(value: object) -> bool:
    return value is None or (isinstance(value, (int, float)) and not isinstance(value, bool))


def _check_range(threshold: Threshold, name: str, bounds: Range) -> None:
    low, high = bounds
    if (low is not None and threshold.value < low) or (high is not None and threshold.value > high):
        raise UsageError(f"--fail-under {threshold.given}: scores of {name} are from {low:g} to {high:g}")


def parse_threshold(given: str) -> Threshold:
    """A threshold from `0.8`, `EVALUATOR=0.8` or `EVALUATOR.FIGURE=0.6`. Raises UsageError."""
    parts = _THRESHOLD.fullmatch(given.replace(" ", ""))
    value = _number(parts["value"]) if parts else None
    if not parts or value is None:
        raise UsageError(
            f"--fail-under {given!r} is no threshold; write 0.8, context_relevance=0.8 or context_relevance.mrr=0.6"
        )
    return Threshold(parts["evaluator"], parts["figure"] or SCORE, value, given)


def parse_allowance(given: str) -> Allowance:
    """How many errors are allowed from `2%` or a count. Raises UsageError."""
    text = given.strip()
    share = _number(text[:-1]) if text.endswith("%") else None
    if share is not None and 0 <= share <= 100:  # noqa: PLR2004  # per cent
        return Allowance(None, share / 100, given)
    if text.isdecimal() and text.isascii():
        return Allowance(int(text), 1.0, given)
    raise UsageError(f"--max-errors {given!r} is neither a share nor a count; write 2% or 100")


def _number(text: str) -> float | None:
    try:
        value = float(text)
    except ValueError:
        return None
    return value if math.isfinite(value) else None


def judge_gates(gates: Gates, summary: Mapping[str, Any]) -> list[Gate]:
    """Every gate for every evaluator that it concerns; none is met or broken unless the run is complete."""
    found = []
    for name, block in summary["evaluators"].items():
        for threshold in gates.fail_under:
            bare = threshold.evaluator is None
            if _concerns(threshold, name, low=is_low_good(block)) and (gives_score(block) or not bare):
                found.append(_reach(threshold, gates.gate_on, name, block))
        found.append(_spare(gates.max_errors, name, block))
    if summary["status"] == "complete":
        return found
    return [gate._replace(met=None, message=f"not told: the run is {summary['status']}") for gate in found]


def _concerns(threshold: Threshold, evaluator: str, *, low: bool) -> bool:
    return threshold.evaluator == evaluator or (threshold.evaluator is None and not low)


def is_low_good(block: Mapping[str, Any]) -> bool:
    """Whether low scores of an evaluator's block of a summary are the good ones; older summaries do not say."""
    return bool(block.get("better") == LOWER)


def low_in(summary: Mapping[str, Any]) -> set[str]:
    """A summary's evaluators whose low scores are the good ones."""
    return {name for name, block in summary["evaluators"].items() if is_low_good(block)}


def gives_score(block: Mapping[str, Any]) -> bool:
    """Whether an evaluator's block of a summary can have a score."""
    return block["score"] is not None or not block["evaluated"]


def figures_in(summary: Mapping[str, Any]) -> dict[str, list[str]]:
    """What a summary's evaluators have figures of, by their names."""
    return {
        name: [
            *([SCORE] if gives_score(block) else []),
            *_COUNTS,
            *(figure for figure, value in block["figures"].items() if _fits(value)),
        ]
        for name, block in summary["evaluators"].items()
    }


def _reach(threshold: Threshold, on: GateOn, name: str, block: Mapping[str, Any]) -> Gate:
    figure = threshold.figure
    value = block[figure] if figure == SCORE or figure in _COUNTS else block["figures"].get(figure)
    what = f"the {figure} of {name}"
    if figure == SCORE and on is GateOn.LOWER_BOUND:
        value = block["interval_95"][0] if block["interval_95"] else None
        what = f"the lower bound of the score of {name}"
    met = value is not None and value >= threshold.value
    found = f"{what} is {_shown(value)}"
    reached = f"{found}, at least {threshold.value:g}" if met else f"{found}, below --fail-under {threshold.given}"
    return Gate(f"--fail-under {threshold.given}", name, figure, threshold.value, value, met, reached)


def _spare(allowance: Allowance, name: str, block: Mapping[str, Any]) -> Gate:
    errors, n = sum(block["errors"].values()), block["n"]
    met = allowance.allows(errors, n)
    share = errors / n if n else 0.0
    kinds = ", ".join(f"{count:,} {kind}" for kind, count in block["errors"].items())
    found = f"{errors:,} of {n:,} rows of {name} are errors ({_percent(share)}{': ' if kinds else ''}{kinds})"
    message = found if met else f"{found}, more than --max-errors {allowance.given}"
    counted = allowance.most is not None
    threshold, value = (float(allowance.most or 0), float(errors)) if counted else (allowance.share, share)
    return Gate(f"--max-errors {allowance.given}", name, "errors", threshold, value, met, message)


def _shown(value: float | None) -> str:
    return "not there" if value is None else f"{value:.6g}"


def _percent(share: float) -> str:
    return f"{100 * share:.3g} %"
