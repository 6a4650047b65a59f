"""The judge behind OpenAI's Decisions API, a public beta: it reads, answers predicates and writes nothing."""

from collections.abc import Callable

import orjson

from ..decisions.asking import MOST_QUESTIONS
from ..errors import Failure, FailureKind, ParameterRefused, UsageError
from ..jsontext import replace_surrogates
from ..prompt import Prompt, Request, digest
from ..replies import Reply
from .decision import decode_decision
from .dialect import named_parameter
from .endpoint import DEFAULT_MODEL, Endpoint
from .endpoint_judge import EndpointJudge
from .model_file import is_model_file
from .named import NAMED
from .refusal import Refusal
from .room import wait_for_room
from .transport import Response

BETA = "the Decisions API is a public beta: what it takes and how it answers may change"
_PATH = "/decisions"


class DecisionsJudge(EndpointJudge):
    """Asks one endpoint for the probabilities of predicates, and says nothing of retries."""

    most_output = 0
    """Tokens of a reply that are paid for."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        concurrency: int,
        known: bool = False,
        on_answer: Callable[[], None] = lambda: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`known` tells whether it has answered in an earlier run; `on_answer` is told of its first answer."""
        super().__init__(endpoint, concurrency=concurrency, known=known, on_notice=on_notice)
        self.description = f"decisions of {self.description}"
        self._answered = known
        self._on_answer = on_answer

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over all that is sent beside the record; no threshold is in it, and no reply of a chat has it."""
        return digest("decisions", self._endpoint.address, self.model, self.parameters(prompt), prompt.system)

    def parameters(self, prompt: Prompt) -> dict[str, object]:  # noqa: ARG002  # an evaluator's are those of a chat
        """The user's request parameters."""
        return {name: value for name, value in self._endpoint.parameters.items() if value is not None}

    def notices(self) -> list[str]:
        """What a reader of the results should know of the judge."""
        return [BETA, *super().notices()]

    async def open(self) -> None:
        """Tell of the beta and ask the endpoint for the model. Raises EndpointError where no request can succeed."""
        self._on_notice(BETA)
        await super().open()

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:  # noqa: ARG002  # no reply is cut
        """One attempt at a reply. Raises Failure and RunError."""
        response = await self._send(request)
        if not response.good:
            raise self._meaning(Refusal(response), request.prompt)
        reply = decode_decision(response.body)
        self._wait = wait_for_room(response.headers, reply.usage)
        if not self._answered:
            self._answered = True
            self._on_answer()
        return reply

    def body(self, request: Request) -> bytes:
        """The body of a request, without asking. Raises Failure."""
        asked = orjson.loads(replace_surrogates(request.user))
        if (number := len(asked["questions"])) > MOST_QUESTIONS:
            raise Failure(
                FailureKind.CONTEXT_TOO_LONG,
                f"{number} predicates, which cannot be divided further; a request takes {MOST_QUESTIONS}",
            )
        fields = {
            "model": self.model,
            **self.parameters(request.prompt),
            "input": [
                {"role": "system", "content": request.prompt.system},
                {"role": "user", "content": asked["input"]},
            ],
            "questions": [
                {"type": "predicate", "name": name, "instructions": predicate}
                for name, predicate in asked["questions"].items()
            ],
        }
        return orjson.dumps(fields)

    async def _send(self, request: Request) -> Response:
        body = self.body(request)
        self.sent += 1
        return await self._transport.post(_PATH, body)

    def _meaning(self, refusal: Refusal, prompt: Prompt) -> Exception:
        sent = self.parameters(prompt)
        if refusal.about_parameters and not refusal.too_long:
            blamed = named_parameter(refusal.words, refusal.get("param"), sent)
            if blamed:
                return ParameterRefused(
                    f"the Decisions API does not take the request parameter {blamed!r} as {sent[blamed]!r}; "
                    "change it or leave it out"
                )
        return refusal.meaning(self._endpoint, service="Decisions API")


def check_decisions(model: str) -> None:
    """Raise UsageError for a judge that has no Decisions API."""
    if model in NAMED or is_model_file(model):
        what = f"the {model} judge" if model in NAMED else "a model file"
        raise UsageError(f"{what} has no Decisions API; leave out api, or name a model as {DEFAULT_MODEL}")
