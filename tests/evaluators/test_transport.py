"""HTTP to an endpoint: what is sent, what is read, and what is not followed."""

import gzip
import socket
import ssl
import threading
from unittest.mock import Mock
from urllib.request import getproxies

import aiohttp
import openai
import pytest
from servers.loopback import MODEL, Answer, LoopbackServer, cite

from ctxrel.evaluators.errors import CtxrelError, EndpointError, Failure, FailureKind, UsageError
from ctxrel.evaluators.judges.endpoint import Endpoint, find_endpoint, find_proxy
from ctxrel.evaluators.judges.refusal import Refusal, requested_wait
from ctxrel.evaluators.judges.room import parse_duration, wait_for_room
from ctxrel.evaluators.judges.transport import Response, Transport, headers_for, translate
from ctxrel.evaluators.replies import Usage

BODY = b'{"messages": [{"role": "user", "content": "[]"}], "model": "judge-1"}'


def at(server: LoopbackServer, *, timeout: float = 5) -> Transport:
    return Transport(Endpoint(model=MODEL, base_url=server.url, api_key="sk-secret", timeout=timeout))


@pytest.fixture(autouse=True)
def variables(monkeypatch: pytest.MonkeyPatch) -> None:
    """What the openai package reads from its environment."""
    monkeypatch.setenv("OPENAI_ORG_ID", "org-1")
    monkeypatch.setenv("OPENAI_PROJECT_ID", "proj_1")
    monkeypatch.setenv("OPENAI_CUSTOM_HEADERS", "X-Team: search\nX-Cost: 7")


async def test_sends_what_the_openai_package_sends(server: LoopbackServer) -> None:
    """Path and headers are those of the openai package in the same environment, but for what tells of itself."""
    server.script = lambda _: cite(1)
    with openai.OpenAI(api_key="sk-secret", base_url=server.url) as client:
        client.chat.completions.create(model=MODEL, messages=[{"role": "user", "content": "[]"}])
    transport = at(server)
    assert (await transport.post("/chat/completions", BODY)).good
    await transport.close()
    theirs, ours = server.seen
    own = ("host", "user-agent", "content-length", "accept-encoding", "connection")
    said = [
        {
            k.lower(): v
            for k, v in seen.headers.items()
            if k.lower() not in own and not k.lower().startswith("x-stainless")
        }
        for seen in (theirs, ours)
    ]
    assert said[0] == said[1]
    assert said[1]["authorization"] == "Bearer sk-secret"
    assert (theirs.path, theirs.body) == (ours.path, ours.body)
    assert ours.headers["User-Agent"].startswith("ctxrel/")


def test_headers_without_variables() -> None:
    """Nothing is sent that nobody asked for."""
    headers = headers_for(Endpoint(base_url="http://127.0.0.1/v1"), {"OPENAI_CUSTOM_HEADERS": "no header\n: x"})
    assert headers.keys() == {"Authorization", "Content-Type", "Accept", "User-Agent"}


def exceptions() -> list[type[Exception]]:
    """All exceptions that aiohttp exports and a client can meet."""
    exported = [getattr(aiohttp, name) for name in dir(aiohttp) if not name.startswith("_")]
    found = [each for each in exported if isinstance(each, type) and issubclass(each, Exception)]
    # Warnings of its server's side, and of web sockets.
    return [each for each in found if not issubclass(each, Warning) and each.__name__ not in ("EofStream", "WebSocketError", "WSMessageTypeError")]  # fmt: skip


def make(kind: type[Exception]) -> Exception:
    if issubclass(kind, aiohttp.ClientConnectorCertificateError):
        return kind(Mock(), ssl.SSLCertVerificationError("self-signed"))
    if issubclass(kind, aiohttp.ClientConnectorError):
        return kind(Mock(), ConnectionRefusedError(111, "refused"))
    if issubclass(kind, aiohttp.ClientResponseError):
        return kind(Mock(), ())
    return kind(b"", b"", "h", 1) if kind is aiohttp.ServerFingerprintMismatch else kind("x")


@pytest.mark.parametrize("kind", exceptions(), ids=lambda kind: kind.__name__)
def test_every_exception_has_a_meaning(kind: type[Exception]) -> None:
    """Each of the client's exceptions is caught where requests are sent, and becomes one of ours."""
    assert issubclass(kind, (aiohttp.ClientError, TimeoutError, OSError))
    assert isinstance(translate(make(kind), url="http://h/v1", seconds=1), Failure)


