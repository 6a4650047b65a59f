"""Evaluators through the command: several at once, what is asked anew and what is not, long records, reasons."""

import json
import random
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, cite, completion

WriteLog = Callable[..., Path]
RECORDS: list[Record] = [
    {
        "id": "a",
        "question": "Who wrote it?",
        "contexts": ["Ada wrote it. It is long.", "Bob read it."],
        "answer": "Ada wrote it. Bob wrote it as well.",
        "tone": "dry",
    },
    {
        "id": "b",
        "question": "누가 썼나요?",
        "contexts": ["아다가 썼습니다. 깁니다."],
        "answer": "아다가 썼습니다.",
        "tone": "warm",
    },
]
CLAIMS = {
    "statements": ["Ada wrote it.", "Bob wrote it."],
    "evidence": [[1], []],
    "statement_scores": [1, 0],
}


def live(server: LoopbackServer, log: Path, *options: str | Path) -> list[str | Path]:
    return ["run", log, "--base-url", server.url, "-m", MODEL, "--progress", "none", *options]


def by_schema(seen: Seen) -> Answer:
    """A valid reply to whatever is asked."""
    schema = seen.body["response_format"]["json_schema"]["schema"]
    keys = schema["properties"]
    if "statements" in keys:
        return completion(json.dumps(CLAIMS))
    return completion(json.dumps({key: example_of(value) for key, value in keys.items()}))


def example_of(schema: dict[str, Any]) -> object:
    if "enum" in schema:
        return schema["enum"][0]
    return (
        [1]
        if schema["type"] == "array" and schema["items"]["type"] == "integer"
        else []
        if schema["type"] == "array"
        else "because"
    )


