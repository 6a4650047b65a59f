"""The judge in a model file: llama.cpp's server, started for the run and gone with it."""

import asyncio
import json
import os
import re
import secrets
import signal
import socket
import sys
import tempfile
import weakref
from collections.abc import AsyncIterator, Callable, Iterator, Mapping
from contextlib import asynccontextmanager, contextmanager, suppress
from dataclasses import asdict, dataclass, replace
from importlib.util import find_spec
from pathlib import Path
from typing import IO

from ..errors import EndpointError, EndpointUnreachable, Failure, FailureKind, RunError, UsageError
from ..prompt import Request
from ..replies import Reply
from .dialect import Dialect
from .endpoint import Endpoint
from .machine import usable_cpus
from .model_file import ModelFile, read_model_file
from .openai_chat import ChatJudge

DEFAULT_TIMEOUT = 600.0
"""Seconds for one attempt: a long record takes minutes on a few processors."""
_ENGINE = "llama.cpp"
_SLOTS = 2
_MOST_SLOTS = 64
_RANGES = {"n_ctx": (512, 1 << 20), "n_threads": (1, 512), "n_gpu_layers": (0, 10_000), "n_parallel": (1, _MOST_SLOTS)}
"""The parameters that are the server's and not a request's."""
_SERVER = Path(__file__).with_name("llamacpp_server.py")
_SIGNALS = {signal.SIGINT, signal.SIGTERM, signal.SIGHUP}
_ENDED_SECONDS = 0.5
"""For a server whose connections have broken to turn out to have ended."""
_LOGGED = re.compile(r"^[\d.]+ E (?:\w+ +)?\w+: (?:error loading model: )?(.+)$", re.MULTILINE)
"""An error in llama.cpp's log; the first one is the cause of the others."""
_RAISED = re.compile(r"^(\w*Error: .+)$", re.MULTILINE)
"""What Python says of a library that cannot be loaded."""
_LONGEST_REASON = 200


@dataclass(frozen=True, kw_only=True)
class ServerSettings:
    """How the model is served."""

    n_ctx: int = 8192
    """Tokens of one request with its reply; less where the model takes no more."""
    n_threads: int
    n_parallel: int
    """Requests worked at once."""
    n_gpu_layers: int | None = None
    """Layers on a graphics card, None for as many as fit."""


@dataclass(frozen=True, kw_only=True)
class LocalModel:
    """A model file, how it is served and what it is asked with."""

    file: ModelFile
    settings: ServerSettings
    parameters: Mapping[str, object]
    """Request parameters."""
    concurrency: int
    timeout: float

    @property
    def endpoint(self) -> Endpoint:
        """For the store the content is the model, wherever its file lies and its server listens."""
        return Endpoint(
            model=f"gguf:{self.file.digest}",
            base_url="http://127.0.0.1/v1",
            parameters=self.parameters,
            timeout=self.timeout,
            identity=_ENGINE,
        )

    @property
    def serving(self) -> str:
        """How the model is served, for people."""
        settings = self.settings
        return (
            f"{self.file.description}: {settings.n_parallel} at once with {settings.n_ctx:,} tokens each, "
            f"threads: {settings.n_threads}"
        )

    @property
    def configuration(self) -> dict[str, object]:
        """What is served, and how."""
        return {"file": self.file.description, "blake2b": self.file.digest, **asdict(self.settings)}


def find_local_model(
    *,
    model: str,
    base_url: str | None,
    parameters: Mapping[str, object],
    concurrency: int | None,
    timeout: float | None,
) -> LocalModel:
    """The model in a file, from options. Raises UsageError for what cannot work."""
    if base_url:
        raise UsageError(f"{model!r} is a model file, judged with here: leave out --base-url, or name a model")
    if find_spec("xllamacpp") is None:
        raise UsageError("a model file needs llama.cpp: pip install 'ctxrel[llamacpp]'")
    given = {name: _checked(name, parameters[name]) for name in _RANGES if parameters.get(name) is not None}
    slots = given.get("n_parallel") or min(concurrency or _SLOTS, _MOST_SLOTS)
    settings = ServerSettings(**{"n_threads": usable_cpus(), "n_parallel": slots, **given})
    return LocalModel(
        file=read_model_file(model, in_memory=not settings.n_gpu_layers),
        settings=settings,
        parameters={name: value for name, value in parameters.items() if name not in _RANGES},
        concurrency=min(concurrency or slots, slots),
        timeout=timeout or DEFAULT_TIMEOUT,
    )


def _checked(name: str, value: object) -> int:
    least, most = _RANGES[name]
    if type(value) is not int or not least <= value <= most:
        raise UsageError(f"the parameter {name} takes a whole number from {least:,} to {most:,}, not {value!r}")
    return value


