"""No failure of the client, its transport or the endpoint is forgotten."""

import time
from email.utils import formatdate

import httpx2
import openai
import pytest

from ctxrel.evaluators.errors import CtxrelError, Failure
from ctxrel.evaluators.judges.translate import FOREIGN, requested_wait, translate

REQUEST = httpx2.Request("POST", "http://127.0.0.1/v1/chat/completions")
# Raised only by parts of the package that are not used here: parse(), webhooks, websockets, token exchange.
UNUSED = {
    "LengthFinishReasonError",
    "ContentFilterFinishReasonError",
    "InvalidWebhookSignatureError",
    "SubjectTokenProviderError",
    "WebSocketConnectionClosedError",
    "WebSocketQueueFullError",
    "OAuthError",
}


def exceptions() -> list[type[Exception]]:
    """All exceptions that the openai package exports."""
    exported = [getattr(openai, name) for name in dir(openai) if not name.startswith("_")]
    return [each for each in exported if isinstance(each, type) and issubclass(each, openai.OpenAIError)]


def make(kind: type[Exception]) -> Exception:
    if issubclass(kind, openai.APIStatusError):
        status = getattr(kind, "status_code", 500)
        response = httpx2.Response(status if isinstance(status, int) else 500, request=REQUEST)
        return kind("said", response=response, body=None)
    if issubclass(kind, openai.APITimeoutError):
        return kind(request=REQUEST)
    if issubclass(kind, openai.APIResponseValidationError):
        return kind(response=httpx2.Response(200, request=REQUEST), body=None)
    if issubclass(kind, openai.APIConnectionError):
        return kind(message="m", request=REQUEST)
    return kind("m", REQUEST, body=None) if kind is openai.APIError else kind("m")


@pytest.mark.parametrize(
    "kind", [each for each in exceptions() if each.__name__ not in UNUSED], ids=lambda k: k.__name__
)
def test_every_exception_has_a_meaning(kind: type[Exception]) -> None:
    """Each of the package's exceptions is caught and becomes one of ours."""
    error = make(kind)
    assert isinstance(error, FOREIGN)
    assert isinstance(translate(error, model="m", url="http://h/v1", timeout=1), (Failure, CtxrelError))


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, None),
        ({"retry-after": "7"}, 7),
        ({"retry-after": "0.5"}, 0.5),
        ({"retry-after": "-3"}, None),
        ({"retry-after": "soon"}, None),
        ({"retry-after": "99999999"}, 3600),
        ({"retry-after-ms": "250", "retry-after": "7"}, 0.25),
        ({"retry-after-ms": "x"}, None),
        ({"retry-after": "Mon, 01 Jan 2001 00:00:00 GMT"}, 0),
    ],
)
def test_requested_wait(headers: dict[str, str], seconds: float | None) -> None:
    """Retry-After in all its forms; nonsense is no wait, and an hour is the most."""
    assert requested_wait(headers) == seconds


def test_requested_wait_as_a_date() -> None:
    """A date in the future is a wait until then."""
    wait = requested_wait({"retry-after": formatdate(time.time() + 60, usegmt=True)})
    assert wait == pytest.approx(60, abs=2)
