"""The judge behind any OpenAI-compatible chat completions endpoint."""

import asyncio
import re
from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, NamedTuple

import orjson

from ..errors import Failure, ModelUnknown, RunError
from ..jsontext import replace_surrogates
from ..prompt import Prompt, Request, digest
from ..replies import Reply
from .completion import decode_completion
from .dialect import LIMITS, Dialect, named_parameter
from .endpoint import Endpoint

if TYPE_CHECKING:
    import openai

# Models that reason take no temperature.
_REASONING = re.compile(r"(?:.*/)?(?:gpt-[5-9]|o[1-9])")
_HEADERS = {"Content-Type": "application/json"}


class _Body(NamedTuple):
    """A request's bytes around the record."""

    head: bytes
    tail: bytes
    parameters: dict[str, object]


class ChatJudge:
    """Asks one endpoint, in the strictest way it takes, and says nothing of retries."""

    def __init__(
        self,
        endpoint: Endpoint,
        *,
        concurrency: int,
        dialect: Dialect | None = None,
        on_dialect: Callable[[Dialect], None] = lambda _: None,
        on_notice: Callable[[str], None] = lambda _: None,
    ) -> None:
        self.model = endpoint.model
        self.description = f"{endpoint.model} at {endpoint.host}"
        self.concurrency = concurrency
        self.dialect = dialect or Dialect()
        self._endpoint = endpoint
        self._on_dialect = on_dialect
        self._on_notice = on_notice
        self._client: openai.AsyncOpenAI | None = None
        self._body = lru_cache(maxsize=64)(self._build_body)

    def fingerprint(self, prompt: Prompt) -> bytes:
        """A hash over what is wanted: a dialect found out later changes no key."""
        return digest(self._endpoint.host, self.model, self._wanted(prompt), prompt.name, prompt.system, prompt.schema)

    async def open(self) -> None:
        """Ask the endpoint for the model. Raises EndpointError where no request can succeed."""
        from .preflight import check_model  # noqa: PLC0415  # brings the openai package

        await check_model(self._connect(), self._endpoint, self._on_notice)

    async def close(self) -> None:
        """Close the connections."""
        if self._client is not None:
            await self._client.close()
            self._client = None

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:
        """One attempt at a reply, repeated only where the endpoint does not take a parameter.

        Raises Failure and RunError.
        """
        from . import translate  # noqa: PLC0415  # brings the openai package

        while True:
            dialect = self.dialect
            try:
                return decode_completion(await self._send(request, dialect, enlarged=enlarged))
            except translate.FOREIGN as error:
                if not self._adapt(error, request.prompt, dialect, enlarged=enlarged):
                    raise await self._translated(error) from error

    async def _translated(self, error: Exception) -> Failure | RunError:
        from .preflight import model_gone  # noqa: PLC0415
        from .translate import translate  # noqa: PLC0415

        endpoint = self._endpoint
        meaning = translate(error, model=self.model, url=endpoint.shown_url, timeout=endpoint.timeout)
        return await model_gone(self._connect(), endpoint) if isinstance(meaning, ModelUnknown) else meaning

    async def _send(self, request: Request, dialect: Dialect, *, enlarged: bool) -> bytes:
        import httpx2  # noqa: PLC0415  # arrives with openai

        content = self._content(request, dialect, enlarged=enlarged)
        async with asyncio.timeout(self._endpoint.timeout):
            response: httpx2.Response = await self._connect().post(
                "/chat/completions",
                content=content,
                cast_to=httpx2.Response,
                options={"headers": _HEADERS},
            )
        return response.content

    def request_body(self, request: Request) -> dict[str, object]:
        """The request as it would be sent now."""
        body: dict[str, object] = orjson.loads(self._content(request, self.dialect, enlarged=False))
        return body

    def _content(self, request: Request, dialect: Dialect, *, enlarged: bool) -> bytes:
        body = self._body(request.prompt, dialect, enlarged)
        return body.head + orjson.dumps(replace_surrogates(request.user)) + body.tail

    def _build_body(self, prompt: Prompt, dialect: Dialect, enlarged: bool) -> _Body:  # noqa: FBT001
        parameters = dialect.parameters(self._wanted(prompt))
        if enlarged:
            parameters = {name: _doubled(value) if name in LIMITS else value for name, value in parameters.items()}
        system = {"role": "system", "content": prompt.system}
        parameters |= dialect.format_of(prompt)
        body = orjson.dumps({"model": self.model, **parameters, "messages": [system, {"role": "user", "content": ""}]})
        return _Body(body[: -len(b'""}]}')], b"}]}", parameters)

    def _wanted(self, prompt: Prompt) -> dict[str, object]:
        defaults = {} if _REASONING.match(self.model) else {"temperature": 0}
        wanted = {**defaults, **prompt.parameters, **self._endpoint.parameters}
        return {name: value for name, value in wanted.items() if value is not None}

    def _adapt(self, error: Exception, prompt: Prompt, dialect: Dialect, *, enlarged: bool) -> bool:
        """Whether asking again in another dialect may help; several requests may find out at once."""
        import openai  # noqa: PLC0415

        from .translate import too_long_by_code, words_of  # noqa: PLC0415

        if not isinstance(error, (openai.BadRequestError, openai.UnprocessableEntityError)) or too_long_by_code(error):
            return False
        if self.dialect is not dialect:
            return True
        sent = self._body(prompt, dialect, enlarged).parameters
        blamed = named_parameter(words_of(error), error.param, sent)
        if blamed is None or (enlarged and blamed in LIMITS):
            return False
        self.dialect = dialect.without(blamed)
        for change in set(self.dialect.changes()) - set(dialect.changes()):
            self._on_notice(change)
        self._on_dialect(self.dialect)
        return True

    def _connect(self) -> "openai.AsyncOpenAI":
        if self._client is None:
            import openai  # noqa: PLC0415  # takes a second to import, and only a live run needs it

            self._client = openai.AsyncOpenAI(
                api_key=self._endpoint.api_key or "none",
                base_url=self._endpoint.base_url,
                max_retries=0,
                timeout=self._endpoint.timeout,
                http_client=openai.DefaultAioHttpClient(timeout=self._endpoint.timeout),
            )
        return self._client


def _doubled(limit: object) -> object:
    return 2 * limit if isinstance(limit, int) else limit
