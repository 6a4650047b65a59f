"""What a batch has brought: both of its files, whatever its state, into the store."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import replace
from http import HTTPStatus
from itertools import islice
from pathlib import Path

import orjson

from ....evaluators.errors import Failure, FailureKind, OutputError, RunError
from ....evaluators.jsontext import NotJSON, loads
from ....evaluators.judges.batches.batch import Batch
from ....evaluators.judges.batches.client import BatchClient
from ....evaluators.judges.batches.lines import Answered, read_line
from ....evaluators.judges.completion import decode_completion
from ....evaluators.judges.dialect import Dialect, recall_dialect
from ....evaluators.judges.endpoint import Endpoint
from ....evaluators.judges.openai_chat import ChatJudge, Room
from ....evaluators.judges.refusal import Refusal
from ....evaluators.judges.transport import Response
from ....evaluators.prompt import Prompt
from ....evaluators.replies import Reply, Usage
from ..store import Store
from . import limits
from .ledger import Ledger
from .parts import Part

_NO_LARGER = frozenset({FailureKind.REJECTED, FailureKind.CONTEXT_TOO_LONG})


class Collector:
    """Reads the files of batches that are over."""

    def __init__(
        self,
        client: BatchClient,
        endpoint: Endpoint,
        judge: ChatJudge,
        prompts: Mapping[bytes, Prompt],
        store: Store,
        ledger: Ledger,
        folder: Path,
        *,
        on_reply: Callable[[Reply], None],
    ) -> None:
        """`prompts` are those of this run, by the judge's fingerprints; `on_reply` gets each reply that is kept."""
        self.usage = Usage()
        """Tokens of the replies that this run has collected."""
        self._on_reply = on_reply
        self._client = client
        self._endpoint = endpoint
        self._judge = judge
        self._prompts = prompts
        self._store = store
        self._ledger = ledger
        self._path = folder / "batches" / "result.jsonl"

    async def __call__(self, part: Part, batch: Batch) -> None:
        """Keep all that came of a part. Raises RunError where no other request can succeed either."""
        error = self._hopeless(batch)
        for file in (batch.output_file, batch.error_file):  # where a reply is, an error beside it counts for nothing
            if file:
                error = await self._read_file(part, file) or error
        if error:  # what has no outcome is no request's fault
            self._ledger.release(part)
            raise error
        self._ledger.close_part(part, _left_over(batch))

    async def _read_file(self, part: Part, file: str) -> RunError | None:
        error = None
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
            if not await self._client.download(file, self._path):
                return None
            with self._path.open("rb") as stream:
                while lines := list(islice(stream, limits.LINES_AT_ONCE)):
                    error = self._keep(part, lines) or error
        except OSError as failed:
            raise OutputError(f"cannot use {str(self._path)!r}: {failed.strerror}") from None
        finally:
            self._path.unlink(missing_ok=True)
        return error

    def _keep(self, part: Part, lines: list[bytes]) -> RunError | None:
        """Keep what some lines tell, all at once: a line that was kept is never kept again."""
        sent, payer = _dialect(part), self._ledger.payer(part)
        error = None
        with self._store.transaction():
            for answered in _read(lines):
                waiting = self._ledger.waiting(part, answered.key)
                if waiting is None:
                    continue
                prompt, room = waiting
                try:
                    found = self._found(answered, self._prompts.get(prompt), room, sent)
                    self._ledger.keep(part, answered.key, found)
                    if isinstance(found, Reply) and not payer:
                        self.usage = self.usage.plus(found.usage)
                        self._on_reply(found)
                except RunError as failed:
                    if isinstance(failed, OutputError):
                        raise
                    error = failed
        return error

    def _found(self, answered: Answered, prompt: Prompt | None, room: Room, sent: Dialect) -> Reply | Failure | Room:
        """What became of a request. Raises RunError for what any other would meet as well."""
        if answered.response is None:
            return answered.failure()
        if answered.response.good:
            try:
                reply = decode_completion(answered.response.body)
            except Failure as failure:
                return failure
            if prompt:
                self._judge.accepted(prompt, sent)
            return replace(reply, batch=True)
        if prompt and (other := self._judge.learn(answered.response, prompt, room, sent)):
            return other
        meaning = Refusal(answered.response).meaning(self._endpoint)
        if isinstance(meaning, RunError):
            raise meaning
        if room is Room.ENLARGED and meaning.kind in _NO_LARGER:
            return Failure(FailureKind.TRUNCATED, "the reply was cut, and no more room is to be had")
        return meaning

    def _hopeless(self, batch: Batch) -> RunError | None:
        """Why no other batch can succeed where this one failed; None where another may."""
        for error in batch.errors:
            refusal = Refusal(Response(HTTPStatus.BAD_REQUEST, {}, orjson.dumps({"error": {"code": error.code}})))
            if isinstance(meaning := refusal.meaning(self._endpoint), RunError):
                return meaning
        return None


def _read(lines: list[bytes]) -> Iterator[Answered]:
    return (answered for line in lines if (answered := read_line(line)))


def _dialect(part: Part) -> Dialect:
    try:
        facts = loads(part.dialect)
    except NotJSON:
        facts = None
    return (recall_dialect(facts) if isinstance(facts, dict) else None) or Dialect()


def _left_over(batch: Batch) -> Failure:
    """What it means for a request that a batch has ended without a word on it."""
    if batch.status in ("expired", "cancelled"):
        return Answered(b"", None, f"batch_{batch.status}").failure()
    if batch.errors:
        return Failure(FailureKind.SERVER_ERROR, f"the endpoint failed the batch ({batch.errors[0].code})")
    return Failure(FailureKind.SERVER_ERROR, "the batch ended without an answer to the request")
