"""An OpenAI-compatible endpoint on a loopback port: scripted replies, real faults, everything sent is recorded."""

import asyncio
import contextlib
import json
import threading
import zlib
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from typing import Any, Self

from aiohttp import web

MODEL = "judge-1"


@dataclass(frozen=True, kw_only=True)
class Answer:
    """What the endpoint does with a request."""

    body: bytes | dict[str, Any] = b""
    status: int = 200
    headers: dict[str, str] = field(default_factory=dict)
    delay: float = 0.0
    fault: str | None = None
    """`reset` before the answer, `cut` within the body, `hang` without an end, `trickle` byte by byte."""


@dataclass(frozen=True, kw_only=True)
class Seen:
    """A request as it arrived."""

    path: str
    headers: dict[str, str]
    body: dict[str, Any]
    number: int
    """How many requests for the same messages came before."""
    peer: int = 0
    """The port it came from."""

    @property
    def record(self) -> dict[str, Any]:
        """The record in the user message."""
        record: dict[str, Any] = json.loads((self.body.get("messages") or self.body["input"])[-1]["content"])
        return record


Script = Callable[[Seen], Answer]


def completion(content: str | None, *, finish_reason: str = "stop", **message: Any) -> Answer:  # noqa: ANN401
    """A chat completion with the given content."""
    return Answer(
        body={
            "id": "chatcmpl-1",
            "object": "chat.completion",
            "created": 1764500000,
            "model": f"{MODEL}-2026-01-01",
            "choices": [
                {
                    "index": 0,
                    "finish_reason": finish_reason,
                    "message": {"role": "assistant", "content": content, "refusal": None, **message},
                }
            ],
            "usage": {
                "prompt_tokens": 100,
                "completion_tokens": 7,
                "total_tokens": 107,
                "prompt_tokens_details": {"cached_tokens": 64},
                "completion_tokens_details": {"reasoning_tokens": 3},
            },
        }
    )


def error(status: int, message: str, **details: Any) -> Answer:  # noqa: ANN401
    """An error as OpenAI words it; `headers` go into the answer."""
    headers = details.pop("headers", {})
    body = {"error": {"message": message, "type": "invalid_request_error", "param": None, "code": None, **details}}
    return Answer(status=status, body=body, headers=headers)


def cite(*numbers: int) -> Answer:
    """A valid reply."""
    return completion(json.dumps({"relevant_statements": numbers}))


def judge_by_hash(seen: Seen) -> Answer:
    """Cites about every third sentence, always the same ones."""
    sentences = {int(n): text for context in seen.record["contexts"] for n, text in context.items()}
    return cite(*(number for number, text in sentences.items() if zlib.crc32(text.encode()) % 3 == 0))


