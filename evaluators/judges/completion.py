"""The reply in the body of a chat completion."""

from ..errors import Failure, FailureKind
from ..jsontext import NotJSON, loads
from ..replies import Reply, Usage

_MOST_TOKENS = 2**40
"""No reply has more; a count beyond it is none."""


def decode_completion(body: bytes) -> Reply:
    """The reply in an HTTP body. Raises Failure (`server_error`) where it holds no completion at all."""
    try:
        value = loads(body)
    except NotJSON:
        raise Failure(FailureKind.SERVER_ERROR, "the endpoint's answer is not JSON", billed=True) from None
    if not isinstance(value, dict) or ("choices" not in value and "error" in value):
        raise Failure(FailureKind.SERVER_ERROR, "the endpoint's answer is no completion")
    choices = value.get("choices")
    choice = _mapping(choices[0]) if isinstance(choices, list) and choices else {}
    message = _mapping(choice.get("message"))
    return Reply(
        text=_text(message.get("content")),
        finish_reason=_text(choice.get("finish_reason")) or "none",
        model=_text(value.get("model")),
        refusal=_text(message.get("refusal")),
        usage=_decode_usage(_mapping(value.get("usage"))),
    )


def _decode_usage(usage: dict[str, object]) -> Usage:
    return Usage(
        input_tokens=_count(usage.get("prompt_tokens")),
        output_tokens=_count(usage.get("completion_tokens")),
        cached_tokens=_count(_mapping(usage.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning_tokens=_count(_mapping(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def _mapping(value: object) -> dict[str, object]:
    return value if isinstance(value, dict) else {}


def _text(value: object) -> str | None:
    return value if isinstance(value, str) else None


def _count(value: object) -> int:
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else 0
