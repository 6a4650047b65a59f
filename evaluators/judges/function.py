"""A judge that is a Python function: another client, a local model, a script in a test."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable
from concurrent.futures import ThreadPoolExecutor

from ..errors import Failure, FailureKind, RunError, UsageError
from ..prompt import Prompt, Request, digest
from ..replies import Reply, Usage
from .inside import InsideJudge

Answer = Callable[[str, str], "str | Reply | Awaitable[str | Reply]"]


class _NoReply(TypeError):
    """What the function gave is none."""


class FunctionJudge(InsideJudge):
    """Calls `answer(system, user)` for the text of each reply, or for a Reply with its usage.

    A coroutine function is awaited; any other one is called on threads. Whatever it raises fails the one record.
    """

    def __init__(self, answer: Answer, *, model: str = "function", concurrency: int = 16) -> None:
        if concurrency < 1:
            raise UsageError(f"concurrency is a number of calls from 1, not {concurrency!r}")
        super().__init__()
        self.model = self.description = model
        self.concurrency = concurrency
        self._answer = answer
        self._runs = 0
        self._threads: ThreadPoolExecutor | None = None
        self._is_async = inspect.iscoroutinefunction(answer)

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over the model's name and the prompt; give the function's next version another name."""
        return digest("function", self.model, self.parameters(prompt), prompt.name, prompt.system, prompt.schema)

    def parameters(self, prompt: Prompt) -> dict[str, object]:
        """Those of the evaluator; it is for the function to heed them."""
        return prompt.parameters

    async def open(self) -> None:
        """Count a run that uses it: several may do so at once."""
        self._runs += 1

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:  # noqa: ARG002  # it knows no limit
        """The function's answer. Raises Failure (`rejected`), and RunError where the function does."""
        self.sent += 1
        try:
            reply = await self._call(request.prompt.system, request.user)
        except (Failure, RunError):
            raise
        except _NoReply as error:
            raise Failure(FailureKind.REJECTED, f"the judge gave {error}, not a text or a Reply") from None
        except Exception as error:
            raise Failure(FailureKind.REJECTED, f"the judge raised {type(error).__name__}") from error
        if isinstance(reply, Reply):
            return reply
        return Reply(text=reply, finish_reason="stop", model=self.model, usage=Usage())

    async def close(self) -> None:
        """End the threads with the last run; a call that is under way is not waited for."""
        self._runs -= 1
        if self._threads and self._runs <= 0:
            self._threads.shutdown(wait=False, cancel_futures=True)
            self._threads = None

    async def _call(self, system: str, user: str) -> str | Reply:
        if self._is_async:
            answer = self._answer(system, user)
        else:
            loop = asyncio.get_running_loop()
            self._threads = self._threads or ThreadPoolExecutor(self.concurrency, "ctxrel-judge")
            answer = await loop.run_in_executor(self._threads, self._call_here, system, user)
        reply = await answer if inspect.isawaitable(answer) else answer
        if not isinstance(reply, (str, Reply)):
            raise _NoReply(type(reply).__name__)
        return reply

    def _call_here(self, system: str, user: str) -> "str | Reply | Awaitable[str | Reply]":
        try:
            return self._answer(system, user)
        except StopIteration as error:  # which no future can hold
            raise RuntimeError("the function's replies have run out") from error
