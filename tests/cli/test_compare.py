"""Two runs over the same records."""

import json
from collections.abc import Callable
from pathlib import Path
from random import Random
from statistics import fmean

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import Record, RunCommand
from judged import row, rows, write_parts
from scipy import stats

WriteLog = Callable[..., Path]


@pytest.fixture
def compared(ctxrel: RunCommand, write_log: WriteLog) -> Callable[..., Record]:
    """Compare two lists of rows and read what is told in JSON."""

    def compare(before: list[Record], after: list[Record], *options: str, code: int = 0) -> Record:
        paths = write_log(before, "a.jsonl"), write_log(after, "b.jsonl")
        done = ctxrel("compare", *(path.name for path in paths), "--json", *options)
        assert done.returncode == code, done.stderr
        found: Record = json.loads(done.stdout)["comparisons"][0]
        return found

    return compare


def test_difference(compared: Callable[..., Record]) -> None:
    """Scores in both, the difference with its interval, McNemar's test, and what changed in which direction."""
    random = Random(4)
    before = [float(random.random() < 0.5) for _ in range(200)]
    after = [float(value or random.random() < 0.2) if random.random() < 0.95 else 0.0 for value in before]
    found = compared(rows(before), rows(after))["evaluators"]["e"]
    up = sum(one < other for one, other in zip(before, after, strict=True))
    down = sum(one > other for one, other in zip(before, after, strict=True))
    assert (found["joined"], found["up"], found["down"]) == (200, up, down)
    assert found["score"] == pytest.approx({"before": fmean(before), "after": fmean(after)})
    assert found["difference"] == pytest.approx((up - down) / 200)
    assert found["mcnemar_p"] == pytest.approx(stats.binomtest(up, up + down).pvalue)
    half = 1.96 * stats.sem([other - one for one, other in zip(before, after, strict=True)])
    assert found["interval_95"] == pytest.approx([found["difference"] - half, found["difference"] + half], abs=0.01)
    assert found["interval_method"] == "bootstrap"
    assert found["changed"][0].keys() == {"results", "evaluator", "id", "change", "before", "after", "question"}


def test_joined_by_id(compared: Callable[..., Record]) -> None:
    """The order of rows does not count; what failed or is missing on one side is told and in no mean."""
    before = rows([1, 1, 0, None, 1])
    after = [row(9, 1), *reversed(rows([0, 1, None, 1]))]
    found = compared(before, after)["evaluators"]["e"]
    assert (found["joined"], found["only_before"], found["only_after"]) == (2, 1, 1)
    assert found["score"] == {"before": 1, "after": 0.5}
    assert [(each["id"], each["change"], each["question"]) for each in found["changed"]] == [
        ("r0", "down", "What is 0?")
    ]
    assert found["before"] == {
        "rows": 5, "errors": {"timeout": 1}, "error_rate": 0.2, "tokens": 60, "prompts": ["e@1"], "models": ["m-1"],
    }  # fmt: skip
    assert found["after"]["error_rate"] == 0.2


