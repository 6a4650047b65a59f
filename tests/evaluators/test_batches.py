"""The protocol of batches: as documented, and as it may come."""

import json
from pathlib import Path
from typing import Any

import pytest
from openai.types import Batch as DocumentedBatch
from openai.types import FileObject
from servers.batches import EPOCH, BatchServer
from servers.loopback import MODEL, Answer, LoopbackServer, error

from ctxrel.evaluators.errors import EndpointError, FailureKind, KeyRefused, NotFinished
from ctxrel.evaluators.judges.batches.batch import BatchError, read_batch
from ctxrel.evaluators.judges.batches.client import BatchClient, Persistence
from ctxrel.evaluators.judges.batches.lines import read_line, request_line
from ctxrel.evaluators.judges.endpoint import Endpoint

QUICK = Persistence(tries=3, first_wait=0.01)
KEY = bytes(range(16))


def client(server: LoopbackServer) -> BatchClient:
    return BatchClient(Endpoint(model=MODEL, base_url=server.url), QUICK)


def line(**fields: object) -> bytes:
    return json.dumps({"custom_id": KEY.hex(), **fields}).encode()


async def nothing() -> None:
    """No batch was made by an attempt without an answer."""


def test_request_line() -> None:
    """A line is what the documentation asks for."""
    assert json.loads(request_line(KEY, "/v1/chat/completions", b'{"model":"m"}')) == {
        "custom_id": "000102030405060708090a0b0c0d0e0f",
        "method": "POST",
        "url": "/v1/chat/completions",
        "body": {"model": "m"},
    }


def test_result_lines() -> None:
    """Answers, errors and lines of nobody."""
    good = read_line(line(response={"status_code": 200, "body": {"choices": []}}, error=None))
    assert good
    assert good.response
    assert (good.key, good.response.status, good.response.body) == (KEY, 200, b'{"choices":[]}')
    refused = read_line(line(response={"status_code": 400, "body": {"error": {}}}, error={"code": "x"}))
    assert refused
    assert refused.response
    assert refused.response.status == 400
    for code, kind in (
        ("batch_expired", "timeout"),
        ("request_timeout", "timeout"),
        ("Odd, sk-123", "server_error"),
        (None, "server_error"),
    ):
        failed = read_line(line(response=None, error={"code": code}))
        assert failed
        assert failed.failure().kind is FailureKind(kind)
        assert "sk-123" not in failed.failure().message
    for text in (b"", b"{", b"[]", b'{"custom_id": 5}', b'{"custom_id": "other-7"}'):
        assert read_line(text) is None
    odd_responses: tuple[object, ...] = ({}, {"status_code": 0}, {"status_code": "200"}, [])
    for response in odd_responses:
        odd = read_line(line(response=response))
        assert odd
        assert odd.response is None


def test_batch_objects() -> None:
    """Whatever is odd in a batch is as if it were not there."""
    assert read_batch({"id": "b"}) is None
    assert read_batch([]) is None
    value: dict[str, Any] = {
        "id": "b",
        "status": "new word",
        "request_counts": {"total": -1},
        "errors": [1],
        "output_file_id": "",
    }
    batch = read_batch(value | {"metadata": None, "created_at": "x"})
    assert batch
    assert (batch.over, batch.total, batch.errors, batch.output_file, batch.created) == (False, 0, (), None, None)
    said = "Enqueued token limit reached for m in organization org-1. Limit: 2,000,000 enqueued tokens."
    full = read_batch(
        value | {"status": "failed", "errors": {"data": [{"code": "token_limit_exceeded", "message": said}]}}
    )
    assert full
    assert (full.over, full.no_room, full.room) == (True, True, 2_000_000)
    assert full.errors == (BatchError("token_limit_exceeded", None, 2_000_000),)


async def test_against_the_documented_types(tmp_path: Path) -> None:
    """What the loopback endpoint sends are files and batches as the openai package knows them."""
    path = tmp_path / "in.jsonl"
    path.write_bytes(request_line(KEY, "/v1/chat/completions", b'{"model": "judge-1", "messages": []}'))
    with BatchServer() as server:
        here = client(server)
        file = await here.upload(path, "name.jsonl", EPOCH)
        made = await here.create(file, {"a": "b"}, nothing)
        assert made
        FileObject.model_validate(server.files[file].shown(), strict=True)
        shown = DocumentedBatch.model_validate(server.batches[made.id].shown(), strict=True)
        assert (shown.input_file_id, shown.metadata, made.metadata) == (file, {"a": "b"}, {"a": "b"})
        assert await here.find_file("name.jsonl", EPOCH) == file
        assert await here.find_file("name.jsonl", EPOCH + 1) is None
        assert await here.cancel(made.id)
        assert await here.cancel("no such batch") is None
        assert await here.batch("no such batch") is None
        assert not await here.download("no such file", tmp_path / "out")
        await here.close()


async def test_pages() -> None:
    """All pages of a list are read, up to the time that is asked for."""
    with BatchServer() as server:
        here = client(server)
        for number in range(5):
            file = server._file(f"f{number}", b"")
            await here.create(file.id, {}, nothing)
        assert [batch.id async for batch in here.batches(0)] == [f"batch_{number}" for number in (4, 3, 2, 1, 0)]
        assert [batch.id async for batch in here.batches(EPOCH + 1)] == []
        assert await here.find_file("f0", 0) == "file-1"
        await here.close()


async def test_a_full_account_at_once() -> None:
    """Some endpoints tell of a full account when the batch is asked for."""
    with BatchServer() as server:
        server.hook = lambda event: error(400, "full", code="token_limit_exceeded") if event == "created" else None
        here = client(server)
        assert await here.create(server._file("f", b"").id, {}, nothing) is None
        await here.close()


@pytest.mark.parametrize(
    ("answer", "wrong", "said"),
    [
        (error(401, "no"), KeyRefused, "refused the API key"),
        (error(501, "no"), EndpointError, "has no Batch API"),
        (error(400, "no", code="bad_thing"), EndpointError, r"did not take a list \(HTTP 400, bad_thing\)"),
        (error(500, "no"), NotFinished, "run the same command again"),
        (Answer(body=b"<html>"), EndpointError, "has no Batch API"),
    ],
)
async def test_refusals(answer: Answer, wrong: type[Exception], said: str) -> None:
    """What cannot be helped is a sentence, and what may pass ends with a run that goes on later."""
    with BatchServer() as server:
        server.hook = lambda _: answer
        here = client(server)
        with pytest.raises(wrong, match=said):
            [batch async for batch in here.batches(0)]
        await here.close()


def test_azure() -> None:
    """Azure's requests go to a path without a version."""
    there = Endpoint(model=MODEL, base_url="https://name.openai.azure.com/openai/v1/")
    assert BatchClient(there).requests_url == "/chat/completions"
