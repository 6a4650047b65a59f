"""Files and batches of an endpoint: each call tried until it is answered, and nothing made twice."""

import asyncio
import random
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from dataclasses import dataclass
from http import HTTPStatus
from pathlib import Path
from typing import Any, TypeVar
from urllib.parse import quote, urlencode

import orjson

from ...errors import EndpointError, Failure, FailureKind, NotFinished, RunError
from ...jsontext import NotJSON, loads
from ..endpoint import Endpoint
from ..refusal import Refusal
from ..transport import Response, Transport
from .batch import NO_ROOM, Batch, read_batch

_TRANSIENT = frozenset(
    {FailureKind.RATE_LIMITED, FailureKind.TIMEOUT, FailureKind.CONNECTION, FailureKind.SERVER_ERROR}
)
_UNKNOWN = (HTTPStatus.NOT_FOUND, HTTPStatus.METHOD_NOT_ALLOWED, HTTPStatus.NOT_IMPLEMENTED)
_PAGE = 100
_PROCESSED = ("processed", "uploaded", "error", None)
Found = TypeVar("Found")


@dataclass(frozen=True, kw_only=True)
class Persistence:
    """How often a call is tried, and how long is waited in between; a wait that the endpoint names is kept."""

    tries: int = 10
    """With growing waits some five minutes."""
    first_wait: float = 1.0
    longest_wait: float = 60.0

    def wait(self, tries: int) -> float:
        """Seconds after so many failed tries: doubled each time, half of it by chance."""
        grown: float = self.first_wait * 2 ** (tries - 1)
        return min(self.longest_wait, grown) * random.uniform(0.5, 1)  # noqa: S311


