"""Lines of the files that go into a batch and come out of it."""

from typing import NamedTuple

import orjson

from ...errors import Failure, FailureKind
from ...jsontext import NotJSON, loads
from ..transport import Response
from .batch import shown_code

_TIMEOUTS = {
    "batch_expired": "the batch expired before the request was answered",
    "batch_cancelled": "the batch was cancelled before the request was answered",
    "request_timeout": "the request timed out in the batch",
}


class Answered(NamedTuple):
    """What became of one request of a batch."""

    key: bytes
    response: Response | None
    """None where the request was not carried out."""
    code: str = ""
    """Why it was not."""

    def failure(self) -> Failure:
        """What a request that was not carried out means."""
        if self.code in _TIMEOUTS:
            return Failure(FailureKind.TIMEOUT, _TIMEOUTS[self.code])
        return Failure(FailureKind.SERVER_ERROR, f"the batch failed at the request ({self.code})")


def request_line(key: bytes, url: str, body: bytes) -> bytes:
    """The line of a request, `body` being its JSON."""
    return b'{"custom_id":"%s","method":"POST","url":"%s","body":%s}\n' % (key.hex().encode(), url.encode(), body)


def read_line(line: bytes) -> Answered | None:
    """The line of an output or error file; None where it belongs to no request of ours."""
    try:
        value = loads(line)
    except NotJSON:
        return None
    key = _key(value.get("custom_id")) if isinstance(value, dict) else None
    if key is None or not isinstance(value, dict):
        return None
    response, error = value.get("response"), value.get("error")
    if isinstance(response, dict) and type(response.get("status_code")) is int and response["status_code"]:
        return Answered(key, Response(response["status_code"], {}, orjson.dumps(response.get("body"))))
    return Answered(key, None, shown_code(error.get("code") if isinstance(error, dict) else None))


def _key(custom_id: object) -> bytes | None:
    try:
        return bytes.fromhex(custom_id) if isinstance(custom_id, str) else None
    except ValueError:
        return None
