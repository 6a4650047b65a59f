"""The judge that needs no key and no network: a lexical baseline, no LLM."""

import orjson

from ..citations import render_citations
from ..errors import RunError
from ..prompt import Prompt, Request, digest
from ..replies import Reply, Usage
from .lexical import VERSION, relevant_sentences

OFFLINE = "offline"
"""The model name that stands for this judge."""
NOTICE = "the offline judge is a lexical baseline and no LLM: it compares words and knows no meaning"


class OfflineJudge:
    """Answers citation requests by the overlap of words; see `lexical`."""

    model = OFFLINE
    description = "offline (a lexical baseline, no LLM)"
    known = True
    concurrency = 1

    def __init__(self) -> None:
        self.sent = 0

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over the baseline's version; instructions do not reach it."""
        return digest(OFFLINE, VERSION, prompt.name)

    def parameters(self, prompt: Prompt) -> dict[str, object]:  # noqa: ARG002  # it has none
        """None: words are compared the same way always."""
        return {}

    def notices(self) -> list[str]:
        """That this is no LLM."""
        return [NOTICE]

    async def explain(self, error: RunError) -> RunError:
        """The error; there is nobody to ask about it."""
        return error

    async def open(self) -> None:
        """Nothing to open."""

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:  # noqa: ARG002  # a reply has room
        """The reply an LLM would give that sees nothing but words."""
        self.sent += 1
        record = orjson.loads(request.user)
        numbers = [int(number) for context in record["contexts"] for number in context]
        contexts = [list(context.values()) for context in record["contexts"]]
        chosen = (numbers[position - 1] for position in relevant_sentences(record["question"], contexts))
        return Reply(
            text=render_citations(request.prompt.name, chosen),
            finish_reason="stop",
            model=f"{OFFLINE}-{VERSION}",
            usage=Usage(),
        )

    async def close(self) -> None:
        """Nothing to close."""
