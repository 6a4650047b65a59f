"""Which records of a log are judged: conditions and samples."""

import json
import math
import random
from collections import Counter
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand, read_rows, read_summary

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.paths import FieldPath
from ctxrel.cli.records.sampling import Selection
from ctxrel.cli.records.where import parse_condition
from ctxrel.cli.runs.tally import Tally
from ctxrel.cli.statistics.intervals import effective_size, wilson_interval
from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.errors import InputError, UsageError
from ctxrel.evaluators.evaluator import Evaluation
from ctxrel.evaluators.figures import ContextFact
from ctxrel.evaluators.judging import Outcome

WriteLog = Callable[..., Path]
NEEDS = {"question": "text", "contexts": "contexts"}


def records(count: int) -> list[Record]:
    """Records that all differ, a fourth of them Korean."""
    return [
        {
            "id": f"r-{number}",
            "question": f"What is item {number}?",
            "contexts": [f"Item {number} is a thing."],
            "lang": "ko" if number % 4 == 0 else "en",
            "score": number / count,
        }
        for number in range(count)
    ]


def drawn(paths: list[Path], **chosen: Any) -> list[str]:  # noqa: ANN401  # a selection's own
    """Questions of the records that a selection takes of a log."""
    log = open_log([str(path) for path in paths], Fields(), NEEDS, selection=Selection(**chosen))
    log.draw()
    return [position.record.question for position in log.records()]


# What holds is by the meaning of the signs, worked out by hand.
@pytest.mark.parametrize(
    ("condition", "value", "holds"),
    [
        ("a=ko", "ko", True),
        ("a = ko", "ko", True),
        ("a==ko", "ko", True),
        ("a!=ko", "en", True),
        ("a=5", 5, True),
        ("a=5", 5.0, True),
        ("a=5", "5", True),
        ('a="5"', "5", True),
        ("a=5", "05", False),
        ("a=9007199254740993", 9007199254740992, False),
        ("a=true", True, True),
        ("a=1", True, False),
        ("a=null", None, True),
        ("a!=null", None, False),
        ("a!=null", 0, True),
        ("a<0.5", 0.4, True),
        ("a<0.5", "0.4", True),
        ("a<=5", 5, True),
        ("a>9", 10, True),
        ("a>9", "10", True),
        ('a>"9"', "10", False),
        ("a>=2026-11-02", "2026-11-10", True),
        ("a<2026-11-02", "2026-11-10", False),
        ("a<5", "many", False),
        ("a<5", None, False),
        ("a<b", 1, False),
        ("a=", "", True),
        ("a=x=y", "x=y", True),
        ("a=[1,2]", [1, 2], True),
    ],
    ids=repr,
)
def test_condition(condition: str, value: object, holds: bool) -> None:  # noqa: FBT001
    """A condition holds or does not; it is written so that it reads as the same."""
    read = parse_condition(condition)
    assert read.holds({"a": value}) is holds
    assert parse_condition(str(read)) == read


def test_missing_field_is_null() -> None:
    """A path that leads nowhere counts as null; one that leads deeper is followed."""
    assert parse_condition("a.b=null").holds({"a": {}})
    assert parse_condition("a.b!=x").holds({})
    assert parse_condition("a.b>3").holds({"a": {"b": 4}})


@pytest.mark.parametrize("given", ["", "lang", "=ko", "a..b=1"])
def test_no_condition(given: str) -> None:
    """What is no condition is refused."""
    with pytest.raises(UsageError, match=r"is no (condition|field path)"):
        parse_condition(given)


def test_conditions_come_before_limit(write_log: WriteLog) -> None:
    """All conditions have to be met, and the limit counts what meets them."""
    log = write_log(records(40))
    where = [parse_condition("lang=ko"), parse_condition("score>=0.5")]
    assert drawn([log], where=where, limit=2) == ["What is item 20?", "What is item 24?"]


def test_nothing_meets_the_condition(write_log: WriteLog) -> None:
    """A condition that no record meets is told, and whether its field is there at all."""
    log = write_log(records(4))
    with pytest.raises(InputError, match=r"^none of 4 records meets --where lang=fr$"):
        drawn([log], where=[parse_condition("lang=fr")])
    with pytest.raises(InputError, match=r"meets --where lng=ko; no record has the field 'lng'$"):
        drawn([log], where=[parse_condition("lng=ko")], sample=2)


