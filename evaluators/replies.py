"""What the judge answered, and reading it: plainly first, never a guess."""

import re
from dataclasses import dataclass
from typing import NamedTuple

from .errors import Failure, FailureKind
from .jsontext import NotJSON, loads

_FENCE = "```"
_LANGUAGE = re.compile(r"^[A-Za-z]+(?=[\s{])")
_JSON_NAMES = {list: "list", str: "string", int: "number", float: "number", bool: "boolean", type(None): "null"}
_THINKING = re.compile(r"<think>.*?</think>", re.DOTALL)


class Usage(NamedTuple):
    """Tokens of one reply or of several."""

    input_tokens: int = 0
    output_tokens: int = 0
    cached_tokens: int = 0
    reasoning_tokens: int = 0

    def plus(self, other: "Usage") -> "Usage":
        """The tokens of both."""
        return Usage(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True, kw_only=True, slots=True)
class Reply:
    """A completion as it arrived: what is stored, and what every score is derived from."""

    text: str | None
    """The message's content; None where the endpoint sent none."""
    finish_reason: str
    model: str | None
    """The model's name as the endpoint returned it."""
    usage: Usage
    refusal: str | None = None
    batch: bool = False
    """Whether it was bought through a batch, at half the price."""


def is_repaired(reply: Reply) -> bool:
    """Whether a reply that could be read had something around its object: a fence, a BOM, a think block."""
    return not (reply.text or "").lstrip().startswith("{")


def read_object(reply: Reply) -> dict[str, object]:
    """The JSON object of a reply.

    Raises Failure: `refusal`, `content_filter`, `truncated` (cut by the token limit) or `invalid_reply`.
    """
    if reply.refusal:
        raise Failure(FailureKind.REFUSAL, "the judge refused to answer")
    if reply.finish_reason == "content_filter":
        raise Failure(FailureKind.CONTENT_FILTER, "the endpoint's content filter stopped the reply")
    try:
        return _parse(reply.text)
    except Failure:
        if reply.finish_reason == "length":
            raise Failure(FailureKind.TRUNCATED, "the reply was cut by the token limit") from None
        raise


def _parse(text: str | None) -> dict[str, object]:
    if text is None or not text.strip():
        raise Failure(FailureKind.INVALID_REPLY, "the reply has no content")
    try:
        value = _loads_either(text, _unwrap(text))
    except NotJSON as error:
        raise Failure(FailureKind.INVALID_REPLY, f"the reply is not JSON: {error}") from None
    if not isinstance(value, dict):
        raise Failure(FailureKind.INVALID_REPLY, f"the reply is a JSON {_JSON_NAMES[type(value)]}, not an object")
    return value


def _loads_either(text: str, unwrapped: str) -> object:
    try:
        return loads(text)
    except NotJSON:
        if unwrapped == text:
            raise
        return loads(unwrapped)


def _unwrap(text: str) -> str:
    """The text without a BOM, one leading think block and one fence that wraps all the rest."""
    text = text.removeprefix("\ufeff").strip()
    if thinking := _THINKING.match(text):
        text = text[thinking.end() :].strip()
    if text.startswith(_FENCE) and text.endswith(_FENCE):
        text = _LANGUAGE.sub("", text.strip("`"), count=1)
    return text
