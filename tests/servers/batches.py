"""Files and batches of the loopback endpoint, as OpenAI documents them; states go on with each look at them."""

import itertools
import json
import random
from collections import Counter
from collections.abc import Callable
from dataclasses import dataclass, field
from typing import Any

from aiohttp import web
from servers.loopback import Answer, LoopbackServer, Script, answer_with, error, judge_by_hash

EPOCH = 4102444800  # no test waits for anything to become old
URL = "/v1/chat/completions"


@dataclass(kw_only=True)
class File:
    """An uploaded file, or one that a batch has made."""

    id: str
    name: str
    content: bytes
    purpose: str = "batch"

    def shown(self) -> dict[str, Any]:
        """The file object."""
        facts = {"id": self.id, "filename": self.name, "bytes": len(self.content), "purpose": self.purpose}
        return {"object": "file", "created_at": EPOCH, "status": "processed", **facts}


@dataclass(kw_only=True)
class Batch:
    """A batch and its fate."""

    id: str
    input: File
    metadata: dict[str, str]
    fate: str
    """`completed`, `expired` or `failed`; of a batch that expires half is done."""
    status: str = "validating"
    output: File | None = None
    errors: File | None = None
    failures: list[dict[str, Any]] = field(default_factory=list)
    done: int = 0
    failed: int = 0

    @property
    def lines(self) -> list[bytes]:
        """Its requests."""
        return self.input.content.splitlines()

    @property
    def tokens(self) -> int:
        """What it takes of the limit while it is under way."""
        return len(self.input.content) // 4

    @property
    def over(self) -> bool:
        """Whether nothing of it changes any more."""
        return self.status in ("completed", "failed", "expired", "cancelled")

    def shown(self) -> dict[str, Any]:
        """The batch object."""
        ended = {f"{self.status}_at": EPOCH + 60} if self.over else {}
        return {
            "id": self.id, "object": "batch", "endpoint": URL, "completion_window": "24h", "status": self.status,
            "input_file_id": self.input.id, "output_file_id": self.output and self.output.id,
            "error_file_id": self.errors and self.errors.id, "created_at": EPOCH, "metadata": self.metadata,
            "errors": {"object": "list", "data": self.failures} if self.failures else None,
            "request_counts": {"total": len(self.lines), "completed": self.done, "failed": self.failed}, **ended,
        }  # fmt: skip


Hook = Callable[[str], Answer | None]


