"""What an endpoint means by an answer that is no success."""

import re
import time
from collections.abc import Mapping
from email.utils import parsedate_to_datetime
from functools import cached_property
from http import HTTPStatus
from urllib.parse import urlsplit

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
from ..jsontext import NotJSON, loads
from .endpoint import Endpoint
from .transport import Response

_LONGEST_WAIT = 3600.0
_NO_CREDIT = frozenset({"insufficient_quota", "billing_hard_limit_reached", "billing_not_active"})
_MODEL = re.compile(r"\b(?:model|deployment)\b", re.IGNORECASE)
_REQUEST_TOO_LARGE = re.compile(r"request too large", re.IGNORECASE)  # OpenAI's 429 for more than a minute's tokens
_CODE = re.compile(r"[a-z_]{1,40}")
_LIMIT_TOO_LARGE = re.compile(r"max_(?:completion_)?tokens\W.{0,60}too large", re.IGNORECASE)
_TRANSIENT = (HTTPStatus.REQUEST_TIMEOUT, HTTPStatus.CONFLICT, HTTPStatus.TOO_EARLY)
_TOO_LARGE = HTTPStatus.REQUEST_ENTITY_TOO_LARGE
_TOO_LONG_CODES = frozenset({"context_length_exceeded", "exceed_context_size_error", "string_above_max_length"})
_TOO_LONG_TEXT = re.compile(
    r"context (?:length|size|window)|too many (?:input )?tokens|prompt is too long", re.IGNORECASE
)
_REDIRECTS = (301, 302, 303, 307, 308)
_LONGEST_TARGET = 200
_NOT_THE_FORMAT = re.compile(r"model produced output that does not match", re.IGNORECASE)  # llama.cpp's 500


class Refusal:
    """An answer with a status that tells of no success, read as the API words its errors."""

    def __init__(self, response: Response) -> None:
        self.status = response.status
        self.headers = response.headers
        self._body = response.body

    @cached_property
    def error(self) -> object:
        """The JSON under `error`, the whole where there is none; None where it is no JSON."""
        try:
            value = loads(self._body)
        except NotJSON:
            return None
        return value.get("error", value) if isinstance(value, dict) else value

    @property
    def worded(self) -> bool:
        """Whether it is in the API's words, not a gateway's page."""
        return isinstance(self.error, dict)

    def get(self, key: str) -> object:
        """A field of the error."""
        return self.error.get(key) if isinstance(self.error, dict) else None

    @cached_property
    def codes(self) -> set[str]:
        """Code and type, where they are texts."""
        return {word for word in (self.get("code"), self.get("type")) if isinstance(word, str)}

    @cached_property
    def words(self) -> str:
        """What was written about the request. It may quote the record: it is read here and shown to nobody."""
        if not isinstance(self.error, dict):
            return ""
        detail = self.error.get("detail")
        if isinstance(detail, list):  # FastAPI: where and what, but not the input that it repeats
            items = [item for item in detail if isinstance(item, dict)]
            return " ".join(f"{item.get('loc')} {item.get('msg')}" for item in items)
        said = self.error.get("message") or detail
        return said if isinstance(said, str) else ""

    @property
    def about_parameters(self) -> bool:
        """Whether a parameter may be to blame."""
        return self.status in (HTTPStatus.BAD_REQUEST, HTTPStatus.UNPROCESSABLE_ENTITY)

    @property
    def limit_too_large(self) -> bool:
        """Whether the record fits and only the room asked for the reply does not (vLLM's wording)."""
        return bool(_LIMIT_TOO_LARGE.search(self.words))

    @property
    def too_long(self) -> bool:
        """Whether the record does not fit into the model's context, by code or by words."""
        by_code = self.status == _TOO_LARGE or bool(self.codes & _TOO_LONG_CODES)
        return by_code or bool(_TOO_LONG_TEXT.search(self.words) or _REQUEST_TOO_LARGE.search(self.words))

    def meaning(self, endpoint: Endpoint, *, service: str = "chat completions") -> Failure | RunError:
        """A Failure of this request to a service of the endpoint, or a RunError that ends the run."""
        if ends_run := self._run_error(endpoint, service):
            return ends_run
        if self.status == HTTPStatus.TOO_MANY_REQUESTS and not _REQUEST_TOO_LARGE.search(self.words):
            return RateLimited("the endpoint's rate limit was reached (HTTP 429)", wait=requested_wait(self.headers))
        if _NOT_THE_FORMAT.search(self.words):
            return Failure(FailureKind.INVALID_REPLY, "the endpoint could not read the model's reply")
        if self.status in _TRANSIENT or self.status >= HTTPStatus.INTERNAL_SERVER_ERROR:
            wait = requested_wait(self.headers)
            return Failure(FailureKind.SERVER_ERROR, f"the endpoint failed (HTTP {self.status})", wait=wait)
        return self._rejection()

    def _run_error(self, endpoint: Endpoint, service: str) -> RunError | None:
        """The error that any other request would meet as well."""
        status, model, url = self.status, endpoint.model, endpoint.base_url
        not_found = status == HTTPStatus.NOT_FOUND
        if "model_not_found" in self.codes or (not_found and _MODEL.search(self.words)):
            return ModelUnknown(f"the endpoint {url} does not serve the model {model!r}; choose another with --model")
        if self.codes & _NO_CREDIT or status == HTTPStatus.PAYMENT_REQUIRED:
            return QuotaExhausted(f"the account at {url} has no quota left (HTTP {status}); top it up and run again")
        if status in (HTTPStatus.UNAUTHORIZED, HTTPStatus.FORBIDDEN):
            refused = KeyRefused(f"the endpoint {url} refused the API key (HTTP {status}); check it and --api-key-env")
            refused.doubtful = status == HTTPStatus.FORBIDDEN and not self.worded
            return refused
        if not_found:
            lost = EndpointError(f"{url} has no {service} (HTTP 404); check --base-url, it usually ends in /v1")
            lost.doubtful = not self.worded
            return lost
        if status in _REDIRECTS:
            return EndpointError(
                f"{url} sends requests on {self._target(endpoint.api_key)}(HTTP {status}), where the key is not sent "
                "unasked; if that is right, name it as --base-url"
            )
        return None

    def _target(self, key: str) -> str:
        """Where a redirect leads, without what may be a secret."""
        try:
            parts = urlsplit(self.headers.get("Location", ""))
        except ValueError:
            return ""
        place = parts.netloc.rpartition("@")[2] + parts.path
        if not parts.scheme or not place.isprintable() or (key and key in place):
            return ""
        return f"to {parts.scheme}://{place[:_LONGEST_TARGET]} "

    def _rejection(self) -> Failure:
        if "content_filter" in self.codes:
            return Failure(FailureKind.CONTENT_FILTER, "the endpoint's content filter stopped the request")
        if self.too_long:
            return Failure(FailureKind.CONTEXT_TOO_LONG, "the record does not fit into the model's context")
        return Failure(FailureKind.REJECTED, f"the endpoint rejected the request (HTTP {self.status}{self._code()})")

    def _code(self) -> str:
        """Code and parameter for people; anything that does not look like one might quote a record or a key."""
        words = (self.get("code") or self.get("type"), self.get("param"))
        return "".join(f", {word}" for word in words if isinstance(word, str) and _CODE.fullmatch(word))


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
