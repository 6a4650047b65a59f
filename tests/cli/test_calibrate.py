"""A judge against people's labels."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean

import krippendorff
import numpy as np
import pytest
from conftest import Record, RunCommand
from judged import row, rows
from sklearn import metrics

WriteLog = Callable[..., Path]


@pytest.fixture
def calibrated(ctxrel: RunCommand, write_log: WriteLog) -> Callable[..., Record]:
    """Calibrate rows by labels and read what is told in JSON."""

    def calibrate(judged: list[Record], labels: list[Record], *options: str) -> Record:
        write_log(judged, "rows.jsonl")
        write_log(labels, "labels.jsonl")
        done = ctxrel("calibrate", "rows.jsonl", "--labels", "labels.jsonl", "--json", *options)
        assert done.returncode == 0, done.stderr
        found: Record = json.loads(done.stdout)
        return found

    return calibrate


def test_binary(calibrated: Callable[..., Record]) -> None:
    """Confusion, accuracy, precision and recall of both classes, kappa; the corrected score over all records."""
    random = Random(8)
    truth = [float(random.random() < 0.5) for _ in range(600)]
    judged = [1.0 if random.random() < (0.95 if label else 0.3) else 0.0 for label in truth]
    labels = [{"id": f"r{number}", "label": bool(label)} for number, label in enumerate(truth[:150])]
    (found,) = calibrated(rows(judged), labels)["results"]
    known, verdicts = truth[:150], judged[:150]
    assert (found["labelled"], found["unlabelled"], found["threshold"]) == (150, 450, 0.5)
    assert found["accuracy"]["value"] == pytest.approx(metrics.accuracy_score(known, verdicts))
    assert found["kappa"]["value"] == pytest.approx(metrics.cohen_kappa_score(known, verdicts))
    for each in found["classes"]:
        right = pytest.approx(metrics.recall_score(known, verdicts, pos_label=each["class"]))
        assert each["recall"]["value"] == right
    matrix = metrics.confusion_matrix(known, verdicts)
    assert [cell["n"] for cell in found["confusion"]] == matrix.ravel().tolist()
    score = found["score"]
    assert score["judge"] == pytest.approx(fmean(judged))
    assert score["labels"]["mean"] == pytest.approx(fmean(known))
    low, high = score["corrected"]["interval_95"]
    assert low <= fmean(truth) <= high
    assert score["judge"] > fmean(truth)
    assert high - low < 0.9 * (score["labels"]["interval_95"][1] - score["labels"]["interval_95"][0])
    low, high = found["kappa"]["interval_95"]
    assert low < found["kappa"]["value"] < high


def test_grades(calibrated: Callable[..., Record]) -> None:
    """Grades are compared as they are, with squared weights."""
    labels, judged = [1, 2, 3, 4, 5, 3, 2, 4], [1, 2, 4, 4, 5, 3, 1, 5]
    given = [{"id": f"r{number}", "label": label} for number, label in enumerate(labels)]
    (found,) = calibrated(rows(judged), given)["results"]
    assert found["kappa"]["value"] == pytest.approx(metrics.cohen_kappa_score(labels, judged, weights="quadratic"))
    assert (found["threshold"], found["accuracy"]["value"]) == (None, 5 / 8)
    assert [each["class"] for each in found["classes"]] == [1, 2, 3, 4, 5]


def test_shares_against_verdicts(calibrated: Callable[..., Record]) -> None:
    """A share counts as 1 from the threshold on."""
    given = [{"id": f"r{number}", "label": label} for number, label in enumerate([0, 0, 1, 1])]
    judged = rows([0.2, 0.6, 0.7, 1])
    assert calibrated(judged, given)["results"][0]["accuracy"]["value"] == 0.75
    assert calibrated(judged, given, "--threshold", "0.65")["results"][0]["accuracy"]["value"] == 1


@pytest.mark.parametrize(
    "labels",
    [
        [{"id": f"r{n}", "a": a, "b": b, "c": c} for n, (a, b, c) in enumerate([(1, 1, None), (0, 1, 0), (1, 0, None), (0, 0, 1), (None, 1, "")])],
        [{"id": f"r{n}", "a": ratings} for n, ratings in enumerate([[1, 1], ["no", "yes", "no"], [True, False], [0, 0, 1], [1]])],
        [{"id": f"r{n}", "a": rating} for n, rating in [(0, 1), (0, 1), (1, 0), (1, 1), (1, 0), (2, 1), (2, 0), (3, 0), (3, 0), (3, 1), (4, 1)]],
    ],
    ids=["fields", "lists", "rows"],
)  # fmt: skip
def test_several_raters(calibrated: Callable[..., Record], labels: list[Record]) -> None:
    """Ratings in several fields, in lists or in several rows: the majority is the label, a tie is none."""
    options = [word for name in "abc" for word in ("--label-field", name)]
    found = calibrated(rows([1, 0, 1, 1, 0]), labels, *options)
    assert (found["labels"], found["ties"]) == (5, 1)
    (block,) = found["results"]
    assert [(cell["label"], cell["verdict"], cell["n"]) for cell in block["confusion"]] == [(0, 0, 1), (0, 1, 1), (1, 0, 1), (1, 1, 1)]  # fmt: skip
    counts = [[0, 2], [2, 1], [1, 1], [2, 1]]  # raters who said 0 and 1
    alpha = krippendorff.alpha(value_counts=np.array(counts), level_of_measurement="nominal")
    assert block["raters"]["records"] == 4
    assert block["raters"]["alpha"]["value"] == pytest.approx(alpha)


def test_judges_are_ranked(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Several results side by side, the best first; labels may be a table in CSV, of records under another id."""
    labels = [1, 0, 1, 0, 1, 0, 1, 0]
    write_log(rows([1, 1, 1, 0, 1, 0, 0, 0]), "worse.jsonl")
    write_log([*rows([1, 0, 1, 0, 1, 0, 1, None]), row(3, 1, evaluator="other")], "better.jsonl")
    Path("labels.csv").write_text("key,human\n" + "".join(f"r{n},{label}\n" for n, label in enumerate(labels)))
    options = ["--labels", "labels.csv", "--label-field", "human", "--id-field", "key", "-e", "e"]
    done = ctxrel("calibrate", "worse.jsonl", "better.jsonl", *options)
    assert done.returncode == 0
    assert [line.split()[:5] for line in done.stdout.splitlines()[1:3]] == [
        ["better.jsonl", "e", "m-1", "7", "1.000"], ["worse.jsonl", "e", "m-1", "8", "0.750"],
    ]  # fmt: skip
    assert "better.jsonl: e; 1 labelled records could not be judged" in done.stdout
    assert "corrected (weight 0.00)" in done.stdout


