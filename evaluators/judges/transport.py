"""HTTP to one endpoint: the seam below which nothing of ours knows how bytes travel.

The hot call does not go through the openai package, whose request machinery takes more CPU than all the rest of a
record. What it is told by its environment (organisation, project, further headers, proxies) holds here as well.
"""

import asyncio
import os
import re
import ssl
from collections.abc import AsyncIterator, Iterator, Mapping
from contextlib import asynccontextmanager
from importlib.metadata import version
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakKeyDictionary

from ..errors import Failure, FailureKind, UsageError
from .endpoint import Endpoint

if TYPE_CHECKING:
    import aiohttp

LONGEST_BODY = 16 << 20
"""Bytes; no reply that could be read is longer."""
_LATE_SECONDS = 0.5
"""A timer that fires so much too late tells that nothing was read for a while; for as long it is read on."""
_HEADERS = {"OpenAI-Organization": "OPENAI_ORG_ID", "OpenAI-Project": "OPENAI_PROJECT_ID"}
_CUSTOM = "OPENAI_CUSTOM_HEADERS"
_HEADER = re.compile(r"[A-Za-z0-9!#$%&'*+.^_`|~-]+")
_OWN_HEADERS = ("content-length", "transfer-encoding", "host", "connection")


class Response(NamedTuple):
    """What the endpoint sent, whatever its status."""

    status: int
    headers: Mapping[str, str]
    """Case does not matter."""
    body: bytes

    @property
    def good(self) -> bool:
        """Whether the status tells of success."""
        return 200 <= self.status < 300  # noqa: PLR2004  # HTTP's own numbers


class Transport:
    """A pool of connections to an endpoint, for each event loop that uses it."""

    def __init__(self, endpoint: Endpoint) -> None:
        """Raises UsageError for headers of the environment that cannot be sent."""
        self._endpoint = endpoint
        self._headers = headers_for(endpoint, os.environ)
        self._base = endpoint.base_url.rstrip("/")
        self._sessions: WeakKeyDictionary[asyncio.AbstractEventLoop, aiohttp.ClientSession] = WeakKeyDictionary()

    async def post(self, path: str, body: bytes) -> Response:
        """The answer to a request with a JSON body. Raises Failure (`timeout`, `connection`, `server_error`)."""
        return await self._send("POST", path, body)

    async def get(self, path: str) -> Response:
        """What stands at a path. Raises Failure as `post` does."""
        return await self._send("GET", path, None)

    async def close(self) -> None:
        """Close this loop's connections; another request opens new ones."""
        if session := self._sessions.pop(asyncio.get_running_loop(), None):
            await session.close()

    async def _send(self, method: str, path: str, body: bytes | None) -> Response:
        import aiohttp  # noqa: PLC0415  # only a live run needs it

        session = self._sessions.get(asyncio.get_running_loop()) or self._open()
        try:
            # Over everything, from the connection to the last byte: neither silence nor a trickle holds a slot.
            async with (
                _timeout(self._endpoint.timeout),
                session.request(
                    method, self._base + path, data=body, proxy=self._endpoint.proxy, allow_redirects=False
                ) as response,
            ):
                return Response(response.status, response.headers, await _read(response))
        except (aiohttp.ClientError, TimeoutError, OSError) as error:
            raise translate(error, url=self._endpoint.base_url, seconds=self._endpoint.timeout) from error

    def _open(self) -> "aiohttp.ClientSession":
        import aiohttp  # noqa: PLC0415  # only a live run needs it

        session = aiohttp.ClientSession(
            headers=self._headers,
            # How many are in flight is the limiter's business.
            connector=aiohttp.TCPConnector(limit=0),
            cookie_jar=aiohttp.DummyCookieJar(),
            timeout=aiohttp.ClientTimeout(total=None),
        )
        self._sessions[asyncio.get_running_loop()] = session
        return session