class LoopbackServer:
    """The endpoint, on a thread of its own while it is used as a context manager."""

    def __init__(self, script: Script = judge_by_hash, *, models: Answer | None = None) -> None:
        self.script = script
        self.models = models or Answer(
            body={"object": "list", "data": [{"id": MODEL, "created": 1, "object": "model"}]}
        )
        """The answer to `GET /models`; the single model is looked up in it."""
        self.no_such_model = error(404, "The model does not exist", code="model_not_found")
        """The answer for a single model that is not in the list."""
        self.seen: list[Seen] = []
        self.model_requests: list[str] = []
        self.in_flight = self.most_in_flight = 0
        self.patience = float("inf")
        """Seconds after which a request may have been given up by its client, and is in flight no more."""
        self.url = ""
        self._counts: Counter[str] = Counter()
        self._ready = threading.Event()
        self._stop = asyncio.Event()
        self._thread = threading.Thread(target=lambda: asyncio.run(self._serve()), daemon=True)

    def __enter__(self) -> Self:
        self._thread.start()
        assert self._ready.wait(10)
        return self

    def __exit__(self, *_: object) -> None:
        self._loop.call_soon_threadsafe(self._stop.set)
        self._thread.join(10)

    async def _serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        app = web.Application(client_max_size=1 << 30)
        app.router.add_post("/v1/chat/completions", self._complete)
        app.router.add_post("/v1/decisions", self._complete)
        app.router.add_get("/v1/models", self._list_models)
        app.router.add_get("/v1/models/{model:.+}", self._show_model)
        self._add_routes(app)
        # A client that has gone ends what is done for it: nothing hangs for ever.
        runner = web.AppRunner(app, access_log=None, shutdown_timeout=0.1, handler_cancellation=True)
        await runner.setup()
        site = web.TCPSite(runner, "127.0.0.1", 0)
        await site.start()
        port = runner.addresses[0][1]
        self.url = f"http://127.0.0.1:{port}/v1"
        self._ready.set()
        await self._stop.wait()
        await runner.cleanup()

    def _add_routes(self, app: web.Application) -> None:
        """What else it serves."""

    def _see(self, path: str, headers: dict[str, str], body: dict[str, Any], *, peer: int = 0) -> Seen:
        key = json.dumps(body.get("messages") or [body["input"], body["questions"]])
        seen = Seen(path=path, headers=headers, body=body, number=self._counts[key], peer=peer)
        self._counts[key] += 1
        return seen

    async def _complete(self, request: web.Request) -> web.StreamResponse:
        seen = self._see(request.path, dict(request.headers), await request.json(), peer=_peer(request))
        self.seen.append(seen)
        try:
            with self._counted():
                return await answer_with(request, self.script(seen))
        except asyncio.CancelledError:
            return web.Response()  # to nobody

    @contextlib.contextmanager
    def _counted(self) -> Iterator[None]:
        """In flight, for as long as the client may wait."""
        leaving = contextlib.ExitStack()
        leaving.callback(self._leave)
        self.in_flight += 1
        self.most_in_flight = max(self.most_in_flight, self.in_flight)
        timer = None if self.patience == float("inf") else self._loop.call_later(self.patience, leaving.close)
        try:
            yield
        finally:
            leaving.close()
            if timer:
                timer.cancel()

    def _leave(self) -> None:
        self.in_flight -= 1

    async def _list_models(self, request: web.Request) -> web.StreamResponse:
        self.model_requests.append(request.path)
        return await answer_with(request, self.models)

    async def _show_model(self, request: web.Request) -> web.StreamResponse:
        self.model_requests.append(request.path)
        body = self.models.body
        models = body["data"] if isinstance(body, dict) and "data" in body else []
        for model in models:
            if model["id"] == request.match_info["model"]:
                return await answer_with(request, Answer(body=model))
        return await answer_with(request, self.no_such_model if models else self.models)


def _peer(request: web.Request) -> int:
    """The client's port; 0 where it has gone already."""
    name = request.transport and request.transport.get_extra_info("peername")
    return int(name[1]) if name else 0


async def answer_with(request: web.Request, answer: Answer) -> web.StreamResponse:
    """Send an answer, with its delay and fault."""
    await asyncio.sleep(answer.delay)
    payload = json.dumps(answer.body).encode() if isinstance(answer.body, dict) else answer.body
    headers = {"Content-Type": "application/json", **answer.headers}
    if answer.fault is None:
        return web.Response(status=answer.status, body=payload, headers=headers)
    assert request.transport
    if answer.fault == "reset":
        request.transport.abort()
        return web.Response()
    response = web.StreamResponse(status=answer.status, headers={**headers, "Content-Length": str(len(payload))})
    await response.prepare(request)
    with contextlib.suppress(ConnectionError):  # the client has lost patience
        await _send_badly(response, request, payload, answer.fault)
    return response


async def _send_badly(response: web.StreamResponse, request: web.Request, payload: bytes, fault: str) -> None:
    assert request.transport
    if fault == "cut":
        await response.write(payload[: len(payload) // 2])
        request.transport.close()
    elif fault == "hang":
        await asyncio.sleep(3600)
    elif fault == "trickle":
        for byte in payload:
            await response.write(bytes([byte]))
            await asyncio.sleep(0.05)
    else:
        raise ValueError(fault)