def test_records_without_ids(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A record without an id has its position for one, in results and in labels; a log can hold the labels itself."""
    log = write_log(
        [
            {"question": f"Is {n} one?", "contexts": [f"{n} is one." if n % 2 else "Bread."], "label": n % 2}
            for n in range(8)
        ]
    )
    ctxrel("run", log, "-m", "offline")
    (found,) = json.loads(ctxrel("calibrate", "log.ctxrel", "--labels", log, "--json").stdout)["results"]
    assert found["labelled"] == 8
    assert found["accuracy"]["value"] == 1


@pytest.mark.parametrize(
    ("labels", "options", "said"),
    [
        ([{"id": "r0", "human": 1}], [], "labels.jsonl: no record has a label under 'label'; name the field with --label-field; there are id, human"),
        ([{"id": "r0", "label": "maybe"}], [], "labels.jsonl:1: the label is 'maybe'; write 1 or 0, true or false, yes or no, or a grade"),
        ([{"id": "x", "label": 1}], [], "no id of the labels is the id of a judged record in 'rows.jsonl'; ids have to agree, --id-field names where they stand in the labels"),
        ([{"id": "r0", "label": 1}], ["-e", "f"], "'rows.jsonl' holds no rows of f"),
        ([{"id": "r0", "label": 1}], ["--threshold", "nan"], "--threshold nan: write a number"),
        ([{"id": "r0", "label": 1}], [], "scores of e go up to 5 and labels are 0 and 1; say from which score on it is a 1 with --threshold"),
        ([{"id": "r0", "label": 3}], ["--threshold", "1"], "--threshold 1 is for labels that are 0 and 1; these are grades"),
    ],
    ids=["no field", "no label", "other ids", "no evaluator", "nan", "other scale", "grades"],
)  # fmt: skip
def test_what_cannot_be_calibrated(
    ctxrel: RunCommand, write_log: WriteLog, labels: list[Record], options: list[str], said: str
) -> None:
    """What cannot be meant is told in a sentence."""
    write_log(rows([1, 5]), "rows.jsonl")
    write_log(labels, "labels.jsonl")
    done = ctxrel("calibrate", "rows.jsonl", "--labels", "labels.jsonl", *options)
    assert (done.returncode, done.stderr) == (2, f"ctxrel: {said}\n")
