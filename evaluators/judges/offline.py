"""The judge that needs no key and no network: a lexical baseline, no LLM."""

from collections.abc import Callable, Mapping
from typing import Any

import orjson

from ..errors import UsageError
from ..outputs.claims import EVIDENCE, SCORES
from ..prompt import Prompt, Request, digest
from ..replies import Reply, Usage
from ..sentences import split_sentences
from . import lexical, support
from .inside import InsideJudge
from .lexical import relevant_sentences
from .support import Support

OFFLINE = "offline"
"""The model name that stands for this judge."""
NOTICE = "the offline judge is a lexical baseline and no LLM: it compares words and knows no meaning"
_Record = Mapping[str, Any]


def _cite(record: _Record, output: str) -> dict[str, object]:
    """The sentences relevant to the question, as the kind `citations` wants them."""
    numbers, contexts = _numbered(record)
    return {output: [numbers[place - 1] for place in relevant_sentences(record["question"], contexts)]}


def _claim(record: _Record, output: str) -> dict[str, object]:
    """The answer's sentences and what supports them, as the kind `claims` wants them."""
    numbers, contexts = _numbered(record)
    answer = record["answer"]
    statements = record.get(output) or [answer[start:end] for start, end in split_sentences(answer)]
    known = Support(contexts)
    evidence = [[numbers[place - 1] for place in known.sentences_for(statement)] for statement in statements]
    return {output: statements, EVIDENCE: evidence, SCORES: [int(bool(found)) for found in evidence]}


def _numbered(record: _Record) -> tuple[list[int], list[list[str]]]:
    contexts = record["contexts"]
    return [int(number) for context in contexts for number in context], [list(context.values()) for context in contexts]


_ANSWERS: dict[str, tuple[str, Callable[[_Record, str], dict[str, object]]]] = {
    "citations of contexts, question": (lexical.VERSION, _cite),
    "claims of answer, contexts, question": (f"{lexical.VERSION}.{support.VERSION}", _claim),
}
"""By the prompt's form: the version of what answers it, and the answer."""


class OfflineJudge(InsideJudge):
    """Answers by the overlap of words; see `lexical` and `support`."""

    model = OFFLINE
    description = "offline (a lexical baseline, no LLM)"

    @classmethod
    def check(cls, prompts: Mapping[str, Prompt]) -> None:
        """Raise UsageError where it cannot answer an evaluator; `prompts` are by the evaluators' names."""
        for name, prompt in prompts.items():
            if prompt.form not in _ANSWERS:
                if "+reason" in prompt.form:
                    raise UsageError("the offline judge gives no reasons; leave out --explain, or name a model")
                raise UsageError(
                    f"the offline judge cannot answer {name!r}; it can answer context_relevance, "
                    "context_relevance_graded and faithfulness, and copies of them: name a model, or another evaluator"
                )

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over the baseline's version; instructions do not reach it."""
        return digest(OFFLINE, _ANSWERS[prompt.form][0], prompt.form, prompt.name)

    def notices(self) -> list[str]:
        """That this is no LLM."""
        return [NOTICE]

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:  # noqa: ARG002  # a reply has room
        """The reply an LLM would give that sees nothing but words."""
        self.sent += 1
        version, answer = _ANSWERS[request.prompt.form]
        return Reply(
            text=orjson.dumps(answer(orjson.loads(request.user), request.prompt.name)).decode(),
            finish_reason="stop",
            model=f"{OFFLINE}-{version}",
            usage=Usage(),
        )
