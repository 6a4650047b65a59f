"""Paths into a record: `a.b`, `a[].text`, `a[-1]`, `a."key with.dots"`."""

import re
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

from ...evaluators.errors import UsageError
from ...evaluators.jsontext import NotJSON, loads

_QUOTED = r'"(?:[^"\\]|\\.)*"'
_KEY = rf"(?:{_QUOTED}|[^.\[\]\"][^.\[\]]*)"
_ITEMS = r"\[-?\d*\]"
_PATH = re.compile(rf"{_KEY}(?:{_ITEMS})*(?:\.{_KEY}(?:{_ITEMS})*)*")
_STEP = re.compile(rf"({_ITEMS})|({_QUOTED})|([^.\[\]\"][^.\[\]]*)")


class Missing(LookupError):
    """Nothing stands at the path."""


class Step(NamedTuple):
    """A part of a path: a key, or a bracket."""

    text: str
    """The key, or what stands between the brackets."""
    is_items: bool = False
    is_quoted: bool = False
    """Whether the key is meant as it stands, and is no part of a longer one."""


@dataclass(frozen=True)
class FieldPath:
    """A place in a record; `[]` goes over all items of a list, `[0]` and `[-1]` take one.

    A key in double quotes may hold dots, brackets and, escaped as in JSON, quotes. Several `[]` give one flat list. A
    text on the way that spells an object or a list as JSON (tables hold them so) is read as what it spells.
    """

    text: str

    def __post_init__(self) -> None:
        """Raise UsageError for what is no path."""
        if not _PATH.fullmatch(self.text):
            raise UsageError(
                f"{self.text!r} is no field path; write it like question, meta.query, results[].text or "
                'meta."key.with.dots"'
            )
        _ = self.steps

    @cached_property
    def steps(self) -> Sequence[Step]:
        """Keys and brackets, one after the other."""
        return [_step(self.text, *found.groups()) for found in _STEP.finditer(self.text)]

    @property
    def top(self) -> str:
        """The top-level field it starts at."""
        return self.steps[0].text

    def get(self, record: dict[str, object]) -> object:
        """The value; a key that holds the dots itself comes before a path. Raises Missing."""
        if len(self.steps) > 1:
            return _get(record, self.steps)
        try:
            return record[self.top]
        except KeyError:
            raise Missing(self.top) from None

    def stands_in(self, record: dict[str, object]) -> bool:
        """Whether a record has it, be it null."""
        try:
            self.get(record)
        except Missing:
            return False
        return True


def _step(path: str, items: str | None, quoted: str | None, plain: str | None) -> Step:
    if items:
        return Step(items[1:-1], is_items=True)
    if not quoted:
        return Step(plain or "")
    try:
        return Step(str(loads(quoted)), is_quoted=True)
    except NotJSON as error:
        raise UsageError(f"{path!r} is no field path: {quoted} is not valid JSON: {error}") from None


def _get(value: object, steps: Sequence[Step]) -> object:
    if not steps:
        return value
    if isinstance(value, str):
        value = _spelled(value)
    if steps[0].is_items:
        return _get_items(value, steps[0].text, steps[1:])
    if not isinstance(value, dict):
        raise Missing(steps[0].text)
    for count in range(_most_keys(steps), 0, -1):
        key = ".".join(step.text for step in steps[:count])
        if key in value:
            return _get(value[key], steps[count:])
    raise Missing(steps[0].text)


def _most_keys(steps: Sequence[Step]) -> int:
    """How many of the steps may be one key that holds dots."""
    if steps[0].is_quoted:
        return 1
    return next((at for at, step in enumerate(steps) if step.is_items or step.is_quoted), len(steps))


def _get_items(value: object, which: str, steps: Sequence[Step]) -> object:
    if not isinstance(value, list):
        raise Missing(f"[{which}]")
    if not which:
        found = [_get(item, steps) for item in value]
        again = any(step.is_items and not step.text for step in steps)
        return [item for items in found if isinstance(items, list) for item in items] if again else found
    try:
        return _get(value[int(which)], steps)
    except IndexError:
        raise Missing(f"[{which}]") from None


def _spelled(text: str) -> object:
    """The object or list that a text spells as JSON, else the text."""
    if not text.startswith(("{", "[")):
        return text
    try:
        return loads(text)
    except NotJSON:
        return text
