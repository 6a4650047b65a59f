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
    choice = mapping_of(choices[0]) if isinstance(choices, list) and choices else {}
    message = mapping_of(choice.get("message"))
    return Reply(
        text=text_of(message.get("content")),
        finish_reason=text_of(choice.get("finish_reason")) or "none",
        model=text_of(value.get("model")),
        refusal=text_of(message.get("refusal")),
        usage=_decode_usage(mapping_of(value.get("usage"))),
    )


def _decode_usage(usage: dict[str, object]) -> Usage:
    return Usage(
        input_tokens=count_of(usage.get("prompt_tokens")),
        output_tokens=count_of(usage.get("completion_tokens")),
        cached_tokens=count_of(mapping_of(usage.get("prompt_tokens_details")).get("cached_tokens")),
        reasoning_tokens=count_of(mapping_of(usage.get("completion_tokens_details")).get("reasoning_tokens")),
    )


def mapping_of(value: object) -> dict[str, object]:
    """The value, empty where it is no JSON object."""
    return value if isinstance(value, dict) else {}


def text_of(value: object) -> str | None:
    """The value, None where it is no text."""
    return value if isinstance(value, str) else None


def count_of(value: object) -> int:
    """The value, 0 where it is no number of tokens."""
    return value if type(value) is int and 0 <= value < _MOST_TOKENS else 0
