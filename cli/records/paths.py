"""Dotted paths into a record: `a.b`, `a[].text`, `a[-1]`."""

import re
from dataclasses import dataclass
from functools import cached_property

from ...evaluators.errors import UsageError

_PATH = re.compile(r"[^.\[\]]+(?:\[-?\d*\])*(?:\.[^.\[\]]+(?:\[-?\d*\])*)*")
_STEP = re.compile(r"[^.\[\]]+|\[-?\d*\]")


class Missing(LookupError):
    """Nothing stands at the path."""


@dataclass(frozen=True)
class FieldPath:
    """A place in a record; `[]` goes over all items of a list, `[0]` and `[-1]` take one."""

    text: str

    def __post_init__(self) -> None:
        if not _PATH.fullmatch(self.text):
            raise UsageError(f"{self.text!r} is no field path; write it like question, meta.query or results[].text")

    @cached_property
    def steps(self) -> list[str]:
        """Keys and brackets, one after the other."""
        return _STEP.findall(self.text)

    @property
    def top(self) -> str:
        """The top-level field it starts at."""
        return self.steps[0]

    def get(self, record: dict[str, object]) -> object:
        """The value; a key that holds the dots itself comes before a path. Raises Missing."""
        return _get(record, self.steps)


def _get(value: object, steps: list[str]) -> object:
    if not steps:
        return value
    if steps[0].startswith("["):
        return _get_items(value, steps[0][1:-1], steps[1:])
    if not isinstance(value, dict):
        raise Missing(steps[0])
    names = next((at for at, step in enumerate(steps) if step.startswith("[")), len(steps))
    for count in range(names, 0, -1):
        key = ".".join(steps[:count])
        if key in value:
            return _get(value[key], steps[count:])
    raise Missing(steps[0])


def _get_items(value: object, which: str, steps: list[str]) -> object:
    if not isinstance(value, list):
        raise Missing(f"[{which}]")
    if not which:
        return [_get(item, steps) for item in value]
    try:
        return _get(value[int(which)], steps)
    except IndexError:
        raise Missing(f"[{which}]") from None