@asynccontextmanager
async def _timeout(seconds: float) -> AsyncIterator[None]:
    """A timeout that first looks at what has arrived where the process was stopped, or busy, when its time came.

    The event loop cancels before it hands over data: an answer that was paid and is there would be lost.
    """
    loop = asyncio.get_running_loop()
    due = loop.time() + seconds
    timer: asyncio.TimerHandle
    async with asyncio.timeout(None) as limit:

        def expire() -> None:
            nonlocal timer
            late = loop.time() - due > _LATE_SECONDS
            timer = loop.call_later(_LATE_SECONDS if late else 0, lambda: limit.reschedule(loop.time()))

        timer = loop.call_at(due, expire)
        try:
            yield
        finally:
            timer.cancel()


async def _read(response: "aiohttp.ClientResponse") -> bytes:
    """The body, unpacked. Raises Failure where it has no end."""
    chunks: list[bytes] = []
    length = 0
    async for chunk in response.content.iter_any():
        length += len(chunk)
        if length > LONGEST_BODY:
            response.close()
            raise Failure(FailureKind.SERVER_ERROR, f"the endpoint's answer is longer than {LONGEST_BODY >> 20} MB")
        chunks.append(chunk)
    return b"".join(chunks)


def headers_for(endpoint: Endpoint, environment: Mapping[str, str]) -> dict[str, str]:
    """The headers of every request: ours, and those that the openai package takes from its environment.

    Raises UsageError for one that HTTP cannot hold, or that is the transport's own.
    """
    headers = {
        "Authorization": f"Bearer {endpoint.api_key or 'none'}",
        "Content-Type": "application/json",
        "Accept": "application/json",
        "User-Agent": f"ctxrel/{version('ctxrel')}",
    }
    spelled = {name.lower(): name for name in headers}
    for variable, name, value in _further_headers(environment):
        if not _HEADER.fullmatch(name) or not value.isprintable() or name.lower() in _OWN_HEADERS:
            raise UsageError(f"{variable} holds a header that cannot be sent; change it or unset it")
        headers[spelled.setdefault(name.lower(), name)] = value
    return headers


def _further_headers(environment: Mapping[str, str]) -> Iterator[tuple[str, str, str]]:
    """Variable, name and value of the headers that the environment asks for."""
    for name, variable in _HEADERS.items():
        if value := environment.get(variable, "").strip():
            yield variable, name, value
    for line in environment.get(_CUSTOM, "").split("\n"):
        name, colon, value = line.partition(":")
        if colon and name.strip():
            yield _CUSTOM, name.strip(), value.strip()


def translate(error: Exception, *, url: str, seconds: float) -> Failure:
    """What a failed attempt means: the only place that knows the exceptions of the client and the system."""
    import aiohttp  # noqa: PLC0415  # there already, if it is one of its exceptions

    if isinstance(error, aiohttp.ClientHttpProxyError):
        return Failure(FailureKind.CONNECTION, f"no connection to {url}: the proxy answered HTTP {error.status}")
    if isinstance(error, (ssl.SSLError, aiohttp.ServerFingerprintMismatch)):
        return Failure(FailureKind.CONNECTION, f"no TLS with {url}: {_tls_words(error)}")
    if isinstance(error, TimeoutError):
        return Failure(FailureKind.TIMEOUT, f"no answer within {seconds:g} s", billed=True)
    if isinstance(error, (aiohttp.ClientConnectionError, OSError)):
        billed = not isinstance(error, aiohttp.ClientConnectorError)  # that one comes before anything is sent
        return Failure(FailureKind.CONNECTION, f"no connection to {url}: {_words(error)}", billed=billed)
    return Failure(FailureKind.SERVER_ERROR, "the endpoint's answer was cut or is not HTTP", billed=True)


def _tls_words(error: Exception) -> str:
    if isinstance(error, ssl.SSLCertVerificationError):
        cause = getattr(error, "certificate_error", error)  # aiohttp's has the system's inside
        reason = getattr(cause, "verify_message", "") or "unknown authority"
        return f"its certificate is not trusted ({reason}); SSL_CERT_FILE names further authorities"
    return "it does not speak TLS, or another version; is it http: instead?"


def _words(error: Exception) -> str:
    if isinstance(error, OSError) and error.errno and error.errno > 0:
        return os.strerror(error.errno)
    return " ".join(str(error).split()) or type(error).__name__
