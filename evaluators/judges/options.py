"""Judges out of plain options, for whoever uses evaluators from Python."""

from collections.abc import Mapping
from typing import Any, TypedDict

from .. import checks
from ..definition import check_parameters
from ..errors import UsageError
from ..memory import Memory
from ..prompt import Prompt
from .endpoint import DEFAULT_MODEL, Api, find_endpoint
from .growth import MOST
from .judge import Judge
from .limiter import Limits
from .llamacpp import LocalJudge, find_local_model
from .model_file import is_model_file
from .named import NAMED
from .openai_chat import ChatJudge
from .openai_decisions import DecisionsJudge, check_decisions


class JudgeOptions(TypedDict, total=False):
    """Who judges, and how; every evaluator takes these as keywords."""

    judge: Judge
    """An object that answers; without one it is made of what follows."""
    model: str
    """`gpt-6-luna` by default; `offline` needs no key and no network, a path to a GGUF file neither."""
    api: str
    """`chat` by default; `decisions` asks `gpt-6-luna` for probabilities (a public beta)."""
    base_url: str | None
    """OPENAI_BASE_URL by default."""
    insecure: bool
    """Whether plain http, and no key, is allowed to a host that is not this machine."""
    api_key_env: str
    """The variable that holds the key, OPENAI_API_KEY by default."""
    parameters: Mapping[str, object]
    """Request parameters, as reasoning_effort."""
    concurrency: int | None
    """Requests in flight; by default as many as turn out to be of use, 2 for a model file."""
    rpm: float | None
    """Requests per minute at most."""
    tpm: float | None
    """Tokens per minute at most, in and out."""
    timeout: float
    """Seconds for one attempt, 60 by default, 600 for a model file."""
    attempts: int
    """Attempts at a row before it has failed, 5 by default."""
    explain: bool
    """Whether to ask for a reason beside each verdict."""
    max_input_tokens: int | None
    """Longer requests are divided; three bytes count as a token."""
    memory: Memory
    """Where replies are kept; without one they are forgotten after the call."""


def check_options(options: JudgeOptions) -> None:
    """Raise UsageError for an option that there is not, or a value that makes no sense."""
    for name, value in options.items():
        if name not in _KINDS:
            raise UsageError(f"unknown argument {name!r}; {_ELSEWHERE.get(name) or checks.closest(name, _KINDS)}")
        kind, words = _KINDS[name]
        if value is None and name in _OPTIONAL:
            continue
        wrong = not isinstance(value, kind) or isinstance(value, bool) is not (kind is bool)
        if wrong or value == "" or (isinstance(value, (int, float)) and kind in _NUMBERS and not value > 0):
            raise UsageError(f"the argument {name!r} is {words}, not {value!r}")
        if name in _OF_AN_ENDPOINT and options.get("judge") is not None:
            raise UsageError(f"the argument {name!r} says nothing to a judge object; give it to the object")
    if (api := options.get("api", Api.CHAT)) not in list(Api):
        raise UsageError(f"the argument 'api' is {' or '.join(Api)}, not {api!r}; where it is say model and base_url")
    check_parameters(options.get("parameters") or {})


_NUMBERS = (int, (int, float))
_OPTIONAL = ("judge", "base_url", "memory", "parameters", "concurrency", "rpm", "tpm", "max_input_tokens")
_OF_AN_ENDPOINT = ("api", "model", "base_url", "insecure", "api_key_env", "parameters", "concurrency", "timeout")
_ELSEWHERE = {
    "chat_generator": "give model and base_url, or an object as judge",
    "generation_kwargs": "they are called parameters",
    "api_key": "name the variable that holds it: api_key_env",
}
_KINDS: dict[str, tuple[Any, str]] = {
    "judge": (Judge, "an object that answers, as FunctionJudge(function)"),
    "model": (str, "a model's name"),
    "api": (str, "'chat' or 'decisions'"),
    "base_url": (str, "a URL"),
    "api_key_env": (str, "the name of a variable"),
    "parameters": (Mapping, "a dict of request parameters"),
    "concurrency": (int, "a number of requests from 1"),
    "insecure": (bool, "True or False"),
    "rpm": ((int, float), "a number of requests"),
    "tpm": ((int, float), "a number of tokens"),
    "timeout": ((int, float), "a number of seconds"),
    "attempts": (int, "a number of attempts from 1"),
    "explain": (bool, "True or False"),
    "max_input_tokens": (int, "a number of tokens"),
    "memory": (Memory, "an object that keeps replies, as PlainMemory()"),
}


def make_judge(options: JudgeOptions, prompts: Mapping[str, Prompt]) -> Judge:
    """The judge; `prompts` by the evaluators' names are what it is to answer. Raises UsageError."""
    if judge := options.get("judge"):
        return judge
    decides = options.get("api") == Api.DECISIONS
    model = options.get("model", DEFAULT_MODEL)
    if decides:
        check_decisions(model)
    if named := NAMED.get(model):
        named.check(prompts)
        return named()
    if is_model_file(model):
        return LocalJudge(
            find_local_model(
                model=model,
                base_url=options.get("base_url"),
                parameters=options.get("parameters") or {},
                concurrency=options.get("concurrency"),
                timeout=options.get("timeout"),
            )
        )
    endpoint = find_endpoint(
        model=model,
        base_url=options.get("base_url"),
        api_key_env=options.get("api_key_env", "OPENAI_API_KEY"),
        parameters=options.get("parameters") or {},
        timeout=options.get("timeout", 60.0),
        insecure=options.get("insecure", False),
    )
    return (DecisionsJudge if decides else ChatJudge)(endpoint, concurrency=options.get("concurrency") or MOST)


def make_limits(options: JudgeOptions, judge: Judge) -> Limits:
    """What is asked of the judge at most."""
    remote = isinstance(judge, (ChatJudge, DecisionsJudge)) and not isinstance(judge, LocalJudge)
    adaptive = remote and options.get("concurrency") is None
    return Limits(most=judge.concurrency, fixed=not adaptive, rpm=options.get("rpm"), tpm=options.get("tpm"))
