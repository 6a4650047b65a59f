"""Kinds of single values and of lists: text, labels, numbers, truth values."""

import math
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

from ..case import Case
from ..errors import Failure
from ..figures import ratio
from ..jsontext import dumps_anything
from .columns import ColumnType, ColumnTypes, Scalar
from .output import UNIT, Figures, Marks, Range, Reply, UnfitExample, list_of, read_binary, refuse, texts_of, value_of

_UNBOUNDED = Range(None, None)
_MOST_LISTED = 20
_SCALARS = {
    "string": Scalar.TEXT,
    "boolean": Scalar.BOOLEAN,
    "integer": Scalar.INTEGER,
    "number": Scalar.NUMBER,
    None: Scalar.JSON,
}
"""What holds a value, by the type in its JSON schema."""
_LARGEST = 2**53
"""Beyond it not every reader of the rows can tell whole numbers apart."""


@dataclass(frozen=True, kw_only=True)
class Value:
    """An output that is kept as the judge gave it."""

    name: str
    kind: str
    described: str
    """What stands for it where the output format is described."""
    shape: dict[str, object]
    """Its JSON schema."""
    reader: Callable[[Reply, str], object]
    """Gives the value under a key of a reply. Raises Failure."""
    rules: tuple[str, ...] = ()
    range: Range = _UNBOUNDED
    labels: tuple[str, ...] = ()
    """All values that a label can have."""
    join: Callable[[object, object], object] | None = None
    """Makes one value of those of two parts of a record; None where they say nothing of the whole."""
    numbered = False

    @property
    def divisible(self) -> bool:
        """Whether verdicts over parts of a record can be united."""
        return self.join is not None

    def schema(self) -> dict[str, object]:
        """JSON schema (strict) of each of its keys in the reply."""
        return {self.name: self.shape}

    def form(self) -> dict[str, str]:
        """What stands for each of its keys where the output format is described."""
        return {self.name: self.described}

    def example(self, outputs: Reply, case: Case) -> dict[str, object]:
        """The example's value, which has to be what a reply may hold. Raises UnfitExample."""
        try:
            return {self.name: self.read(outputs, case)}
        except Failure as failure:
            raise UnfitExample((self.name,), f"{failure.message}; expected {self.described}") from None

    def idle(self, case: Case) -> bool:  # noqa: ARG002  # it is for the judge to say
        """Never."""
        return False

    def nothing(self) -> object:
        """Not asked for."""
        return None

    def read(self, reply: Reply, case: Case) -> object:  # noqa: ARG002  # it says nothing of sentences
        """The value. Raises Failure."""
        return self.reader(reply, self.name)

    def found(self, verdict: object) -> dict[str, object]:  # noqa: ARG002  # there are no parts
        """Nothing."""
        return {}

    def unite(self, first: object, second: object) -> object:
        """The value of both parts; only asked for where it is divisible."""
        return self.join(first, second) if self.join else None

    def columns(self, verdict: object, case: Case) -> dict[str, object]:  # noqa: ARG002  # it stands for itself
        """The value under its name."""
        return {self.name: verdict}

    def empty(self) -> dict[str, object]:
        """An empty list, or null."""
        return {self.name: [] if self.shape.get("type") == "array" else None}

    def types(self) -> ColumnTypes:
        """What its column holds."""
        return {self.name: _type_of(self.shape)}

    def marks(self, verdict: object, case: Case) -> Marks:  # noqa: ARG002  # the verdict holds all
        """The numbers, true as 1."""
        if not self.rules or self.labels:
            return Marks(0, 0)
        numbers = verdict if isinstance(verdict, list) else [verdict]
        return Marks(sum(map(float, numbers)), len(numbers))

    def fact(self, verdict: object, case: Case) -> object:  # noqa: ARG002  # the verdict holds all
        """The value."""
        return verdict

    def figures(self) -> Figures | None:
        """How often each label was given, the mean of numbers; None for other kinds."""
        if self.labels:
            return LabelFigures(self.name, self.labels)
        return MeanFigures(self.name) if "value" in self.rules else None


class LabelFigures:
    """How often each label was given."""

    def __init__(self, name: str, labels: Sequence[str]) -> None:
        self._name = name
        self._counts = Counter(dict.fromkeys(labels, 0))

    def add(self, fact: str) -> None:
        """Count one record."""
        self._counts[fact] += 1

    def result(self) -> dict[str, Any]:
        """Counts by label, in the definition's order."""
        return {f"{self._name}_counts": dict(self._counts)}


class MeanFigures:
    """The mean of numbers, true as 1."""

    def __init__(self, name: str) -> None:
        self._name = name
        self._total, self._count = 0.0, 0

    def add(self, fact: float) -> None:
        """Count one record."""
        self._total += fact
        self._count += 1

    def result(self) -> dict[str, Any]:
        """The mean, None without any."""
        return {f"{self._name}_mean": ratio(self._total, self._count)}


