"""The reply in the body of a decision."""

from ..errors import Failure, FailureKind
from ..jsontext import NotJSON, loads
from ..replies import Reply, Usage
from .completion import count_of, mapping_of, text_of


def decode_decision(body: bytes) -> Reply:
    """The reply in an HTTP body, its text the body as it arrived.

    Raises Failure (`server_error`) where it is no decision at all.
    """
    try:
        value = loads(body)
    except NotJSON:
        raise Failure(FailureKind.SERVER_ERROR, "the endpoint's answer is not JSON") from None
    if not isinstance(value, dict) or ("answers" not in value and "error" in value):
        raise Failure(FailureKind.SERVER_ERROR, "the endpoint's answer is no decision")
    usage = mapping_of(value.get("usage"))
    return Reply(
        text=body.decode(),
        finish_reason="stop",
        model=text_of(value.get("model")),
        usage=Usage(
            input_tokens=count_of(usage.get("input_tokens")),
            output_tokens=count_of(usage.get("output_tokens")),
            cached_tokens=count_of(mapping_of(usage.get("input_tokens_details")).get("cached_tokens")),
            reasoning_tokens=count_of(mapping_of(usage.get("output_tokens_details")).get("reasoning_tokens")),
        ),
    )
