"""What a request can come to at most."""

from collections.abc import Mapping
from typing import Protocol

import orjson

from ..prompt import Prompt, Request
from ..replies import Usage

MOST_OUTPUT = 128_000
"""Tokens of a reply whose length no parameter limits; no model that is sold by the token gives more at once."""
_LIMITS = ("max_completion_tokens", "max_tokens")
_FRAME = 200
"""Tokens of roles, separators and the reply's beginning, in every chat template; rather too many."""


class _Parameters(Protocol):
    def parameters(self, prompt: Prompt) -> Mapping[str, object]:
        """The request parameters in force."""


class Bounds:
    """Bounds on tokens: a token of a byte-level vocabulary is one byte or more, and a reply has a limit.

    A judge that knows of a limit of its own has it as `most_output`.
    """

    def __init__(self, judge: _Parameters) -> None:
        self._judge = judge
        self._prompts: dict[Prompt, Usage] = {}

    def most(self, request: Request, *, enlarged: bool = False) -> Usage:
        """The tokens that a request has at most; `enlarged` doubles the limit of its reply."""
        if request.prompt not in self._prompts:
            self._prompts[request.prompt] = self._of_prompt(request.prompt)
        fixed = self._prompts[request.prompt]
        return Usage(fixed.input_tokens + _size(request.user), fixed.output_tokens * (2 if enlarged else 1))

    def _of_prompt(self, prompt: Prompt) -> Usage:
        parameters = self._judge.parameters(prompt)
        most = getattr(self._judge, "most_output", MOST_OUTPUT)
        output = next((limit for name in _LIMITS if type(limit := parameters.get(name)) is int), most)
        schema = len(orjson.dumps(prompt.schema)) if prompt.schema else 0
        return Usage(_size(prompt.system) + schema + _FRAME, output)


def _size(text: str) -> int:
    return len(text) if text.isascii() else len(text.encode(errors="surrogatepass"))