def text(name: str) -> Value:
    """A text, which may be empty."""
    return Value(name=name, kind="text", described='"text"', shape={"type": "string"}, reader=_text)


def anything(name: str) -> Value:
    """Any JSON value; an endpoint is asked for JSON without a schema."""
    return Value(name=name, kind="json", described="any JSON value", shape={}, reader=_anything)


def texts(name: str) -> Value:
    """A list of texts."""
    shape: dict[str, object] = {"type": "array", "items": {"type": "string"}}
    return Value(name=name, kind="texts", described="[texts]", shape=shape, reader=texts_of)


def label(name: str, values: Sequence[str]) -> Value:
    """One of several values."""
    return Value(
        name=name,
        kind="label",
        described="one of " + ", ".join(f'"{value}"' for value in values),
        shape={"type": "string", "enum": list(values)},
        reader=partial(_label, values=values),
        rules=("labels",),
        labels=tuple(values),
    )


def boolean(name: str) -> Value:
    """True or false."""
    return Value(
        name=name, kind="boolean", described="true or false", shape={"type": "boolean"},
        reader=lambda reply, key: read_binary(value_of(reply, key), key), rules=("value",), range=UNIT,
    )  # fmt: skip


def booleans(name: str) -> Value:
    """A list of truth values."""
    return Value(
        name=name, kind="booleans", described="[true or false for each]",
        shape={"type": "array", "items": {"type": "boolean"}},
        reader=lambda reply, key: [read_binary(value, key) for value in list_of(reply, key)],
        rules=("any", "share", "mean"), range=UNIT,
    )  # fmt: skip


def number(name: str, bounds: Range, *, whole: bool) -> Value:
    """A number within bounds."""
    return Value(
        name=name,
        kind="integer" if whole else "number",
        described=_described(bounds, whole=whole),
        shape=_number_shape(bounds, whole=whole),
        reader=lambda reply, key: _number(value_of(reply, key), key, bounds=bounds, whole=whole),
        rules=("value",),
        range=bounds,
    )


def numbers(name: str, bounds: Range, *, whole: bool) -> Value:
    """A list of numbers within bounds."""
    return Value(
        name=name,
        kind="integers" if whole else "numbers",
        described=f"[{_described(bounds, whole=whole)}, for each]",
        shape={"type": "array", "items": _number_shape(bounds, whole=whole)},
        reader=lambda reply, key: [_number(value, key, bounds=bounds, whole=whole) for value in list_of(reply, key)],
        rules=("mean",),
        range=bounds,
    )


def _number_shape(bounds: Range, *, whole: bool) -> dict[str, object]:
    if not whole or bounds.low is None or bounds.high is None or bounds.high - bounds.low > _MOST_LISTED:
        # Not `minimum` and `maximum`: not every endpoint takes them in a strict schema, and the reader looks anyhow.
        return {"type": "integer" if whole else "number"}
    return {"type": "integer", "enum": list(range(math.ceil(bounds.low), math.floor(bounds.high) + 1))}


def _type_of(shape: Any) -> ColumnType:  # noqa: ANN401  # a JSON schema
    kind = shape.get("type")
    return [_type_of(shape["items"])] if kind == "array" else _SCALARS[kind]


def _described(bounds: Range, *, whole: bool) -> str:
    what = "whole number" if whole else "number"
    if bounds == _UNBOUNDED:
        return f"a {what}"
    return f"a {what} from {_end(bounds.low)} to {_end(bounds.high)}"


def _end(bound: float | None) -> str:
    """An end of a range, exactly."""
    return str(int(bound)) if bound is not None and bound == int(bound) else repr(bound)


def _anything(reply: Reply, key: str) -> object:
    value = value_of(reply, key)
    try:
        dumps_anything(value)
    except TypeError:
        refuse(f"{key!r} is nested too deeply")
    return value


def _text(reply: Reply, key: str) -> str:
    value = value_of(reply, key)
    if not isinstance(value, str):
        refuse(f"{key!r} is no text")
    return value


def _label(reply: Reply, key: str, *, values: Sequence[str]) -> str:
    value = value_of(reply, key)
    if value not in values:
        refuse(f"{key!r} is none of {', '.join(values)}")
    return str(value)


def _number(value: object, key: str, *, bounds: Range, whole: bool) -> float:
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        refuse(f"{key!r} holds something that is no number")
    if not -_LARGEST < value < _LARGEST:
        refuse(f"{key!r} holds a number beyond belief")
    if whole and value != int(value):
        refuse(f"{key!r} holds something that is no whole number")
    if (bounds.low is not None and value < bounds.low) or (bounds.high is not None and value > bounds.high):
        refuse(f"{key!r} is outside of {_end(bounds.low)} to {_end(bounds.high)}")
    return int(value) if whole else value