@pytest.mark.parametrize("named", [True, False], ids=["by id", "by content"])
def test_same_sample_whatever_the_order_and_format(write_log: WriteLog, named: bool) -> None:  # noqa: FBT001
    """The same records are drawn from a log in another order, in several files, and as Parquet."""
    logged = records(300)
    if not named:
        for record in logged:
            del record["id"]
    shuffled = random.Random(1).sample(logged, 300)
    pq.write_table(pa.Table.from_pylist(logged), "log.parquet", row_group_size=70)
    first = drawn([write_log(logged)], sample=20)
    assert len(first) == 20
    assert first == sorted(first, key=lambda question: int(question[13:-1]))
    others = [
        drawn([write_log(shuffled, "shuffled.jsonl")], sample=20),
        drawn([write_log(logged[200:], "b.jsonl"), write_log(logged[:200], "a.jsonl")], sample=20),
        drawn([Path("log.parquet")], sample=20),
    ]
    assert [set(other) for other in others] == [set(first)] * 3
    assert set(drawn([Path("log.parquet")], sample=20, seed=1)) != set(first)
    assert set(drawn([Path("log.parquet")], sample=10)) < set(first)


def test_sample_is_uniform(write_log: WriteLog) -> None:
    """Over 400 seeds each of 50 records is drawn about as often: chi-square with 49 degrees below its 99.9 % point."""
    log = write_log(records(50))
    counts = Counter(question for seed in range(400) for question in drawn([log], sample=10, seed=seed))
    expected = 400 * 10 / 50
    # Drawn without replacement, the counts vary by (N - n) / (N - 1) less.
    chi_square = sum((counts[f"What is item {n}?"] - expected) ** 2 / expected for n in range(50)) / (40 / 49)
    assert 23.9 < chi_square < 85.4


def test_one_id_for_all(write_log: WriteLog) -> None:
    """Records of one id are told apart by their content, in any order, and counted."""
    logged = [record | {"id": "same"} for record in records(30)]
    first = drawn([write_log(logged)], sample=5)
    assert set(drawn([write_log(logged[::-1], "b.jsonl")], sample=5)) == set(first)
    log = open_log(["b.jsonl"], Fields(), NEEDS, selection=Selection(sample=5))
    log.draw()
    assert log.sample
    assert log.sample.sharing == 5


def test_log_that_changes_meanwhile(write_log: WriteLog) -> None:
    """A log that is another one when it is read again is refused."""
    log = open_log([str(write_log(records(30)))], Fields(), NEEDS, selection=Selection(sample=5))
    log.draw()
    write_log(records(60)[30:])
    with pytest.raises(InputError, match="has changed since the sample was drawn"):
        list(log.records())


