"""Judges out of plain options, for whoever uses evaluators from Python."""

from collections.abc import Mapping
from typing import TypedDict

from .. import checks
from ..errors import UsageError
from ..memory import Memory
from ..prompt import Prompt
from .endpoint import DEFAULT_MODEL, find_endpoint
from .judge import Judge
from .offline import OFFLINE, OfflineJudge, check_offline
from .openai_chat import ChatJudge


class JudgeOptions(TypedDict, total=False):
    """Who judges, and how; every evaluator takes these as keywords."""

    judge: Judge
    """An object that answers; without one it is made of what follows."""
    model: str
    """`gpt-5-mini` by default; `offline` needs no key and no network."""
    base_url: str | None
    """OPENAI_BASE_URL by default."""
    api_key_env: str
    """The variable that holds the key, OPENAI_API_KEY by default."""
    parameters: Mapping[str, object]
    """Request parameters, as reasoning_effort."""
    concurrency: int
    """Requests in flight at most, 16 by default."""
    timeout: float
    """Seconds for one attempt, 60 by default."""
    attempts: int
    """Attempts at a row before it has failed, 5 by default."""
    memory: Memory
    """Where replies are kept; without one they are forgotten after the call."""


def check_options(options: JudgeOptions) -> None:
    """Raise UsageError for an option that there is not."""
    for name in options:
        if name not in JudgeOptions.__annotations__:
            raise UsageError(f"unknown argument {name!r}; {checks.closest(name, JudgeOptions.__annotations__)}")


def make_judge(options: JudgeOptions, prompts: Mapping[str, Prompt]) -> Judge:
    """The judge; `prompts` by the evaluators' names are what it is to answer. Raises UsageError."""
    if judge := options.get("judge"):
        return judge
    model = options.get("model", DEFAULT_MODEL)
    if model == OFFLINE:
        check_offline(prompts)
        return OfflineJudge()
    endpoint = find_endpoint(
        model=model,
        base_url=options.get("base_url"),
        api_key_env=options.get("api_key_env", "OPENAI_API_KEY"),
        parameters=options.get("parameters", {}),
        timeout=options.get("timeout", 60.0),
    )
    return ChatJudge(endpoint, concurrency=options.get("concurrency", 16))