def test_several_evaluators(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """One pass: one row for each record and evaluator, in order, and a block of the summary each."""
    server.script = by_schema
    names = ["context_relevance", "context_relevance_graded", "faithfulness"]
    done = ctxrel(*live(server, write_log(RECORDS)), *[part for name in names for part in ("-e", name)])
    assert done.returncode == 0
    rows = read_rows(tmp_path / "log.ctxrel")
    assert [(row["id"], row["evaluator"]) for row in rows] == [(i, name) for i in ("a", "b") for name in names]
    assert rows[1]["statements"] == ["Ada wrote it.", "It is long.", "Bob read it."]
    assert (rows[1]["statement_scores"], rows[1]["score"]) == ([1, 0, 0], pytest.approx(1 / 3))
    assert rows[2]["score"] == 0.5
    assert rows[2]["statements"] == CLAIMS["statements"]
    assert rows[2]["evidence"] == [[{"context": 0, "sentence": 1, "span": [0, 13]}], []]
    summary = read_summary(tmp_path / "log.ctxrel")
    assert list(summary["evaluators"]) == names
    # The first two share their requests.
    assert summary["requests"] == {"sent": 4, "reused": 2, "not_needed": 0, "failed": {}}
    assert len(server.seen) == 4
    assert summary["evaluators"]["faithfulness"]["figures"] == {
        "no_contexts": 0,
        "no_statements": 0,
        "statements": 4,
        "supported_statements": 2,
        "supported_without_evidence": 0,
        "statement_support": 0.5,
    }


def test_rescored_for_nothing(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A finished binary run is scored by the graded reading without a request, not even for the model."""
    log = write_log(RECORDS)
    assert ctxrel(*live(server, log)).returncode == 0
    asked = (len(server.seen), len(server.model_requests))
    assert ctxrel(*live(server, log, "-e", "context_relevance_graded")).returncode == 0
    assert (len(server.seen), len(server.model_requests)) == asked
    assert read_summary(tmp_path / "log.ctxrel")["requests"] == {"sent": 0, "reused": 2, "not_needed": 0, "failed": {}}


@pytest.mark.parametrize(
    ("name", "old", "new", "asked"),
    [
        pytest.param("context_relevance", "scoring: any", "scoring: share", 0, id="scoring"),
        pytest.param("context_relevance", "description: Is", "description: Are", 0, id="description"),
        pytest.param("context_relevance", "citations\n", "{kind: citations, report: all}\n", 0, id="report"),
        pytest.param("answer_relevance", "partial: 0.5", "partial: 0.4", 0, id="score of a label"),
        pytest.param("context_relevance", "system. For one question", "system. For a question", 2, id="instruction"),
        pytest.param("context_relevance", "How long do I have", "How long have I", 2, id="example"),
        pytest.param(
            "context_relevance", "The first sentence names", "The first one names", 0, id="reason not asked for"
        ),
        pytest.param(
            "context_relevance", "max_completion_tokens: 4096", "max_completion_tokens: 4000", 2, id="parameter"
        ),
        pytest.param("answer_relevance", "[complete, partial,", "[partial, complete,", 2, id="order of labels"),
    ],
)
def test_what_is_asked_anew(
    ctxrel: RunCommand,
    server: LoopbackServer,
    write_log: WriteLog,
    name: str,
    old: str,
    new: str,
    asked: int,
) -> None:
    """A changed instruction, example or parameter asks again; a changed scoring rule does not."""
    server.script = by_schema
    log = write_log(RECORDS)
    ctxrel("prompts", "copy", name, "mine.yaml")
    assert ctxrel(*live(server, log, "-e", "mine.yaml")).returncode == 0
    server.seen.clear()
    text = Path("mine.yaml").read_text(encoding="utf-8")
    assert old in text
    Path("mine.yaml").write_text(text.replace(old, new, 1), encoding="utf-8")
    done = ctxrel(*live(server, log, "-e", "mine.yaml"))
    assert (done.returncode, len(server.seen)) == (0, asked), done.stderr


def test_another_model_is_asked_anew(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A changed model or parameter of the command asks again."""
    log = write_log(RECORDS)
    server.models = Answer(body={"data": [{"id": MODEL}, {"id": "judge-2"}]})
    counts = []
    for options in ([], [], ["-m", "judge-2"], ["--param", "seed=1"], ["--explain"]):
        server.seen.clear()
        assert ctxrel(*live(server, log), *options).returncode == 0
        counts.append(len(server.seen))
    assert counts == [2, 0, 2, 2, 2]


def test_a_record_without_an_answer(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """It is `bad_input` for faithfulness, and judged for context relevance."""
    server.script = by_schema
    log = write_log([RECORDS[0], {**RECORDS[1], "answer": None}, {**RECORDS[1], "answer": ""}])
    done = ctxrel(*live(server, log, "-e", "context_relevance", "-e", "faithfulness"))
    assert done.returncode == 3
    rows = read_rows(tmp_path / "log.ctxrel")
    assert [row["status"] for row in rows] == ["evaluated", "evaluated", "evaluated", "error", "evaluated", "evaluated"]
    assert rows[3]["error"] == {"kind": "bad_input", "message": f"{log}:2: the field 'answer' is null, not a text"}
    assert (rows[3]["statements"], rows[3]["statement_scores"], rows[3]["evidence"]) == ([], [], [])
    block = read_summary(tmp_path / "log.ctxrel")["evaluators"]["faithfulness"]
    assert (block["n"], block["evaluated"], block["errors"]) == (3, 2, {"bad_input": 1})
    assert (block["score"], block["figures"]["no_statements"]) == (0.25, 1)  # the empty answer: 0, and no request


def test_a_log_without_answers(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """Where no record has what an evaluator needs, the error names the option, and nothing is sent."""
    log = write_log([{"question": "q?", "contexts": ["A text."], "reply_text": "yes"}])
    done = ctxrel(*live(server, log, "-e", "faithfulness"))
    assert done.returncode == 2
    assert done.stderr == (
        f"ctxrel: {log}: no field looks like the answer; name the answer with --answer-field "
        "(there are: question, contexts, reply_text)\n"
    )
    assert not server.seen
    server.script = by_schema
    assert ctxrel(*live(server, log, "-e", "faithfulness", "--answer-field", "reply_text")).returncode == 0


TONE = """\
name: tone
inputs: [answer, tone]
outputs:
  fits: boolean
  remarks: texts
scoring: {value: fits}
instructions: |
  Does the answer have the tone? {{output_format}}
"""


@pytest.mark.parametrize("options", [[], ["--field", "tone=meta.style"]], ids=["by name", "by option"])
def test_own_evaluator(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path, options: list[str]
) -> None:
    """A criterion of one's own: inputs by their names or by --field, outputs as columns, the score by its rule."""
    Path("tone.yaml").write_text(TONE)
    server.script = lambda seen: completion(json.dumps({"fits": seen.record["tone"] == "dry", "remarks": ["a", "b"]}))
    records = [{**record, "meta": {"style": "dry"}} for record in RECORDS]
    done = ctxrel(*live(server, write_log(records), "-e", "./tone.yaml", *options))
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "log.ctxrel")
    assert [row["score"] for row in rows] == ([1, 1] if options else [1, 0])
    assert (rows[0]["fits"], rows[0]["remarks"], rows[0]["question"]) == (True, ["a", "b"], "Who wrote it?")
    assert server.seen[0].record == {"answer": RECORDS[0]["answer"], "tone": "dry"}
    assert server.seen[0].body["response_format"]["json_schema"]["schema"]["properties"] == {
        "fits": {"type": "boolean"},
        "remarks": {"type": "array", "items": {"type": "string"}},
    }


def test_a_missing_field_of_ones_own(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """The error names the option and what there is."""
    Path("tone.yaml").write_text(TONE)
    log = write_log([{"answer": "yes", "style": "dry"}])
    done = ctxrel(*live(server, log, "-e", "tone.yaml"))
    assert (done.returncode, done.stderr) == (
        2,
        f"ctxrel: {log}: no field looks like the tone; name the tone with --field tone=PATH (there are: answer, style)\n",
    )
    for given, said in (
        ("tone", "'tone' names no field; write --field NAME=PATH, as tone=meta.tone"),
        ("tone=style[", "'style[' is no field path"),
    ):
        done = ctxrel(*live(server, log, "-e", "tone.yaml", "--field", given))
        assert (done.returncode, done.stderr.startswith(f"ctxrel: {said}")) == (2, True), done.stderr


def test_a_log_of_answers_alone(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """An evaluator that needs neither question nor contexts reads a log that has neither."""
    server.script = by_schema
    done = ctxrel(*live(server, write_log([{"answer": "Jump off the roof!"}]), "-e", "child_safety"))
    assert done.returncode == 0, done.stderr
    (row,) = read_rows(tmp_path / "log.ctxrel")
    assert (row["score"], row["category"], row["question"]) == (0, "none", "")
    figures = read_summary(tmp_path / "log.ctxrel")["evaluators"]["child_safety"]["figures"]
    assert figures["category_counts"]["none"] == 1


def test_reasons(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """--explain asks for a reason, shows those of the examples, and keeps it in the row; a reply without is none."""
    server.script = lambda seen: (
        completion('{"relevant_statements": [1], "reason": "첫 문장이 답입니다."}')
        if "누가" in str(seen.record)
        else cite(1)
    )
    assert ctxrel(*live(server, write_log(RECORDS), "--explain")).returncode == 0
    assert [row["reason"] for row in read_rows(tmp_path / "log.ctxrel")] == [None, "첫 문장이 답입니다."]
    system = server.seen[0].body["messages"][0]["content"]
    assert '"reason": "one short sentence that says why' in system
    assert system.count('"reason":"') == 5
    assert read_summary(tmp_path / "log.ctxrel")["configuration"]["explain"] is True
    server.seen.clear()
    assert ctxrel(*live(server, write_log(RECORDS))).returncode == 0
    assert "reason" not in server.seen[0].body["messages"][0]["content"].split("Input:", 1)[1]
    assert "reason" not in read_rows(tmp_path / "log.ctxrel")[0]


def test_repaired(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Rows and summary tell of replies that had something around their object."""
    server.script = lambda seen: (
        completion('```json\n{"relevant_statements": [1]}\n```') if "누가" in str(seen.record) else cite(1)
    )
    assert ctxrel(*live(server, write_log(RECORDS))).returncode == 0
    assert [row["repaired"] for row in read_rows(tmp_path / "log.ctxrel")] == [False, True]
    assert read_summary(tmp_path / "log.ctxrel")["evaluators"]["context_relevance"]["repaired"] == 1


def long_record(sentences: int) -> Record:
    """Three contexts of very different lengths."""
    texts = [f"Sentence {number} says something of some length about things." for number in range(sentences)]
    return {"question": "What?", "contexts": [" ".join(texts[:2]), " ".join(texts[2:-1]), texts[-1]], "answer": "Yes."}


def test_long_records_are_divided(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Requests above --max-input-tokens are divided before they are sent; the row says so and is as if it were whole."""
    log = write_log([long_record(60), RECORDS[0]])
    assert ctxrel(*live(server, log, "-o", "whole")).returncode == 0
    whole = len(server.seen)
    server.seen.clear()
    assert ctxrel(*live(server, log, "-o", "parts", "--max-input-tokens", "2200")).returncode == 0
    rows, divided = read_rows(tmp_path / "whole"), read_rows(tmp_path / "parts")
    assert (whole, "requests" in rows[0], "requests" in divided[1]) == (2, False, False)
    assert divided[0]["requests"] == len(server.seen) - 1 > 2
    for key in ("score", "relevant_statements", "contexts"):
        assert divided[0][key] == rows[0][key]
    for seen in server.seen:
        assert sum(len(message["content"].encode()) for message in seen.body["messages"]) <= 3 * 2200
    server.seen.clear()
    assert ctxrel(*live(server, log, "-o", "parts", "--max-input-tokens", "2200")).returncode == 0
    assert not server.seen


def test_a_sentence_too_long(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """What cannot be divided further is an error row without a request; nothing is cut off."""
    log = write_log([{"question": "q?", "contexts": ["word " * 4000]}, RECORDS[0]])
    assert ctxrel(*live(server, log, "--max-input-tokens", "3000")).returncode == 3
    row = read_rows(tmp_path / "log.ctxrel")[0]
    assert row["error"]["kind"] == "context_too_long"
    assert row["error"]["message"].endswith("which cannot be divided further; --max-input-tokens allows 3,000")
    assert len(server.seen) == 1


def test_faithfulness_over_several_requests(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """All parts are asked about the same statements; one is supported if any part supports it."""

    def script(seen: Seen) -> Answer:
        numbers = [int(number) for context in seen.record["contexts"] for number in context]
        statements = seen.record.get("statements", ["First.", "Last.", "None."])
        found = [[numbers[0]] if 1 in numbers else [], [numbers[-1]] if 60 in numbers else [], []]
        scores = [int(bool(evidence)) for evidence in found]
        return completion(json.dumps({"statements": statements, "evidence": found, "statement_scores": scores}))

    server.script = script
    done = ctxrel(*live(server, write_log([long_record(60)]), "-e", "faithfulness", "--max-input-tokens", "2800"))
    assert done.returncode == 0
    (row,) = read_rows(tmp_path / "log.ctxrel")
    assert row["requests"] == len(server.seen) > 2
    assert (row["statements"], row["statement_scores"]) == (["First.", "Last.", "None."], [1, 1, 0])
    assert [[place["sentence"] for place in evidence] for evidence in row["evidence"]] == [[1], [60], []]
    assert ["statements" in seen.record for seen in server.seen] == [False] + [True] * (len(server.seen) - 1)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (
            ["-e", "answer_relevance"],
            "the offline judge cannot answer 'answer_relevance'; it can answer context_relevance, ",
        ),
        (["-e", "context_relevance_verbatim"], "the offline judge cannot answer 'context_relevance_verbatim'"),
        (["--explain"], "the offline judge gives no reasons; leave out --explain"),
        (["-e", "faithfulness", "-e", "faithfulness"], "two evaluators are called 'faithfulness'"),
    ],
)
def test_offline_says_what_it_can(
    ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path, options: list[str], said: str
) -> None:
    """Asked for anything else the offline judge says what it can do, and nothing is written."""
    done = ctxrel("run", write_log(RECORDS), "-m", "offline", *options)
    assert (done.returncode, done.stderr.startswith(f"ctxrel: {said}")) == (2, True), done.stderr
    assert not (tmp_path / "log.ctxrel").exists()


def test_offline_in_korean_and_mixed(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """Statements are in the record's own language and script."""
    mixed = {
        "question": "webhook retry는 몇 번까지 하나요?",
        "contexts": ["Webhook retry는 최대 5번까지 합니다. Timeout은 10초입니다."],
        "answer": "Webhook retry는 최대 5번까지 합니다. 매일 수동으로 점검해야 합니다.",
    }
    done = ctxrel(
        "run", write_log([RECORDS[1], mixed]), "-m", "offline", "-e", "context_relevance", "-e", "faithfulness"
    )
    assert done.returncode == 0
    rows = read_rows(tmp_path / "log.ctxrel")
    assert rows[1]["statements"] == ["아다가 썼습니다."]
    assert rows[2]["relevant_statements"] == ["Webhook retry는 최대 5번까지 합니다."]
    assert (rows[3]["statements"], rows[3]["statement_scores"]) == (
        ["Webhook retry는 최대 5번까지 합니다.", "매일 수동으로 점검해야 합니다."],
        [1, 0],
    )


def test_verbatim_statements(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """What the judge wrote is located; what stands nowhere is kept, flagged and not counted."""
    replies = {"a": ["ADA  wrote it.", "Carl wrote the whole of it."], "b": ["Nobody knows who wrote that book."]}
    server.script = lambda seen: completion(
        json.dumps({"relevant_statements": replies["a" if "Who" in seen.record["question"] else "b"]})
    )
    assert ctxrel(*live(server, write_log(RECORDS), "-e", "context_relevance_verbatim")).returncode == 0
    first, second = read_rows(tmp_path / "log.ctxrel")
    assert (first["score"], second["score"]) == (1, 0)
    assert first["relevant_statements"] == replies["a"]
    nowhere = {"located": False, "context": None, "span": None, "similarity": None}
    assert first["locations"] == [{"located": True, "context": 0, "span": [0, 13], "similarity": 1.0}, nowhere]
    assert [context["relevant"] for context in first["contexts"]] == [True, False]
    assert second["locations"] == [nowhere]
    figures = read_summary(tmp_path / "log.ctxrel")["evaluators"]["context_relevance_verbatim"]["figures"]
    assert (figures["quotes"], figures["unlocated"], figures["relevant_contexts"]) == (3, 2, 1)


def test_many_evaluators_stay_in_order(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Answers that overtake each other change no row's place."""
    random.seed(2)
    server.script = lambda seen: Answer(body=by_schema(seen).body, delay=random.random() / 20)
    names = ["faithfulness", "context_relevance", "answer_relevance", "context_sufficiency", "child_safety"]
    records = [{**RECORDS[0], "id": f"r{number}", "question": f"Who wrote {number}?"} for number in range(20)]
    done = ctxrel(*live(server, write_log(records)), *[part for name in names for part in ("-e", name)])
    assert done.returncode == 0
    rows = read_rows(tmp_path / "log.ctxrel")
    assert [(row["id"], row["evaluator"]) for row in rows] == [(r["id"], name) for r in records for name in names]


NESTED = "name: nested\ninputs: {question: text, x: json}\noutputs: {v: json}\nscoring: none\ninstructions: '{{output_format}}'\n"


def test_nesting_beyond_what_can_be_written(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """Neither a reply nor a record nor an id that is nested too deeply ends the run."""
    Path("nested.yaml").write_text(NESTED)
    deep = [[]]  # type: ignore[var-annotated]
    for _ in range(251):
        deep = [deep]
    server.script = lambda seen: completion(json.dumps({"v": deep if seen.record["question"] == "b" else 1}))
    records = [{"question": "a", "x": 1}, {"question": "b", "x": 1}, {"question": "c", "x": deep}, {"id": deep, "question": "d", "x": 1}]  # fmt: skip
    done = ctxrel(*live(server, write_log(records), "-e", "nested.yaml"))
    assert done.returncode == 3, done.stderr
    rows = read_rows(tmp_path / "log.ctxrel")
    assert [row["error"] and row["error"]["kind"] for row in rows] == [None, "invalid_reply", "bad_input", None]
    assert rows[3]["id"] == "3"


def test_answers_that_begin_late(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A log whose first records have no answer is read; they are `bad_input` for faithfulness alone."""
    server.script = by_schema
    records = [{**RECORDS[0], "answer": None, "id": str(number)} for number in range(55)]
    log = write_log([*records, RECORDS[0]])
    for options in ([], ["--answer-field", "answer"]):
        done = ctxrel(*live(server, log, "-e", "context_relevance", "-e", "faithfulness", *options))
        assert done.returncode == 3, done.stderr
        blocks = read_summary(tmp_path / "log.ctxrel")["evaluators"]
        assert (blocks["context_relevance"]["evaluated"], blocks["faithfulness"]["errors"]) == (56, {"bad_input": 55})


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-e", "faithfulness", "--field", "anser=answer"], "no evaluator of this run has an input 'anser'; did you mean 'answer'?"),
        (["-e", "faithfulness", "--max-input-tokens", "500"], "the instructions of faithfulness alone are about "),
        (["-e", "faithfulness,context_relevance"], "'faithfulness,context_relevance' is no evaluator; for several repeat the option: -e faithfulness -e context_relevance"),
        (["mine.yaml"], "'mine.yaml' is no log; if it is an evaluator, give it with an -e of its own"),
        (["mine.yaml", "-o", "out"], "'mine.yaml' is no log; if it is an evaluator, give it with an -e of its own"),
        (["-e", "x" * 300], "no evaluator 'xxx"),
    ],
)  # fmt: skip
def test_slips(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, arguments: list[str], said: str
) -> None:
    """Slips of the command line are one sentence with the next step, and nothing is sent."""
    Path("mine.yaml").write_text(TONE)
    done = ctxrel(*live(server, write_log(RECORDS)), *arguments)
    assert (done.returncode, done.stderr.startswith(f"ctxrel: {said}")) == (2, True), done.stderr
    assert not server.seen


def test_an_evaluator_that_judged_nothing(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """It ends the run with exit 1, though others have judged: a number that is missing is no success."""
    server.script = lambda seen: cite(1) if "statements" in str(seen.body["response_format"]) and "evidence" not in str(seen.body["response_format"]) else completion("no")  # fmt: skip
    done = ctxrel(*live(server, write_log(RECORDS), "-e", "context_relevance", "-e", "faithfulness"))
    assert done.returncode == 1
    assert "none of 2 records could be judged by faithfulness (invalid_reply)" in done.stderr


def test_bounds_are_shown_exactly(ctxrel: RunCommand) -> None:
    """The judge reads the bounds that its replies are held to."""
    text = "inputs: [question]\noutputs: {{x: {{kind: number, range: [{}, {}]}}}}\nscoring: value\ninstructions: '{{{{output_format}}}}'\n"
    for name, low, high in (("a", "0", "12345678"), ("b", "0.1234567", "0.1234568")):
        Path(f"{name}.yaml").write_text(text.format(low, high))
        assert f"a number from {low} to {high}" in ctxrel("prompts", "show", f"{name}.yaml", "--rendered").stdout
