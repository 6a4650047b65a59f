"""Further opinions: the judge asked again, a second judge, contexts in another order."""

import json
import subprocess
import sys
import time
from collections import Counter
from collections.abc import Callable, Iterator
from pathlib import Path
from random import Random
from typing import Any

import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, cite, error

from ctxrel.cli.runs.opinions.order import in_order, order_of
from ctxrel.cli.runs.opinions.stability import third_of
from ctxrel.cli.statistics.agreement import PairSums
from ctxrel.evaluators import Record as Judged

WriteLog = Callable[..., Path]
RECORDS: list[Record] = [
    {"id": str(number), "question": f"Who wrote book {number}?", "contexts": [f"Ada {number}.", f"Bob {number}."]}
    for number in range(6)
]
FOLDER = Path("log.ctxrel")
OTHER = "judge-2"


@pytest.fixture
def server() -> Iterator[LoopbackServer]:
    """An endpoint that serves two models."""
    with two_models() as running:
        yield running


def two_models() -> LoopbackServer:
    return LoopbackServer(models=Answer(body={"data": [{"id": MODEL}, {"id": OTHER}]}))


def live(server: LoopbackServer, log: Path, *options: str | Path) -> list[str | Path]:
    return ["run", log, "--base-url", server.url, "-m", MODEL, "--progress", "plain", *options]


def stability_of(folder: Path = FOLDER, name: str = "context_relevance") -> dict[str, Any]:
    found: dict[str, Any] = read_summary(folder)["evaluators"][name]["stability"]
    return found


def wavering(seen: Seen) -> Answer:
    """The second answer on the books 0 and 1 is another one than the rest, on book 0 the fourth as well."""
    book = int(seen.record["question"].split()[-1].strip("?"))
    return cite() if (book < 2 and seen.number == 1) or (book == 0 and seen.number == 3) else cite(1)


