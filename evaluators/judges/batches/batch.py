"""A batch as the endpoint describes it."""

import re
from collections.abc import Mapping
from typing import NamedTuple

_CODE = re.compile(r"[a-z_]{1,40}")
_ENDED = frozenset({"failed", "completed", "expired", "cancelled"})
_ENDINGS = ("completed_at", "failed_at", "expired_at", "cancelled_at")
_ROOM = re.compile(r"Limit: ([\d,]+) enqueued")
NO_ROOM = "token_limit_exceeded"
"""The code of an error where the account has too many tokens enqueued."""


class BatchError(NamedTuple):
    """Why a batch has failed as a whole."""

    code: str
    """`unknown` where the endpoint's own is none that could be shown."""
    line: int | None
    """The line of the input file that is to blame, from 1."""
    room: int | None = None
    """The tokens that the account may have enqueued, where it says so."""


class Batch(NamedTuple):
    """A batch at a moment."""

    id: str
    status: str
    """`validating`, `in_progress`, `finalizing`, `cancelling`; ended: `completed`, `failed`, `expired`, `cancelled`."""
    input_file: str | None = None
    output_file: str | None = None
    error_file: str | None = None
    completed: int = 0
    failed: int = 0
    total: int = 0
    errors: tuple[BatchError, ...] = ()
    metadata: Mapping[str, object] = {}
    created: float | None = None
    """Unix time in seconds, as `ended`."""
    ended: float | None = None

    @property
    def over(self) -> bool:
        """Whether nothing of it will change any more."""
        return self.status in _ENDED

    @property
    def no_room(self) -> bool:
        """Whether it failed because the account has too many tokens enqueued."""
        return self.status == "failed" and any(error.code == NO_ROOM for error in self.errors)

    @property
    def room(self) -> int | None:
        """The tokens that the account may have enqueued, where it says so."""
        return next((error.room for error in self.errors if error.room), None)


def read_batch(value: object) -> Batch | None:
    """The batch in an answer's JSON, None where there is none."""
    if not isinstance(value, dict) or not isinstance(value.get("id"), str) or not isinstance(value.get("status"), str):
        return None
    counts, metadata = value.get("request_counts"), value.get("metadata")
    counted = counts if isinstance(counts, dict) else {}
    return Batch(
        id=value["id"],
        status=value["status"],
        input_file=_text(value.get("input_file_id")),
        output_file=_text(value.get("output_file_id")),
        error_file=_text(value.get("error_file_id")),
        completed=_count(counted.get("completed")),
        failed=_count(counted.get("failed")),
        total=_count(counted.get("total")),
        errors=_errors(value.get("errors")),
        metadata=metadata if isinstance(metadata, dict) else {},
        created=_time(value.get("created_at")),
        ended=next((time for name in _ENDINGS if (time := _time(value.get(name)))), None),
    )


def _errors(value: object) -> tuple[BatchError, ...]:
    data = value.get("data") if isinstance(value, dict) else None
    items = [item for item in data if isinstance(item, dict)] if isinstance(data, list) else []
    return tuple(
        BatchError(shown_code(item.get("code")), _count(item.get("line")) or None, _room(item.get("message")))
        for item in items
    )


def _room(message: object) -> int | None:
    found = _ROOM.search(message) if isinstance(message, str) else None
    return int(found[1].replace(",", "")) if found else None


def shown_code(value: object) -> str:
    """An error's code for people; anything that does not look like one might quote a record or a key."""
    return value if isinstance(value, str) and _CODE.fullmatch(value) else "unknown"


def _text(value: object) -> str | None:
    return value if isinstance(value, str) and value else None


def _count(value: object) -> int:
    return value if type(value) is int and value >= 0 else 0


def _time(value: object) -> float | None:
    return float(value) if isinstance(value, (int, float)) and value > 0 else None
