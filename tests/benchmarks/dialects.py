"""A judge that speaks to every peer in the form it asks for: relevant, irrelevant, invented, or failing."""

import json
import math
import re
import threading
import time
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from enum import StrEnum
from typing import Any

from servers.loopback import Answer, Seen, completion, error

_MARK = re.compile(r"item-(\d{4})")
INVENTED = "The fee is paid by the moon."


class Fault(StrEnum):
    """What becomes of one reply in ten."""

    NONE = "none"
    SERVER_ERROR = "500s that last"
    REFUSAL = "refusals"
    INVALID = "invalid JSON"
    INVENTED = "invented statement"


@dataclass(frozen=True, kw_only=True)
class Verdict:
    """What the judge thinks of a context."""

    relevant: bool
    invented: bool = False

    @property
    def statement(self) -> str:
        """What is quoted where something is relevant."""
        return INVENTED if self.invented else "The fee is due at noon."


Dialect = Callable[[Seen, Verdict], Mapping[str, Any] | str]


def record(number: int) -> Mapping[str, Any]:
    """A record of two contexts; the judge finds those with an odd number relevant."""
    contexts = [f"Case item-{number:04}. The fee is due at noon.", f"Another note on item-{number:04}. It is blue."]
    return {"id": f"r{number}", "question": f"When is the fee of item-{number:04} due?", "contexts": contexts}


@dataclass(kw_only=True)
class Script:
    """What the endpoint does with a request, by the record it is about."""

    dialect: Dialect
    fault: Fault = Fault.NONE
    delay: float = 0.05
    closed_from: int | None = None
    """The request that brings the rate limit about, if any."""
    closed_seconds: float = 3.0
    told_to_wait: int = 0
    """Requests that were answered 429."""
    _received: int = 0
    _opens: float = 0.0
    _lock: threading.Lock = field(default_factory=threading.Lock)

    def __call__(self, seen: Seen) -> Answer:
        """Answer a request."""
        if left := self._closed():
            self.told_to_wait += 1
            return error(
                429, "Rate limit reached", type="rate_limit_exceeded", headers={"Retry-After": str(math.ceil(left))}
            )
        number = int(_MARK.findall(json.dumps(seen.body["messages"]))[-1])
        failing = number % 10 in (0, 5) and number % 20 in (0, 5)  # one in ten, half of them relevant
        if self.fault is Fault.INVENTED:
            verdict = Verdict(relevant=failing, invented=True)
        else:
            verdict = Verdict(relevant=number % 2 == 1)
        if failing and self.fault in (Fault.SERVER_ERROR, Fault.REFUSAL, Fault.INVALID):
            return _fail(seen, self.fault, self.delay)
        said = self.dialect(seen, verdict)
        return _say(seen, said if isinstance(said, str) else json.dumps(said), self.delay)

    def _closed(self) -> float:
        """Seconds until the endpoint takes requests again."""
        with self._lock:
            self._received += 1
            if self._received == self.closed_from:
                self._opens = time.monotonic() + self.closed_seconds
            return max(0.0, self._opens - time.monotonic())


def _fail(seen: Seen, fault: Fault, delay: float) -> Answer:
    if fault is Fault.SERVER_ERROR:
        return Answer(status=500, body=error(500, "The server had an error").body, delay=delay)
    if fault is Fault.REFUSAL:
        return Answer(body=completion(None, refusal="I cannot help with that.").body, delay=delay)
    return _say(seen, '{"I think that', delay)


def _say(seen: Seen, text: str, delay: float) -> Answer:
    """As content, or as the call of the tool that was offered."""
    tools = seen.body.get("tools")
    if not tools:
        return Answer(body=completion(text).body, delay=delay)
    call = {"id": "call_1", "type": "function", "function": {"name": tools[0]["function"]["name"], "arguments": text}}
    return Answer(body=completion(None, tool_calls=[call]).body, delay=delay)


def citations(_: Seen, verdict: Verdict) -> Mapping[str, Any]:
    """Numbers of sentences, as ctxrel asks for; an invented one has a number that does not exist."""
    return {"relevant_statements": [999 if verdict.invented else 1] if verdict.relevant else []}


def statements(_: Seen, verdict: Verdict) -> Mapping[str, Any]:
    """Copies of sentences, as Haystack asks for."""
    return {"relevant_statements": [verdict.statement] if verdict.relevant else []}


def rating(_: Seen, verdict: Verdict) -> Mapping[str, Any]:
    """0 to 2, as Ragas asks for."""
    return {"rating": 2 if verdict.relevant else 0}


def verdicts(seen: Seen, verdict: Verdict) -> Mapping[str, Any]:
    """A verdict on one statement of each context, and a reason of all, as DeepEval asks for."""
    if "verdicts" not in json.dumps(seen.body.get("response_format") or seen.body["messages"]):
        return {"reason": "As the verdicts say."}
    word = "yes" if verdict.relevant else "no"
    return {"verdicts": [{"statement": verdict.statement, "verdict": word, "reason": "It says so."}]}


def label(_: Seen, verdict: Verdict) -> Mapping[str, Any]:
    """A label with its explanation, as Phoenix asks for."""
    return {"explanation": "It says so.", "label": "relevant" if verdict.relevant else "irrelevant"}