@pytest.mark.parametrize("status", [301, 302, 307, 308])
async def test_redirects_are_not_followed(server: LoopbackServer, status: int) -> None:
    """A redirect ends the run with its target, without what may be secret in it; nothing is sent there."""
    with LoopbackServer(lambda _: cite(1)) as other:
        target = other.url.replace("127.0.0.1", "localhost")
        server.script = lambda _: Answer(status=status, headers={"Location": f"{target}/chat/completions?key=sk-x"})
        transport = at(server)
        response = await transport.post("/chat/completions", BODY)
        await transport.close()
        meaning = Refusal(response).meaning(Endpoint(model=MODEL, base_url=server.url))
        assert isinstance(meaning, EndpointError)
        assert "localhost" in str(meaning)
        assert "sk-x" not in str(meaning)
        assert not other.seen


async def test_packed_answers(server: LoopbackServer) -> None:
    """An answer that was compressed on its way is read."""
    server.script = lambda _: Answer(body=gzip.compress(b'{"a": 1}'), headers={"Content-Encoding": "gzip"})
    transport = at(server)
    assert (await transport.post("/chat/completions", BODY)).body == b'{"a": 1}'
    await transport.close()


@pytest.mark.parametrize("packed", [True, False])
async def test_an_answer_without_an_end(server: LoopbackServer, packed: bool) -> None:  # noqa: FBT001
    """An answer is read up to a bound, also if it is small before it is unpacked."""
    body = b" " * (20 << 20)
    server.script = lambda _: Answer(
        body=gzip.compress(body) if packed else body, headers={"Content-Encoding": "gzip"} if packed else {}
    )
    transport = at(server)
    with pytest.raises(Failure, match=r"longer than 16 MB|cut or is not HTTP") as raised:
        await transport.post("/chat/completions", BODY)
    assert raised.value.kind is FailureKind.SERVER_ERROR
    await transport.close()


async def test_no_http(server: LoopbackServer) -> None:
    """Whatever speaks on the port in another language is a failure of its own kind."""
    with socket.create_server(("127.0.0.1", 0)) as listener:
        url = f"http://127.0.0.1:{listener.getsockname()[1]}/v1"

        def answer() -> None:
            connection, _ = listener.accept()
            connection.recv(10_000)
            connection.sendall(b"SSH-2.0-OpenSSH_9.6\r\n")
            connection.close()

        thread = threading.Thread(target=answer)
        thread.start()
        transport = Transport(Endpoint(model=MODEL, base_url=url, timeout=5))
        with pytest.raises(Failure) as raised:
            await transport.post("/chat/completions", BODY)
        await transport.close()
        thread.join()
    assert raised.value.kind is FailureKind.SERVER_ERROR
    assert not server.seen


async def test_no_cookie_is_kept(server: LoopbackServer) -> None:
    """What an answer wants remembered is not sent with the next request."""
    server.script = lambda _: Answer(body=cite(1).body, headers={"Set-Cookie": "a=b"})
    transport = at(server)
    for _ in range(2):
        await transport.post("/chat/completions", BODY)
    await transport.close()
    assert "Cookie" not in server.seen[1].headers


def test_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    """Proxies of the environment are used, but not for hosts that are excepted; others than HTTP's are refused."""
    assert not getproxies()
    monkeypatch.setenv("HTTPS_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example")
    assert find_proxy("https://api.openai.com/v1") == "http://proxy:3128"
    assert find_proxy("https://inside.example/v1") is None
    assert find_proxy("http://api.example/v1") is None
    monkeypatch.setenv("HTTP_PROXY", "http://proxy:3128")
    monkeypatch.setenv("NO_PROXY", "inside.example:8080")
    assert find_proxy("http://inside.example:8080/v1") is None
    for here in ("http://127.0.0.1:8/v1", "http://localhost/v1", "http://[::1]:8/v1"):
        assert find_proxy(here) is None
    for bad in ("http://127.0.0.1:99999", "http://[::1", "http://" + "b" * 70):
        monkeypatch.setenv("HTTP_PROXY", bad)
        with pytest.raises(UsageError, match="the proxy in HTTP_PROXY"):
            find_proxy("http://api.example/v1")
    monkeypatch.setenv("HTTPS_PROXY", "socks5://user:secret@proxy:1080")
    with pytest.raises(UsageError, match="the proxy in HTTPS_PROXY is no http:// or https:// URL") as raised:
        find_proxy("https://api.openai.com/v1")
    assert "secret" not in str(raised.value)


