"""What was found, and what to do about it."""

from dataclasses import dataclass
from enum import StrEnum


class Status(StrEnum):
    """Whether a run can rely on it."""

    OK = "ok"
    WARN = "warn"
    FAIL = "fail"


@dataclass(frozen=True, kw_only=True)
class Finding:
    """One line of the report."""

    name: str
    """What was looked at."""
    status: Status = Status.OK
    found: str
    advice: str | None = None
    """What to do; None where there is nothing to do, or `found` says it."""


def warned(name: str, found: str, advice: str | None = None) -> Finding:
    """Something that may need action."""
    return Finding(name=name, status=Status.WARN, found=found, advice=advice)


def failed(name: str, found: str, advice: str | None = None) -> Finding:
    """Something with which a run cannot work."""
    return Finding(name=name, status=Status.FAIL, found=found, advice=advice)
