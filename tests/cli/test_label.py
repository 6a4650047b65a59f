"""Labels by hand."""

import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import Record, RunCommand, read_rows

WriteLog = Callable[..., Path]
RECORDS: list[Record] = [
    {"id": f"r{n}", "question": f"What is {n}?", "contexts": [f"{n} is a number.", "Bread."]} for n in range(4)
]


def labels() -> list[Record]:
    """The labels that were written."""
    return read_rows(Path(), "labels.jsonl")


def test_labels(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Each record is shown, and what is typed becomes its label; the next time only the rest is asked about."""
    log = write_log(RECORDS)
    done = ctxrel("label", log, "--labels", "labels.jsonl", stdin="y\nmaybe\nn\ns\nq\n")
    assert done.returncode == 0
    assert labels() == [{"id": "r0", "label": 1}, {"id": "r1", "label": 0}]
    assert "question: What is 0?\n\ncontexts 1: 0 is a number.\n\ncontexts 2: Bread.\n" in done.stderr
    assert "'maybe' is no label" in done.stderr
    assert "2 labelled; they are in labels.jsonl" in done.stderr
    again = ctxrel("label", log, "--labels", "labels.jsonl", stdin="3.5\n")
    assert "What is 1?" not in again.stderr
    assert again.stderr.endswith("\n1 labelled, 2 before; they are in labels.jsonl\n")
    assert labels()[2:] == [{"id": "r2", "label": 3.5}]


def test_raters_and_calibration(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Each rater has a field and is asked about everything; calibrate takes the file as it is."""
    log = write_log([*RECORDS, RECORDS[0]])
    ctxrel("run", log, "-m", "offline")
    for rater in "ab":
        ctxrel("label", log, "--labels", "labels.jsonl", "--rater", rater, stdin="y\n" * 9)
    assert len(labels()) == 8
    options = ["--labels", "labels.jsonl", "--label-field", "a", "--label-field", "b", "--json"]
    found = json.loads(ctxrel("calibrate", "log.ctxrel", *options).stdout)
    assert found["results"][0]["raters"]["records"] == 4


def test_sample_is_part_of_the_runs(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """With the same seed the sample to label is a part of the one that was judged."""
    log = write_log([{**RECORDS[0], "id": f"r{n}"} for n in range(100)])
    ctxrel("run", log, "-m", "offline", "--sample", "40")
    ctxrel("label", log, "--labels", "labels.jsonl", "--sample", "10", stdin="n\n" * 20)
    assert len(labels()) == 10
    assert {label["id"] for label in labels()} <= {row["id"] for row in read_rows(Path("log.ctxrel"))}


def test_records_that_cannot_be_shown(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Broken records are passed over; a record cannot command the terminal; an answer is shown where one is judged."""
    record = {"id": "x", "question": "\x1b[2JWhat?", "contexts": [], "answer": "That."}
    log = write_log([record, {"id": "y", "question": "q?", "contexts": 5, "answer": "a"}])
    done = ctxrel("label", log, "--labels", "labels.jsonl", "-e", "faithfulness", stdin="y\n" * 5)
    assert "question: [2JWhat?\n\ncontexts: none\n\nanswer: That.\n" in done.stderr
    assert [label["id"] for label in labels()] == ["x"]


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["-", "--labels", "l.jsonl"], "labels are typed on standard input, where no log can be; name the log's file"),
        (["log.jsonl", "--labels", "no/l.jsonl"], "--labels 'no/l.jsonl': the folder 'no' is not there"),
        (["log.jsonl", "--labels", "."], "--labels '.' is a folder; name a file"),
        (
            ["log.jsonl", "--labels", "l.jsonl", "--rater", "id"],
            "--rater 'id' cannot be the name of a label; write another",
        ),
    ],
)
def test_wrong_options(ctxrel: RunCommand, write_log: WriteLog, arguments: list[str], said: str) -> None:
    """What cannot be done is told."""
    write_log(RECORDS)
    done = ctxrel("label", *arguments)
    assert (done.returncode, done.stderr) == (2, f"ctxrel: {said}\n")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("log.jsonl", "--labels 'log.jsonl' is the log itself; name another file"),
        ("labels.csv", "labels.csv:1: no line with an id, and labels are added to such lines; name a new file"),
        ("labels.json", "labels.json:1: no line with an id, and labels are added to such lines; name a new file"),
    ],
)
def test_nothing_else_is_added_to(ctxrel: RunCommand, write_log: WriteLog, name: str, said: str) -> None:
    """A log, a table and an array are left as they are."""
    write_log(RECORDS)
    Path("labels.csv").write_text("id,label\nr0,1\n")
    Path("labels.json").write_text('[{"id": "r0", "label": 1}]\n')
    before = Path(name).read_bytes()
    done = ctxrel("label", "log.jsonl", "--labels", name, stdin="y\n")
    assert done.returncode == 2
    assert said in done.stderr
    assert Path(name).read_bytes() == before


def test_a_last_line_without_an_end(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Labels that an editor has left with a byte order mark and without a last newline are gone on with."""
    Path("labels.jsonl").write_bytes(b'\xef\xbb\xbf{"id": "r0", "label": 1}')
    assert ctxrel("label", write_log(RECORDS), "--labels", "labels.jsonl", stdin="n\n").returncode == 0
    assert Path("labels.jsonl").read_bytes().splitlines()[1:] == [b'{"id":"r1","label":0}']


def test_half_a_character(write_log: WriteLog) -> None:
    """What a terminal leaves of a Korean letter that was taken back is no label, and no end."""
    command = [sys.executable, "-m", "ctxrel.cli", "label", str(write_log(RECORDS)), "--labels", "labels.jsonl"]
    done = subprocess.run(command, input=b"\xed\x95\ny\n", capture_output=True, check=False)
    assert done.returncode == 0, done.stderr
    assert labels() == [{"id": "r0", "label": 1}]
