"""The reason that a judge can be asked for beside its verdict."""

from .output import Reply
from .values import Value

REASON = "reason"


def reason() -> Value:
    """A sentence in the record's language; a reply without one is still a verdict."""
    return Value(
        name=REASON,
        kind="reason",
        described='"one short sentence that says why, in the language of the record"',
        shape={"type": "string"},
        reader=_reason,
        join=lambda first, second: "\n".join(str(part) for part in (first, second) if part) or None,
    )


def _reason(reply: Reply, key: str) -> str | None:
    value = reply.get(key)
    return value if isinstance(value, str) and value.strip() else None
