"""A lean OpenAI-compatible endpoint in a process of its own: every request gets the same completion, and is counted.

For benchmarks, where the server must take less CPU than any client: it reads no request further than its length.
"""

import asyncio
import json
import os
import resource
import subprocess
import sys
import urllib.request
from typing import NamedTuple, Self

MODEL = "judge-1"
_REPLY = {"role": "assistant", "content": '{"relevant_statements": [1]}', "refusal": None}
_COMPLETION = json.dumps(
    {
        "id": "chatcmpl-1",
        "object": "chat.completion",
        "created": 1764500000,
        "model": MODEL,
        "choices": [{"index": 0, "finish_reason": "stop", "message": _REPLY}],
        "usage": {"prompt_tokens": 1800, "completion_tokens": 9, "total_tokens": 1809},
    }
).encode()
_MODEL = json.dumps({"id": MODEL, "created": 1, "object": "model"}).encode()
_LENGTH = b"content-length:"
_HEAD_END = b"\r\n\r\n"


class Counts(NamedTuple):
    """What the endpoint has done so far."""

    received: int
    """Requests for a completion."""
    answered: int
    """Completions that were written to a client that was still there."""
    cpu_seconds: float


class FastServer:
    """The endpoint, on its own process while it is used as a context manager."""

    def __enter__(self) -> Self:
        command = [sys.executable, __file__]
        self._process = subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, text=True)
        assert self._process.stdout
        self._origin = f"http://127.0.0.1:{int(self._process.stdout.readline())}"
        return self

    def __exit__(self, *_: object) -> None:
        assert self._process.stdin
        assert self._process.stdout
        self._process.stdin.close()
        self._process.stdout.close()
        self._process.wait(10)

    def url(self, *, delay_ms: int = 0) -> str:
        """The base URL at which answers take so long."""
        return f"{self._origin}/{delay_ms}/v1"

    def counts(self) -> Counts:
        """What it has done so far."""
        with urllib.request.urlopen(f"{self._origin}/counts") as response:  # noqa: S310  # our own server
            return Counts(*json.load(response))


class _Tally:
    """Counts over all connections."""

    received = answered = 0

    def shown(self) -> bytes:
        """The counts as JSON."""
        used = resource.getrusage(resource.RUSAGE_SELF)
        return json.dumps([self.received, self.answered, used.ru_utime + used.ru_stime]).encode()


class _Connection(asyncio.Protocol):
    """HTTP/1.1 with keep-alive; a client sends its next request when it has its answer."""

    def __init__(self, loop: asyncio.AbstractEventLoop, tally: _Tally) -> None:
        self._loop = loop
        self._tally = tally
        self._buffer = bytearray()
        self._missing = 0

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        """Remember the way back."""
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Answer once a request is whole."""
        self._buffer += data
        if len(self._buffer) < self._missing:
            return
        end = self._buffer.find(_HEAD_END)
        if end < 0:
            return
        self._missing = end + len(_HEAD_END) + _content_length(self._buffer[:end])
        if len(self._buffer) < self._missing:
            return
        method, path, _ = bytes(self._buffer[: self._buffer.index(b"\r")]).split(b" ")
        self._buffer.clear()
        self._missing = 0
        self._answer(method, path)

    def _answer(self, method: bytes, path: bytes) -> None:
        if method == b"POST":
            self._tally.received += 1
            delay = int(path.split(b"/", 2)[1]) / 1000
            if delay:
                self._loop.call_later(delay, self._complete)
            else:
                self._complete()
        else:
            self._write(self._tally.shown() if path == b"/counts" else _MODEL)

    def _complete(self) -> None:
        if not self._transport.is_closing():
            self._tally.answered += 1
            self._write(_COMPLETION)

    def _write(self, body: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n" % len(body)
        self._transport.write(head + body)


def _content_length(head: bytearray) -> int:
    head = head.lower()
    start = head.find(_LENGTH)
    if start < 0:
        return 0
    start += len(_LENGTH)
    end = head.find(b"\r", start)
    return int(head[start : end if end >= 0 else None])


async def _serve() -> None:
    loop = asyncio.get_running_loop()
    tally = _Tally()
    server = await loop.create_server(lambda: _Connection(loop, tally), "127.0.0.1", 0, backlog=1024)
    print(server.sockets[0].getsockname()[1], flush=True)
    ended = asyncio.Event()
    loop.add_reader(sys.stdin.fileno(), ended.set)  # whoever started it closes it, or is gone
    await ended.wait()
    os._exit(0)  # clients that are still connected are nobody's concern


if __name__ == "__main__":
    asyncio.run(_serve())
