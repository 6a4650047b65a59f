"""What the judge is asked: the static part shared by all records, and one record's request."""

from dataclasses import dataclass, field
from hashlib import blake2b

import orjson


@dataclass(frozen=True, kw_only=True, eq=False)  # compared and hashed by identity: one per evaluator
class Prompt:
    """The part of a request that is the same for every record of an evaluator."""

    name: str
    """Name of the reply's schema."""
    system: str
    """Instructions, output format and examples."""
    schema: dict[str, object] | None
    """JSON schema of the reply, strict; None where its values can be anything."""
    parameters: dict[str, object] = field(default_factory=dict)
    """Request parameters the evaluator's definition asks for."""
    form: str = ""
    """Kinds of the outputs and names of the inputs: all that a judge without language has to go by."""


@dataclass(frozen=True, slots=True)
class Request:
    """One question to the judge."""

    prompt: Prompt
    user: str
    """The record as JSON."""


def digest(*parts: object, size: int = 16) -> bytes:
    """A hash over JSON values; equal values hash alike whatever the order of their keys."""
    text = orjson.dumps(parts, option=orjson.OPT_SORT_KEYS)
    return blake2b(text, digest_size=size).digest()