class BatchClient:
    """The Batch API of one endpoint.

    Methods raise NotFinished where the endpoint fails for long, and RunError (EndpointError) for what it refuses.
    """

    def __init__(self, endpoint: Endpoint, persistence: Persistence | None = None) -> None:
        self._endpoint = endpoint
        self._transport = Transport(endpoint)
        self._persistence = persistence or Persistence()
        # Azure's paths are without the version, also behind its /openai/v1/.
        self.requests_url = f"{'' if endpoint.host.endswith('.azure.com') else '/v1'}/chat/completions"
        """Where the requests of a batch go, as its lines have to say."""

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.close()

    async def batches(self, since: float) -> AsyncIterator[Batch]:
        """The account's batches from the Unix time `since` on, newest first.

        Raises EndpointError where the endpoint has no Batch API.
        """
        async for item in self._listed("/batches", {}):
            batch = read_batch(item)
            if batch is None or (batch.created or since) < since:
                return
            yield batch

    async def find_file(self, name: str, since: float) -> str | None:
        """The id of the file that was uploaded under a name since a Unix time."""
        async for item in self._listed("/files", {"purpose": "batch"}):
            created = item.get("created_at")
            if isinstance(created, (int, float)) and created < since:
                return None
            if item.get("filename") == name and isinstance(item.get("id"), str):
                return str(item["id"])
        return None

    async def upload(self, path: Path, name: str, since: float) -> str:
        """The id of an uploaded file; one whose upload had no answer is found by its name, not uploaded again."""

        async def attempt() -> Response:
            return await self._transport.upload("/files", {"purpose": "batch"}, path, name)

        answer = await self._persist(attempt, "the upload of a batch file", lambda: self.find_file(name, since))
        if isinstance(answer, str):
            return answer
        value = _json(answer)
        if not isinstance(value, dict) or not isinstance(value.get("id"), str):
            raise EndpointError(
                f"{self._endpoint.base_url} answered an upload with no file; it has no usable Batch API"
            )
        await self._wait_until_processed(value)
        return str(value["id"])

    async def create(
        self, file: str, metadata: Mapping[str, str], known: Callable[[], Awaitable[Batch | None]]
    ) -> Batch | None:
        """The batch made of an uploaded file, None where the account has too many tokens enqueued.

        Where an attempt has no answer `known` is asked for the batch that it may have made all the same.
        """
        body = {
            "input_file_id": file,
            "endpoint": self.requests_url,
            "completion_window": "24h",
            "metadata": metadata,
        }

        async def attempt() -> Response:
            return await self._transport.post("/batches", orjson.dumps(body))

        def no_room(refusal: Refusal) -> bool:
            return NO_ROOM in refusal.codes

        answer = await self._persist(attempt, "a batch", known, allowed=no_room)
        if isinstance(answer, Batch):
            return answer
        return self._batch(answer) if answer.good else None

    async def batch(self, batch: str) -> Batch | None:
        """The batch as it is now, None where the account has none of that id."""
        answer = await self._get(f"/batches/{quote(batch, safe='')}", "a batch")
        return self._batch(answer) if answer.good else None

    async def cancel(self, batch: str) -> Batch | None:
        """The batch, which has been asked to end; None where that cannot be asked of it any more."""

        async def attempt() -> Response:
            return await self._transport.post(f"/batches/{quote(batch, safe='')}/cancel", b"")

        answer = await self._persist(attempt, "the end of a batch", allowed=lambda refusal: refusal.status in _GONE)
        return self._batch(answer) if isinstance(answer, Response) and answer.good else None

    async def download(self, file: str, target: Path) -> bool:
        """Whether there is such a file; its content is in `target` then."""

        async def attempt() -> Response:
            return await self._transport.download(f"/files/{quote(file, safe='')}/content", target)

        answer = await self._persist(attempt, "a result file", allowed=lambda refusal: refusal.status in _GONE)
        return isinstance(answer, Response) and answer.good

    async def delete_file(self, file: str) -> None:
        """Delete an uploaded file, if the endpoint does so at once: left there it expires."""
        try:
            await self._transport.delete(f"/files/{quote(file, safe='')}")
        except Failure:
            return

    async def _wait_until_processed(self, file: dict[str, Any]) -> None:
        """Azure takes no batch of a file that it has not looked through."""
        tries = 0
        while file.get("status") not in _PROCESSED and tries < self._persistence.tries:
            tries += 1
            await asyncio.sleep(self._persistence.wait(tries))
            value = _json(await self._get(f"/files/{quote(str(file['id']), safe='')}", "a file"))
            file = value if isinstance(value, dict) else {}

    async def _listed(self, path: str, query: Mapping[str, str]) -> AsyncIterator[dict[str, Any]]:
        """The items of a list, page by page."""
        after: dict[str, str] = {}
        while True:
            answer = await self._get(f"{path}?{urlencode({**query, 'limit': str(_PAGE), **after})}", "a list")
            value = _json(answer)
            data = value.get("data") if isinstance(value, dict) else None
            if not answer.good or not isinstance(data, list):
                raise EndpointError(
                    f"{self._endpoint.base_url} has no Batch API (HTTP {answer.status}); leave out --batch"
                )
            items = [item for item in data if isinstance(item, dict)]
            for item in items:
                yield item
            assert isinstance(value, dict)  # noqa: S101  # else it had no data
            if not items or not value.get("has_more"):
                return
            after = {"after": str(items[-1].get("id"))}

    async def _get(self, path: str, what: str) -> Response:
        """What stands at a path; an answer that is no good one tells that nothing does."""
        answer = await self._persist(
            lambda: self._transport.get(path), what, allowed=lambda refusal: refusal.status in _UNKNOWN
        )
        assert isinstance(answer, Response)  # noqa: S101  # there is nothing else to be found
        return answer

    async def _persist(
        self,
        attempt: Callable[[], Awaitable[Response]],
        what: str,
        found: Callable[[], Awaitable[Found | None]] | None = None,
        *,
        allowed: Callable[[Refusal], bool] = lambda _: False,
    ) -> Response | Found:
        """A good answer, or a refusal that is `allowed`; before another attempt it is asked what the last one made."""
        tries = 0
        while True:
            tries += 1
            try:
                answer = await attempt()
                if answer.good or allowed(Refusal(answer)):
                    return answer
                trouble = self._meaning(answer, what)
            except Failure as failure:
                trouble = failure
            if tries == self._persistence.tries:
                raise NotFinished(
                    f"{trouble.message}, {tries} times in a row; what was sent stays sent: run the same command again"
                )
            await asyncio.sleep(max(trouble.wait or 0.0, self._persistence.wait(tries)))
            if found and (known := await found()):
                return known

    def _meaning(self, answer: Response, what: str) -> Failure:
        """A failure that may pass. Raises RunError for one that will not."""
        meaning = Refusal(answer).meaning(self._endpoint)
        if answer.status in _UNKNOWN:
            raise EndpointError(f"{self._endpoint.base_url} has no Batch API (HTTP {answer.status}); leave out --batch")
        if isinstance(meaning, RunError):
            raise meaning
        if meaning.kind not in _TRANSIENT:
            code = next(iter(sorted(Refusal(answer).codes)), "")
            shown = f", {code}" if code.replace("_", "").isalpha() else ""
            raise EndpointError(
                f"{self._endpoint.base_url} did not take {what} (HTTP {answer.status}{shown}); "
                "ctxrel batch cancel forgets what cannot be sent"
            )
        return meaning

    def _batch(self, answer: Response) -> Batch:
        batch = read_batch(_json(answer))
        if batch is None:
            raise EndpointError(f"{self._endpoint.base_url} answered with no batch; it has no usable Batch API")
        return batch


_GONE = (HTTPStatus.NOT_FOUND, HTTPStatus.BAD_REQUEST, HTTPStatus.CONFLICT, HTTPStatus.GONE)


def _json(answer: Response) -> object:
    try:
        return loads(answer.body)
    except NotJSON:
        return None
