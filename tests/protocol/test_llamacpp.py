"""Against llama.cpp's server, which nobody here wrote. Its model is noise: nothing is asserted about scores."""

import json
import signal
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from servers.llama import KEY, MARKS, LlamaServer, rows_of, start_run, wait_until, write_model

pytestmark = MARKS
WriteLog = Callable[..., Path]

LABEL = """
name: tone
inputs: [question, answer]
outputs:
  tone: {kind: label, values: [formal, casual, rude]}
scoring: {formal: 1, casual: 0.5, rude: 0}
instructions: |
  Which tone has the answer? {{output_format}}
"""


@pytest.fixture(scope="module")
def model(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return write_model(tmp_path_factory.mktemp("model") / "noise.gguf")


@pytest.fixture
def llama(model: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[LlamaServer]:
    """The server, and its key in a variable."""
    monkeypatch.setenv("LLAMA_KEY", KEY)
    with LlamaServer(model) as server:
        yield server


def records(count: int, *, words: int = 4) -> list[Record]:
    return [
        {
            "id": f"r-{number}",
            "question": f"What is item {number}?",
            "contexts": [
                f"Item {number} is a thing. It weighs {number} g.",
                f"Nothing of {number}" + " here" * words + ".",
            ],
            "answer": f"It is a thing. It weighs {number} g.",
        }
        for number in range(count)
    ]


def command(server: LlamaServer, *arguments: str | Path) -> list[str | Path]:
    asked = ["-m", "noise", "--base-url", server.url, "--api-key-env", "LLAMA_KEY", "--max-errors", "100%"]
    return ["run", *arguments, *asked]


def test_starts_quickly(llama: LlamaServer) -> None:
    """The model is small enough not to be waited for."""
    assert llama.seconds < 5


def test_three_kinds_of_evaluators(ctxrel: RunCommand, llama: LlamaServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Citations, claims and labels: every row is judged or its reply was cut or does not fit; the schema was obeyed."""
    Path("tone.yaml").write_text(LABEL, encoding="utf-8")
    # Noise does not support statements one by one: without contexts at least one answer is judged.
    log = write_log([*records(13), {**records(14)[13], "contexts": []}])
    evaluators = ["-e", "context_relevance", "-e", "faithfulness", "-e", "./tone.yaml"]
    done = ctxrel(*command(llama, log, *evaluators, "--param", "max_tokens=300", "-c", "4"), timeout=300)
    rows = read_rows(tmp_path / "log.ctxrel")
    assert (done.returncode, len(rows)) == (0, 3 * 14), done.stderr
    kinds = {row["error"]["kind"] for row in rows if row["error"]}
    assert kinds <= {"truncated", "invalid_reply"}
    assert {row["evaluator"] for row in rows if row["status"] == "evaluated"} >= {"context_relevance", "tone"}
    assert {row["tone"] for row in rows if row["evaluator"] == "tone"} <= {"formal", "casual", "rude"}
    assert read_summary(tmp_path / "log.ctxrel")["judge"]["notices"] == []


@pytest.mark.parametrize("evaluator", ["context_relevance", "faithfulness", "tone"])
def test_replies_obey_the_schema(ctxrel: RunCommand, llama: LlamaServer, write_log: WriteLog, evaluator: str) -> None:
    """Every reply that was not cut is the JSON object that was asked for, down to names and kinds."""
    Path("tone.yaml").write_text(LABEL, encoding="utf-8")
    name = "./tone.yaml" if evaluator == "tone" else evaluator
    ctxrel(*command(llama, write_log(records(6)), "-e", name, "--store", "s.sqlite", "--param", "max_tokens=600"))
    db = sqlite3.connect("s.sqlite")
    replies = [json.loads(text) for (text,) in db.execute("SELECT text FROM replies WHERE finish_reason = 'stop'")]
    db.close()
    shapes: dict[str, Callable[[dict[str, Any]], bool]] = {
        "context_relevance": lambda reply: all(type(n) is int for n in reply["relevant_statements"]),
        "faithfulness": lambda reply: all(type(statement) is str for statement in reply["statements"]),
        "tone": lambda reply: reply["tone"] in ("formal", "casual", "rude"),
    }
    assert replies
    assert all(shapes[evaluator](reply) for reply in replies)


def test_usage_is_the_servers(ctxrel: RunCommand, llama: LlamaServer, write_log: WriteLog, tmp_path: Path) -> None:
    """The tokens in the summary are those that the server counted, and there is more than one request in flight."""
    done = ctxrel(*command(llama, write_log(records(40)), "-c", "4"), timeout=300)
    assert done.returncode == 0, done.stderr
    assert all(
        row["usage"]["input_tokens"] > 0 < row["usage"]["output_tokens"] for row in read_rows(tmp_path / "log.ctxrel")
    )
    tokens, counted = read_summary(tmp_path / "log.ctxrel")["tokens"], llama.metrics()
    assert tokens["input_tokens"] - tokens["cached_tokens"] == counted["prompt_tokens_total"]
    assert tokens["output_tokens"] == counted["tokens_predicted_total"]
    assert counted["n_busy_slots_per_decode"] > 1


def test_wrong_key(
    ctxrel: RunCommand, llama: LlamaServer, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A wrong key ends the run at once; no record was sent."""
    monkeypatch.setenv("LLAMA_KEY", "sk-wrong")
    done = ctxrel(*command(llama, write_log(records(5))))
    assert done.returncode == 1
    assert "refused the API key (HTTP 401)" in done.stderr
    assert "sk-wrong" not in done.stderr
    assert "requests: 0 sent" in done.stderr
    assert llama.metrics()["prompt_tokens_total"] == 0


def test_wrong_path(ctxrel: RunCommand, llama: LlamaServer, write_log: WriteLog) -> None:
    """A base URL without chat completions ends the run after one request."""
    arguments = command(llama, write_log(records(5)))
    arguments[arguments.index(llama.url)] = f"{llama.address}/nowhere"
    done = ctxrel(*arguments)
    assert done.returncode == 1
    assert "has no chat completions (HTTP 404); check --base-url" in done.stderr
    assert "requests: 1 sent" in done.stderr


def test_too_long(
    ctxrel: RunCommand, model: Path, write_log: WriteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """A record beyond the context is divided; one that cannot be is `context_too_long`, and the others are judged."""
    monkeypatch.setenv("LLAMA_KEY", KEY)
    long, endless = records(3, words=250)[1:]
    long["contexts"] = long["contexts"] * 2
    endless["contexts"] = ["word " * 3000]
    with LlamaServer(model, n_ctx=4 * 8192) as server:
        done = ctxrel(*command(server, write_log([records(1)[0], long, endless])), timeout=120)
    assert done.returncode == 0, done.stderr
    short, divided, refused = read_rows(tmp_path / "log.ctxrel")
    assert short["status"] == "evaluated"
    assert divided["requests"] > 1
    assert refused["error"]["kind"] == "context_too_long"


def test_server_killed(
    ctxrel: RunCommand, model: Path, write_log: WriteLog, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """When the server dies what was judged stays; the same command with a new server, elsewhere or not, finishes."""
    monkeypatch.setenv("LLAMA_KEY", KEY)
    log, folder = write_log(records(200)), tmp_path / "log.ctxrel"
    with LlamaServer(model) as server:
        run = start_run(*command(server, log, "-c", "4", "--attempts", "2"))
        wait_until(lambda: rows_of(folder) >= 10)
        server.kill()
        _, said = run.communicate(timeout=240)
    assert b"Traceback" not in said
    rows = read_rows(folder, *(path.name for path in folder.glob("results.jsonl*")))
    judged = {row["id"]: row for row in rows if row["status"] == "evaluated"}
    assert len(judged) >= 10
    assert {row["error"]["kind"] for row in rows if row["error"]} <= {"connection", "server_error"}
    assert run.returncode == 1 or len(rows) == 200
    with LlamaServer(model, port=int(server.address.rpartition(":")[2]), reuse_port=True) as again:
        assert again.address == server.address
        done = ctxrel(*command(again, log, "-c", "4"), timeout=120)
    assert done.returncode == 0, done.stderr
    finished = {row["id"]: row for row in read_rows(folder)}
    assert len(finished) == 200
    assert {name: finished[name] for name in judged} == judged
    assert read_summary(folder)["requests"]["reused"] >= len(judged)


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_signal(llama: LlamaServer, write_log: WriteLog, tmp_path: Path, number: signal.Signals) -> None:
    """A signal lets what is in flight finish; every reply that was paid for is in the store."""
    run = start_run(*command(llama, write_log(records(400)), "-c", "4"))
    wait_until(lambda: rows_of(tmp_path / "log.ctxrel") >= 5)
    run.send_signal(number)
    run.communicate(timeout=60)
    assert run.returncode == 128 + number
    summary = read_summary(tmp_path / "log.ctxrel")
    assert summary["status"] == "interrupted"
    assert summary["tokens"]["output_tokens"] == llama.metrics()["tokens_predicted_total"]