@pytest.mark.parametrize("key", ["", "sk-secret"])
def test_plain_http(monkeypatch: pytest.MonkeyPatch, key: str) -> None:
    """Neither a key nor records go over plain http to another machine, unless somebody wants it so."""
    monkeypatch.setenv("KEY", key)
    given = {"model": "m", "api_key_env": "KEY", "parameters": {}, "timeout": 1.0}
    with pytest.raises(UsageError, match="in plain text; write https:, or add --insecure"):
        find_endpoint(base_url="http://judge.example/v1", **given)  # type: ignore[arg-type]
    assert find_endpoint(base_url="http://judge.example/v1", insecure=True, **given).api_key == key  # type: ignore[arg-type]
    for url in ("HTTP://judge.example/v1", "http://127.0.0.1.evil.example/v1", "http://127.evil.example/v1"):
        with pytest.raises(UsageError, match="in plain text"):
            find_endpoint(base_url=url, **given)  # type: ignore[arg-type]
    for url in ("ht\ttp://judge.example/v1", "https://" + "a" * 70 + ".example/v1", "https://a..b/v1"):
        with pytest.raises(UsageError, match="is no base URL"):
            find_endpoint(base_url=url, **given)  # type: ignore[arg-type]
    for url in ("http://localhost:1/v1", "http://127.0.0.1/v1", "http://[::1]:8/v1"):
        assert find_endpoint(base_url=url, **given).base_url == url  # type: ignore[arg-type]


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


@pytest.mark.parametrize(
    ("text", "seconds"),
    [("1s", 1), ("6m0s", 360), ("120ms", 0.12), ("1h2m3.5s", 3723.5), ("17.5", 17.5), ("", None), ("soon", None), ("5 s", None)],
)  # fmt: skip
def test_durations(text: str, seconds: float | None) -> None:
    """Durations as the headers of several endpoints have them."""
    assert parse_duration(text) == seconds


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, 0),
        ({"remaining-requests": "5", "reset-requests": "10s"}, 0),
        ({"remaining-requests": "0", "reset-requests": "10s"}, 10),
        ({"remaining-requests": "0", "reset-requests": "10s", "limit-requests": "10"}, 1),
        ({"remaining-tokens": "50", "reset-tokens": "6s", "limit-tokens": "650"}, 0.5),
        ({"remaining-tokens": "50", "reset-tokens": "later"}, 0),
        ({"remaining-tokens": "many", "reset-tokens": "6s"}, 0),
        ({"remaining-requests": "0", "reset-requests": "100h"}, 3600),
    ],
)
def test_room(headers: dict[str, str], seconds: float) -> None:
    """A wait until there is room for another request of 100 tokens, as the endpoint counts."""
    sent = {f"x-ratelimit-{name}": value for name, value in headers.items()}
    assert wait_for_room(sent, Usage(90, 10, 0, 0)) == pytest.approx(seconds)


@pytest.mark.parametrize("status", [*range(300, 309), *range(400, 432), 451, *range(500, 512), 520, 599, 600, 999])
@pytest.mark.parametrize("body", [b"", b"<html>", b'{"error": {"message": "m"}}', b"[]"])
def test_every_status_has_a_meaning(status: int, body: bytes) -> None:
    """Whatever an endpoint answers, it is one record's failure or the end of the run, in one sentence."""
    meaning = Refusal(Response(status, {}, body)).meaning(Endpoint(model="m", base_url="http://h/v1"))
    assert isinstance(meaning, (Failure, CtxrelError))
    assert "\n" not in str(meaning)


@pytest.mark.parametrize(
    ("variable", "value"),
    [
        ("OPENAI_ORG_ID", "org\x01"),
        ("OPENAI_CUSTOM_HEADERS", "X-A: b\x00"),
        ("OPENAI_CUSTOM_HEADERS", "X A: b"),
        ("OPENAI_CUSTOM_HEADERS", "Content-Length: 5"),
        ("OPENAI_CUSTOM_HEADERS", "Host: elsewhere"),
    ],
)
def test_headers_that_cannot_be_sent(variable: str, value: str) -> None:
    """They are told with the variable they stand in, before anything is sent."""
    with pytest.raises(UsageError, match=f"{variable} holds a header that cannot be sent"):
        headers_for(Endpoint(base_url="http://127.0.0.1/v1"), {variable: value})


def test_a_header_stands_once() -> None:
    """A header of the environment takes the place of ours, however it is spelled."""
    environment = {"OPENAI_CUSTOM_HEADERS": "authorization: Basic abc", "OPENAI_ORG_ID": "org-1\n"}
    headers = headers_for(Endpoint(base_url="http://127.0.0.1/v1", api_key="k"), environment)
    assert [value for name, value in headers.items() if name.lower() == "authorization"] == ["Basic abc"]
    assert headers["OpenAI-Organization"] == "org-1"
