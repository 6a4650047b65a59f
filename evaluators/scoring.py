"""From a verdict to a score: pure functions, so that a changed rule costs no call."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

from .checks import choice, closest, kind_of, number
from .outputs.output import UNIT, Marks, Output, Range
from .yaml_source import Place, Source

_PLACE: Place = ("scoring",)
_NONE = "none"
_LABELS = "labels"


def score_any(marks: Marks) -> float:
    """1 if there is any mark, else 0: the binary reading of context relevance."""
    return 1 if marks.total else 0


def score_mean(marks: Marks) -> float:
    """Mean of the marks, as the share of relevant statements."""
    return marks.total / marks.number


def score_value(marks: Marks) -> float:
    """The one mark."""
    return int(marks.total) if marks.total == int(marks.total) else marks.total


RULES: dict[str, Callable[[Marks], float]] = {
    "any": score_any,
    "share": score_mean,
    "mean": score_mean,
    "value": score_value,
}
"""By the name that stands under `scoring` in an evaluator's YAML."""


@dataclass(frozen=True, kw_only=True)
class Scoring:
    """How an evaluator's verdict becomes its score."""

    rule: str
    """One of RULES, `labels` or `none`."""
    position: int = 0
    """Which output it is applied to."""
    labels: Mapping[str, float] = field(default_factory=dict)
    """The score of each label."""
    range: Range = UNIT
    """Between which numbers the score can be."""
    of_nothing: float | None = 0
    """The score where there are no marks: 0 of no statements, None of no numbers."""

    def score(self, verdict: object, marks: Marks) -> float | None:
        """The score; None where the evaluator has none."""
        if self.rule == _NONE:
            return None
        if self.rule == _LABELS:
            return self.labels[str(verdict)]
        return RULES[self.rule](marks) if marks.number else self.of_nothing

    def describe(self, outputs: Sequence[Output[Any]]) -> str:
        """The rule in a word or two."""
        if self.rule == _NONE:
            return _NONE
        if self.rule == _LABELS:
            return ", ".join(f"{label} {score:g}" for label, score in self.labels.items())
        return self.rule if len(outputs) == 1 else f"{self.rule} of {outputs[self.position].name}"


def read_scoring(source: Source, value: object, outputs: Sequence[Output[Any]]) -> Scoring:
    """The rule of a definition: a rule's name, `{rule: output}`, or a score for each label. Raises DefinitionError."""
    if value is None or value == _NONE:
        return Scoring(rule=_NONE, range=Range(None, None))
    if isinstance(value, dict):
        ((rule, name), *others) = value.items() or [("", "")]
        if rule in RULES and not others and not isinstance(name, (int, float, dict)):
            return _rule_of(source, rule, name, outputs)
        return _labels(source, value, outputs)
    if isinstance(value, str):
        return _rule(source, choice(source, _PLACE, value, (*RULES, _NONE)), list(enumerate(outputs)))
    return source.fail(
        _PLACE, f"expected {', '.join(RULES)}, {_NONE} or a score for each label, found {kind_of(value)}"
    )


def _rule_of(source: Source, rule: str, name: object, outputs: Sequence[Output[Any]]) -> Scoring:
    names = [output.name for output in outputs]
    if not isinstance(name, str):
        source.fail((*_PLACE, rule), f"expected an output's name, found {name!r}")
    if name not in names:
        source.fail((*_PLACE, rule), f"there is no output {name!r}; {closest(name, names)}")
    return _rule(source, rule, [(names.index(name), outputs[names.index(name)])])


def _rule(source: Source, rule: str, outputs: Sequence[tuple[int, Output[Any]]]) -> Scoring:
    fitting = [(at, output) for at, output in outputs if rule in output.rules]
    if not fitting:
        there = "; ".join(f"{output.name} ({output.kind}) takes {_taken(output)}" for _, output in outputs)
        source.fail(_PLACE, f"the rule {rule!r} fits no output: {there}")
    if len(fitting) > 1:
        first = fitting[0][1].name
        source.fail(_PLACE, f"the rule {rule!r} fits several outputs; say which: scoring: {{{rule}: {first}}}")
    ((position, output),) = fitting
    return Scoring(
        rule=rule,
        position=position,
        range=UNIT if rule in ("any", "share") else output.range,
        of_nothing=None if output.kind in ("integers", "numbers") else 0,
    )


def _taken(output: Output[Any]) -> str:
    names = ["a score for each label" if rule == _LABELS else rule for rule in output.rules]
    return ", ".join([*names, _NONE])


def _labels(source: Source, value: dict[str, object], outputs: Sequence[Output[Any]]) -> Scoring:
    labelled = {output.name: getattr(output, _LABELS) for output in outputs if _LABELS in output.rules}
    if not labelled:
        source.fail(_PLACE, f"no output is a label; expected {', '.join(RULES)} or {_NONE}")
    place = _PLACE
    if len(value) == 1 and isinstance(scores := next(iter(value.values())), dict):
        (name,) = value
        if name not in labelled:
            source.fail((*_PLACE, name), f"{name!r} is no output that is a label; {closest(name, labelled)}")
        place, value = (*_PLACE, name), scores
    else:
        fitting = [name for name, known in labelled.items() if set(value) <= set(known)]
        if len(fitting) > 1:
            source.fail(
                _PLACE,
                f"the labels fit several outputs; say which: scoring: {{{fitting[0]}: {{{next(iter(value))}: …}}}}",
            )
        name = fitting[0] if fitting else max(labelled, key=lambda each: len(set(value) & set(labelled[each])))
    return _scores_of_labels(
        source, place, value, name, labelled[name], [output.name for output in outputs].index(name)
    )


def _scores_of_labels(
    source: Source, place: Place, value: dict[str, object], name: str, known: Sequence[str], position: int
) -> Scoring:
    for label in value:
        if label not in known:
            source.fail((*place, label), f"{label!r} is no label of {name!r}; {closest(label, known)}")
    for label in known:
        if label not in value:
            source.fail(place, f"the label {label!r} of {name!r} has no score")
    scores = {label: number(source, (*place, label), score) for label, score in value.items()}
    return Scoring(
        rule=_LABELS, position=position, labels=scores, range=Range(min(scores.values()), max(scores.values()))
    )
