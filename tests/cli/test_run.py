"""`ctxrel run` against a real endpoint on a loopback port, from the command line to the files."""

import contextlib
import fcntl
import json
import os
import random
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from hashlib import blake2b
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand, read_rows, read_summary, wait_until_it_waits
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, cite, completion, error, judge_by_hash

from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.outputs.building import ROW_KEYS

WriteLog = Callable[..., Path]


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


def live(server: LoopbackServer, *arguments: str | Path) -> list[str | Path]:
    return ["run", *arguments, "--model", MODEL, "--base-url", server.url]


def test_row_and_summary(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A run leaves the rows and the summary of the contract, every key of them."""
    log = write_log(
        [
            {"id": "q-17", "question": "Who created Python?", "contexts": ["Guido did. It is a language.", " "]},
            {"id": 18, "question": "And Perl?", "contexts": []},
        ]
    )
    server.script = lambda _: cite(1)
    done = ctxrel(*live(server, log))
    assert done.returncode == 0
    prompt = load_evaluator("context_relevance").prompt
    usage = {"input_tokens": 100, "output_tokens": 7, "cached_tokens": 64, "reasoning_tokens": 3}
    assert read_rows(tmp_path / "log.ctxrel") == [
        {
            "index": 0,
            "id": "q-17",
            "evaluator": "context_relevance",
            "status": "evaluated",
            "score": 1,
            "question": "Who created Python?",
            "relevant_statements": ["Guido did."],
            "contexts": [
                {"relevant": True, "statements": 2, "relevant_statements": 1, "spans": [[0, 10]]},
                {"relevant": False, "statements": 0, "relevant_statements": 0, "spans": []},
            ],
            "model": "judge-1-2026-01-01",
            "prompt": prompt,
            "repaired": False,
            "usage": usage,
            "cost": None,
            "error": None,
        },
        {
            "index": 1,
            "id": "18",
            "evaluator": "context_relevance",
            "status": "evaluated",
            "score": 0,
            "question": "And Perl?",
            "relevant_statements": [],
            "contexts": [],
            "model": None,
            "prompt": prompt,
            "repaired": False,
            "usage": dict.fromkeys(usage, 0),
            "cost": 0.0,
            "error": None,
        },
    ]
    summary = read_summary(tmp_path / "log.ctxrel")
    timings = summary.pop("timings")
    assert timings["seconds"] >= 0
    assert summary.pop("configuration")["model"] == MODEL
    assert summary == {
        "schema": 1,
        "version": summary["version"],
        "status": "complete",
        "error": None,
        "results": "results.jsonl",
        "results_hash": blake2b((tmp_path / "log.ctxrel" / "results.jsonl").read_bytes(), digest_size=16).hexdigest(),
        "setting": summary["setting"],
        "evaluators": {
            "context_relevance": {
                "prompt": prompt,
                "score": 0.5,
                "better": "higher",
                "n": 2,
                "evaluated": 2,
                "errors": {},
                "coverage": 1.0,
                "repaired": 0,
                "interval_95": [pytest.approx(0.0945, abs=1e-4), pytest.approx(0.9055, abs=1e-4)],
                "design_effect": 1.0,
                "bounds_if_failed": [0.5, 0.5],
                "figures": {
                    "no_contexts": 1,
                    "none_relevant": 1,
                    "contexts": 2,
                    "relevant_contexts": 1,
                    "statements": 2,
                    "relevant_statements": 1,
                    "context_precision": 0.25,
                    "mrr": 0.5,
                    "map": 0.5,
                    "ndcg": 0.5,
                    "precision_at_1": 0.5,
                    "precision_at_3": pytest.approx(1 / 6),
                    "precision_at_5": 0.1,
                    "precision_at_10": 0.05,
                    "first_relevant_rank": 1.0,
                    "never_relevant": 0.0,
                },
            }
        },
        "gates": [
            {
                "gate": "--max-errors 5%",
                "evaluator": "context_relevance",
                "figure": "errors",
                "threshold": 0.05,
                "value": 0.0,
                "met": True,
                "message": "0 of 2 rows of context_relevance are errors (0 %)",
            }
        ],
        "judge": {
            "model": MODEL,
            "description": f"{MODEL} at {server.url.split('/')[2]}",
            "models": {"judge-1-2026-01-01": 1},
            "notices": [],
        },
        "input": {
            "files": [str(log)],
            "fields": ["question ← question, contexts ← contexts, id ← id"],
            "records": 2,
            "population": 2,
            "sample": None,
            "size": log.stat().st_size,
            "fingerprint": summary["input"]["fingerprint"],
            "ids": summary["input"]["ids"],
        },
        "requests": {"sent": 1, "reused": 0, "not_needed": 1, "failed": {}},
        "concurrency": {"fixed": False, "lowest": 8, "highest": 8, "last": 8, "cuts": 0, "course": [[0.0, 8]]},
        "tokens": usage,
        "batch": None,
        "cost": None,
        "budget": None,
    }


def test_divided_record(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A record that does not fit is divided by its contexts, and its row says into how many requests."""
    server.script = lambda seen: (
        error(400, "too long", code="context_length_exceeded")
        if len(seen.record["contexts"]) > 1
        else cite(int(next(iter(seen.record["contexts"][0]))))
    )
    assert ctxrel(*live(server, write_log(records(1)))).returncode == 0
    (row,) = read_rows(tmp_path / "log.ctxrel")
    assert (row["requests"], row["usage"]["input_tokens"]) == (2, 200)
    assert row["relevant_statements"] == ["Item 0 is a thing.", "Nothing about 0 here."]


def test_no_output_can_take_a_columns_name(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """The names refused to an evaluator's output are the other columns of a row."""
    ctxrel("run", write_log(records(1)), "-m", "offline")
    (row,) = read_rows(tmp_path / "log.ctxrel")
    sometimes = {"requests", "file", "kept", "input", "opinions", "majority"}
    assert row.keys() - {"relevant_statements", "score"} == ROW_KEYS - sometimes


def test_rows_in_order_whatever_the_answers_take(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Rows stand in input order though answers overtake each other, and no more than asked for are in flight."""
    random.seed(1)
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=random.random() / 20)
    done = ctxrel(*live(server, write_log(records(200)), "-c", "8"))
    assert done.returncode == 0
    assert [row["id"] for row in read_rows(tmp_path / "log.ctxrel")] == [f"r-{number}" for number in range(200)]
    assert 2 < server.most_in_flight <= 8


def test_run_again_sends_nothing(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A finished run repeated asks nobody anything and leaves the same bytes."""
    log = write_log(records(20))
    ctxrel(*live(server, log))
    before = (tmp_path / "log.ctxrel" / "results.jsonl").read_bytes()
    asked = len(server.seen) + len(server.model_requests)
    assert ctxrel(*live(server, log, "-c", "3")).returncode == 0
    assert len(server.seen) + len(server.model_requests) == asked
    assert (tmp_path / "log.ctxrel" / "results.jsonl").read_bytes() == before
    assert read_summary(tmp_path / "log.ctxrel")["requests"] == {"sent": 0, "reused": 20, "not_needed": 0, "failed": {}}


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        pytest.param(["--param", "seed=7"], 3, id="parameter"),
        pytest.param(["-e", "mine.yaml"], 3, id="instructions"),
        pytest.param(["-e", "share.yaml"], 0, id="scoring rule"),
        pytest.param(["-c", "2", "--timeout", "9"], 0, id="concurrency and timeout"),
    ],
)
def test_what_asks_again(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path, change: list[str], asked: int
) -> None:
    """What can change the answer asks again; what cannot, does not."""
    ctxrel("prompts", "copy", "context_relevance", "mine.yaml")
    text = (tmp_path / "mine.yaml").read_text()
    (tmp_path / "mine.yaml").write_text(text.replace("You judge the retrieval", "Judge the retrieval"))
    (tmp_path / "share.yaml").write_text(text.replace("scoring: any", "scoring: share"))
    log = write_log(records(3))
    ctxrel(*live(server, log))
    assert len(server.seen) == 3
    assert ctxrel(*live(server, log, *change)).returncode == 0
    assert len(server.seen) == 3 + asked


def test_shared_store(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """With a shared store tomorrow's log costs only what is new, whatever ids and order."""
    ctxrel(*live(server, write_log(records(5)), "--store", "s.sqlite"))
    tomorrow = [{**record, "id": f"x{number}"} for number, record in enumerate(reversed(records(7)))]
    ctxrel(*live(server, write_log(tomorrow, "tomorrow.jsonl"), "--store", "s.sqlite"))
    assert len(server.seen) == 7


def test_identical_records_in_flight_are_one_request(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """The same question and contexts twice in a log are asked once, and both rows are full."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.2)
    log = write_log(records(2) * 4)
    assert ctxrel(*live(server, log)).returncode == 0
    assert len(server.seen) == 2
    assert len({row["score"] for row in read_rows(tmp_path / "log.ctxrel")[::2]}) == 1


def test_failures_are_rows_and_asked_again(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A failed record is an error row with a null score, outside the mean, and the next run asks it again."""
    server.script = lambda seen: completion(None, refusal="no") if "item 1?" in str(seen.record) else cite(1)
    log = write_log(records(4))
    assert ctxrel(*live(server, log)).returncode == 3
    row = read_rows(tmp_path / "log.ctxrel")[1]
    assert (row["status"], row["score"], row["relevant_statements"], row["contexts"]) == ("error", None, [], [])
    assert row["error"] == {"kind": "refusal", "message": "the judge refused to answer"}
    block = read_summary(tmp_path / "log.ctxrel")["evaluators"]["context_relevance"]
    assert (block["score"], block["n"], block["evaluated"], block["errors"]) == (1.0, 4, 3, {"refusal": 1})
    assert (block["coverage"], block["bounds_if_failed"]) == (0.75, [0.75, 1.0])
    server.script = lambda _: cite(1)
    assert ctxrel(*live(server, log)).returncode == 0
    assert len(server.seen) == 5
    assert read_summary(tmp_path / "log.ctxrel")["evaluators"]["context_relevance"]["errors"] == {}


def test_raise_on_failure(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """With --raise-on-failure the first failed record ends the run; its id is told, what was judged stays."""
    server.script = lambda seen: error(422, "no") if "item 3?" in str(seen.record) else cite(1)
    done = ctxrel(*live(server, write_log(records(50)), "--raise-on-failure", "-c", "1"))
    assert done.returncode == 1
    assert "record 'r-3'" in done.stderr
    assert "rejected" in done.stderr
    assert len(server.seen) < 10
    assert len(read_rows(tmp_path / "log.ctxrel", "results.jsonl.part")) >= 3
    assert read_summary(tmp_path / "log.ctxrel")["status"] == "failed"


def test_nothing_could_be_judged(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A run in which every record failed does not succeed, and its score is null."""
    server.script = lambda _: completion("no JSON")
    done = ctxrel(*live(server, write_log(records(3))))
    assert done.returncode == 1
    assert "none of 3 records could be judged (invalid_reply)" in done.stderr
    block = read_summary(tmp_path / "log.ctxrel")["evaluators"]["context_relevance"]
    assert (block["score"], block["interval_95"]) == (None, None)


def test_key_refused_sends_nothing_more(
    ctxrel: RunCommand,
    server: LoopbackServer,
    write_log: WriteLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """A refused key ends the run with exit 1 before a record is sent, and stands in no file and no message."""
    monkeypatch.setenv("MY_KEY", "sk-very-secret")
    server.models = error(401, "Incorrect API key provided: sk-very-secret")
    done = ctxrel(*live(server, write_log(records(3)), "--api-key-env", "MY_KEY"))
    assert done.returncode == 1
    assert "refused the API key" in done.stderr
    assert server.seen == []
    assert "sk-very-secret" not in done.stderr + done.stdout
    assert b"sk-very-secret" not in everything_in(tmp_path / "log.ctxrel")


def test_the_key_is_sent_and_written_nowhere(
    ctxrel: RunCommand,
    server: LoopbackServer,
    write_log: WriteLog,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    """The key goes to the endpoint and nowhere else."""
    monkeypatch.setenv("OPENAI_API_KEY", " sk-very-secret\n")
    done = ctxrel(*live(server, write_log(records(2))))
    assert done.returncode == 0
    assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer sk-very-secret"}
    assert b"sk-very-secret" not in done.stderr.encode() + everything_in(tmp_path / "log.ctxrel")


def everything_in(folder: Path) -> bytes:
    return b"".join(path.read_bytes() for path in folder.iterdir())


@pytest.mark.parametrize(
    ("url", "words"),
    [
        ("localhost:11434/v1", "is no base URL; write it like"),
        ("ftp://localhost/v1", "is no base URL; write it like"),
        ("https://me:pass-word@example.com/v1", "holds a user name or password"),
    ],
)
def test_unusable_base_url(ctxrel: RunCommand, write_log: WriteLog, url: str, words: str) -> None:
    """A base URL that cannot work is a usage error that shows no password."""
    done = ctxrel("run", write_log(records(1)), "--base-url", url)
    assert done.returncode == 2
    assert words in done.stderr
    assert "pass-word" not in done.stderr


def test_no_key_is_a_usage_error(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """Without a key nothing is sent and nothing is made; the sentence names the variable and the offline judge."""
    done = ctxrel("run", write_log(records(1)), "--base-url", "https://api.example.com/v1")
    assert done.returncode == 2
    assert done.stderr == (
        "ctxrel: no API key for api.example.com: set the environment variable OPENAI_API_KEY, "
        "name another with --api-key-env, or try --model offline, which needs none\n"
    )
    assert not (tmp_path / "log.ctxrel").exists()


def test_unknown_model_names_successors(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A model the endpoint does not list ends the run with the flag and the likely successors, newest first."""
    names = [("gpt-4o", 1), ("gpt-5.4-mini", 5), ("gpt-6-mini", 7), ("tts-1", 9), ("gpt-5-nano", 3)]
    server.models = Answer(body={"data": [{"id": name, "created": created} for name, created in names]})
    done = ctxrel("run", write_log(records(1)), "--base-url", server.url)
    assert done.returncode == 1
    assert (
        "does not serve the model 'gpt-6-luna'; choose another with --model, for example gpt-6-mini, gpt-5.4-mini"
        in (done.stderr)
    )
    assert server.seen == []


def test_model_that_is_gone_meanwhile(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A model that is still listed and no longer answers ends the run with the likely successors."""
    server.models = Answer(body={"data": [{"id": MODEL, "created": 1}, {"id": "judge-2", "created": 2}]})
    server.script = lambda _: error(404, "The model has been deprecated", code="model_not_found")
    done = ctxrel(*live(server, write_log(records(9))))
    assert done.returncode == 1
    assert "does not serve the model 'judge-1'; choose another with --model, for example judge-2" in done.stderr
    assert len(server.seen) == 1


def test_announced_shutdown_is_told(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A shutdown within 30 days is told and does not stop the run."""
    day = time.strftime("%Y-%m-%d", time.gmtime(time.time() + 11 * 86400))
    server.models = Answer(body={"data": [{"id": MODEL, "created": 1, "shutdown_date": day}]})
    done = ctxrel(*live(server, write_log(records(1))))
    assert done.returncode == 0
    assert f"the model {MODEL} will be shut down on {day}" in done.stderr


@pytest.mark.parametrize("status", [404, 405, 501, 403])
def test_endpoint_without_models_is_fine(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, status: int
) -> None:
    """An endpoint that offers no /models is asked for completions all the same."""
    server.models = error(status, "no such thing here")
    assert ctxrel(*live(server, write_log(records(1)))).returncode == 0


def test_nobody_listens(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """An endpoint that is not there ends the run with one sentence; no results are left that look finished."""
    done = ctxrel("run", write_log(records(3)), "-m", MODEL, "--base-url", "http://127.0.0.1:9/v1")
    assert done.returncode == 1
    assert "no connection to http://127.0.0.1:9/v1" in done.stderr
    assert "--base-url" in done.stderr
    assert not (tmp_path / "log.ctxrel" / "results.jsonl").exists()
    assert read_summary(tmp_path / "log.ctxrel")["status"] == "failed"


def test_what_an_endpoint_takes_is_remembered(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A format found out in one run is used at once in the next, and both summaries say so."""

    def script(seen: Seen) -> Answer:
        format_ = seen.body.get("response_format", {}).get("type")
        return error(400, "response_format json_schema is not supported") if format_ == "json_schema" else cite(1)

    server.script = script
    ctxrel(*live(server, write_log(records(2))))
    first = read_summary(tmp_path / "log.ctxrel")["judge"]["notices"]
    assert len(server.seen) == 3
    ctxrel(*live(server, write_log(records(4))))
    assert len(server.seen) == 5
    assert read_summary(tmp_path / "log.ctxrel")["judge"]["notices"] == first
    assert "json_object" in first[0]


def test_a_mistyped_value_is_nobodys_loss(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A value of the user's that the endpoint does not take ends the run; corrected, it is sent again."""

    def script(seen: Seen) -> Answer:
        if seen.body.get("reasoning_effort") == "lo":
            message = "Unsupported value: 'reasoning_effort' does not support 'lo' with this model."
            return error(400, message, param="reasoning_effort", code="unsupported_value")
        return cite(1)

    server.script = script
    log = write_log(records(3))
    done = ctxrel(*live(server, log, "--param", "reasoning_effort=lo"))
    assert done.returncode == 1
    assert "does not take the value of the request parameter 'reasoning_effort': 'lo'" in done.stderr
    assert len(server.seen) == 1
    assert ctxrel(*live(server, log, "--param", "reasoning_effort=low")).returncode == 0
    assert {seen.body["reasoning_effort"] for seen in server.seen[1:]} == {"low"}
    configuration = read_summary(tmp_path / "log.ctxrel")["configuration"]
    assert configuration["parameters"]["context_relevance"] == {
        "temperature": 0, "max_completion_tokens": 4096, "reasoning_effort": "low",
    }  # fmt: skip
    assert configuration["concurrency"] is None


def test_an_unknown_parameter_of_the_users_is_left_out_and_told_every_time(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A parameter the endpoint does not know is left out for this run, said on stderr and in the summary, not remembered."""
    server.script = lambda seen: (
        error(400, "Unknown parameter: 'seed'.", code="unknown_parameter") if "seed" in seen.body else cite(1)
    )
    for count in (2, 4):
        done = ctxrel(*live(server, write_log(records(count)), "--param", "seed=7"))
        assert done.returncode == 0
        assert "the endpoint does not take seed; it is left out" in done.stderr
        assert read_summary(tmp_path / "log.ctxrel")["judge"]["notices"] == [
            "the endpoint does not take seed; it is left out"
        ]
    assert ["seed" in seen.body for seen in server.seen] == [True, False, False, True, False, False]


def test_each_evaluators_parameters_are_found_out(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """What the endpoint does not take of a second evaluator is left out as of the first."""
    ctxrel("prompts", "copy", "context_relevance", "second.yaml")
    text = (tmp_path / "second.yaml").read_text()
    text = text.replace("name: context_relevance", "name: second").replace("parameters:\n", "parameters:\n  top_k: 5\n")
    (tmp_path / "second.yaml").write_text(text)
    server.script = lambda seen: (
        error(400, "Unknown parameter: 'top_k'", code="unknown_parameter") if "top_k" in seen.body else cite(1)
    )
    done = ctxrel(*live(server, write_log(records(5)), "-e", "context_relevance", "-e", "second.yaml"))
    assert done.returncode == 0
    assert [(row["evaluator"], row["status"]) for row in read_rows(tmp_path / "log.ctxrel")] == [
        ("context_relevance", "evaluated"),
        ("second", "evaluated"),
    ] * 5
    assert read_summary(tmp_path / "log.ctxrel")["requests"]["sent"] == len(server.seen) <= 10 + 5


def test_a_gateway_that_blocks_a_record(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A gateway's page for one record fails that record, in this run and when it is run again."""
    page = Answer(status=403, body=b"<html>blocked</html>", headers={"Content-Type": "text/html"})
    server.script = lambda seen: page if "item 3?" in str(seen.record) else cite(1)
    for _ in range(2):
        assert ctxrel(*live(server, write_log(records(10)))).returncode == 3
        block = read_summary(tmp_path / "log.ctxrel")["evaluators"]["context_relevance"]
        assert (block["evaluated"], block["errors"]) == (9, {"rejected": 1})
    assert len(server.seen) == 10 + 1


def test_ctrl_c_while_the_reader_pauses(write_log: WriteLog) -> None:
    """Rows that nobody takes do not hold up the end."""
    log = write_log([{**record, "question": record["question"] + "x" * 5000} for record in records(300)])
    command = [sys.executable, "-m", "ctxrel.cli", "run", str(log), "-m", "offline", "-o", "-"]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until_it_waits(process)
        process.send_signal(signal.SIGINT)
        assert process.wait(10) == 130
        assert process.stderr
        assert b"Traceback" not in process.stderr.read()


def test_a_folder_that_grows(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """A folder or a glob with a new file is the same input; another one is not."""
    for name in ("v1.2", "v1.3"):
        (tmp_path / name).mkdir()
        write_log(records(2), f"{name}/1.jsonl")
    assert ctxrel("run", "v1.2", "-m", "offline").returncode == 0
    write_log(records(3), "v1.2/2.jsonl")
    assert ctxrel("run", "v1.2/", "-m", "offline").returncode == 0
    assert len(read_rows(tmp_path / "v1.2.ctxrel")) == 5
    assert ctxrel("run", "v1.3", "-m", "offline").returncode == 0
    assert ctxrel("run", "v1.3/*.jsonl", "-m", "offline").returncode == 2
    assert ctxrel("run", "-", "-m", "offline", "-o", ".", stdin=json.dumps(records(1)[0])).returncode == 0


def test_an_alias_that_is_not_listed(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A model that a gateway serves without listing it is asked: the first request decides."""
    server.models = Answer(body={"data": [{"id": "something-else", "created": 1}]})
    server.no_such_model = error(404, "Not Found")
    assert ctxrel(*live(server, write_log(records(2)))).returncode == 0


def test_nothing_leaves_after_the_end(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """While the successors of a model that is gone are looked up slowly, nothing else is sent."""

    def script(_: Seen) -> Answer:
        if len(server.seen) > 1:
            server.models = Answer(body={"data": [{"id": "judge-2", "created": 1}]}, delay=1)
            return error(404, "gone", code="model_not_found")
        return cite(1)

    server.script = script
    done = ctxrel(*live(server, write_log(records(60)), "-c", "4"))
    assert done.returncode == 1
    assert "for example judge-2" in done.stderr
    assert len(server.seen) <= 1 + 4


def test_usage_of_a_reply_another_run_brought(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Two runs at once on one store may both ask; rows tell of the first reply, and a rerun says the same."""
    server.script = lambda seen: Answer(body=cite(1, 2).body if seen.number else cite(1).body, delay=0.05)
    log = write_log(records(40))
    command = [sys.executable, "-m", "ctxrel.cli", *map(str, live(server, log, "--store", "s.sqlite", "-c", "2"))]
    with subprocess.Popen([*command, "-o", "a"]) as first, subprocess.Popen([*command, "-o", "b"]) as second:
        assert (first.wait(30), second.wait(30)) == (0, 0)
    results = {name: (tmp_path / name / "results.jsonl").read_bytes() for name in ("a", "b")}
    assert results["a"] == results["b"]
    assert ctxrel(*live(server, log, "--store", "s.sqlite", "-o", "a")).returncode == 0
    assert (tmp_path / "a" / "results.jsonl").read_bytes() == results["a"]
    assert {row["usage"]["input_tokens"] for row in read_rows(tmp_path / "a")} == {100}


def test_requests_add_up(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Sent, answered otherwise and not needed add up to the rows; a failing text is paid for once."""
    server.script = lambda seen: completion(None, refusal="no") if "item 1?" in str(seen.record) else cite(1)
    log = write_log([*records(3) * 3, {"question": "Q?", "contexts": []}, {"question": "Q?"}])
    assert ctxrel(*live(server, log, "-c", "1")).returncode == 3
    assert read_summary(tmp_path / "log.ctxrel")["requests"]["sent"] == len(server.seen) == 3
    assert read_summary(tmp_path / "log.ctxrel")["requests"]["not_needed"] == 1


def test_another_log_of_the_same_name(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """The results of another log are not replaced unasked."""
    for day in ("mon", "tue"):
        (tmp_path / day).mkdir()
        write_log(records(2), f"{day}/log.jsonl")
    assert ctxrel("run", "mon/log.jsonl", "-m", "offline").returncode == 0
    assert ctxrel("run", "mon/log.jsonl", "-m", "offline").returncode == 0
    done = ctxrel("run", "tue/log.jsonl", "-m", "offline")
    assert done.returncode == 2
    assert "'log.ctxrel' holds the results of mon/log.jsonl; name another folder with --output" in done.stderr
    done = ctxrel("run", "tue/log.jsonl", "-m", "offline", "-o", "log.ctxrel")
    assert (done.returncode, "they are replaced" in done.stderr) == (0, True)


def test_a_failed_run_names_its_own_rows(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """The summary of a run that failed does not pass off the rows of an earlier one as its own."""
    log = write_log(records(2))
    ctxrel(*live(server, log))
    server.models = error(401, "no")
    assert ctxrel(*live(server, log, "--param", "seed=1")).returncode == 1
    assert read_summary(tmp_path / "log.ctxrel")["results"] == "results.jsonl.part"


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["run", "", "-m", "offline"], "an input is empty text"),
        (["run", "log.jsonl", "-m", "offline", "-o", ""], "--output is empty text"),
        (["run", "log.jsonl", "-m", ""], "--model is empty"),
        (["run", ".", "-m", "offline", "-o", "."], "the output folder '.' holds a log that is read"),
        (["run", "log.jsonl", "--api-key-env", "sk-live-SECRET"], "--api-key-env takes the name of a variable"),
        (["run", "log.jsonl", "--param", "temperature=NaN"], "JSON knows no NaN"),
        (["run", "log.jsonl", "--param", "temperature"], "'temperature' is no request parameter"),
        (["run", "log.jsonl", "--param", "stream=true"], "'stream' is set by ctxrel itself"),
        (
            ["run", "log.jsonl", "-m", "offline", "-e", "context_relevance", "-e", "context_relevance"],
            "two evaluators are",
        ),
        (["run", "log.jsonl", "-m", "offline", "-o", "log.jsonl/x"], "'log.jsonl/x' is no folder"),
        (["run", "log.jsonl", "-m", "offline", "-c", "0"], "Invalid value for '-c' / '--concurrency'"),
        (["run", "log.jsonl", "-m", "offline", "--timeout", "nan"], "Invalid value for '--timeout'"),
    ],
)
def test_usage_errors(ctxrel: RunCommand, write_log: WriteLog, arguments: list[str], said: str) -> None:
    """What cannot be meant is exit 2 and a sentence, and shows no key."""
    write_log(records(1))
    done = ctxrel(*arguments)
    assert done.returncode == 2
    assert said in done.stderr
    assert "SECRET" not in done.stderr


def test_nobody_watches(write_log: WriteLog, tmp_path: Path) -> None:
    """A run whose stderr is closed, or is read no more, goes on."""
    log = write_log(records(5))
    for number, ending in enumerate(("2>&-", "2>&1 | head -1", "0<&- 1>&- 2>&-")):
        command = f"{sys.executable} -m ctxrel.cli run {log} -m offline -o o{number} {ending}"
        subprocess.run(["bash", "-o", "pipefail", "-c", command], check=True, capture_output=True)
        assert len(read_rows(tmp_path / f"o{number}")) == 5


def test_a_reader_that_pauses(server: LoopbackServer, write_log: WriteLog) -> None:
    """Whoever reads the rows may pause: no request times out for it, nothing is paid twice, no row is lost."""
    log = write_log([{**record, "question": record["question"] + "x" * 20000} for record in records(60)])
    command = [sys.executable, "-m", "ctxrel.cli", *map(str, live(server, log, "-o", "-", "--timeout", "1"))]
    with subprocess.Popen(command, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdout
        time.sleep(4)
        assert len(process.stdout.read().splitlines()) == 60
        assert process.wait(10) == 0
    assert len(server.seen) == 60


def test_without_a_store_nothing_is_promised(server: LoopbackServer, write_log: WriteLog) -> None:
    """Rows on standard output without a store: that nothing is kept is told before, and no going on is promised."""
    server.script = slowly
    command = [sys.executable, "-m", "ctxrel.cli", *map(str, live(server, write_log(records(500)), "-o", "-"))]
    with subprocess.Popen(command, stdout=subprocess.DEVNULL, stderr=subprocess.PIPE) as process:
        while len(server.seen) < 50:
            time.sleep(0.001)
        process.send_signal(signal.SIGHUP)
        assert process.stderr
        told = process.stderr.read().decode()
    assert process.returncode == 129
    assert "without --store no reply is kept" in told
    assert "run the same command again" not in told


def test_names_that_are_no_text(write_log: WriteLog, tmp_path: Path) -> None:
    """A file name that is no UTF-8 is read, and stands in the files as well as it can."""
    log = write_log([*records(1), {"question": 5}])
    odd = os.fsencode(tmp_path) + b"/b\xffd.jsonl"
    os.rename(log, odd)  # noqa: PTH104  # the name is bytes
    done = subprocess.run([sys.executable, "-m", "ctxrel.cli", "run", odd, "-m", "offline", "-o", "out"], check=False)
    assert done.returncode == 3
    assert read_summary(tmp_path / "out")["input"]["files"][0].endswith("b\ufffdd.jsonl")


def test_second_run_waits_for_nobody(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """An output in use is left alone: exit 75 and who holds it."""
    (tmp_path / "log.ctxrel").mkdir()
    with (tmp_path / "log.ctxrel" / ".lock").open("w") as lock:
        json.dump({"pid": 4711, "host": "night"}, lock)
        lock.flush()
        fcntl.flock(lock, fcntl.LOCK_EX)
        done = ctxrel("run", write_log(records(1)), "-m", "offline")
    assert done.returncode == 75
    assert "another run (process 4711 on night) works at 'log.ctxrel'" in done.stderr


def test_files_are_for_the_owner_only(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """Results, summary and store hold people's data."""
    ctxrel("run", write_log(records(1)), "-m", "offline")
    modes = {path.name: path.stat().st_mode & 0o777 for path in (tmp_path / "log.ctxrel").iterdir()}
    assert modes == dict.fromkeys(["results.jsonl", "summary.json", "store.sqlite", ".lock"], 0o600)


def start(server: LoopbackServer, log: Path, output: str) -> "subprocess.Popen[bytes]":
    command = [sys.executable, "-m", "ctxrel.cli", *map(str, live(server, log, "-o", output, "-c", "16"))]
    return subprocess.Popen(command, stderr=subprocess.PIPE)


def slowly(seen: Seen) -> Answer:
    return Answer(body=judge_by_hash(seen).body, delay=0.02)


def test_killed_and_resumed(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """`kill -9` at ten moments of a run: going on loses nothing, asks at most what was in flight twice, same bytes."""
    log = write_log(records(2000))
    server.script = slowly
    assert ctxrel(*live(server, log, "-o", "whole")).returncode == 0
    server.seen.clear()
    server._counts.clear()
    chance = random.Random(7)
    for kill in range(1, 11):
        process = start(server, log, "killed")
        enough = 170 * kill + chance.randrange(40)
        while len(server.seen) < enough:
            assert process.poll() is None
            time.sleep(0.001)
        process.kill()
        process.communicate()
    assert not (tmp_path / "killed" / "summary.json").exists()
    assert ctxrel(*live(server, log, "-o", "killed")).returncode == 0
    assert len(server.seen) <= 2000 + 10 * 16
    assert (tmp_path / "killed" / "results.jsonl").read_bytes() == (tmp_path / "whole" / "results.jsonl").read_bytes()


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, 143)], ids=["INT", "TERM"])
def test_signal_drains(
    server: LoopbackServer, write_log: WriteLog, tmp_path: Path, number: signal.Signals, code: int
) -> None:
    """One signal: what is in flight finishes and is stored, the summary says interrupted, results.jsonl is not there."""
    server.script = slowly
    process = start(server, write_log(records(2000)), "run")
    while len(server.seen) < 100:
        time.sleep(0.001)
    process.send_signal(number)
    _, stderr = process.communicate(timeout=20)
    assert process.returncode == code
    assert b"Traceback" not in stderr
    assert b"run the same command again to go on" in stderr
    with contextlib.closing(sqlite3.connect(tmp_path / "run" / "store.sqlite")) as store:
        (stored,) = store.execute("SELECT count(*) FROM replies").fetchone()
    assert stored == len(server.seen) == len(read_rows(tmp_path / "run", "results.jsonl.part"))
    assert read_summary(tmp_path / "run")["status"] == "interrupted"
    assert not (tmp_path / "run" / "results.jsonl").exists()


def test_second_signal_is_at_once(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Two signals: not even what is in flight is waited for."""
    server.script = lambda seen: (
        cite(1) if seen.record["question"] == "What is item 0?" else Answer(fault="hang", body=b"x")
    )
    process = start(server, write_log(records(50)), "run")
    while len(server.seen) < 10:
        time.sleep(0.001)
    process.send_signal(signal.SIGINT)
    time.sleep(0.3)
    assert process.poll() is None
    process.send_signal(signal.SIGINT)
    process.communicate(timeout=5)
    assert process.returncode == 130
    assert len(read_rows(tmp_path / "run", "results.jsonl.part")) == 1


@pytest.mark.parametrize(("number", "code"), [(signal.SIGINT, 130), (signal.SIGTERM, -15)], ids=["INT", "TERM"])
def test_signal_while_nothing_comes(number: signal.Signals, code: int) -> None:
    """A pipe in which nothing arrives does not hold up Ctrl-C."""
    command = [sys.executable, "-m", "ctxrel.cli", "run", "-", "-o", "-", "-m", "offline"]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stderr=subprocess.PIPE) as process:
        wait_until_it_waits(process)
        process.send_signal(number)
        assert process.wait(10) == code
        assert process.stderr
        assert b"Traceback" not in process.stderr.read()


def test_rows_stream_through_a_pipe(server: LoopbackServer) -> None:
    """With - and -o - a row comes out while the log is still being written."""
    command = [sys.executable, "-m", "ctxrel.cli", *map(str, live(server, "-", "-o", "-"))]
    with subprocess.Popen(command, stdin=subprocess.PIPE, stdout=subprocess.PIPE, stderr=subprocess.DEVNULL) as process:
        assert process.stdin
        assert process.stdout
        for record in records(3):
            process.stdin.write(json.dumps(record).encode() + b"\n")
            process.stdin.flush()
            assert json.loads(process.stdout.readline())["id"] == record["id"]
        process.stdin.close()
        assert process.wait(10) == 0


def test_head_closes_the_pipe(write_log: WriteLog) -> None:
    """`| head -3` gets three rows; one sentence, no traceback, and the store is whole."""
    log = write_log(records(3000))
    command = f"cat {log} | {sys.executable} -m ctxrel.cli run - -o - --store s.sqlite --model offline | head -3"
    done = subprocess.run(["bash", "-o", "pipefail", "-c", command], capture_output=True, text=True, check=False)
    assert [json.loads(line)["index"] for line in done.stdout.splitlines()] == [0, 1, 2]
    assert "Traceback" not in done.stderr
    assert "standard output was closed" in done.stderr
    assert done.returncode == 1
    with contextlib.closing(sqlite3.connect("s.sqlite")) as store:
        assert store.execute("PRAGMA integrity_check").fetchone() == ("ok",)


@pytest.mark.skipif(os.geteuid() != 0 and not os.access("/dev/full", os.W_OK), reason="needs /dev/full")
def test_full_disk(write_log: WriteLog) -> None:
    """A full disk is one sentence and exit 1."""
    command = [sys.executable, "-m", "ctxrel.cli", "run", str(write_log(records(3))), "-o", "-", "-m", "offline"]
    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(command, stdout=full, stderr=subprocess.PIPE, text=True, check=False)
    assert done.returncode == 1
    assert "ctxrel: cannot write to standard output: No space left on device" in done.stderr


def test_limit_and_progress(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """--limit judges the first records only; --progress json speaks JSON, none says nothing."""
    log = write_log(records(30))
    done = ctxrel("run", log, "-m", "offline", "--limit", "7", "--progress", "json")
    assert len(read_rows(tmp_path / "log.ctxrel")) == 7
    progress: dict[str, Any] = json.loads(done.stderr.splitlines()[0])
    assert (progress["rows"], progress["failed"], progress["sent"]) == (7, 0, 7)
    assert ctxrel("run", log, "-m", "offline", "--progress", "none").stderr == ""


def test_second_pipe_into_one_folder(ctxrel: RunCommand) -> None:
    """Other records through a pipe, with the setting of the run before, are all read and judged."""
    for start in (0, 100):
        lines = "".join(json.dumps(record) + "\n" for record in records(start + 100)[start:])
        assert ctxrel("run", "-", "-o", "out", "-m", "offline", stdin=lines).returncode == 0
        assert [row["id"] for row in read_rows(Path("out"))] == [f"r-{start + number}" for number in range(100)]


UNCHANGED = "nothing has changed since the run that is here: its results stand"


def test_a_finished_run_stands(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Run again on the same log, the results stay as they are, and the summary is as if they had been written anew."""
    log = write_log(records(30))
    ctxrel(*live(server, log))
    folder = tmp_path / "log.ctxrel"
    first, before = read_summary(folder), (folder / "results.jsonl").stat()
    done = ctxrel(*live(server, log))
    second, after = read_summary(folder), (folder / "results.jsonl").stat()
    assert (done.returncode, UNCHANGED in done.stderr) == (0, True)
    assert (before.st_mtime_ns, before.st_ino) == (after.st_mtime_ns, after.st_ino)
    for name in ("evaluators", "input", "results", "results_hash", "setting", "status", "version", "configuration"):
        assert first[name] == second[name]
    assert second["requests"] == {"sent": 0, "reused": 30, "not_needed": 0, "failed": {}}
    assert second["tokens"]["input_tokens"] == 0
    assert second["judge"]["models"] == first["judge"]["models"]


@pytest.mark.parametrize(
    ("change", "asked"),
    [
        ("results", 0), ("results gone", 0), ("summary gone", 0), ("id", 0), ("scoring", 0), ("limit", 0),
        ("store gone", 30), ("question", 1), ("more", 1), ("a failed record", 1),
    ],
)  # fmt: skip
def test_a_finished_run_that_has_changed(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path, change: str, asked: int
) -> None:
    """Whatever the rows depend on is noticed, and they are written anew."""
    lines = records(30)
    folder, options = tmp_path / "log.ctxrel", []
    log = write_log(lines)
    ctxrel("prompts", "copy", "context_relevance", "mine.yaml")
    if change == "a failed record":
        server.script = lambda seen: completion("no") if "item 7?" in seen.record["question"] else judge_by_hash(seen)
    assert ctxrel(*live(server, log, "-e", "mine.yaml")).returncode == 0
    server.seen.clear()
    server.script = judge_by_hash
    if change == "results":
        with (folder / "results.jsonl").open("a") as stream:
            stream.write("x\n")
    elif change == "scoring":
        text = Path("mine.yaml").read_text(encoding="utf-8")
        Path("mine.yaml").write_text(text.replace("scoring: any", "scoring: share"), encoding="utf-8")
    elif change.endswith(" gone"):
        for path in folder.glob(f"{change.split(maxsplit=1)[0]}*"):
            path.unlink()
    elif change == "limit":
        options = ["--limit", "20"]
    elif change != "a failed record":
        new = {"id": {**lines[3], "id": "r-X"}, "question": {**lines[3], "question": "What is item X?"}}
        write_log([*lines[:3], new[change], *lines[4:]] if change in new else [*lines, *records(31)[30:]])
    done = ctxrel(*live(server, log, "-e", "mine.yaml", *options))
    assert (done.returncode, UNCHANGED in done.stderr) == (0, False)
    assert len(server.seen) == asked
    rows = read_rows(folder)
    assert [row["index"] for row in rows] == list(range(20 if change == "limit" else 31 if change == "more" else 30))
    assert [row for row in rows if row["error"]] == []


def test_a_pipe_is_judged_anew(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """A second run on a pipe reads all of it: whether it is as it was cannot be known without reading it."""
    for count in (20, 25):
        text = write_log(records(count)).read_bytes()
        done = ctxrel("run", "-", "-m", "offline", "-o", "pipe", stdin=text)
        assert (done.returncode, len(read_rows(tmp_path / "pipe"))) == (0, count)


@pytest.mark.parametrize(
    "summary",
    [{"input": None}, {"evaluators": []}, {"evaluators": {"x": {}}}, {"requests": None}, {"judge": 1}, {"results_hash": [1]}, {"status": 7}],
    ids=str,
)  # fmt: skip
def test_a_summary_that_was_edited(
    ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path, summary: dict[str, object]
) -> None:
    """Whatever stands in an old summary, the log is judged."""
    log = write_log(records(5))
    ctxrel("run", log, "-m", "offline")
    path = tmp_path / "log.ctxrel" / "summary.json"
    path.write_text(json.dumps(read_summary(path.parent) | summary))
    done = ctxrel("run", log, "-m", "offline")
    assert (done.returncode, UNCHANGED in done.stderr) == (0, False)
    assert read_summary(path.parent)["status"] == "complete"


def test_a_finished_run_with_a_failure_is_raised(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A finished run that holds an error row does not stand where the first failure is to end the run."""
    log = write_log([*records(3), {"question": "q?", "contexts": 5}])
    assert ctxrel("run", log, "-m", "offline").returncode == 3
    assert ctxrel("run", log, "-m", "offline", "--raise-on-failure").returncode == 1
    log.write_text(log.read_text().replace('"contexts": 5', '"contexts": []'.replace("[]", "7")))
    assert UNCHANGED not in ctxrel("run", log, "-m", "offline").stderr


@pytest.mark.parametrize("place", ["first", "last"])
def test_a_record_that_hangs(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path, place: str
) -> None:
    """One record that the endpoint never answers is one error row, in the first run and in the next."""
    server.script = lambda seen: (
        Answer(fault="hang", body=b"x") if "item 99?" in seen.record["question"] else judge_by_hash(seen)
    )
    rest, slow = records(10), records(100)[99:]
    log = write_log([*slow, *rest] if place == "first" else [*rest, *slow])
    for _ in range(2):
        done = ctxrel(*live(server, log, "--timeout", "0.3", "--attempts", "2"))
        assert done.returncode == 3, done.stderr
        kinds = [row["error"] and row["error"]["kind"] for row in read_rows(tmp_path / "log.ctxrel")]
        assert sorted(filter(None, kinds)) == ["timeout"]


def test_records_that_always_fail(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """As many records as look like an outage fail again in the next run, and end neither."""
    server.script = lambda seen: (
        error(500, "no") if int(seen.record["question"][13:-1]) % 3 == 0 else judge_by_hash(seen)
    )
    log = write_log(records(120))
    for _ in range(2):
        done = ctxrel(*live(server, log, "-c", "4", "--attempts", "2"))
        assert done.returncode == 3, done.stderr
        assert sum(row["error"] is not None for row in read_rows(tmp_path / "log.ctxrel")) == 40


def test_interrupted_while_it_loads() -> None:
    """Ctrl-C before the command has begun: no traceback."""
    code = """
import sys
from ctxrel.cli.__main__ import main

class Interrupts:
    def find_spec(self, name, *_):
        if name == "typer":
            raise KeyboardInterrupt

sys.meta_path.insert(0, Interrupts())
main()
"""
    done = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (done.returncode, done.stderr) == (130, "")
