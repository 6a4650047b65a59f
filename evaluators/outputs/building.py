"""Outputs out of an evaluator's YAML."""

import math
import re
from collections.abc import Callable, Mapping
from typing import Any

from .. import checks
from ..yaml_source import Place, Source
from . import values
from .citations import Citations
from .claims import ANSWER, EVIDENCE, SCORES, Claims
from .output import Output, Range
from .quotes import LOCATIONS, Quotes

NAME = re.compile(r"[A-Za-z_][A-Za-z0-9_]{0,63}")
ROW_KEYS = frozenset(
    {
        "index", "id", "evaluator", "status", "question", "contexts", "model", "prompt", "repaired", "usage", "cost",
        "error", "requests", "file", "kept", "input", "opinions", "majority",
    }
)  # fmt: skip
"""The other columns of a result row."""
_ABOUT_CONTEXTS = ("citations", "quotes", "claims")
_OWN = {"claims": (SCORES, EVIDENCE), "quotes": (LOCATIONS,)}
RELEVANT, ALL = "relevant", "all"
_Options = Mapping[str, object]


def _citations(source: Source, place: Place, options: _Options) -> Output[Any]:
    report = checks.choice(source, (*place, "report"), options.get("report", RELEVANT), (RELEVANT, ALL))
    return Citations(str(place[-1]), report_all=report == ALL)


def _label(source: Source, place: Place, options: _Options) -> Output[Any]:
    if "values" not in options:
        source.fail(place, "a label needs its values: {kind: label, values: [good, bad]}")
    labels = checks.texts(source, (*place, "values"), options["values"])
    if len(set(labels)) < max(2, len(labels)):
        source.fail((*place, "values"), "a label needs two values or more, each once")
    return values.label(str(place[-1]), labels)


def _range(source: Source, place: Place, options: _Options) -> Range:
    if "range" not in options:
        return Range(None, None)
    inside, value = (*place, "range"), options["range"]
    if not isinstance(value, list) or len(value) != 2:  # noqa: PLR2004  # a range has two ends
        source.fail(inside, f"expected the lowest and the highest number, as [0, 1], found {value!r}")
    low, high = (checks.number(source, inside, end) for end in value)
    if low >= high:
        source.fail(inside, f"the lowest number {low:g} is not below the highest {high:g}")
    return Range(low, high)


def _number(*, whole: bool, many: bool) -> "_Builder":
    make = values.numbers if many else values.number

    def build(source: Source, place: Place, options: _Options) -> Output[Any]:
        bounds = _range(source, place, options)
        if whole and bounds.low is not None and bounds.high is not None and math.ceil(bounds.low) > bounds.high:
            source.fail((*place, "range"), f"there is no whole number from {bounds.low:g} to {bounds.high:g}")
        return make(str(place[-1]), bounds, whole=whole)

    return build


_Builder = Callable[[Source, Place, _Options], Output[Any]]
KINDS: dict[str, tuple[_Builder, tuple[str, ...]]] = {
    "citations": (_citations, ("report",)),
    "quotes": (lambda _, place, __: Quotes(str(place[-1])), ()),
    "claims": (lambda _, place, __: Claims(str(place[-1])), ()),
    "label": (_label, ("values",)),
    "boolean": (lambda _, place, __: values.boolean(str(place[-1])), ()),
    "booleans": (lambda _, place, __: values.booleans(str(place[-1])), ()),
    "integer": (_number(whole=True, many=False), ("range",)),
    "integers": (_number(whole=True, many=True), ("range",)),
    "number": (_number(whole=False, many=False), ("range",)),
    "numbers": (_number(whole=False, many=True), ("range",)),
    "text": (lambda _, place, __: values.text(str(place[-1])), ()),
    "texts": (lambda _, place, __: values.texts(str(place[-1])), ()),
    "json": (lambda _, place, __: values.anything(str(place[-1])), ()),
}
"""Kinds of outputs: what makes one of its YAML, and the further keys that it takes there."""


_ALSO = {
    "enum": "label", "choice": "label", "category": "label", "categorical": "label", "string": "text", "str": "text",
    "list": "texts", "strings": "texts", "bool": "boolean", "int": "integer", "float": "number", "object": "json",
    "dict": "json", "any": "json",
}  # fmt: skip
"""What kinds are called elsewhere."""


def build_outputs(source: Source, value: object, inputs: Mapping[str, str]) -> tuple[Output[Any], ...]:
    """The outputs of a definition with these inputs. Raises DefinitionError."""
    place = ("outputs",)
    if not isinstance(value, dict) or not value:
        source.fail(
            place, f"expected names and kinds, as 'relevant_statements: citations', found {checks.kind_of(value)}"
        )
    outputs = tuple(_build(source, (*place, name), spec) for name, spec in value.items())
    about = [output for output in outputs if output.kind in _ABOUT_CONTEXTS]
    if len(about) > 1:
        source.fail((*place, about[1].name), f"an evaluator has one output of the kinds {', '.join(_ABOUT_CONTEXTS)}")
    for output in about:
        needed = ("contexts", ANSWER) if output.kind == "claims" else ("contexts",)
        if missing := [name for name in needed if name not in inputs]:
            source.fail((*place, output.name), f"the kind {output.kind!r} needs the input {missing[0]!r}")
    _refuse_collisions(source, outputs)
    for output in outputs:
        if taken := [key for key in output.schema() if key in inputs]:
            source.fail((*place, output.name), f"an input is called {taken[0]!r} as well; give one another name")
    return outputs


def _build(source: Source, place: Place, spec: object) -> Output[Any]:
    name = str(place[-1])
    if name in ROW_KEYS:
        source.fail(place, f"an output cannot be called {name!r}: every row has a column of that name already")
    if not NAME.fullmatch(name):
        source.fail(place, f"an output cannot be called {name!r}; choose letters, digits and '_'")
    options = {"kind": spec} if isinstance(spec, str) else spec
    if not isinstance(options, dict) or "kind" not in options:
        source.fail(place, f"expected a kind ({', '.join(KINDS)}), found {checks.kind_of(spec)}")
    kind = options["kind"]
    if not isinstance(kind, str) or kind not in KINDS:
        meant = f"did you mean {_ALSO[str(kind)]!r}?" if str(kind) in _ALSO else checks.closest(str(kind), KINDS)
        source.fail((*place, "kind"), f"unknown kind {kind!r}; {meant}")
    build, further = KINDS[kind]
    checks.mapping(source, place, options, required=("kind",), optional=further)
    return build(source, place, options)


def _refuse_collisions(source: Source, outputs: tuple[Output[Any], ...]) -> None:
    """No two outputs may want the same key of the reply or the same column of the row."""
    taken: dict[str, str] = {}
    for output in outputs:
        if output.name in _OWN.get(output.kind, ()):
            source.fail(("outputs", output.name), f"the kind {output.kind!r} has an entry {output.name!r} of its own")
        for key in {*output.schema(), *output.empty()}:
            if key in taken:
                source.fail(("outputs", output.name), f"{output.name!r} and {taken[key]!r} both fill {key!r}")
            taken[key] = output.name
