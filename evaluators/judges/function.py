"""A judge that is a Python function: another client, a local model, a script in a test."""

import asyncio
import inspect
from collections.abc import Awaitable, Callable

from ..errors import Failure, FailureKind, RunError
from ..prompt import Prompt, Request, digest
from ..replies import Reply, Usage

Answer = Callable[[str, str], "str | Reply | Awaitable[str | Reply]"]


class FunctionJudge:
    """Calls `answer(system, user)` for the text of each reply, or for a Reply with its usage.

    A coroutine function is awaited; any other one is called on threads. Whatever it raises fails the one record.
    """

    known = True

    def __init__(self, answer: Answer, *, model: str = "function", concurrency: int = 16) -> None:
        self.model = self.description = model
        self.concurrency = concurrency
        self.sent = 0
        self._answer = answer
        self._is_async = inspect.iscoroutinefunction(answer)

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over the model's name and the prompt; give the function's next version another name."""
        return digest("function", self.model, self.parameters(prompt), prompt.name, prompt.system, prompt.schema)

    def parameters(self, prompt: Prompt) -> dict[str, object]:
        """Those of the evaluator; it is for the function to heed them."""
        return prompt.parameters

    def notices(self) -> list[str]:
        """None."""
        return []

    def wanted_wait(self) -> float:
        """None: it has no limits."""
        return 0.0

    async def explain(self, error: RunError) -> RunError:
        """The error."""
        return error

    async def open(self) -> None:
        """Nothing to open."""

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:  # noqa: ARG002  # it knows no limit
        """The function's answer. Raises Failure (`rejected`), and RunError where the function does."""
        self.sent += 1
        try:
            reply = await self._call(request.prompt.system, request.user)
        except (Failure, RunError):
            raise
        except Exception as error:
            raise Failure(FailureKind.REJECTED, f"the judge raised {type(error).__name__}") from error
        if isinstance(reply, Reply):
            return reply
        return Reply(text=reply, finish_reason="stop", model=self.model, usage=Usage())

    async def close(self) -> None:
        """Nothing to close."""

    async def _call(self, system: str, user: str) -> str | Reply:
        if self._is_async:
            answer = self._answer(system, user)
        else:
            answer = await asyncio.to_thread(self._answer, system, user)
        return answer if isinstance(answer, (str, Reply)) else await answer
