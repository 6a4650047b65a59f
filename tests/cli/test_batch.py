"""`ctxrel run --batch`: the same rows as live, at half the price, through every mishap, and nothing paid twice."""

import contextlib
import io
import json
import os
import re
import signal
import sqlite3
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple
from unittest.mock import patch

import pytest
import typer
from conftest import Record, RunCommand, read_rows, read_summary
from servers.batches import BatchServer
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, completion, error, judge_by_hash

from ctxrel.cli.app import app, exit_code
from ctxrel.cli.reports.metrics import STATUSES
from ctxrel.cli.runs.batching import limits
from ctxrel.evaluators.errors import CtxrelError

WriteLog = Callable[..., Path]
QUICK = {"FIRST_POLL_SECONDS": 0.02, "LONGEST_POLL_SECONDS": 0.05, "FIRST_WAIT_SECONDS": 0.02}
DRIVER = """
import json, sys
from ctxrel.cli.app import main
from ctxrel.cli.runs.batching import limits
for name, value in json.loads(sys.argv.pop(1)).items():
    setattr(limits, name, value)
main()
"""


@pytest.fixture
def server() -> Iterator[BatchServer]:
    """An endpoint with a Batch API that judges by a hash of the sentences."""
    with BatchServer() as running:
        yield running


def records(count: int) -> list[Record]:
    return [
        {
            "id": f"r-{number}",
            "question": f"What is item {number}?",
            "contexts": [f"Item {number} is a thing. It weighs {number} g.", f"Nothing about {number * 7} here."],
            "answer": f"A thing of {number} g.",
        }
        for number in range(count)
    ]


class Done(NamedTuple):
    """What a command left."""

    returncode: int
    stderr: str


def options(server: LoopbackServer, *arguments: str | Path) -> list[str]:
    given = [str(argument) for argument in arguments]
    usual = ["--progress", "plain", "--max-errors", "100%"]
    return ["run", "--model", MODEL, "--base-url", server.url, *usual, *given]


def batch(server: LoopbackServer, log: Path, *arguments: str | Path, **given: float) -> Done:
    """Run `--batch` in small parts, without long waits, in this process: there are too many runs for one each."""
    said = io.StringIO()
    with contextlib.ExitStack() as changed, contextlib.redirect_stderr(said):
        for name, value in (QUICK | given).items():
            changed.enter_context(patch.object(limits, name, value))
        try:
            typer.main.get_command(app).main(options(server, log, "--batch", *arguments), standalone_mode=False)
        except CtxrelError as failed:
            return Done(exit_code(failed), f"{said.getvalue()}ctxrel: {failed}\n")
    return Done(0, said.getvalue())


def start(server: BatchServer, log: Path, *arguments: str, **given: float) -> "subprocess.Popen[bytes]":
    """The same in a process of its own."""
    command = [sys.executable, "-c", DRIVER, json.dumps(QUICK | given)]
    return subprocess.Popen(
        [*command, *options(server, log, "--batch", "-o", "out", *arguments)],
        stdout=subprocess.DEVNULL,
        stderr=subprocess.PIPE,
    )


def live_rows(ctxrel: RunCommand, script: Callable[[Seen], Answer], log: Path, *arguments: str | Path) -> bytes:
    """The rows of a live run with the same replies."""
    with LoopbackServer(script) as server:
        done = ctxrel(
            "run", log, "-o", "live", "-m", MODEL, "--base-url", server.url, "--max-errors", "100%", *arguments
        )
    assert done.returncode == 0, done.stderr
    return Path("live/results.jsonl").read_bytes()


def rows_of(folder: str | Path) -> bytes:
    return (Path(folder) / "results.jsonl").read_bytes()


def every_reply(seen: Seen) -> Answer:
    """All that a judge can do, by a word in the question; at the second attempt it does better where it ever does."""
    question, again = seen.record["question"], seen.number > 0
    properties = seen.body["response_format"]["json_schema"]["schema"]["properties"]
    mishaps = {
        "nonsense": completion("I think so."),
        "garbled": completion("I think so.") if not again else None,
        "refused": completion(None, refusal="I cannot."),
        "filtered": completion("", finish_reason="content_filter"),
        "stopped": error(400, "filtered", code="content_filter"),
        "rejected": error(400, "odd", code="odd_request"),
        "cut": completion('{"rel', finish_reason="length") if not again else None,
        "endless": completion('{"rel', finish_reason="length"),
        "broken": error(500, "oops") if not again else None,
        "limited": error(429, "slowly", headers={"retry-after": "0"}) if not again else None,
        "down": error(503, "oops"),
        "large": error(400, "long", code="context_length_exceeded")
        if len(seen.record.get("contexts", [])) > 1
        else None,
    }
    for word, answer in mishaps.items():
        if word in question and answer:
            return answer
    if "verdict" in properties:
        return completion(json.dumps({"verdict": "partial"}))
    if "evidence" in properties:
        numbers = [int(number) for context in seen.record["contexts"] for number in context]
        statements = seen.record.get("statements", ["One.", "Two."])
        found = [numbers[:1], []]
        return completion(json.dumps({"statements": statements, "evidence": found, "statement_scores": [1, 0]}))
    return judge_by_hash(seen)