class BatchServer(LoopbackServer):
    """A loopback endpoint with a Batch API."""

    def __init__(self, script: Script = judge_by_hash) -> None:
        super().__init__(script)
        self.files: dict[str, File] = {}
        self.deleted: list[str] = []
        self.batches: dict[str, Batch] = {}
        self.paid: Counter[str] = Counter()
        """Replies by custom_id."""
        self.events: list[str] = []
        self.hook: Hook = lambda _: None
        """Called with what has just been done: uploaded, created, polled, listed, cancelled, finalizing, downloading; an answer that it gives is sent."""
        self.fate: Callable[[int], str] = lambda _: "completed"
        """What becomes of a batch, by its number from 0."""
        self.enqueued: int | None = None
        """Tokens of all batches under way at most."""
        self.page = 2
        """Items on a page of a list at most."""
        self.frozen = False
        """Whether batches stay as they are."""
        self._ids = itertools.count(1)
        self._chance = random.Random(7)

    def _add_routes(self, app: web.Application) -> None:
        app.router.add_post("/v1/files", self._upload)
        app.router.add_get("/v1/files", self._list_files)
        app.router.add_get("/v1/files/{id}/content", self._content)
        app.router.add_delete("/v1/files/{id}", self._delete)
        app.router.add_post("/v1/batches", self._create)
        app.router.add_get("/v1/batches", self._list_batches)
        app.router.add_get("/v1/batches/{id}", self._show)
        app.router.add_post("/v1/batches/{id}/cancel", self._cancel)

    async def _reply(self, request: web.Request, event: str, answer: Answer) -> web.StreamResponse:
        """The answer, or the one that the hook has in its place."""
        self.events.append(event)
        return await answer_with(request, self.hook(event) or answer)

    async def _upload(self, request: web.Request) -> web.StreamResponse:
        form = await request.post()
        upload = form["file"]
        assert isinstance(upload, web.FileField)
        assert form["purpose"] == "batch"
        file = self._file(upload.filename, upload.file.read())
        return await self._reply(request, "uploaded", Answer(body=file.shown()))

    def _file(self, name: str, content: bytes, purpose: str = "batch") -> File:
        file = File(id=f"file-{next(self._ids)}", name=name, content=content, purpose=purpose)
        self.files[file.id] = file
        return file

    async def _list_files(self, request: web.Request) -> web.StreamResponse:
        found = [file.shown() for file in self.files.values() if file.purpose == request.query.get("purpose")]
        return await self._reply(request, "files listed", self._paged(request, found))

    async def _list_batches(self, request: web.Request) -> web.StreamResponse:
        return await self._reply(
            request, "listed", self._paged(request, [batch.shown() for batch in self.batches.values()])
        )

    def _paged(self, request: web.Request, items: list[dict[str, Any]]) -> Answer:
        """A page, newest first."""
        items.reverse()
        after = request.query.get("after")
        start = next((n + 1 for n, item in enumerate(items) if item["id"] == after), 0)
        most = min(self.page, int(request.query.get("limit", "20")))
        page = items[start : start + most]
        return Answer(body={"object": "list", "data": page, "has_more": start + most < len(items)})

    async def _content(self, request: web.Request) -> web.StreamResponse:
        file = self.files.get(request.match_info["id"])
        answer = Answer(body=file.content) if file else error(404, "No such File object")
        return await self._reply(request, "downloading", answer)

    async def _delete(self, request: web.Request) -> web.StreamResponse:
        name = request.match_info["id"]
        self.deleted.append(name)
        file = self.files.pop(name, None)
        answer = Answer(body={"id": name, "object": "file", "deleted": True})
        return await self._reply(request, "deleted", answer if file else error(404, "No such File object"))

    async def _create(self, request: web.Request) -> web.StreamResponse:
        asked = await request.json()
        assert asked["completion_window"] == "24h"
        assert asked["endpoint"] == URL
        file = self.files.get(asked["input_file_id"])
        if file is None:
            return await self._reply(request, "refused", error(400, "No such file"))
        number = len(self.batches)
        batch = Batch(id=f"batch_{number}", input=file, metadata=asked["metadata"], fate=self.fate(number))
        self.batches[batch.id] = batch
        return await self._reply(request, "created", Answer(body=batch.shown()))

    async def _show(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches.get(request.match_info["id"])
        if batch is None:
            return await self._reply(request, "missed", error(404, "No such batch"))
        if not self.frozen:
            self._advance(batch)
        return await self._reply(request, "polled", Answer(body=batch.shown()))

    async def _cancel(self, request: web.Request) -> web.StreamResponse:
        batch = self.batches.get(request.match_info["id"])
        if batch is None or batch.over:
            return await self._reply(request, "missed", error(404 if batch is None else 409, "Cannot be cancelled"))
        batch.status = "cancelling"
        return await self._reply(request, "cancelled", Answer(body=batch.shown()))

    def _advance(self, batch: Batch) -> None:
        if batch.status == "validating":
            self._validate(batch)
        elif batch.status == "in_progress":
            self._work(batch, len(batch.lines) // 2 if batch.fate == "expired" else len(batch.lines), "batch_expired")
            batch.status = "expired" if batch.fate == "expired" else "finalizing"
        elif batch.status == "cancelling":
            self._work(batch, len(batch.lines) // 3, "batch_cancelled")
            batch.status = "cancelled"
        elif batch.status == "finalizing":
            batch.status = "completed"

    def _validate(self, batch: Batch) -> None:
        under_way = sum(b.tokens for b in self.batches.values() if b.status in ("in_progress", "finalizing"))
        wrong = [number for number, line in enumerate(batch.lines, start=1) if not _is_request(line)]
        ids = [] if wrong else [json.loads(line)["custom_id"] for line in batch.lines]
        if wrong or len(set(ids)) < len(ids):
            batch.failures = [{"code": "invalid_json_line", "message": "…", "line": wrong[0] if wrong else 1}]
        elif self.enqueued is not None and under_way + batch.tokens > self.enqueued:
            said = f"Enqueued token limit reached for judge-1 in organization org-1. Limit: {self.enqueued:,} enqueued tokens. Please try again."
            batch.failures = [{"code": "token_limit_exceeded", "message": said, "line": None, "param": None}]
        elif batch.fate.startswith("failed"):
            batch.failures = [{"code": batch.fate.partition(":")[2] or "internal_error", "message": "…", "line": None}]
        batch.status = "failed" if batch.failures else "in_progress"

    def _work(self, batch: Batch, most: int, code: str) -> None:
        """Answer the first requests; the rest goes into the error file."""
        output: list[dict[str, Any]] = []
        errors: list[dict[str, Any]] = []
        for number, text in enumerate(batch.lines):
            line = json.loads(text)
            if number >= most:
                errors.append(
                    {"custom_id": line["custom_id"], "response": None, "error": {"code": code, "message": "…"}}
                )
                continue
            answer = self.script(self._see(URL, {}, line["body"]))
            good = answer.status < 400
            self.paid[line["custom_id"]] += good
            response = {"status_code": answer.status, "request_id": f"req_{number}", "body": answer.body}
            (output if good else errors).append({"custom_id": line["custom_id"], "response": response, "error": None})
        batch.done, batch.failed = len(output), len(errors)
        batch.output = self._results(output)
        batch.errors = self._results(errors)

    def _results(self, lines: list[dict[str, Any]]) -> File | None:
        """A file of results, in no order."""
        self._chance.shuffle(lines)
        content = "".join(json.dumps({"id": f"batch_req_{n}", **line}) + "\n" for n, line in enumerate(lines))
        return self._file("output.jsonl", content.encode(), "batch_output") if lines else None


def _is_request(line: bytes) -> bool:
    try:
        value = json.loads(line)
    except ValueError:
        return False
    known = value.get("method") == "POST" and value.get("url") == URL and isinstance(value.get("custom_id"), str)
    return bool(known and isinstance(value.get("body"), dict) and value["body"].get("model"))
