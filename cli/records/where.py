"""Conditions on single fields: `lang=ko`, `score<0.5`."""

import math
import operator
import re
from collections.abc import Callable
from dataclasses import dataclass
from decimal import Decimal
from typing import Any

from ...evaluators.errors import UsageError
from ...evaluators.jsontext import NotJSON, dumps_anything, loads
from .fields import optional
from .paths import FieldPath

_CONDITION = re.compile(r'\s*((?:"(?:[^"\\]|\\.)*"|[^=!<>])+?)\s*(!=|<=|>=|==?|<|>)\s*(.*?)\s*', re.DOTALL)
_COMPARISONS: dict[str, Callable[[Any, Any], bool]] = {
    "=": operator.eq,
    "!=": operator.ne,
    "<": operator.lt,
    "<=": operator.le,
    ">": operator.gt,
    ">=": operator.ge,
}


@dataclass(frozen=True, kw_only=True)
class Condition:
    """What a field has to be; one that is missing counts as null."""

    path: FieldPath
    sign: str
    text: str
    """What it is compared with; `null` also means a missing field."""
    number: float | None
    """The same as a number, None where it is none (or stands in quotes)."""

    def holds(self, record: dict[str, object]) -> bool:
        """Whether the record's field meets it."""
        value = optional(self.path, record)
        compare = _COMPARISONS[self.sign]
        if self.sign in ("=", "!="):
            if self.number is not None and _is_number(value):
                return compare(value, self.number)
            return compare(plain_text(value), self.text)
        if value is None:
            return False
        number = value if _is_number(value) else _number(plain_text(value))
        if self.number is None:
            return not _is_number(value) and compare(plain_text(value), self.text)
        return number is not None and compare(number, self.number)

    def __str__(self) -> str:
        written = self.text if self.number is not None or _number(self.text) is None else f'"{self.text}"'
        return f"{self.path.text}{self.sign}{written}"


def parse_condition(given: str) -> Condition:
    """The condition of a text like `lang=ko`; a value in double quotes is text, also if it reads as a number.

    Raises UsageError.
    """
    parts = _CONDITION.fullmatch(given)
    if not parts:
        raise UsageError(f"{given!r} is no condition; write --where 'lang=ko' or --where 'score<0.5'")
    name, sign, text = parts.groups()
    quoted = _unquoted(text)
    return Condition(
        path=FieldPath(name),
        sign="=" if sign == "==" else sign,
        text=text if quoted is None else quoted,
        number=_number(text) if quoted is None else None,
    )


def plain_text(value: object) -> str:
    """A field's value as it is compared and shown: texts bare, all else as JSON."""
    if isinstance(value, str):
        return value
    try:
        text = dumps_anything(value).decode()
    except TypeError:  # nested beyond what can be written
        return ""
    return text[1:-1] if text.startswith('"') else text


def _unquoted(text: str) -> str | None:
    """The text in double quotes, None where there are none."""
    if not text.startswith('"'):
        return None
    try:
        value = loads(text)
    except NotJSON:
        return None
    return value if isinstance(value, str) else None


def _is_number(value: object) -> bool:
    return isinstance(value, (int, float, Decimal)) and not isinstance(value, bool)


def _number(text: str) -> float | None:
    for read in (int, float):
        try:
            number: float = read(text)
        except ValueError:
            continue
        return number if math.isfinite(number) else None
    return None