MISHAPS = [
    "nonsense",
    "garbled",
    "refused",
    "filtered",
    "stopped",
    "rejected",
    "cut",
    "endless",
    "broken",
    "limited",
    "down",
    "large",
]


def test_the_rows_of_a_live_run(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """Several evaluators, whatever the judge replies, divided records, broken lines: byte for byte the same rows."""
    long = " ".join(f"Sentence {number} says something of some length about things." for number in range(150))
    log = write_log(
        [
            *(
                {**record, "question": f"{word} {record['question']}"}
                for word, record in zip(MISHAPS, records(12), strict=True)
            ),
            *records(5),
            records(1)[0],
            {"question": "long?", "contexts": [long, "Short."], "answer": "Yes."},
            {"question": "empty?", "contexts": [], "answer": "Yes."},
            {"question": "no answer?", "contexts": ["One."]},
        ]
    )
    chosen = [
        "-e",
        "context_relevance",
        "-e",
        "context_relevance_graded",
        "-e",
        "faithfulness",
        "-e",
        "answer_relevance",
    ]
    arguments = [*chosen, "--attempts", "3", "--max-input-tokens", "4500"]
    server.script = every_reply
    done = batch(server, log, "-o", "batched", *arguments)
    assert done.returncode == 0, done.stderr
    assert not server.seen
    assert rows_of("batched") == live_rows(ctxrel, every_reply, log, *arguments)
    rows = read_rows(Path("batched"))
    assert {row["error"]["kind"] for row in rows if row["error"]} == {
        "invalid_reply", "refusal", "content_filter", "rejected", "truncated", "server_error", "bad_input",
    }  # fmt: skip
    assert max(row.get("requests", 1) for row in rows) > 1
    with contextlib.closing(sqlite3.connect("batched/store.sqlite")) as store:
        assert store.execute("SELECT DISTINCT batch FROM replies").fetchall() == [(1,)]
    assert not Path("batched/batches").exists()


def test_summary(server: BatchServer, write_log: WriteLog) -> None:
    """The summary tells of each batch, and of the tokens that they took."""
    done = batch(server, write_log(records(10)), "-o", "out", MOST_REQUESTS=4)
    assert done.returncode == 0, done.stderr
    summary = read_summary(Path("out"))
    part = {"state": "completed", "collected": True, "failed": 0}
    assert summary["batch"] == {
        "rounds": 1,
        "requests": 10,
        "parts": [part | {"id": f"batch_{n}", "requests": size, "completed": size} for n, size in enumerate((4, 4, 2))],
        "tokens": summary["tokens"],
    }
    assert summary["tokens"] == {
        "input_tokens": 1000,
        "output_tokens": 70,
        "cached_tokens": 640,
        "reasoning_tokens": 30,
    }
    assert [each["id"] for each in summary["timings"]["batches"]] == ["batch_0", "batch_1", "batch_2"]
    assert (summary["status"], summary["requests"]["sent"], summary["configuration"]["batch"]) == ("complete", 0, True)
    assert re.search(r"batches under way: 3, \d of 10 requests answered", done.stderr)


def test_requests_are_those_of_a_live_run(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """What goes into a batch is what would be sent, each request once; nothing is readable for others."""
    log = write_log([*records(3), records(1)[0]])
    modes: list[int] = []
    server.hook = lambda event: (
        modes.extend(path.stat().st_mode for path in Path("out/batches").iterdir()) if event == "uploaded" else None
    )
    assert batch(server, log, "-o", "out").returncode == 0
    assert [mode & 0o777 for mode in modes] == [0o600]
    sent = [json.loads(line)["body"] for line in server.batches["batch_0"].lines]
    with LoopbackServer() as live:
        assert ctxrel("run", log, "-o", "live", "-m", MODEL, "--base-url", live.url, "-c", "1").returncode == 0
        assert sent == [seen.body for seen in live.seen]
    assert list(server.files) == [server.batches["batch_0"].output.id]  # type: ignore[union-attr]  # it was there


@pytest.mark.parametrize("limit", [{"MOST_REQUESTS": 3}, {"MOST_BYTES": 12_000}], ids=str)
def test_parts(server: BatchServer, write_log: WriteLog, limit: dict[str, float]) -> None:
    """Parts are as large as they may be; a request that is larger alone goes alone."""
    log = write_log([*records(8), {"id": "large", "question": "?", "contexts": ["word " * 4000]}])
    assert batch(server, log, "-o", "out", **limit).returncode == 0
    sizes = [len(b.lines) for b in server.batches.values()]
    assert sum(sizes) == 9
    assert len(sizes) > 2
    most = limit.get("MOST_BYTES", 1e9)
    assert all(len(b.input.content) <= most or len(b.lines) == 1 for b in server.batches.values())
    assert max(sizes) <= limit.get("MOST_REQUESTS", 9)


def test_no_wait(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """--no-wait ends with 75 at once, and again while the batch is under way; the same command collects it."""
    log = write_log(records(6))
    server.frozen = True
    for _ in range(2):
        done = batch(server, log, "-o", "out", "--no-wait", MOST_REQUESTS=4)
        assert done.returncode == 75
        assert "2 batches are (6 requests) under way at the endpoint" in done.stderr
        assert "run the same command again to collect them" in done.stderr
        assert (read_summary(Path("out"))["status"], len(server.batches)) == ("pending", 2)
        assert [part["state"] for part in read_summary(Path("out"))["batch"]["parts"]] == ["validating"] * 2
    server.frozen = False
    codes = [batch(server, log, "-o", "out", "--no-wait").returncode for _ in range(3)]
    assert codes[-1] == 0
    assert set(codes) <= {0, 75}
    assert (len(server.batches), set(server.paid.values())) == (2, {1})
    assert rows_of("out") == live_rows(ctxrel, judge_by_hash, log)


def test_run_again(server: BatchServer, write_log: WriteLog) -> None:
    """A finished run asks nothing again, and failures are asked about anew, as in a live run."""
    log = write_log([*records(2), {**records(1)[0], "question": "refused?"}])
    server.script = every_reply
    assert batch(server, log, "-o", "out").returncode == 0
    assert batch(server, log, "-o", "out").returncode == 0
    assert [len(b.lines) for b in server.batches.values()] == [3, 1]
    server.script = judge_by_hash
    assert batch(server, log, "-o", "out").returncode == 0
    assert batch(server, log, "-o", "out").returncode == 0
    assert [len(b.lines) for b in server.batches.values()] == [3, 1, 1]
    assert all(row["status"] == "evaluated" for row in read_rows(Path("out")))
    Path("out/summary.json").unlink()
    server.events.clear()
    server.model_requests.clear()
    assert batch(server, log, "-o", "out").returncode == 0
    assert not server.events + server.model_requests


@pytest.mark.parametrize("fate", ["expired", "failed", "cancelled"])
def test_what_did_not_come_is_sent_again(
    ctxrel: RunCommand, server: BatchServer, write_log: WriteLog, fate: str
) -> None:
    """A batch that expires, fails or is cancelled at the endpoint: what it brought is kept, the rest goes into another."""
    log = write_log(records(9))
    server.fate = lambda number: fate if number == 0 else "completed"

    def cancel(event: str) -> None:
        """By somebody at the endpoint."""
        if event == "polled" and fate == "cancelled" and server.batches["batch_0"].status == "in_progress":
            server.batches["batch_0"].status = "cancelling"

    server.hook = cancel
    done = batch(server, log, "-o", "out")
    assert done.returncode == 0, done.stderr
    left = {"expired": 5, "failed": 9, "cancelled": 6}[fate]
    assert [len(b.lines) for b in server.batches.values()] == [9, left]
    assert set(server.paid.values()) == {1}
    assert rows_of("out") == live_rows(ctxrel, judge_by_hash, log)
    assert [part["state"] for part in read_summary(Path("out"))["batch"]["parts"]] == [fate, "completed"]


def test_attempts_bound_the_batches(server: BatchServer, write_log: WriteLog) -> None:
    """What no batch answers is an error row after as many attempts as are allowed."""
    server.fate = lambda _: "expired"
    done = batch(server, write_log(records(2)), "-o", "out", "--attempts", "2")
    assert done.returncode == 0, done.stderr
    assert [len(b.lines) for b in server.batches.values()] == [2, 1]
    rows = read_rows(Path("out"))
    assert rows[1]["error"] == {"kind": "timeout", "message": "the batch expired before the request was answered"}


def test_finish_live(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """--finish-live asks live for what the first batch leaves."""
    log = write_log(records(8))
    server.fate = lambda _: "expired"
    done = batch(server, log, "-o", "out", "--finish-live")
    assert done.returncode == 0, done.stderr
    assert (len(server.batches), len(server.seen)) == (1, 4)
    assert rows_of("out") == live_rows(ctxrel, judge_by_hash, log)
    with contextlib.closing(sqlite3.connect("out/store.sqlite")) as store:
        assert store.execute("SELECT batch, count(*) FROM replies GROUP BY 1").fetchall() == [(0, 4), (1, 4)]


@pytest.mark.parametrize("room", [1.5, 0.6], ids=["one part at a time", "parts that are too large"])
def test_enqueued_tokens(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog, room: float) -> None:
    """Where the account's limit is reached batches wait for others, and are made smaller where that does not help."""
    log = write_log(records(12))
    assert batch(server, log, "-o", "measured", MOST_REQUESTS=4).returncode == 0
    server.enqueued = int(server.batches["batch_0"].tokens * room)
    server.paid.clear()
    done = batch(server, log, "-o", "out", MOST_REQUESTS=4)
    assert done.returncode == 0, done.stderr
    assert set(server.paid.values()) == {1}
    assert len(server.paid) == 12
    assert rows_of("out") == live_rows(ctxrel, judge_by_hash, log)


def test_no_room_for_long(server: BatchServer, write_log: WriteLog) -> None:
    """Where there is no room even for a single request the run ends with 75, and goes on when there is."""
    log = write_log(records(2))
    server.enqueued = 10
    done = batch(server, log, "-o", "out", ALONE_TRIES=2)
    assert done.returncode == 75, done.stderr
    assert "the account has no room for a batch of 1 requests" in done.stderr
    server.enqueued = None
    assert batch(server, log, "-o", "out").returncode == 0
    assert set(server.paid.values()) == {1}


MOMENTS = [
    ("uploaded", 1),
    ("uploaded", 2),
    ("created", 1),
    ("created", 2),
    ("polled", 1),
    ("polled", 4),
    ("downloading", 1),
    ("downloading", 2),
    ("deleted", 1),
]


@pytest.mark.parametrize("moment", MOMENTS, ids=lambda moment: f"{moment[0]} {moment[1]}")
def test_killed(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog, moment: tuple[str, int]) -> None:
    """`kill -9` at any step, before the answer to it arrives: going on pays for nothing twice and leaves no file behind."""
    log = write_log(records(10))
    process = start(server, log, MOST_REQUESTS=5, LINES_AT_ONCE=2)

    def hook(_: str) -> None:
        if server.events.count(moment[0]) == moment[1]:
            server.hook = lambda _: None
            os.kill(process.pid, signal.SIGKILL)

    server.hook = hook
    process.communicate(timeout=60)
    assert process.returncode == -signal.SIGKILL
    done = batch(server, log, "-o", "out", MOST_REQUESTS=5)
    assert done.returncode == 0, done.stderr
    assert (len(server.paid), set(server.paid.values()), len(server.batches)) == (10, {1}, 2)
    assert rows_of("out") == live_rows(ctxrel, judge_by_hash, log)
    assert all(file.purpose == "batch_output" for file in server.files.values())
    assert not Path("out/batches").exists()
    with contextlib.closing(sqlite3.connect("out/store.sqlite")) as store:
        assert store.execute("SELECT max(number), count(*) FROM replies").fetchone() == (0, 10)


def test_killed_at_every_step(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """Killed at each event in turn, in rounds with failures as well: one payment for each reply, the same rows."""
    log = write_log([*records(6), {**records(1)[0], "question": "garbled?"}])
    server.script = every_reply
    for steps in range(1, 40):
        process = start(server, log, MOST_REQUESTS=3, LINES_AT_ONCE=1)
        server.events.clear()

        def hook(_: str, steps: int = steps, process: "subprocess.Popen[bytes]" = process) -> None:
            if len(server.events) == steps:
                os.kill(process.pid, signal.SIGKILL)

        server.hook = hook
        _, said = process.communicate(timeout=60)
        assert b"Traceback" not in said
        if process.returncode == 0:
            break
    assert process.returncode == 0
    assert sorted(server.paid.values()) == [1] * 6 + [2]
    assert rows_of("out") == live_rows(ctxrel, every_reply, log)


@pytest.mark.parametrize("event", ["uploaded", "created"])
def test_lost_answer(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog, event: str) -> None:
    """An upload or batch whose answer is lost is found, not made again."""
    log = write_log(records(4))
    server.hook = lambda now: Answer(fault="reset") if now == event and server.events.count(event) == 1 else None
    done = batch(server, log, "-o", "out")
    assert done.returncode == 0, done.stderr
    assert (server.events.count("uploaded"), server.events.count("created")) == (1, 1)
    assert set(server.paid.values()) == {1}
    assert rows_of("out") == live_rows(ctxrel, judge_by_hash, log)


def test_lost_store(server: BatchServer, write_log: WriteLog) -> None:
    """A batch that the endpoint has and no store knows any more is adopted, not paid for again."""
    log = write_log(records(4))
    server.frozen = True
    assert batch(server, log, "-o", "out", "--no-wait").returncode == 75
    Path("out/store.sqlite").unlink()
    server.frozen = False
    done = batch(server, log, "-o", "out")
    assert done.returncode == 0, done.stderr
    assert "the batch batch_0 with 4 of these requests is there already; it is waited for" in done.stderr
    assert (len(server.batches), set(server.paid.values())) == (1, {1})


def test_results_cut_short(server: BatchServer, write_log: WriteLog) -> None:
    """A result file whose transfer breaks off is fetched again, and its replies are kept once."""
    server.hook = lambda now: (
        Answer(body=b'{"id": "x"}\n' * 9, fault="cut")
        if now == "downloading" and server.events.count(now) == 1
        else None
    )
    assert batch(server, write_log(records(4)), "-o", "out").returncode == 0
    assert server.events.count("downloading") == 2


def test_trouble_passes(server: BatchServer, write_log: WriteLog) -> None:
    """Rate limits and errors of the endpoint's files and batches are waited out."""
    troubles = [error(429, "slowly", headers={"Retry-After": "0"}), error(502, "bad gateway"), Answer(fault="reset")]
    server.hook = lambda event: troubles.pop(0) if troubles and event in ("listed", "polled") else None
    assert batch(server, write_log(records(3)), "-o", "out").returncode == 0
    assert not troubles
    assert len(server.batches) == 1


def test_trouble_stays(server: BatchServer, write_log: WriteLog) -> None:
    """Where the endpoint fails for long the run ends with 75, and the same command goes on."""
    log = write_log(records(3))
    server.hook = lambda event: error(503, "down") if event == "polled" else None
    done = batch(server, log, "-o", "out", TRIES=3)
    assert done.returncode == 75
    assert "(HTTP 503), 3 times in a row; what was sent stays sent: run the same command again" in done.stderr
    server.hook = lambda _: None
    assert batch(server, log, "-o", "out").returncode == 0
    assert len(server.batches) == 1


def test_interrupted(server: BatchServer, write_log: WriteLog) -> None:
    """Ctrl-C while batches are under way: exit 130, a sentence that tells where they are, and the run goes on later."""
    log = write_log(records(3))
    server.frozen = True
    process = start(server, log)

    def hook(_: str) -> None:
        if server.events.count("polled") == 2:
            os.kill(process.pid, signal.SIGINT)

    server.hook = hook
    _, said = process.communicate(timeout=60)
    assert process.returncode == 130
    assert b"the batches go on at the endpoint: run the same command again to collect them" in said
    assert b"ctxrel batch cancel out" in said
    assert read_summary(Path("out"))["status"] == "interrupted"
    server.frozen, server.hook = False, lambda _: None
    assert batch(server, log, "-o", "out").returncode == 0
    assert len(server.batches) == 1


def test_raise_on_failure(server: BatchServer, write_log: WriteLog) -> None:
    """The first record that failed ends the run when its row is written; all that was bought stays."""
    log = write_log([*records(2), {**records(3)[2], "question": "refused?"}])
    server.script = every_reply
    done = batch(server, log, "-o", "out", "--raise-on-failure")
    assert done.returncode == 1
    assert "record 'r-2'" in done.stderr
    assert "failed: refusal: the judge refused to answer" in done.stderr
    server.script = judge_by_hash
    assert batch(server, log, "-o", "out", "--raise-on-failure").returncode == 0
    assert [len(b.lines) for b in server.batches.values()] == [3, 1]


def test_a_folder_that_cannot_be_made(server: BatchServer, write_log: WriteLog) -> None:
    """What cannot be written is a sentence, and nothing was sent."""
    Path("out").mkdir()
    Path("out/batches").write_text("no folder")
    done = batch(server, write_log(records(2)), "-o", "out")
    assert done.returncode == 1
    assert "cannot make the folder 'out/batches'" in done.stderr
    assert not server.batches


def test_list_and_cancel(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """Batches are listed, also as JSON; cancelled ones keep what they brought, and the next run sends the rest."""
    log = write_log(records(6))
    server.frozen = True
    assert batch(server, log, "-o", "out", "--no-wait").returncode == 75
    listed = ctxrel("batch", "list", "out")
    assert listed.stdout.split()[:6] == ["batch", "state", "requests", "completed", "failed", "model"]
    assert "batch_0" in listed.stdout
    assert "validating" in listed.stdout
    cancelled = ctxrel("batch", "cancel", "out/store.sqlite", "--json")
    assert (cancelled.returncode, server.batches["batch_0"].status) == (0, "cancelling")
    (shown,) = json.loads(cancelled.stdout)["batches"]
    assert (shown["batch"], shown["state"], shown["requests"]) == ("batch_0", "cancelling", 6)
    assert ctxrel("batch", "list", "nowhere").returncode == 2
    server.frozen = False
    assert batch(server, log, "-o", "out").returncode == 0
    assert [len(b.lines) for b in server.batches.values()] == [6, 4]
    assert set(server.paid.values()) == {1}
    assert [row["state"] for row in json.loads(ctxrel("batch", "list", "out", "--json").stdout)["batches"]] == [
        "cancelled, collected",
        "completed, collected",
    ]


def test_cancelled_beside_a_run(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """A run whose batches are cancelled does not send them again by itself."""
    log = write_log(records(6))
    server.frozen = True
    process = start(server, log)

    def hook(event: str) -> None:
        if event == "cancelled":
            server.frozen = False

    server.hook = hook
    while "polled" not in server.events:
        assert process.poll() is None
    assert ctxrel("batch", "cancel", "out").returncode == 0
    _, said = process.communicate(timeout=60)
    assert process.returncode == 75
    assert b"its batches were cancelled; run the same command again to send what is left" in said
    assert len(server.batches) == 1
    assert batch(server, log, "-o", "out").returncode == 0
    assert set(server.paid.values()) == {1}


def test_batch_that_is_gone(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """A batch that the account does not know any more is an error with a way out."""
    log = write_log(records(3))
    server.frozen = True
    assert batch(server, log, "-o", "out", "--no-wait").returncode == 75
    server.batches.clear()
    done = batch(server, log, "-o", "out")
    assert done.returncode == 1
    assert "the endpoint knows no batch 'batch_0'" in done.stderr
    assert ctxrel("batch", "cancel", "out").returncode == 0
    server.frozen = False
    assert batch(server, log, "-o", "out").returncode == 0


def test_shared_store(server: BatchServer, write_log: WriteLog) -> None:
    """What is under way for another output of the same store is waited for, not paid for again."""
    log, store = write_log(records(4)), ["--store", "shared.sqlite"]
    server.frozen = True
    assert batch(server, log, "-o", "first", "--no-wait", *store).returncode == 75
    server.frozen = False
    more = write_log(records(6), "more.jsonl")
    assert batch(server, more, "-o", "second", *store).returncode == 0
    assert [len(b.lines) for b in server.batches.values()] == [4, 2]
    assert batch(server, log, "-o", "first", *store).returncode == 0
    assert (len(server.batches), set(server.paid.values())) == (2, {1})


def test_who_pays_in_a_shared_store(server: BatchServer, write_log: WriteLog) -> None:
    """A batch counts for the caps of the output that has sent it, whoever collects it."""
    log = write_log(records(4))
    usual = ("--store", "shared.sqlite", "--prices", dear(), "--param", "max_completion_tokens=10", "--max-cost", "1e6")
    server.frozen = True
    assert batch(server, log, "-o", "first", "--no-wait", *usual).returncode == 75
    server.frozen = False
    assert batch(server, write_log(records(6), "more.jsonl"), "-o", "second", *usual).returncode == 0
    assert batch(server, log, "-o", "first", *usual).returncode == 0
    assert [len(each.lines) for each in server.batches.values()] == [4, 2]
    spent = [read_summary(Path(name))["budget"]["spent"] for name in ("first", "second")]
    assert spent == [4 * 107 / 2, 2 * 107 / 2]


def test_another_prompt_meanwhile(server: BatchServer, write_log: WriteLog) -> None:
    """A part that was planned, and that nobody asks for any more, is not sent."""
    log = write_log(records(3))
    process = start(server, log)

    def hook(event: str) -> None:
        if event == "uploaded":
            os.kill(process.pid, signal.SIGKILL)

    server.hook = hook
    process.communicate(timeout=60)
    server.hook = lambda _: None
    assert batch(server, log, "-o", "out", "--explain").returncode == 0
    assert len(server.batches) == 1
    assert b"reason" in server.batches["batch_0"].input.content
    assert len(server.deleted) == 2


def test_parameters_that_are_not_taken(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """What the endpoint does not take is found out from the failed requests, and another batch asks in another way."""

    def script(seen: Seen) -> Answer:
        if "max_completion_tokens" in seen.body:
            return error(400, "Unsupported parameter", code="unsupported_parameter", param="max_completion_tokens")
        if seen.body["response_format"]["type"] == "json_schema":
            return error(400, "no json_schema here", code="unsupported_value", param="response_format")
        return judge_by_hash(seen)

    log = write_log(records(3))
    server.script = script
    done = batch(server, log, "-o", "out", "--attempts", "1")
    assert done.returncode == 0, done.stderr
    assert len(server.batches) == 3
    assert "response_format is json_object" in done.stderr
    assert rows_of("out") == live_rows(ctxrel, script, log)
    again = batch(server, write_log(records(4)), "-o", "out", "--attempts", "1")
    assert (again.returncode, len(server.batches)) == (0, 4)


@pytest.mark.parametrize(
    ("fate", "said"),
    [
        ("failed:model_not_found", "does not serve the model 'judge-1'"),
        ("failed:billing_hard_limit_reached", "has no quota left"),
    ],
)
def test_hopeless_batches(server: BatchServer, write_log: WriteLog, fate: str, said: str) -> None:
    """Where no other batch can succeed the run ends at once, and later goes on."""
    log = write_log(records(3))
    server.fate = lambda _: fate
    done = batch(server, log, "-o", "out")
    assert (done.returncode, len(server.batches)) == (1, 1)
    assert said in done.stderr
    server.fate = lambda _: "completed"
    assert batch(server, log, "-o", "out").returncode == 0


def test_requests_that_end_the_run(server: BatchServer, write_log: WriteLog) -> None:
    """A quota that ends within a batch ends the run; what was answered before is kept and not paid for again."""
    log = write_log(records(6))
    server.script = lambda seen: (
        error(429, "no", code="insufficient_quota") if len(server.paid) > 3 else judge_by_hash(seen)
    )
    done = batch(server, log, "-o", "out")
    assert done.returncode == 1
    assert "has no quota left" in done.stderr
    server.script = judge_by_hash
    assert batch(server, log, "-o", "out").returncode == 0
    assert [len(b.lines) for b in server.batches.values()] == [6, 2]
    assert set(server.paid.values()) == {1}


def test_endpoint_without_batches(write_log: WriteLog) -> None:
    """An endpoint without a Batch API is told in a sentence, before anything is sent."""
    with LoopbackServer() as plain:
        done = batch(plain, write_log(records(3)), "-o", "out")
        assert done.returncode == 1
        assert f"{plain.url} has no Batch API (HTTP 404); leave out --batch" in done.stderr
        assert not plain.seen


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["--batch", "-o", "-"], "--batch keeps what it has sent in the folder of the run"),
        (["--batch", "-m", "offline"], "the offline judge answers at once"),
        (["--no-wait"], "--no-wait says how to deal with batches; add --batch"),
        (["--finish-live"], "--finish-live says how to deal with batches; add --batch"),
    ],
)
def test_usage(ctxrel: RunCommand, write_log: WriteLog, arguments: list[str], said: str) -> None:
    """What makes no sense with --batch is a usage error."""
    done = ctxrel("run", write_log(records(1)), "--base-url", "http://localhost:1/v1", *arguments)
    assert done.returncode == 2
    assert said in done.stderr


def test_pipe(ctxrel: RunCommand) -> None:
    """A pipe cannot be read several times."""
    done = ctxrel("run", "-", "--batch", "--base-url", "http://localhost:1/v1", stdin=json.dumps(records(1)[0]))
    assert done.returncode == 2
    assert "a pipe can be read once; write it to a file" in done.stderr


def test_progress_as_json(server: BatchServer, write_log: WriteLog) -> None:
    """A program that reads along sees how far the batches are."""
    done = batch(server, write_log(records(3)), "-o", "out", "--progress", "json")
    lines: list[dict[str, Any]] = [json.loads(line) for line in done.stderr.splitlines()]
    assert lines[0]["batches"] == {"completed": 0, "failed": 0, "total": 3, "parts": 1, "held": 0}


def test_a_store_of_before(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """The replies of a store that an earlier version has written are found."""
    log = write_log(records(3))
    assert ctxrel("run", log, "-o", "out", "-m", MODEL, "--base-url", server.url).returncode == 0
    with contextlib.closing(sqlite3.connect("out/store.sqlite", isolation_level=None)) as store:
        store.execute("ALTER TABLE replies DROP COLUMN batch")
        for table in ("batches", "batch_runs", "batch_requests"):
            store.execute(f"DROP TABLE {table}")
        store.execute("PRAGMA user_version = 2")
    assert batch(server, write_log(records(4)), "-o", "out").returncode == 0
    assert [len(b.lines) for b in server.batches.values()] == [1]


def dear(path: Path = Path("prices.yaml")) -> Path:
    """A price of a dollar for each token, half of it in a batch."""
    path.write_text(f"'*': {{batch: 0.5, models: {{{MODEL}: {{input: 1000000, output: 1000000}}}}}}")
    return path


def test_half_the_price(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """The run has cost half of what its rows say, which are those of a live run; nothing counts as saved."""
    log = write_log(records(4))
    prices = ("--prices", dear())
    done = batch(server, log, "-o", "out", *prices)
    assert done.returncode == 0, done.stderr
    cost = read_summary(Path("out"))["cost"]
    assert (cost["total"], cost["saved_by_store"]) == (4 * 107 / 2, 0)
    assert [row["cost"] for row in read_rows(Path("out"))] == [107] * 4
    assert rows_of("out") == live_rows(ctxrel, judge_by_hash, log, *prices)
    assert read_summary(Path("out"))["tokens"]["input_tokens"] == 400


def test_caps(server: BatchServer, write_log: WriteLog) -> None:
    """A batch that could pass the cap is not made; what was paid counts in the next run, and a higher cap goes on."""
    given = (write_log(records(6)), "-o", "out", "--prices", dear(), "--param", "max_completion_tokens=10")
    done = batch(server, *given, "--max-cost", "100")
    assert (done.returncode, len(server.batches), server.paid) == (75, 0, {})
    assert "a batch of 6 requests may cost up to $" in done.stderr
    assert read_summary(Path("out"))["status"] == "budget"
    bound = float(re.findall(r"up to \$([\d,.]+),", done.stderr)[0].replace(",", ""))
    assert bound > 6 * 107 / 2
    done = batch(server, *given, "--max-cost", str(bound + 1))
    assert done.returncode == 0, done.stderr
    assert read_summary(Path("out"))["budget"]["spent"] == 6 * 107 / 2
    more = (write_log(records(7)), *given[1:], "--max-cost")
    done = batch(server, *more, str(6 * 107 / 2 + 10))
    assert (done.returncode, len(server.batches)) == (75, 1)
    assert "of --max-cost 331 no more than $10.00 is free" in done.stderr
    assert batch(server, *more, str(10 * bound)).returncode == 0
    assert set(server.paid.values()) == {1}


def test_caps_of_enlarged_requests(server: BatchServer, write_log: WriteLog) -> None:
    """Requests whose replies were cut have twice the room in the next round, and twice as much is reserved for them."""

    def cut_once(seen: Seen) -> Answer:
        return judge_by_hash(seen) if seen.number else completion('{"rel', finish_reason="length")

    given = (write_log(records(1)), "--prices", dear(), "--param", "max_completion_tokens=10000")
    with BatchServer() as other:
        other.script = cut_once
        assert batch(other, *given, "-o", "free").returncode == 0
        size = max(len(each.input.content) for each in other.batches.values())
    spent = read_summary(Path("free"))["cost"]["total"] / 2  # of the first of two rounds
    cap = spent + (size + 10_000) / 2 + 1  # enough for another round without more room
    server.script = cut_once
    done = batch(server, *given, "-o", "out", "--max-cost", str(cap))
    assert (done.returncode, len(server.batches)) == (75, 1), done.stderr
    assert read_summary(Path("out"))["budget"]["spent"] == spent
    assert batch(server, *given, "-o", "out", "--max-cost", str(cap + 5_000)).returncode == 0
    assert len(server.batches) == 2


def test_caps_let_batches_follow_each_other(server: BatchServer, write_log: WriteLog) -> None:
    """Where a cap has room for one batch at a time, each waits until the one before it is paid."""
    given = (write_log(records(6)), "-o", "out", "--prices", dear(), "--param", "max_completion_tokens=10")
    done = batch(server, *given, "--max-cost", "100")
    bound = float(re.findall(r"up to \$([\d,.]+),", done.stderr)[0].replace(",", "")) / 3
    under_way: list[int] = []
    server.hook = lambda event: (
        under_way.append(sum(not each.over for each in server.batches.values())) if event == "created" else None
    )
    Path("out/store.sqlite").unlink()
    done = batch(server, *given, "--max-cost", str(bound + 6 * 107 / 2), MOST_CAPPED_REQUESTS=2)
    assert done.returncode == 0, done.stderr
    assert under_way == [1, 1, 1]
    assert read_summary(Path("out"))["budget"]["spent"] == 6 * 107 / 2


def test_answered_live_meanwhile(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """What was uploaded and not allowed, and then was asked live, is not paid for once more by a later batch."""
    given = ("-o", "out", "--prices", dear())
    assert batch(server, write_log(records(3)), *given, "--max-cost", "100").returncode == 75
    assert len(server.files) == 1
    live = ctxrel("run", "log.jsonl", "-m", MODEL, "--base-url", server.url, *given)
    assert live.returncode == 0, live.stderr
    assert len(server.seen) == 3
    done = batch(server, write_log(records(5)), *given)
    assert done.returncode == 0, done.stderr
    assert [len(each.lines) for each in server.batches.values()] == [2]


def test_caps_hold_for_what_is_adopted(server: BatchServer, write_log: WriteLog) -> None:
    """A batch that is found at the endpoint is reserved like any other, before another one is made."""
    usual = ("-o", "out", "--prices", dear(), "--no-wait", "--param", "max_completion_tokens=10")
    server.frozen = True
    assert batch(server, write_log(records(4)), *usual, MOST_REQUESTS=2).returncode == 75
    bound = len(server.batches["batch_0"].input.content) / 2 + 2 * 10 / 2
    Path("out/store.sqlite").unlink()
    server.batches.popitem()
    done = batch(server, Path("log.jsonl"), *usual, "--max-cost", str(1.5 * bound), MOST_CAPPED_REQUESTS=2)
    assert "is there already" in done.stderr
    assert (done.returncode, len(server.batches)) == (75, 1), done.stderr


def test_finish_live_saves_nothing(server: BatchServer, write_log: WriteLog) -> None:
    """What the run's own batches have brought is paid by it, also where the rest is asked live."""
    server.fate = lambda _: "expired"
    done = batch(server, write_log(records(8)), "-o", "out", "--finish-live", "--prices", dear())
    assert done.returncode == 0, done.stderr
    cost = read_summary(Path("out"))["cost"]
    assert (cost["total"], cost["saved_by_store"]) == (4 * 107 + 4 * 107 / 2, 0)


def test_checks_and_reports_of_a_pending_run(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """A run that waits for its batches meets no gate and says why; monitoring knows its status."""
    server.frozen = True
    assert batch(server, write_log(records(1)), "-o", "out", "--no-wait").returncode == 75
    done = ctxrel("check", "out", "--fail-under", "context_relevance=0.5", "--metrics-file", "c.prom", "--json")
    assert done.returncode == 3
    assert json.loads(done.stdout) == {"status": "pending", "met": False, "gates": []}
    assert "is not complete but pending" in done.stderr
    assert 'status="pending"} 1.0' in Path("c.prom").read_text(encoding="utf-8")
    assert "pending" in STATUSES
    server.frozen = False
    assert batch(server, Path("log.jsonl"), "-o", "out", "--fail-under", "1").returncode in {0, 3}


def test_live_beside_batches_under_way(ctxrel: RunCommand, server: BatchServer, write_log: WriteLog) -> None:
    """With a cap no live run begins before the batches under way are paid; without one it says that they will be."""
    log = write_log(records(2))
    server.frozen = True
    assert batch(server, log, "-o", "out", "--no-wait").returncode == 75
    live = ("run", log, "-m", MODEL, "--base-url", server.url, "-o", "out")
    done = ctxrel(*live, "--max-tokens-total", "1000000")
    assert done.returncode == 75
    assert "batches with 2 requests are under way for this output" in done.stderr
    assert not server.seen
    done = ctxrel(*live)
    assert done.returncode == 0
    assert "what they answer is paid as well, and collected with --batch" in done.stderr