def test_repeats(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A judge that wavers is found out; the row's verdict stays that of the first answer, the majority is told."""
    server.script = wavering
    done = ctxrel(*live(server, write_log(RECORDS), "--repeat", "4"))
    assert (done.returncode, len(server.seen)) == (0, 24)
    rows = read_rows(FOLDER)
    assert [row["score"] for row in rows] == [1] * 6
    assert [[each["score"] for each in row["opinions"]] for row in rows] == [[0, 1, 0], [0, 1, 1], *[[1, 1, 1]] * 4]
    assert [row["majority"] for row in rows] == [None, 1, 1, 1, 1, 1]
    assert list(rows[0])[-3:] == ["error", "opinions", "majority"]
    assert rows[1]["opinions"][0] == {
        "judge": MODEL,
        "repeat": 2,
        "shuffled": False,
        "status": "evaluated",
        "score": 0,
        "contexts_relevant": [False, False],
        "usage": {"input_tokens": 100, "output_tokens": 7, "cached_tokens": 64, "reasoning_tokens": 3},
        "cost": None,
        "error": None,
    }
    found = stability_of()
    assert (found["opinions"], found["errors"], found["judges"], found["order"]) == (18, {}, None, None)
    repeats = found["repeats"]
    assert repeats["agreement"] == pytest.approx((2 + 3 + 4 * 6) / 36)
    assert (repeats["unanimous"]["share"], repeats["unanimous"]["n"]) == (pytest.approx(4 / 6), 6)
    assert (repeats["ties"], repeats["score_by_majority"]) == (1, 1)
    assert read_summary(FOLDER)["tokens"]["input_tokens"] == 2400
    line = next(line for line in done.stderr.splitlines() if line.startswith("stability of context_relevance"))
    assert "self-agreement 80.6% over 4 answers, all alike for 66.7% of 6 records" in line


def test_resume(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A plain run's answer is the first of the repeats; only what is new is asked, and rows are the same again."""
    log = write_log(RECORDS)
    ctxrel(*live(server, log))
    for repeat, asked in (("3", 12), ("3", 0), ("5", 12), ("2", 0)):
        before = len(server.seen)
        assert ctxrel(*live(server, log, "--repeat", repeat)).returncode == 0
        assert len(server.seen) - before == asked, repeat
    rows = (FOLDER / "results.jsonl").read_bytes()
    before = len(server.seen)
    (FOLDER / "summary.json").unlink()
    ctxrel(*live(server, log, "--repeat", "2"))
    assert (len(server.seen), (FOLDER / "results.jsonl").read_bytes()) == (before, rows)
    assert read_summary(FOLDER)["requests"]["reused"] == 12


def test_plain_run(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """Without these options rows and summary have none of it."""
    ctxrel(*live(server, write_log(RECORDS)))
    assert list(read_rows(FOLDER)[0])[-1] == "error"
    summary = read_summary(FOLDER)
    assert "stability" not in summary["evaluators"]["context_relevance"]
    assert "also" not in summary["judge"]


def test_opinions_that_fail(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A failed repeat is data: the row stands, the failure is counted, and the next run asks it again."""
    log = write_log(RECORDS)
    server.script = lambda seen: cite(1) if seen.number == 0 else cite(99)
    done = ctxrel(*live(server, log, "--repeat", "2", "--attempts", "1"))
    assert done.returncode == 0
    assert [row["opinions"][0]["error"] for row in read_rows(FOLDER)] == ["invalid_reply"] * 6
    assert (stability_of()["errors"], stability_of()["repeats"]["agreement"]) == ({"invalid_reply": 6}, None)
    assert "6 of 6 further answers are errors" in done.stderr
    server.script = lambda _: cite(1)
    ctxrel(*live(server, log, "--repeat", "2"))
    assert (stability_of()["errors"], stability_of()["repeats"]["agreement"]) == ({}, 1)


def test_nothing_to_ask(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A record that needs no request has no further opinions, and is in no figure of agreement."""
    log = write_log([RECORDS[0], {"id": "x", "question": "Who?", "contexts": []}, {"id": "y", "contexts": 7}])
    ctxrel(*live(server, log, "--repeat", "2", "--shuffle-contexts", "--max-errors", "100%"))
    rows = read_rows(FOLDER)
    assert [(len(row["opinions"]), row["majority"]) for row in rows[1:]] == [(0, 0), (0, None)]
    assert stability_of()["repeats"]["unanimous"]["n"] == 1


def by_model(seen: Seen) -> Answer:
    """The second judge finds nothing in the odd books; the first one nothing in book 0."""
    book = int(seen.record["question"].split()[-1].strip("?"))
    answer = cite() if (book % 2 if seen.body["model"] == OTHER else book == 0) else cite(1)
    assert isinstance(answer.body, dict)
    answer.body["model"] = seen.body["model"]
    return answer


def test_second_judge(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Its agreement and kappa are told, its tokens and cost are in the totals, and nothing is asked twice."""
    server.script = by_model
    prices = tmp_path / "prices.yaml"
    host = server.url.removeprefix("http://").removesuffix("/v1")
    prices.write_text(
        f'"{host}":\n  models:\n    {MODEL}: {{input: 1, output: 1}}\n    {OTHER}: {{input: 10, output: 10}}\n'
    )
    log = write_log(RECORDS)
    done = ctxrel(*live(server, log, "--judge-also", OTHER, "--prices", prices))
    assert (done.returncode, len(server.seen)) == (0, 12), done.stderr
    rows = read_rows(FOLDER)
    assert [row["score"] for row in rows] == [0, 1, 1, 1, 1, 1]
    assert [row["opinions"][0]["score"] for row in rows] == [1, 0, 1, 0, 1, 0]
    judges = stability_of()["judges"]
    assert (judges["model"], judges["n"], judges["agreement"]["share"]) == (OTHER, 6, pytest.approx(2 / 6))
    assert judges["kappa"] == pytest.approx(-1 / 3)
    summary = read_summary(FOLDER)
    assert summary["requests"]["sent"] == 12
    assert summary["tokens"]["input_tokens"] == 1200
    assert summary["judge"]["also"]["tokens"]["input_tokens"] == 600
    paid = sum(row["cost"] + row["opinions"][0]["cost"] for row in rows)
    assert summary["cost"]["total"] == pytest.approx(paid)
    assert summary["judge"]["also"]["cost"]["total"] == pytest.approx(paid * 10 / 11)
    assert f"agreement with {OTHER} 33.3%, kappa -0.33 on 6 records" in done.stderr
    ctxrel(*live(server, log, "--judge-also", OTHER, "--prices", prices))
    assert len(server.seen) == 12
    assert read_summary(FOLDER)["judge"]["also"]["model"] == OTHER


def test_second_judge_on_disagreement(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """It is asked only where the repeats differ."""
    server.script = wavering
    ctxrel(*live(server, write_log(RECORDS), "--repeat", "2", "--judge-also", OTHER, "--on-disagreement"))
    asked = [seen.record["question"] for seen in server.seen if seen.body["model"] == OTHER]
    assert sorted(asked) == ["Who wrote book 0?", "Who wrote book 1?"]
    assert [len(row["opinions"]) for row in read_rows(FOLDER)] == [2, 2, 1, 1, 1, 1]
    assert stability_of()["judges"]["asked"] == "on disagreement"


def test_second_judge_elsewhere(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Another endpoint is sent its own key, and never the first one's."""
    monkeypatch.setenv("OPENAI_API_KEY", "first-key")
    with two_models() as other:
        log = write_log(RECORDS[:1])
        ctxrel(*live(server, log, "--judge-also", OTHER, "--judge-also-base-url", other.url))
        assert "first-key" not in json.dumps(other.seen[0].headers)
        monkeypatch.setenv("SECOND", "second-key")
        log = write_log(RECORDS[1:2])
        options = ["--judge-also-base-url", other.url, "--judge-also-key-env", "SECOND"]
        ctxrel(*live(server, log, "--judge-also", OTHER, *options))
        assert other.seen[-1].headers["Authorization"] == "Bearer second-key"
        assert {seen.headers["Authorization"] for seen in server.seen} == {"Bearer first-key"}


def test_baseline_as_second_judge(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """The offline judge can be the second one, and the first."""
    log = write_log(RECORDS)
    assert ctxrel(*live(server, log, "--judge-also", "offline")).returncode == 0
    assert len(server.seen) == 6
    done = ctxrel("run", log, "-m", "offline", "--judge-also", OTHER, "--judge-also-base-url", server.url)
    assert done.returncode == 0
    assert [row["opinions"][0]["judge"] for row in read_rows(FOLDER)] == [OTHER] * 6


def test_unknown_second_judge(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A second judge that is not served ends the run with its name; what the first has answered is kept."""
    log = write_log(RECORDS)
    both, server.models = server.models, Answer(body={"data": [{"id": MODEL}]})
    server.script = lambda seen: (
        error(404, f"The model `{OTHER}` does not exist", code="model_not_found")
        if seen.body["model"] == OTHER
        else cite(1)
    )
    done = ctxrel(*live(server, log, "--judge-also", OTHER))
    assert done.returncode == 1
    assert OTHER in done.stderr
    assert MODEL in done.stderr.splitlines()[-1]
    server.script, server.models = lambda _: cite(1), both
    before = [seen for seen in server.seen if seen.body["model"] == MODEL]
    assert ctxrel(*live(server, log, "--judge-also", OTHER)).returncode == 0
    asked = [seen.record["question"] for seen in server.seen if seen.body["model"] == MODEL]
    assert len(asked) == len({*asked}) == 6 >= len(before)


LONG: list[Record] = [
    {
        "question": f"q{number}?",
        "contexts": [f"An {name} of {number} sat there." for name in ("ant", "bee", "cat", "dog")],
    }
    for number in range(40)
]


def test_position_bias(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """A judge that takes what stands first is found out; the log's first contexts are no better than the others."""
    server.script = lambda _: cite(1)
    log = write_log(LONG)
    done = ctxrel(*live(server, log, "--shuffle-contexts"))
    order = stability_of()["order"]
    shares = {third: share["share"] for third, share in order["relevant_by_position"].items()}
    assert shares == {"first": 1, "middle": 0, "last": 0}
    assert [share["n"] for share in order["relevant_by_position"].values()] == [40, 80, 40]
    assert order["relevant_by_position"]["first"]["interval_95"][0] > 0.9
    assert order["score_agreement"]["share"] == 1
    for row in read_rows(FOLDER):  # what was shown first is relevant, wherever it stands in the log
        assert sum(row["opinions"][0]["contexts_relevant"]) == 1
    moved = [row for row in read_rows(FOLDER) if not row["opinions"][0]["contexts_relevant"][0]]
    assert 20 < len(moved) < 40
    assert order["flipped"]["share"] == pytest.approx(2 * len(moved) / order["flipped"]["n"])
    assert "relevant by shown position 100.0% first, 0.0% middle, 0.0% last; in another order" in done.stderr
    before = len(server.seen)
    (FOLDER / "summary.json").unlink()
    ctxrel(*live(server, log, "--shuffle-contexts"))
    assert len(server.seen) == before
    ctxrel(*live(server, log, "--shuffle-contexts", "--seed", "7"))
    assert len(server.seen) > before


def test_no_position_bias(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """Verdicts of a judge that reads are brought back to the contexts they are about."""

    def reads(seen: Seen) -> Answer:
        shown = {int(n): text for context in seen.record["contexts"] for n, text in context.items()}
        return cite(*(number for number, text in shown.items() if "ant" in text))

    server.script = reads
    ctxrel(*live(server, write_log(LONG), "--shuffle-contexts"))
    order = stability_of()["order"]
    assert (order["flipped"]["share"], order["score_agreement"]["share"]) == (0, 1)
    assert {tuple(row["opinions"][0]["contexts_relevant"]) for row in read_rows(FOLDER)} == {
        (True, False, False, False)
    }


def test_single_context(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """Fewer than two contexts that say anything have no other order."""
    log = write_log([{"question": "q?", "contexts": ["one."]}, {"question": "q?", "contexts": ["one.", " "]}])
    ctxrel(*live(server, log, "--shuffle-contexts"))
    assert len(server.seen) == 2
    assert [row["opinions"] for row in read_rows(FOLDER)] == [[], []]


def test_orders() -> None:
    """Every context is at every place about as often; the order depends on seed and content alone."""
    records = [
        Judged(index=n, id=str(n), where=f"log:{n}", question=f"q{n}?", contexts=("a", "b", "c")) for n in range(900)
    ]
    orders = [order_of(record, 0) for record in records]
    for context in range(3):
        for place in range(3):
            assert 250 < sum(order is not None and order[place] == context for order in orders) < 350
    again = Judged(index=5, id="other", where="log:5", question="q1?", contexts=("a", "b", "c"))
    assert order_of(again, 0) == orders[1]
    assert [order_of(record, 1) for record in records] != orders
    assert in_order(again, [2, 0, 1]).contexts == ("c", "a", "b")
    assert [[third_of(place, length) for place in range(length)] for length in (2, 3, 4)] == [
        ["first", "last"],
        ["first", "middle", "last"],
        ["first", "middle", "middle", "last"],
    ]


@pytest.mark.parametrize("grades", [(0, 1), (0, 0.5, 1), (1, 2, 3, 4, 5)], ids=["binary", "halves", "grades"])
def test_kappa(grades: tuple[float, ...]) -> None:
    """Kappa of running sums is that of the whole table."""
    chance = Random(1)
    pairs = [(grade := chance.choice(grades), chance.choice((grade, *grades))) for _ in range(500)]
    sums = PairSums()
    for first, second in pairs:
        sums.add(first, second)
    metrics = pytest.importorskip("sklearn.metrics", reason="scikit-learn is no dependency, and checks where it is")
    firsts, seconds = ([grades.index(pair[side]) for pair in pairs] for side in (0, 1))
    assert sums.kappa == pytest.approx(metrics.cohen_kappa_score(firsts, seconds, weights="quadratic"))
    if len(grades) == 2:
        assert sums.kappa == pytest.approx(metrics.cohen_kappa_score(firsts, seconds))
    assert PairSums().kappa is None


def test_stopped(server: LoopbackServer, write_log: WriteLog, ctxrel: RunCommand) -> None:
    """A signal ends the wait for all judges; what was answered is kept, and the same command asks for the rest alone."""
    server.script = lambda seen: Answer(body=by_model(seen).body, delay=0.05)
    log = write_log([{**RECORDS[0], "id": str(n), "question": f"Who wrote book {n}?"} for n in range(40)])
    command = live(server, log, "--repeat", "2", "--judge-also", OTHER, "--shuffle-contexts", "-c", "2")
    process = subprocess.Popen([sys.executable, "-m", "ctxrel.cli", *map(str, command)], stderr=subprocess.PIPE)
    while len(server.seen) < 30:
        assert process.poll() is None
        time.sleep(0.01)
    process.terminate()
    _, said = process.communicate(timeout=60)
    assert (process.returncode, b"run the same command again to go on" in said) == (143, True)
    assert 30 <= len(server.seen) < 120
    assert ctxrel(*command).returncode == 0
    asked = Counter((seen.body["model"], seen.body["messages"][-1]["content"]) for seen in server.seen)
    shuffled = sum(row["opinions"][-1]["contexts_relevant"] is not None for row in read_rows(FOLDER))
    assert (max(asked.values()), len(asked) - 80, shuffled) == (2, len(server.seen) - 120, 40)


def test_parquet(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """The table has the columns, of the same types whatever the rows hold."""
    server.script = wavering
    options = ["--repeat", "2", "--shuffle-contexts", "--format", "parquet"]
    ctxrel(*live(server, write_log([*RECORDS, {"id": "x", "question": "q", "contexts": []}]), *options))
    table = pq.read_table(FOLDER / "results.parquet")
    assert table.column_names[-2:] == ["opinions", "majority"]
    rows = table.to_pylist()
    assert [each["score"] for each in rows[0]["opinions"]] == [0.0, rows[0]["opinions"][1]["score"]]
    assert rows[-1]["opinions"] == []
    empty = write_log([{"id": "x", "question": "q", "contexts": []}], "empty.jsonl")
    ctxrel(*live(server, empty, *options))
    assert pq.read_schema(Path("empty.ctxrel/results.parquet")).equals(table.schema)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--on-disagreement"], "--on-disagreement is about a second judge; name one with --judge-also"),
        (["--judge-also-base-url", "http://localhost:1"], "--judge-also-base-url is about a second judge"),
        (["--judge-also", OTHER, "--on-disagreement"], "--on-disagreement looks at repeats, and nothing is repeated"),
        (["--repeat", "2", "--batch"], "--repeat, --judge-also and --shuffle-contexts ask live, from one process; leave out --batch"),
        (["--repeat", "2", "--engine", "ray"], "ask live, from one process; leave out --engine ray"),
        (["--judge-also", OTHER, "--max-tokens-total", "9"], "--max-tokens-total caps one judge's account"),
        (["--judge-also", MODEL], f"--judge-also {MODEL!r} is the judge itself; ask it again with --repeat 2"),
        (["--judge-also", "./x.gguf"], "--judge-also './x.gguf': name a model that an endpoint serves, or offline"),
        (["--judge-also", "offline", "-e", "answer_relevance"], "the offline judge cannot answer 'answer_relevance'"),
        (["--judge-also", OTHER, "--judge-also-base-url", "http://judge.example/v1"], "the second judge: records"),
        (["--judge-also", OTHER, "--judge-also-base-url", "https://judge.example/v1"], "--judge-also-key-env"),
        (["--shuffle-contexts", "-e", "answer_relevance"], "no evaluator of this run reads contexts"),
        (["--repeat", "21"], "'--repeat'"),
    ],
)  # fmt: skip
def test_refused(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, options: list[str], said: str
) -> None:
    """What cannot be had is said in a sentence before anything is sent."""
    done = ctxrel(*live(server, write_log(RECORDS), *options))
    assert done.returncode == 2
    assert said in done.stderr
    assert not server.seen


def test_dry_run(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """The estimate says that it counts one answer for each record."""
    done = ctxrel(*live(server, write_log(RECORDS), "--repeat", "3", "--dry-run"))
    assert "requests: 6 to send" in done.stdout
    assert "the estimate is of one answer for each record" in done.stderr


def test_cap_counts_repeats(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """What repeats take is spent of the caps; the same command with a higher one goes on."""
    log = write_log(RECORDS)
    done = ctxrel(*live(server, log, "--repeat", "3", "--max-tokens-total", "500", "-c", "1"))
    assert done.returncode == 75
    sent = len(server.seen)
    assert sent == 5
    assert ctxrel(*live(server, log, "--repeat", "3", "--max-tokens-total", "99999")).returncode == 0
    assert len(server.seen) == 18