def test_stratified(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """--sample-by draws so many of each value; one that has fewer gives all."""
    log = write_log([*records(100), {"id": "x", "question": "no language", "contexts": []}])
    done = ctxrel("run", log, "-m", "offline", "--sample", "7", "--sample-by", "lang", "--where", "score!=0")
    assert "sample: 15 of 100 records by 3 values of lang, seed 0\n" in done.stderr
    kinds = Counter("-" if row["id"] == "x" else int(row["id"][2:]) % 4 == 0 for row in read_rows(Path("log.ctxrel")))
    assert kinds == {True: 7, False: 7, "-": 1}
    summary = read_summary(Path("log.ctxrel"))
    assert summary["input"]["records"] == 15
    assert summary["input"]["population"] == 100
    assert summary["input"]["sample"] == {
        "n": 7,
        "seed": 0,
        "by": "lang",
        "where": ["score!=0"],
        "drawn": 15,
        "interval_of": "population",
        "strata": {
            "en": {"population": 75, "drawn": 7},
            "ko": {"population": 24, "drawn": 7},
            "null": {"population": 1, "drawn": 1},
        },
    }
    block = summary["evaluators"]["context_relevance"]
    # All of 75 and of 24 records scored 1 as far as they were drawn, the single one 0.
    assert block["score"] == pytest.approx(0.99)
    n = 1 / (0.75**2 * (1 - 7 / 75) / 7 + 0.24**2 * (1 - 7 / 24) / 7)
    assert block["interval_95"] == pytest.approx([*wilson_interval(0.99 * n, n)])
    assert block["bounds_if_failed"] == pytest.approx([0.99, 0.99])


def test_too_many_strata(write_log: WriteLog) -> None:
    """A field with too many values is refused."""
    with pytest.raises(InputError, match="the field 'id' has more than 1,000 values"):
        drawn([write_log(records(1001))], sample=1, by=FieldPath("id"))


def test_sample_of_a_pipe(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A pipe gives the sample that the file gives, with its unreadable lines, whose positions are the input's."""
    log = write_log(records(60))
    lines = log.read_text() + "broken\n"
    log.write_text(lines)
    ctxrel("run", log, "-m", "offline", "--sample", "61")
    assert [row["index"] for row in read_rows(Path("log.ctxrel"))] == [*range(61)]
    ctxrel("run", log, "-m", "offline", "--sample", "9", "--where", "lang=en")
    piped = ctxrel("run", "-", "-o", "-", "-m", "offline", "--sample", "9", "--where", "lang=en", stdin=lines)
    rows = [json.loads(line) for line in piped.stdout.splitlines()]
    assert rows == read_rows(Path("log.ctxrel"))
    assert [row["id"] for row in rows] == [f"r-{row['index']}" for row in rows]
    assert len(rows) == 9


def test_interval_of_a_sample(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The interval of a sample is narrower by the finite population; another sample is another run."""
    log = write_log(records(40))
    ctxrel("run", log, "-m", "offline", "--sample", "20")
    summary = read_summary(Path("log.ctxrel"))
    assert summary["input"]["population"] == 40
    assert summary["input"]["sample"]["interval_of"] == "population"
    block = summary["evaluators"]["context_relevance"]
    assert block["interval_95"] == pytest.approx(wilson_interval(39 * block["score"], 39))
    assert "nothing has changed" in ctxrel("run", log, "-m", "offline", "--sample", "20").stderr
    other = ctxrel("run", log, "-m", "offline", "--sample", "20", "--seed", "1")
    assert "nothing has changed" not in other.stderr
    assert read_summary(Path("log.ctxrel"))["configuration"]["sample"]["seed"] == 1


def test_effective_size() -> None:
    """The variance of a mean shrinks by (N - n) / (N - 1), to nothing where all are drawn."""
    assert effective_size(100, 1000) == pytest.approx(100 * 999 / 900)
    assert effective_size(5, 5) == math.inf


@pytest.mark.parametrize(("population", "factor"), [(None, 1.0), (10, math.sqrt(6 / 9)), (4, 0.0)])
def test_interval_of_scores(population: int | None, factor: float) -> None:
    """Scores between 0 and 1: 1.96 times the standard error, times sqrt((N - n) / (N - 1)) of a finite population."""
    tally = Tally(load_evaluator("context_relevance"), population=population)
    for score in (0, 0, 0.5, 1):
        fact = ContextFact((True,), (1,), 2, 1)
        tally.add(Outcome(evaluation=Evaluation(score=score, outputs={}, facts=(fact,))))
    spread = math.sqrt(sum((score - 0.375) ** 2 for score in (0, 0, 0.5, 1)) / 3 / 4) * 1.959964
    assert tally.interval
    assert tally.interval.high == pytest.approx(min(1, 0.375 + spread * factor), abs=1e-5)
    assert tally.interval.low == pytest.approx(max(0, 0.375 - spread * factor), abs=1e-5)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--sample", "3", "--limit", "4"], "--sample draws from the whole log, --limit reads its beginning"),
        (["--sample-by", "lang"], "--sample-by needs --sample N"),
        (["--where", "lang"], "'lang' is no condition"),
    ],
)
def test_wrong_options(ctxrel: RunCommand, write_log: WriteLog, options: list[str], said: str) -> None:
    """What cannot be meant is refused in a sentence."""
    done = ctxrel("run", write_log(records(3)), "-m", "offline", *options)
    assert done.returncode == 2
    assert said in done.stderr
