"""Foreign failures in our words: the only place that knows the openai package's exceptions."""

import os
import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from http import HTTPStatus

import aiohttp
import httpx2
import openai

from ..errors import (
    EndpointError,
    Failure,
    FailureKind,
    KeyRefused,
    ModelUnknown,
    QuotaExhausted,
    RateLimited,
    RunError,
)

_LONGEST_WAIT = 3600.0
_NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_MODEL = re.compile(r"\b(?:model|deployment)\b", re.IGNORECASE)
_REQUEST_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)  # OpenAI's 429 for more than a minute's tokens
_CODE = re.compile(r"[a-z_]{1,40}")
_LIMIT_TOO_LARGE = re.compile(r"max_(?:completion_)?tokens\W.{0,60}too large", re.IGNORECASE)
_TRANSIENT = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT)
_TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_TOO_LONG_TEXT = re.compile(
    r"context (?:length|size|window)|too many (?:input )?tokens|prompt is too long", re.IGNORECASE
)

_NOT_THE_FORMAT = re.compile(r"model produced output that does not match", re.IGNORECASE)  # llama.cpp's 500


def limit_too_large(error: openai.APIStatusError) -> bool:
    """Whether the record fits and only the room asked for the reply does not (vLLM's wording)."""
    return bool(_LIMIT_TOO_LARGE.search(words_of(error)))


def too_long(error: openai.APIStatusError) -> bool:
    """Whether the record does not fit into the model's context, by code or by words."""
    words = words_of(error)
    by_code = error.status_code == _TOO_LARGE or bool(_codes(error) & _TOO_LONG_CODES)
    return by_code or bool(_TOO_LONG_TEXT.search(words) or _REQUEST_TOO_LARGE.search(words))


FOREIGN = (openai.OpenAIError, httpx2.HTTPError, aiohttp.ClientError, TimeoutError, OSError)
"""What the client, its transport and the system raise when an attempt fails."""


def translate(error: Exception, *, model: str, url: str, timeout: float) -> Failure | RunError:
    """What a failed attempt means: a Failure of this request, or a RunError that ends the run."""
    if isinstance(error, openai.APIStatusError):
        return _translate_status(error, model=model, url=url)
    cause = _root_cause(error)
    # The transport reports a reset connection as a timeout; its own cause tells the two apart.
    if isinstance(cause, (TimeoutError, aiohttp.ServerTimeoutError, httpx2.TimeoutException, openai.APITimeoutError)):
        return Failure(FailureKind.TIMEOUT, f"no answer within {timeout:g} s")
    if isinstance(cause, (aiohttp.ClientConnectionError, httpx2.NetworkError, httpx2.ProxyError, OSError)):
        return Failure(FailureKind.CONNECTION, f"no connection to {url}: {_words(cause)}")
    return Failure(FailureKind.SERVER_ERROR, "the endpoint's answer was cut or is not HTTP")


def _translate_status(error: openai.APIStatusError, *, model: str, url: str) -> Failure | RunError:
    if ends_run := _run_error(error, model=model, url=url):
        return ends_run
    status = error.status_code
    if status == HTTPStatus.TOO_MANY_REQUESTS and not _REQUEST_TOO_LARGE.search(words_of(error)):
        wait = requested_wait(error.response.headers)
        return RateLimited("the endpoint's rate limit was reached (HTTP 429)", wait=wait)
    if _NOT_THE_FORMAT.search(words_of(error)):
        return Failure(FailureKind.INVALID_REPLY, "the endpoint could not read the model's reply")
    if status in _TRANSIENT or status >= HTTPStatus.INTERNAL_SERVER_ERROR:
        return Failure(FailureKind.SERVER_ERROR, f"the endpoint failed (HTTP {status})")
    return _translate_rejection(error)


def _run_error(error: openai.APIStatusError, *, model: str, url: str) -> RunError | None:
    """The error that any other request would meet as well."""
    status, codes = error.status_code, _codes(error)
    not_found = status == HTTPStatus.NOT_FOUND
    if "model_not_found" in codes or (not_found and _MODEL.search(words_of(error))):
        return ModelUnknown(f"the endpoint {url} does not serve the model {model!r}; choose another with --model")
    if codes & _NO_CREDIT or status == HTTPStatus.PAYMENT_REQUIRED:
        return QuotaExhausted(f"the account at {url} has no quota left (HTTP {status}); top it up and run again")
    if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
        refused = KeyRefused(f"the endpoint {url} refused the API key (HTTP {status}); check it and --api-key-env")
        refused.doubtful = status == HTTPStatus.FORBIDDEN and not isinstance(error.body, dict)
        return refused
    if not_found:
        lost = EndpointError(f"{url} has no chat completions (HTTP 404); check --base-url, it usually ends in /v1")
        lost.doubtful = not isinstance(error.body, dict)
        return lost
    return None


def _translate_rejection(error: openai.APIStatusError) -> Failure:
    if "content_filter" in _codes(error):
        return Failure(FailureKind.CONTENT_FILTER, "the endpoint's content filter stopped the request")
    if too_long(error):
        return Failure(FailureKind.CONTEXT_TOO_LONG, "the record does not fit into the model's context")
    return Failure(FailureKind.REJECTED, f"the endpoint rejected the request (HTTP {error.status_code}{_code(error)})")


def _codes(error: openai.APIStatusError) -> set[str]:
    """Code and type of an error, where they are texts."""
    return {word for word in (error.code, error.type) if isinstance(word, str)}


def _code(error: openai.APIStatusError) -> str:
    """Code and parameter for people; anything that does not look like one might quote a record or a key."""
    words = (error.code or error.type, error.param)
    return "".join(f", {word}" for word in words if isinstance(word, str) and _CODE.fullmatch(word))


def words_of(error: openai.APIStatusError) -> str:
    """What the endpoint wrote about the request. It may quote the record: it is read here and shown to nobody."""
    body = error.body
    if not isinstance(body, dict):
        return ""
    if isinstance(body.get("detail"), list):  # FastAPI: where and what, but not the input that it repeats
        items = [item for item in body["detail"] if isinstance(item, dict)]
        return " ".join(f"{item.get('loc')} {item.get('msg')}" for item in items)
    said = body.get("message") or body.get("detail")
    return said if isinstance(said, str) else ""


def requested_wait(headers: Mapping[str, str]) -> float | None:
    """Seconds the endpoint asks to wait (`retry-after-ms`, `Retry-After` in seconds or as a date), at most an hour."""
    try:
        if "retry-after-ms" in headers:
            return _bounded(float(headers["retry-after-ms"]) / 1000)
        value = headers.get("retry-after", "")
        if re.fullmatch(r"\s*\d+(\.\d*)?\s*", value):
            return _bounded(float(value))
        return _bounded(parsedate_to_datetime(value).timestamp() - time.time())
    except (ValueError, OverflowError):
        return None


def _bounded(seconds: float) -> float:
    return min(max(seconds, 0.0), _LONGEST_WAIT)


def _root_cause(error: BaseException) -> BaseException:
    """The first of the transport's or the system's exceptions in the chain of causes, else the last cause."""
    while error.__cause__ is not None and not isinstance(error, (aiohttp.ClientError, OSError)):
        error = error.__cause__
    return error


def _words(error: BaseException) -> str:
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return " ".join(str(error).split()) or type(error).__name__
