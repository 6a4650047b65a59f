"""The judge behind any OpenAI-compatible chat completions endpoint."""

import re
from collections.abc import Callable
from enum import Enum
from functools import lru_cache
from typing import NamedTuple

import orjson

from ..errors import Failure, FailureKind, ParameterRefused
from ..jsontext import replace_surrogates
from ..prompt import Prompt, Request, digest
from ..replies import Reply
from .completion import decode_completion
from .dialect import LIMITS, OURS, Dialect, blames_the_value, named_parameter
from .endpoint import Endpoint
from .endpoint_judge import EndpointJudge
from .refusal import Refusal
from .room import wait_for_room
from .transport import Response

# Models that reason take no temperature.
_REASONING = re.compile(r"(?:.*/)?(?:gpt-[5-9]|o[1-9])")
_CACHE_KEY = "prompt_cache_key"
_CACHE_KEY_HOSTS = frozenset({"api.openai.com"})
"""Where that parameter is known to be taken."""
_DETOURS = 4
"""So many requests in a row that needed another way: the endpoint has changed."""


def reasons(model: str) -> bool:
    """Whether a model is known by its name to reason before it answers."""
    return bool(_REASONING.match(model))


class _Room(Enum):
    """How long a reply may be."""

    WANTED = "as the parameters say"
    ENLARGED = "twice that"
    UNLIMITED = "as the endpoint pleases"


class _Way(NamedTuple):
    """How a request is put."""

    dialect: Dialect
    room: _Room


class _Body(NamedTuple):
    """A request's bytes around the record."""

    head: bytes
    tail: bytes
    parameters: dict[str, object]


