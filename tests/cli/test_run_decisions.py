"""`ctxrel run --api decisions` from the command line to the files."""

import json
import sqlite3
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from servers.decisions import LUNA, MODELS, decide_by_hash, deciding
from servers.loopback import Answer, LoopbackServer, Seen, error

from ctxrel.evaluators.judges.openai_decisions import BETA

WriteLog = Callable[..., Path]


@pytest.fixture
def luna() -> Iterator[LoopbackServer]:
    """An endpoint that decides by a hash of the sentences."""
    with LoopbackServer(deciding(decide_by_hash), models=MODELS) as running:
        yield running


def records(count: int) -> list[Record]:
    """Records that all differ."""
    return [
        {
            "id": f"r-{number}",
            "question": f"What is item {number}?",
            "contexts": [f"Item {number} is a thing. It weighs {number} g.", f"Nothing about {number * 7} here."],
        }
        for number in range(count)
    ]


def decide(luna: LoopbackServer, *arguments: str | Path) -> list[str | Path]:
    return ["run", *arguments, "--api", "decisions", "--base-url", luna.url, "--max-errors", "100%"]


def test_row_and_summary(ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Rows are a chat's with the probabilities beside them; the model is gpt-6-luna; the beta is told of."""
    log = write_log(
        [{"question": "Who?", "contexts": ["Ada did. It was late.", " "]}, {"question": "?", "contexts": []}]
    )
    luna.script = deciding(lambda _, name: {"1": 0.83, "2": 0.07}[name])
    done = ctxrel(*decide(luna, log))
    assert done.returncode == 0, done.stderr
    assert BETA in done.stderr
    first, second = read_rows(tmp_path / "log.ctxrel")
    assert {**first, "prompt": ""} == {
        "index": 0,
        "id": "0",
        "evaluator": "context_relevance",
        "status": "evaluated",
        "score": 1,
        "question": "Who?",
        "relevant_statements": ["Ada did."],
        "contexts": [
            {"relevant": True, "statements": 2, "relevant_statements": 1, "spans": [[0, 8]]},
            {"relevant": False, "statements": 0, "relevant_statements": 0, "spans": []},
        ],
        "statement_probabilities": [0.83, 0.07],
        "model": f"{LUNA}-2026-10-06",
        "prompt": "",
        "repaired": False,
        "cost": None,
        "usage": {"input_tokens": 100, "output_tokens": 0, "cached_tokens": 64, "reasoning_tokens": 0},
        "error": None,
    }
    assert (second["score"], second["statement_probabilities"]) == (0, [])
    summary = read_summary(tmp_path / "log.ctxrel")
    assert (summary["configuration"]["api"], summary["configuration"]["model"]) == ("decisions", LUNA)
    assert BETA in summary["judge"]["notices"]


def test_resumed_and_run_again(ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A run goes on with what is missing, and from the store alone its rows are the same, byte for byte."""
    log = write_log([*records(12), {"question": "Long?", "contexts": ["One is here. " * 401]}])
    assert ctxrel(*decide(luna, log, "--limit", "5")).returncode == 0
    assert len(luna.seen) == 5
    assert ctxrel(*decide(luna, log)).returncode == 0
    assert len(luna.seen) == 12 + 2
    rows = (tmp_path / "log.ctxrel" / "results.jsonl").read_bytes()
    assert read_rows(tmp_path / "log.ctxrel")[-1]["requests"] == 2
    again = ctxrel(*decide(luna, log, "-o", "other", "--store", tmp_path / "log.ctxrel" / "store.sqlite"))
    assert again.returncode == 0
    assert (tmp_path / "other" / "results.jsonl").read_bytes() == rows
    assert len(luna.seen) == 12 + 2
    with sqlite3.connect(tmp_path / "log.ctxrel" / "store.sqlite") as store:
        (text,) = store.execute("SELECT text FROM replies LIMIT 1").fetchone()
    store.close()
    assert text.startswith('{"answers": [{"name": "1", "probability": ')


def test_failed_records_are_asked_again(
    ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A failure is an error row with empty columns, and the next run asks about that record alone."""
    log = write_log(records(4))
    fine = luna.script

    def script(seen: Seen) -> Answer:
        return error(400, "no") if seen.record["question"] == "What is item 2?" else fine(seen)

    luna.script = script
    assert ctxrel(*decide(luna, log)).returncode == 0
    row = read_rows(tmp_path / "log.ctxrel")[2]
    assert (row["status"], row["error"]["kind"], row["statement_probabilities"]) == ("error", "rejected", [])
    luna.script = fine
    luna.seen.clear()
    assert ctxrel(*decide(luna, log)).returncode == 0
    assert [seen.record["question"] for seen in luna.seen] == ["What is item 2?"]


def test_an_endpoint_that_is_known(
    ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Once it has answered, also in an earlier run, what a gateway says to one record is that record's affair."""
    assert ctxrel(*decide(luna, write_log(records(2)))).returncode == 0
    fine = luna.script
    luna.script = lambda seen: (
        Answer(status=403, body=b"<html>no</html>") if seen.record["question"] == "What is item 2?" else fine(seen)
    )
    assert ctxrel(*decide(luna, write_log(records(4)))).returncode == 0
    assert [row["status"] for row in read_rows(tmp_path / "log.ctxrel")] == [*["evaluated"] * 2, "error", "evaluated"]


def test_another_threshold_asks_nothing(
    ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Stored replies are scored anew where the threshold has changed, and nothing is sent."""
    log = write_log(records(20))
    found: dict[float, list[Record]] = {}
    for threshold in (0.5, 0.9, 0.2):
        text = f"name: mine\nextends: context_relevance\ndecisions: {{threshold: {threshold}}}\n"
        Path("mine.yaml").write_text(text, encoding="utf-8")
        assert ctxrel(*decide(luna, log, "-e", "./mine.yaml")).returncode == 0
        found[threshold] = read_rows(tmp_path / "log.ctxrel")
    assert len(luna.seen) == 20
    for threshold, rows in found.items():
        assert [row["score"] for row in rows] == [int(max(row["statement_probabilities"]) >= threshold) for row in rows]
    assert len({row["prompt"] for rows in found.values() for row in rows}) == 3
    assert len({str([row["score"] for row in rows]) for rows in found.values()}) == 3


def test_a_chat_is_another_request(ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog) -> None:
    """What the same model answered to predicates is no reply to a chat, and the folder takes both in turn."""
    log = write_log(records(3))
    assert ctxrel(*decide(luna, log)).returncode == 0
    with LoopbackServer(models=MODELS) as server:
        chat = ctxrel("run", log, "-m", LUNA, "--base-url", server.url)
        assert chat.returncode == 0, chat.stderr
        assert [seen.path for seen in server.seen] == ["/v1/chat/completions"] * 3


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["-e", "context_relevance_verbatim"], "cannot answer 'context_relevance_verbatim'"),
        (["-e", "context_relevance", "-e", "answer_relevance"], "cannot answer 'answer_relevance'"),
        (["--explain"], "gives no reasons"),
        (["--model", "offline"], "the offline judge has no Decisions API"),
        (["--model", "./judge.gguf"], "a model file has no Decisions API"),
    ],
    ids=["quotes", "a label", "reasons", "offline", "a model file"],
)
def test_what_cannot_be_asked(
    ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog, tmp_path: Path, arguments: list[str], words: str
) -> None:
    """What needs text from the judge, and judges without the service, are refused before anything is sent."""
    done = ctxrel(*decide(luna, write_log(records(1)), *arguments))
    assert done.returncode == 2
    assert words in done.stderr
    assert not luna.seen
    assert not luna.model_requests
    assert not (tmp_path / "log.ctxrel").exists()


def test_from_a_config_file(ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog) -> None:
    """A file may say it; a model that is named there or on the command line is the one that is asked for."""
    Path("ctxrel.toml").write_text(f'[run]\napi = "decisions"\nbase-url = "{luna.url}"\n', encoding="utf-8")
    log = write_log(records(1))
    assert ctxrel("run", log).returncode == 0
    assert luna.seen[0].body["model"] == LUNA
    done = ctxrel("run", log, "--model", "gpt-5-mini")
    assert done.returncode == 1
    assert "does not serve the model 'gpt-5-mini'; choose another with --model, for example gpt-6-luna" in done.stderr


@pytest.mark.parametrize("more", [[], ["--dry-run"]])
def test_not_in_batches(ctxrel: RunCommand, luna: LoopbackServer, write_log: WriteLog, more: list[str]) -> None:
    """--batch is refused before anything is written or sent, also where nothing would be."""
    log = write_log(records(1))
    done = ctxrel(*decide(luna, log, "--batch", *more))
    assert done.returncode == 2
    assert "the Decisions API is not asked in batches; leave out --batch or --api decisions" in done.stderr
    assert (luna.seen, luna.model_requests) == ([], [])
    assert not log.with_suffix(".ctxrel").exists()
    done = ctxrel("estimate", log, "--api", "decisions", "--json")
    estimated = json.loads(done.stdout)
    assert estimated["cost"]
    assert estimated["cost_in_batches"] is None