def test_ids_that_repeat(compared: Callable[..., Record]) -> None:
    """Rows of one id are joined in their order and counted as a cluster, for which McNemar's test says nothing."""
    random = Random(6)
    before = [row(number // 4, 0.0) for number in range(400)]
    changed = [random.random() < 0.5 for _ in range(100)]
    after = [row(number // 4, float(changed[number // 4])) for number in range(400)]
    found = compared(before, after)["evaluators"]["e"]
    assert (found["joined"], found["clusters"], found["mcnemar_p"]) == (400, 100, None)
    low, high = found["interval_95"]
    assert high - low == pytest.approx(2 * 1.96 * 0.05, abs=0.02)


def test_questions_that_repeat(compared: Callable[..., Record]) -> None:
    """The same question under several ids is a cluster as well."""
    before, after = rows([0.0] * 40, question="Again?"), rows([1.0, 0.0] * 20, question="Again?")
    found = compared(before, after)["evaluators"]["e"]
    assert (found["clusters"], found["interval_95"], found["verdict"]) == (1, None, "no clear difference")


def test_scores_that_are_no_verdicts(compared: Callable[..., Record]) -> None:
    """Of shares the bootstrap tells alone."""
    found = compared(rows([0.5] * 30), rows([0.25, 0.3, 0.35] * 10))["evaluators"]["e"]
    assert found["mcnemar_p"] is None
    assert (found["difference"], found["verdict"], found["regression"]) == (pytest.approx(-0.2), "lower", True)


@pytest.mark.parametrize(
    ("options", "code"),
    [
        ([], 0),
        (["--fail-on", "regression"], 3),
        (["--fail-on", "regression", "--lower-is-better", "e"], 0),
    ],
)
def test_fail_on_regression(ctxrel: RunCommand, write_log: WriteLog, options: list[str], code: int) -> None:
    """A score that is clearly worse is exit 3 and a line, if that is asked for."""
    write_log(rows([1] * 40), "a.jsonl")
    write_log(rows([1, 0] * 20), "b.jsonl")
    done = ctxrel("compare", "a.jsonl", "b.jsonl", *options)
    assert done.returncode == code
    assert ("ctxrel: e is lower in b.jsonl than in a.jsonl: -0.500 (" in done.stderr) is (code == 3)
    assert "e          40      1.000   0.500  -0.500" in done.stdout


def test_better_is_no_regression(compared: Callable[..., Record]) -> None:
    """A higher score fails only where a low one is good; no change at all never does."""
    before, after = rows([0, 1] * 20), rows([1] * 40)
    assert not compared(before, after, "--fail-on", "regression")["evaluators"]["e"]["regression"]
    low_is_good = ("--fail-on", "regression", "--lower-is-better", "e")
    assert compared(before, after, *low_is_good, code=3)["evaluators"]["e"]["regression"]
    same = compared(before, before, "--fail-on", "regression")["evaluators"]["e"]
    assert (same["verdict"], same["interval_method"], same["mcnemar_p"]) == ("no clear difference", "wilson", 1)
    assert same["interval_95"] == pytest.approx([-0.0876, 0.0876], abs=1e-3)


def test_rows_file(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """--rows writes every record that changed, of all comparisons; long questions are cut."""
    write_log(rows([0] * 30, question="why " * 50), "a.jsonl")
    write_log(rows([1] * 30, question="why " * 50), "b.jsonl")
    write_log(rows([0] * 29 + [1], question="why " * 50), "c.jsonl")
    done = ctxrel("compare", "a.jsonl", "b.jsonl", "c.jsonl", "--rows", "changed.jsonl")
    found = [json.loads(line) for line in Path("changed.jsonl").read_text().splitlines()]
    assert [each["results"] for each in found] == ["b.jsonl"] * 30 + ["c.jsonl"]
    assert {len(each["question"]) for each in found} == {100}
    assert "and 25 more; --rows FILE writes them all" in done.stdout


def test_warnings(compared: Callable[..., Record]) -> None:
    """Other prompts, models, questions and names are told."""
    after = rows([1, 0, 1], model="m-2", prompt="f@2", evaluator="f")
    after[0]["question"] = "Else?"
    assert compared(rows([1, 1, 1]), after)["warnings"] == [
        "the evaluators have different names: e and f",
        "f: the prompts differ: e@1 and f@2",
        "f: the models differ: m-1 and m-2",
        "f: 1 of 3 joined records have other questions",
    ]


def test_low_scores_that_are_good(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A higher score is the regression where the evaluator says that low ones are good."""
    Path("wrong.yaml").write_text("name: wrong\nextends: context_relevance\nbetter: lower\n")
    for name, context in (("a", "Bread needs flour and water."), ("b", "The colour of the sky is blue.")):
        log = write_log(
            [{"question": f"Which colour has the sky on day {n}?", "contexts": [context]} for n in range(30)]
        )
        ctxrel("run", log, "-m", "offline", "-e", "./wrong.yaml", "-o", name)
    assert ctxrel("compare", "a", "b", "--fail-on", "regression").returncode == 3
    assert ctxrel("compare", "b", "a", "--fail-on", "regression").returncode == 0


def test_folders(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Folders of runs: their summaries tell of other inputs and of runs that did not end."""
    records = [{"id": f"r{n}", "question": f"What is {n}?", "contexts": [f"{n} is a number."]} for n in range(10)]
    ctxrel("run", write_log(records), "-m", "offline", "-o", "a")
    records[3]["contexts"] = []
    ctxrel("run", write_log(records), "-m", "offline", "-o", "b")
    found = json.loads(ctxrel("compare", "a", "b", "--json").stdout)["comparisons"][0]
    assert found["warnings"] == ["the inputs differ: other records, contexts or answers, or another order"]
    assert found["cost"] == {"before": 0, "after": 0}
    assert json.loads(ctxrel("compare", "a/summary.json", "b", "--json").stdout)["comparisons"][0] == found
    summary = json.loads(Path("b/summary.json").read_text())
    Path("b/summary.json").write_text(
        json.dumps({**summary, "status": "interrupted", "cost": {**summary["cost"], "total": 0.5}})
    )
    again = json.loads(ctxrel("compare", "a", "b/results.jsonl", "--json").stdout)["comparisons"][0]
    assert again["warnings"][-1] == "the run in b/results.jsonl is interrupted, not complete"
    assert again["cost"]["after"] == 0.5


def test_parquet(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Rows in Parquet are the same rows."""
    write_log(rows([1, 0, None, 1]), "a.jsonl")
    pq.write_table(pa.Table.from_pylist(rows([1, 1, 0, 1])), "b.parquet")
    found = json.loads(ctxrel("compare", "a.jsonl", "b.parquet", "--json").stdout)["comparisons"][0]["evaluators"]["e"]
    assert (found["joined"], found["up"], found["after"]["tokens"]) == (3, 1, 48)


@pytest.mark.parametrize(
    ("before", "after", "said"),
    [
        (rows([1]), None, "no file 'b.jsonl'; name a run's folder or its results"),
        (rows([1]), [{"id": "x"}], "b.jsonl:1: no row of a run: it has no 'evaluator'"),
        (rows([1]), [row(0, 1, id="other")], "no record has a score in both 'a.jsonl' and 'b.jsonl'; ids have to agree"),
        (rows([1]), [{**row(0, 1), "score": "high"}], "b.jsonl:1: the score is 'high', which is no number"),
        ([*rows([1]), row(0, 1, evaluator="f")], rows([1], evaluator="g"), "'a.jsonl' and 'b.jsonl' have no evaluator in common: e, f; g"),
    ],
    ids=["no file", "no rows", "other ids", "odd score", "other evaluators"],
)  # fmt: skip
def test_what_cannot_be_compared(
    ctxrel: RunCommand, write_log: WriteLog, before: list[Record], after: list[Record] | None, said: str
) -> None:
    """What cannot be joined is told in a sentence."""
    write_log(before, "a.jsonl")
    if after:
        write_log(after, "b.jsonl")
    done = ctxrel("compare", "a.jsonl", "b.jsonl")
    assert (done.returncode, done.stderr) == (2, f"ctxrel: {said}\n")


def test_one_run_alone(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A comparison takes two; a name that is nowhere is met with the likely one."""
    write_log(rows([1, 0]), "a.jsonl")
    assert "name a second run" in ctxrel("compare", "a.jsonl").stderr
    done = ctxrel("compare", "a.jsonl", "a.jsonl", "--lower-is-better", "ee")
    assert done.stderr == "ctxrel: --lower-is-better ee: there is no such evaluator; did you mean 'e'?\n"
    Path("empty").mkdir()
    assert "the folder 'empty' holds no results.jsonl" in ctxrel("compare", "a.jsonl", "empty").stderr


def test_rows_of_a_run_on_ray(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """A run's folder whose rows are in several files, and these alone, are read in the order of the records."""
    before, after = rows([1, 0, 1, None, 0, 1], id="same"), rows([1, 1, 1, 0, 0, 1], id="same")
    write_parts(tmp_path / "results" / "results", after)
    write_log(before, "a.jsonl")
    for name in ("results", "results/results"):
        done = ctxrel("compare", "a.jsonl", name, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["comparisons"][0]["evaluators"]["e"]
        assert (found["joined"], found["up"], found["down"], found["only_after"]) == (5, 1, 0, 0)


def test_rows_of_a_run_on_ray_that_was_killed(ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """Files that the run has not named are no results yet, and it is said what to do."""
    write_log(rows([1]), "a.jsonl")
    (tmp_path / "b" / "results.part").mkdir(parents=True)
    (tmp_path / "b" / "results.part" / "0f.parquet.part").touch()
    done = ctxrel("compare", "a.jsonl", "b")
    assert done.returncode == 2
    assert "'b/results.part' holds rows of a run that was killed or still goes on; run the same" in done.stderr


def test_sample_by_a_field(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Scores that are not weighted as those of the summary are told to be so."""
    texts = {"en": "The colour of the sky is blue.", "ko": "Bread needs flour."}
    log = write_log(
        [
            {"id": f"r{n}", "question": f"Which colour has the sky {n}?", "contexts": [texts[lang]], "lang": lang}
            for n, lang in enumerate(["en"] * 90 + ["ko"] * 30)
        ]
    )
    Path("labels.csv").write_text("\ufeffid,label\n" + "".join(f"r{n},{int(n < 90)}\n" for n in range(120)))
    assert ctxrel("run", log, "-m", "offline", "--sample", "20", "--sample-by", "lang").returncode == 0
    said = "log.ctxrel is a sample by 'lang' (--sample-by): here every record counts the same"
    done = ctxrel("compare", "log.ctxrel", "log.ctxrel", "--json")
    assert json.loads(done.stdout)["comparisons"][0]["warnings"][0].startswith(said)
    done = ctxrel("calibrate", "log.ctxrel", "--labels", "labels.csv")
    assert f"note: {said}" in done.stderr


def test_rows_never_take_the_place_of_results(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Rows that are compared are not written over, and a comparison that fails leaves no file."""
    before = write_log(rows([1, 0]), "a.jsonl").read_bytes()
    write_log(rows([1, 1]), "b.jsonl")
    write_log([row(9, 1)], "c.jsonl")
    done = ctxrel("compare", "b.jsonl", "a.jsonl", "--rows", "a.jsonl")
    assert (done.returncode, Path("a.jsonl").read_bytes()) == (2, before)
    assert "--rows 'a.jsonl' holds the rows of a run; name another file" in done.stderr
    assert ctxrel("compare", "b.jsonl", "c.jsonl", "--rows", "changed.jsonl").returncode == 2
    assert not [*Path().glob("changed.jsonl*")]
    assert ctxrel("compare", "a.jsonl", "b.jsonl", "--rows", "changed.jsonl").returncode == 0
    assert Path("changed.jsonl").stat().st_mode & 0o077 == 0


TORN = "the last row in results.jsonl.part is cut off, and left out: the run has not ended"


@pytest.mark.parametrize("whole", [1, 3])
def test_rows_of_a_run_that_was_killed(ctxrel: RunCommand, write_log: WriteLog, whole: int) -> None:
    """A half-written last row is left out, and that is said, also where there is but one whole row before it."""
    text = write_log(rows([1, 0, 1, 1]), "a.jsonl").read_text()
    lines = text.splitlines(keepends=True)
    Path("killed").mkdir()
    Path("killed/results.jsonl.part").write_text("".join(lines[:whole]) + lines[whole][:-9])
    Path("labels.csv").write_text("id,label\n" + "".join(f"{row['id']},1\n" for row in rows([1] * 4)))
    for name in ("killed", "killed/results.jsonl.part"):
        done = ctxrel("compare", "a.jsonl", name, "--json")
        assert done.returncode == 0, done.stderr
        found = json.loads(done.stdout)["comparisons"][0]
        assert (found["evaluators"]["e"]["joined"], found["warnings"]) == (whole, [f"{name}: {TORN}"])
    done = ctxrel("calibrate", "killed", "--labels", "labels.csv", "--json")
    assert done.returncode == 0, done.stderr
    assert json.loads(done.stdout)["warnings"] == [f"killed: {TORN}"]


def test_results_that_are_cut_off(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """Where the run has ended, a last row that is not whole tells that rows are missing: nothing is computed."""
    text = write_log(rows([1, 0, 1]), "a.jsonl").read_text()
    Path("b.jsonl").write_text(text[:-9])
    Path("labels.csv").write_text("id,label\n0,1\n")
    for arguments in (["compare", "a.jsonl", "b.jsonl"], ["calibrate", "b.jsonl", "--labels", "labels.csv"]):
        done = ctxrel(*arguments)
        assert (done.returncode, done.stdout) == (2, "")
        assert done.stderr == (
            "ctxrel: b.jsonl:3: the last row is cut off, and others may be missing; "
            "run the same `ctxrel run` again, or copy the file once more\n"
        )
    Path("b.jsonl").write_text(text.rstrip("\n"))
    assert ctxrel("compare", "a.jsonl", "b.jsonl").returncode == 0


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["empty", "a.jsonl"], "'empty' holds no rows: nothing was judged"),
        (["a.jsonl", "empty"], "'a.jsonl' and 'empty' have no evaluator in common: e; none"),
    ],
)
def test_run_without_rows(ctxrel: RunCommand, write_log: WriteLog, arguments: list[str], said: str) -> None:
    """A run that failed before its first row is told to have none."""
    write_log(rows([1, 0]), "a.jsonl")
    Path("empty").mkdir()
    Path("empty/results.jsonl.part").touch()
    done = ctxrel("compare", *arguments)
    assert (done.returncode, done.stderr) == (2, f"ctxrel: {said}\n")


def test_markdown(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The page for a pull request holds figures, errors and notes, and no text of a record; it is there before the gate."""
    write_log(rows([1] * 20), "a.jsonl")
    write_log(rows([0] * 19 + [None], prompt="e@2"), "b.jsonl")
    options = ["--markdown", "page.md", "--fail-on", "regression"]
    assert ctxrel("compare", "a.jsonl", "b.jsonl", "a.jsonl", *options).returncode == 3
    text = Path("page.md").read_text(encoding="utf-8")
    assert (
        text
        == (
            "## ctxrel: a.jsonl → b.jsonl\n\n"
            "| evaluator | joined | before | after | difference | 95 % interval | up | down | p |  |\n"
            "| --- | --- | --- | --- | --- | --- | --- | --- | --- | --- |\n"
            "| e | 19 | 1.000 | 0.000 | -1.000 | -1.000 to -1.000 | 0 | 19 | \\<0.001 | lower |\n\n"
            "| evaluator |  | rows | errors | tokens |\n"
            "| --- | --- | --- | --- | --- |\n"
            "| e | before | 20 | none | 240 |\n"
            "| e | after | 20 | 1 timeout | 240 |\n\n"
            "- e: the prompts differ: e@1 and e@2\n\n"
            "## ctxrel: a.jsonl → a.jsonl\n\n"
        )
        + text[text.rindex("| evaluator | joined") :]
    )
    assert "What is" not in text
    assert (
        "is there, and by its name no report" in ctxrel("compare", "a.jsonl", "b.jsonl", "--markdown", "a.jsonl").stderr
    )