class LocalJudge(ChatJudge):
    """Asks the model in a file; its server is started with the first request and ends with the judge."""

    def __init__(
        self,
        model: LocalModel,
        *,
        dialect: Dialect | None = None,
        on_dialect: Callable[[dict[str, object]], None] = lambda _: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self._server = ModelServer(model)
        super().__init__(
            self._server.endpoint,
            concurrency=model.concurrency,
            dialect=dialect,
            on_dialect=on_dialect,
            on_notice=on_notice,
        )
        self.description = model.file.description

    async def open(self) -> None:
        """Load the model. Raises EndpointError where that fails."""
        await self._server.start()
        await super().open()

    async def close(self) -> None:
        """End the server, at whatever it is."""
        await super().close()
        await self._server.stop()

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:
        """One attempt at a reply. Raises Failure, and EndpointError once the server has ended."""
        try:
            return await super().ask(request, enlarged=enlarged)
        except Failure as failure:
            if failure.kind in (FailureKind.CONNECTION, FailureKind.SERVER_ERROR) and await self._server.has_ended():
                raise EndpointError(
                    f"llama.cpp ended at work ({self._server.ending}); run the same command again to go on, "
                    "with less for --param n_ctx= or n_parallel= if memory is short"
                ) from failure
            raise

    async def explain(self, error: RunError) -> RunError:
        """The error that ended the run, in the words of a model here."""
        cause = error.__cause__
        slow = isinstance(cause, Failure) and cause.kind is FailureKind.TIMEOUT
        if isinstance(error, EndpointUnreachable) and slow:
            return EndpointUnreachable(
                f"{self.description}: {cause}, not even once; raise --timeout, or choose a smaller model"
            )
        return await super().explain(error)


class ModelServer:
    """llama.cpp's server in a process of its own, on a loopback port, with a key that only we know."""

    def __init__(self, model: LocalModel) -> None:
        self._model = model
        self._api_key = secrets.token_urlsafe(32)
        self._port = _hold_port()
        weakref.finalize(self, self._port.close)  # a run that is answered from the store never starts the server
        self._process: asyncio.subprocess.Process | None = None
        self._starting: asyncio.Task[None] | None = None

    @property
    def endpoint(self) -> Endpoint:
        """Where it is."""
        return replace(
            self._model.endpoint, base_url=f"http://127.0.0.1:{self._port.getsockname()[1]}/v1", api_key=self._api_key
        )

    @property
    def ending(self) -> str:
        """How it ended, for people."""
        code = self._process.returncode if self._process else None
        if code is None or code >= 0:
            return f"exit code {code}"
        return f"signal {signal.Signals(-code).name}" + (", as for want of memory" if code == -signal.SIGKILL else "")

    async def start(self) -> None:
        """Load the model and return once requests are answered. Raises EndpointError."""
        self._starting = asyncio.ensure_future(self._start())
        await self._starting  # cancelled by whoever stops it meanwhile

    async def stop(self) -> None:
        """End it and let go of the port."""
        if self._starting:
            self._starting.cancel()
            await asyncio.gather(self._starting, return_exceptions=True)
        await self._kill()
        self._port.close()

    async def has_ended(self) -> bool:
        """Whether it is no more; waits a moment for a process that is about to end."""
        if self._process is None:
            return False
        with suppress(TimeoutError):
            async with asyncio.timeout(_ENDED_SECONDS):
                await self._process.wait()
        return self._process.returncode is not None

    async def _start(self) -> None:
        with tempfile.TemporaryFile() as errors:
            async with self._killed_if_not_ready():
                await self._spawn(errors)
                assert self._process  # noqa: S101  # just made
                assert self._process.stdin  # noqa: S101  # a pipe
                assert self._process.stdout  # noqa: S101  # a pipe
                with suppress(ConnectionError):  # it has ended already
                    self._process.stdin.write(self._settings() + b"\n")
                    await self._process.stdin.drain()
                if await self._process.stdout.readline() != b"ready\n":
                    await self._process.wait()
                    raise EndpointError(self._refusal(errors))

    async def _spawn(self, errors: IO[bytes]) -> None:
        with _signals_blocked():
            self._process = await asyncio.create_subprocess_exec(
                sys.executable,
                "-P",  # not the folder of the file, whose modules are named like others
                str(_SERVER),
                stdin=asyncio.subprocess.PIPE,
                stdout=asyncio.subprocess.PIPE,
                stderr=errors,
                env={**os.environ, "GGML_NO_BACKTRACE": "1"},  # it would start a debugger
            )

    def _settings(self) -> bytes:
        """Through a pipe: arguments and environment of a process are there for others to see."""
        where = {"path": str(self._model.file.path), "port": self._port.getsockname()[1], "api_key": self._api_key}
        return json.dumps({**asdict(self._model.settings), **where, "parent": os.getpid()}).encode()

    def _refusal(self, errors: IO[bytes]) -> str:
        errors.seek(0)
        said = errors.read(1 << 16).decode(errors="replace")
        found = _LOGGED.search(said) or _RAISED.search(said)  # the log may come late, but it comes
        reason = "".join(filter(str.isprintable, found[1] if found else self.ending))
        return (
            f"llama.cpp cannot load {self._model.file.description}: {reason[:_LONGEST_REASON]}; "
            "get the file anew if it is damaged, lower --param n_ctx= if memory is short"
        )

    @asynccontextmanager
    async def _killed_if_not_ready(self) -> AsyncIterator[None]:
        try:
            yield
        except BaseException:
            await self._kill()
            raise

    async def _kill(self) -> None:
        if self._process is None:
            return
        with suppress(ProcessLookupError):
            self._process.kill()  # it keeps nothing that could be lost
        await self._process.wait()
        if self._process.stdin:
            self._process.stdin.close()


def _hold_port() -> socket.socket:
    """A free loopback port, held without listening, so that nobody else is given it until the server takes it."""
    held = socket.socket()
    held.setsockopt(socket.SOL_SOCKET, socket.SO_REUSEPORT, 1)
    held.bind(("127.0.0.1", 0))
    return held


@contextmanager
def _signals_blocked() -> Iterator[None]:
    """A process started meanwhile never gets the signals after which the run lets its requests finish."""
    before = signal.pthread_sigmask(signal.SIG_BLOCK, _SIGNALS)
    try:
        yield
    finally:
        signal.pthread_sigmask(signal.SIG_SETMASK, before)