class ChatJudge(EndpointJudge):
    """Asks one endpoint, in the strictest way it takes, and says nothing of retries."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        concurrency: int,
        dialect: Dialect | None = None,
        on_dialect: Callable[[dict[str, object]], None] = lambda _: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        """`dialect` is what an earlier run found out; `on_dialect` gets what is worth remembering for later ones."""
        super().__init__(endpoint, concurrency=concurrency, known=dialect is not None, on_notice=on_notice)
        self.dialect = dialect or Dialect()
        self._answered: set[Prompt] = set()
        self._detours = 0
        self._on_dialect = on_dialect
        self._cache_keys = endpoint.host in _CACHE_KEY_HOSTS
        self._body = lru_cache(maxsize=64)(self._build_body)

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over what is wanted: a dialect found out later changes no key."""
        wanted = self.parameters(prompt)
        return digest(self._endpoint.address, self.model, wanted, prompt.name, prompt.system, prompt.schema)

    def parameters(self, prompt: Prompt) -> dict[str, object]:
        """The request parameters that are wanted: the user's before the evaluator's before the model's usual ones."""
        given = self._endpoint.parameters
        # The two names of the limit are one wish: whoever gives one means it instead of the other.
        from_prompt = {k: v for k, v in prompt.parameters.items() if k not in LIMITS or not LIMITS & given.keys()}
        defaults = {} if reasons(self.model) else {"temperature": 0}
        return {name: value for name, value in {**defaults, **from_prompt, **given}.items() if value is not None}

    def notices(self) -> list[str]:
        """What a reader of the results should know of the judge."""
        return super().notices() + self.dialect.changes()

    async def open(self) -> None:
        """Ask the endpoint for the model. Raises EndpointError where no request can succeed."""
        for change in self.dialect.changes():
            self._on_notice(change)
        await super().open()

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:
        """One attempt at a reply, repeated only where the endpoint does not take a parameter.

        Raises Failure and RunError.
        """
        way = _Way(self.dialect, _Room.ENLARGED if enlarged else _Room.WANTED)
        while True:
            response = await self._send(request, way)
            if response.good:
                reply = decode_completion(response.body)
                self._adopt(request.prompt, way.dialect)
                self._wait = wait_for_room(response.headers, reply.usage)
                return reply
            refusal = Refusal(response)
            other = self._adapt(refusal, request.prompt, way)
            if other is None:
                raise refusal.meaning(self._endpoint)
            way = other

    async def _send(self, request: Request, way: _Way) -> Response:
        body = self._body(request.prompt, *way)
        if way.room is _Room.ENLARGED and not LIMITS & body.parameters.keys():
            raise Failure(FailureKind.TRUNCATED, "the reply was cut, and not by a limit that was asked for")
        self.sent += 1
        return await self._transport.post("/chat/completions", _filled(body, request))

    def preview(self, request: Request) -> bytes:
        """The body of a request as it would be sent now."""
        return _filled(self._body(request.prompt, self.dialect, _Room.WANTED), request)

    def _build_body(self, prompt: Prompt, dialect: Dialect, room: _Room) -> _Body:
        parameters = {
            name: _doubled(value) if name in LIMITS and room is _Room.ENLARGED else value
            for name, value in dialect.parameters(self.parameters(prompt)).items()
            if name not in LIMITS or room is not _Room.UNLIMITED
        }
        parameters |= dialect.format_of(prompt)
        messages = [{"role": "system", "content": prompt.system}, {"role": "user", "content": ""}]
        # Neither part of a request's key nor a wish: it only helps the provider's cache to be met.
        helps = {_CACHE_KEY: self._cache_key(prompt)} if self._cache_keys else {}
        body = orjson.dumps({"model": self.model, **parameters, **helps, "messages": messages})
        return _Body(body[: -len(b'""}]}')], b"}]}", parameters)

    def _cache_key(self, prompt: Prompt) -> str:
        """What requests with the same beginning have in common."""
        return digest(self.model, prompt.name, prompt.system, prompt.schema).hex()

    def _adapt(self, refusal: Refusal, prompt: Prompt, way: _Way) -> _Way | None:
        """Another way to try this request, None where none can help.

        Raises ParameterRefused where the endpoint does not take a value that somebody asked for.
        """
        if not refusal.about_parameters:
            return None
        if way.room is _Room.WANTED and refusal.limit_too_large:
            return way._replace(room=_Room.UNLIMITED)
        if refusal.too_long:
            return None
        sent = self._body(prompt, *way).parameters
        blamed = named_parameter(refusal.words, refusal.get("param"), sent)
        if blamed is None and self._cache_keys and _CACHE_KEY in refusal.words:
            self._cache_keys = False
            self._body.cache_clear()
            return way
        if blamed is None or (way.room is _Room.ENLARGED and blamed in LIMITS):
            return None
        if (
            blamed in self._explicit(prompt)
            and prompt not in self._answered
            and blames_the_value(refusal.words, refusal.get("code"))
        ):
            raise ParameterRefused(
                f"the endpoint does not take the value of the request parameter {blamed!r}: {sent[blamed]!r}; "
                "change it (--param, or the evaluator's YAML)"
            )
        return way._replace(dialect=way.dialect.without(blamed))

    def _adopt(self, prompt: Prompt, dialect: Dialect) -> None:
        """Ask in the dialect from now on, unless another is known to be answered and this is one record's need."""
        changed = dialect.changed_from(self.dialect)
        self._detours = self._detours + 1 if changed else 0
        known = prompt in self._answered or (self.known and changed - self._explicit(prompt))
        if changed and known and self._detours < _DETOURS:
            return
        for change in dialect.changes():
            if change not in self.dialect.changes():
                self._on_notice(change)
        if changed or prompt not in self._answered:
            self.dialect = dialect
            self._answered.add(prompt)
            self._on_dialect(dialect.remembered(OURS - self._explicit(prompt)))

    def _explicit(self, prompt: Prompt) -> set[str]:
        """The parameters somebody asked for by name, but for the limit, which has two."""
        return (self._endpoint.parameters.keys() | prompt.parameters.keys()) - LIMITS


def _filled(body: _Body, request: Request) -> bytes:
    return body.head + orjson.dumps(replace_surrogates(request.user)) + body.tail


def _doubled(limit: object) -> object:
    return 2 * limit if isinstance(limit, int) else limit
