"""Gates: what a run has to reach, on its own and afterwards, and the reports that tell of it."""

import json
import stat
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand, read_summary
from junitparser import Error, Failure, JUnitXml, Skipped
from prometheus_client.parser import text_string_to_metric_families
from servers.loopback import MODEL, LoopbackServer, cite, completion, error

from ctxrel.cli.reports.junit import junit_xml
from ctxrel.cli.reports.markdown import markdown_summary
from ctxrel.cli.reports.metrics import prometheus_text, total_cost
from ctxrel.cli.runs.gates import GateOn, Gates, parse_allowance, parse_threshold
from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.errors import UsageError

WriteLog = Callable[..., Path]
GOOD = {"question": "Which colour has the sky?", "contexts": ["The colour of the sky is blue."]}
BAD = {"question": "Which colour has the sky?", "contexts": ["Bread needs flour and water."]}
BROKEN = {"question": "Which colour has the sky?", "contexts": 5}


@pytest.fixture
def log(write_log: WriteLog) -> Path:
    """Three records of four are judged relevant by the offline judge."""
    records = [{**record, "id": f"r{number}"} for number, record in enumerate([GOOD, GOOD, BAD, GOOD])]
    return write_log([{**record, "question": f"{record['question']} {record['id']}"} for record in records])


def test_without_gates(ctxrel: RunCommand, log: Path) -> None:
    """A run that has no errors meets the one gate there is."""
    done = ctxrel("run", log, "-m", "offline")
    assert done.returncode == 0
    (gate,) = read_summary(Path("log.ctxrel"))["gates"]
    assert (gate["gate"], gate["met"]) == ("--max-errors 5%", True)


@pytest.mark.parametrize(
    ("options", "broken"),
    [
        (["--fail-under", "0.75"], []),
        (["--fail-under", "0.8"], ["the score of context_relevance is 0.75, below --fail-under 0.8"]),
        (["--fail-under", "context_relevance=0.7", "--fail-under", "context_relevance.mrr=0.7"], []),
        (
            ["--fail-under", "context_relevance=0.9", "--fail-under", "context_relevance.mrr=0.8"],
            [
                "the score of context_relevance is 0.75, below --fail-under context_relevance=0.9",
                "the mrr of context_relevance is 0.75, below --fail-under context_relevance.mrr=0.8",
            ],
        ),
        (["--fail-under", "context_relevance.n=5"], ["the n of context_relevance is 4, below --fail-under context_relevance.n=5"]),
        (["--fail-under", "0.3", "--gate-on", "lower-bound"], []),
        (
            ["--fail-under", "0.7", "--gate-on", "lower-bound"],
            ["the lower bound of the score of context_relevance is 0.300642, below --fail-under 0.7"],
        ),
    ],
)  # fmt: skip
def test_fail_under(ctxrel: RunCommand, log: Path, options: list[str], broken: list[str]) -> None:
    """A gate that is not met is exit 3 and a line; the results are complete. Asked afterwards it is the same."""
    done = ctxrel("run", log, "-m", "offline", *options)
    told = [line.removeprefix("ctxrel: ") for line in done.stderr.splitlines() if line.startswith("ctxrel: ")]
    assert (done.returncode, told) == (3 if broken else 0, broken)
    summary = read_summary(Path("log.ctxrel"))
    assert (summary["status"], summary["results"]) == ("complete", "results.jsonl")
    assert [gate["message"] for gate in summary["gates"] if not gate["met"]] == broken
    for given in ("log.ctxrel", "log.ctxrel/summary.json"):
        again = ctxrel("check", given, *options)
        assert again.returncode == done.returncode
        assert again.stderr.splitlines() == [f"ctxrel: {line}" for line in broken]


def test_gates_of_a_run_that_is_there(ctxrel: RunCommand, log: Path) -> None:
    """Another gate asks nothing anew and judges the results that stand."""
    ctxrel("run", log, "-m", "offline")
    done = ctxrel("run", log, "-m", "offline", "--fail-under", "0.8")
    assert done.returncode == 3
    assert "nothing has changed" in done.stderr
    assert ctxrel("run", log, "-m", "offline").returncode == 0


def test_every_evaluator_has_to_reach_a_bare_number(ctxrel: RunCommand, log: Path) -> None:
    """A number without a name is for every evaluator of the run."""
    both = ["-e", "context_relevance", "-e", "context_relevance_graded"]
    done = ctxrel("run", log, "-m", "offline", *both, "--fail-under", "0.8", "--fail-under", "context_relevance=0.5")
    assert [(gate["evaluator"], gate["gate"], gate["met"]) for gate in read_summary(Path("log.ctxrel"))["gates"]] == [
        ("context_relevance", "--fail-under 0.8", False),
        ("context_relevance", "--fail-under context_relevance=0.5", True),
        ("context_relevance", "--max-errors 5%", True),
        ("context_relevance_graded", "--fail-under 0.8", False),
        ("context_relevance_graded", "--max-errors 5%", True),
    ]
    assert done.returncode == 3


@pytest.mark.parametrize(
    ("options", "code"),
    [([], 3), (["--max-errors", "25%"], 0), (["--max-errors", "24.9%"], 3), (["--max-errors", "1"], 0), (["--max-errors", "0"], 3)],
)  # fmt: skip
def test_max_errors(ctxrel: RunCommand, write_log: WriteLog, options: list[str], code: int) -> None:
    """More errors than are allowed, 5 % unless it is said, are exit 3 with their kinds."""
    done = ctxrel("run", write_log([GOOD, GOOD, BROKEN, GOOD]), "-m", "offline", *options)
    assert done.returncode == code
    said = "1 of 4 rows of context_relevance are errors (25 %: 1 bad_input), more than --max-errors"
    assert (said in done.stderr) is (code == 3)


@pytest.mark.parametrize(
    ("options", "said"),
    [
        (["--fail-under", "high"], "--fail-under 'high' is no threshold; write 0.8, context_relevance=0.8 or"),
        (["--fail-under", "nan"], "--fail-under 'nan' is no threshold"),
        (["--fail-under", "context_relevance=x=1"], "is no threshold"),
        (["--fail-under", "80"], "--fail-under 80: scores of context_relevance are from 0 to 1"),
        (["--fail-under", "context_relevence=0.8"], "there is no evaluator 'context_relevence'; did you mean 'context_relevance'?"),
        (["--fail-under", "context_relevance.mmr=0.8"], "context_relevance has no figure 'mmr'; did you mean 'mrr'?"),
        (["--max-errors", "many"], "--max-errors 'many' is neither a share nor a count; write 2% or 100"),
        (["--max-errors", "200%"], "--max-errors '200%' is neither a share nor a count"),
        (["--max-errors", "-1"], "--max-errors '-1' is neither"),
        (["--markdown", "-"], "--markdown cannot be standard output; name a file"),
        (["--junit", "none/x.xml"], "--junit 'none/x.xml': the folder 'none' is not there"),
        (["--markdown", "."], "--markdown '.' is a folder; name a file"),
    ],
)  # fmt: skip
def test_wrong_options(ctxrel: RunCommand, log: Path, options: list[str], said: str) -> None:
    """What cannot be meant is refused before anything is judged."""
    done = ctxrel("run", log, "-m", "offline", *options)
    assert done.returncode == 2
    assert said in done.stderr
    assert not Path("log.ctxrel").exists()


@pytest.mark.parametrize("option", ["--junit", "--markdown", "--metrics-file"])
def test_reports_never_take_the_place_of_results(ctxrel: RunCommand, log: Path, option: str) -> None:
    """A log, rows and a summary are not written over."""
    ctxrel("run", log, "-m", "offline")
    for name in ("log.jsonl", "log.ctxrel/results.jsonl", "log.ctxrel/summary.json", "log.ctxrel/store.sqlite"):
        before = Path(name).read_bytes()
        done = ctxrel("check", "log.ctxrel", option, name)
        assert (done.returncode, Path(name).read_bytes()) == (2, before)
        assert f"{option} '{name}' is there, and by its name no report; name another file" in done.stderr


def test_evaluators_without_a_score() -> None:
    """A bare number does not fit a run in which nobody gives a score."""
    gates = Gates(fail_under=[parse_threshold("0.8")])
    with pytest.raises(UsageError, match="no evaluator of this run gives a score"):
        gates.check_names({"a": ["n", "coverage"]})
    assert Gates().describe() == {"fail_under": [], "gate_on": "score", "max_errors": "5%"}
    assert Gates(gate_on=GateOn.LOWER_BOUND, max_errors=parse_allowance(" 3 ")).max_errors.most == 3
    Gates(fail_under=[parse_threshold("0.8")]).check([load_evaluator("faithfulness")])


LOW_IS_GOOD = """
name: wrong
extends: context_relevance
better: lower
"""


def test_low_scores_that_are_good(ctxrel: RunCommand, log: Path) -> None:
    """A bare number leaves alone whoever has low scores for good ones; its name holds it to the number all the same."""
    Path("wrong.yaml").write_text(LOW_IS_GOOD)
    run = ("run", log, "-m", "offline", "-e", "./wrong.yaml")
    done = ctxrel(*run, "--fail-under", "0.8")
    assert done.returncode == 2
    assert (
        "--fail-under 0.8: low scores of wrong are the good ones; to hold it to this all the same write wrong=0.8"
        in done.stderr
    )
    assert ctxrel(*run, "--fail-under", "wrong=0.8").returncode == 3
    both = ctxrel(*run, "-e", "context_relevance", "--fail-under", "0.8")
    assert [line for line in both.stderr.splitlines() if "below" in line] == [
        "ctxrel: the score of context_relevance is 0.75, below --fail-under 0.8"
    ]
    assert read_summary(Path("log.ctxrel"))["evaluators"]["wrong"]["better"] == "lower"
    assert ctxrel("check", "log.ctxrel", "--fail-under", "0.7").returncode == 0


def test_a_direction_asks_nothing(ctxrel: RunCommand, log: Path) -> None:
    """Which scores are the good ones is no part of what is asked, nor of the prompt's hash."""
    ctxrel("run", log, "-m", "offline")
    before = read_summary(Path("log.ctxrel"))
    Path("context_relevance.yaml").write_text("extends: context_relevance\nbetter: lower\n")
    ctxrel("run", log, "-m", "offline", "-e", "./context_relevance.yaml")
    after = read_summary(Path("log.ctxrel"))
    assert after["requests"]["sent"] == 0
    blocks = [summary["evaluators"]["context_relevance"] for summary in (before, after)]
    assert [block["prompt"] for block in blocks] == [before["evaluators"]["context_relevance"]["prompt"]] * 2
    assert [block["better"] for block in blocks] == ["higher", "lower"]


def test_check_tells_in_json(ctxrel: RunCommand, log: Path) -> None:
    """One object on standard output, and nothing else."""
    ctxrel("run", log, "-m", "offline")
    done = ctxrel("check", "log.ctxrel", "--fail-under", "0.8", "--json")
    found = json.loads(done.stdout)
    assert (done.returncode, found["met"], found["status"]) == (3, False, "complete")
    assert [gate["met"] for gate in found["gates"]] == [False, True]


def write_summary(**parts: object) -> None:
    """A summary that somebody has meddled with."""
    names = ("evaluators", "judge", "input", "requests", "tokens", "timings", "configuration")
    whole = {name: dict[str, str]() for name in names} | {"timings": {"started": "", "ended": "", "seconds": 0}}
    Path("run/summary.json").write_text(json.dumps({"status": "complete", **whole, "judge": {"model": "m"}, **parts}))


@pytest.mark.parametrize(
    ("make", "said"),
    [
        (lambda: None, "no file 'run/summary.json'; a run without one was killed"),
        (lambda: Path("run/summary.json").write_text("{"), "'run/summary.json' is no summary of a run: "),
        (lambda: Path("run/summary.json").write_text("[]"), "'run/summary.json' is no summary of a run; "),
        (lambda: write_summary(evaluators=[]), "'run/summary.json' is no summary of a run; "),
        (lambda: write_summary(evaluators={"e": {"score": 1}}), "'run/summary.json' is no summary of a run; "),
        (lambda: write_summary(timings={}), "'run/summary.json' is no summary of a run; "),
    ],
    ids=["none", "broken", "another", "no evaluators", "half an evaluator", "no times"],
)
def test_nothing_to_check(ctxrel: RunCommand, make: Callable[[], object], said: str) -> None:
    """A folder without a summary, or with something else, is told so."""
    Path("run").mkdir()
    make()
    done = ctxrel("check", "run")
    assert done.returncode == 2
    assert said in done.stderr


def metrics(path: Path) -> dict[tuple[str, ...], float]:
    """The samples of a text file by metric and labels, the run's own label aside, as Prometheus reads them."""
    return {
        (sample.name, *(value for name, value in sorted(sample.labels.items()) if name != "run")): sample.value
        for family in text_string_to_metric_families(path.read_text())
        for sample in family.samples
    }


def test_reports(ctxrel: RunCommand, log: Path) -> None:
    """JUnit, Markdown and metrics are read by the tools that they are for, and others may read the files."""
    options = ["--fail-under", "0.8", "--junit", "j.xml", "--markdown", "s.md", "--metrics-file", "c.prom"]
    assert ctxrel("run", log, "-m", "offline", *options).returncode == 3
    (suite,) = JUnitXml.fromfile("j.xml")
    assert (suite.name, suite.tests, suite.failures, suite.errors, suite.skipped) == ("ctxrel", 3, 1, 0, 0)
    results = {(case.classname, case.name): [type(result) for result in case.result] for case in suite}
    assert results == {
        ("ctxrel", "run"): [],
        ("ctxrel.context_relevance", "--fail-under 0.8"): [Failure],
        ("ctxrel.context_relevance", "--max-errors 5%"): [],
    }
    found = metrics(Path("c.prom"))
    assert found["ctxrel_score", "context_relevance", "offline"] == 0.75
    assert found["ctxrel_figure", "context_relevance", "mrr", "offline"] == 0.75
    assert found["ctxrel_run_status", "complete"] == 1
    assert found["ctxrel_run_status", "failed"] == 0
    assert found["ctxrel_gate_met", "context_relevance", "--fail-under 0.8", "offline"] == 0
    assert "| context\\_relevance | 0.750 | 0.301 to 0.954 | 4 | none |" in Path("s.md").read_text()
    assert "**not met**" in Path("s.md").read_text()
    assert not list(Path().glob("*.part"))
    assert Path("c.prom").stat().st_mode & stat.S_IRGRP
    text = [Path(name).read_text() for name in ("j.xml", "s.md", "c.prom")]
    ctxrel("check", "log.ctxrel", *options)
    assert [Path(name).read_text() for name in ("j.xml", "s.md", "c.prom")] == text


def test_reports_of_a_run_that_failed(ctxrel: RunCommand, server: LoopbackServer, log: Path) -> None:
    """A run that ends early writes its reports too: its gates are not told, its status is."""
    server.script = lambda seen: error(401, "no") if "r2" in str(seen.record) else cite(1)
    options = ["-c", "1", "--fail-under", "0.1", "--junit", "j.xml", "--markdown", "s.md", "--metrics-file", "c.prom"]
    done = ctxrel("run", log, "-m", MODEL, "--base-url", server.url, *options)
    assert done.returncode == 1
    found = metrics(Path("c.prom"))
    assert (found["ctxrel_run_status", "complete"], found["ctxrel_run_status", "failed"]) == (0, 1)
    assert not [name for name, *_ in found if name == "ctxrel_gate_met"]
    (suite,) = JUnitXml.fromfile("j.xml")
    kinds = [type(result) for case in suite for result in case.result]
    assert kinds == [Error, Skipped, Skipped]
    assert "ctxrel: failed" in Path("s.md").read_text()
    again = ctxrel("check", "log.ctxrel")
    assert again.returncode == 3
    assert "the run in 'log.ctxrel' is not complete but failed" in again.stderr


def test_error_rows_in_metrics(ctxrel: RunCommand, server: LoopbackServer, log: Path) -> None:
    """Error rows are counted by kind, and tokens by theirs."""
    server.script = lambda seen: completion(None, refusal="no") if "r2" in str(seen.record) else cite(1)
    done = ctxrel("run", log, "-m", MODEL, "--base-url", server.url, "--metrics-file", "c.prom", "--max-errors", "1")
    assert done.returncode == 0
    found = metrics(Path("c.prom"))
    assert found["ctxrel_error_rows", "context_relevance", "refusal", MODEL] == 1
    assert found["ctxrel_coverage_ratio", "context_relevance", MODEL] == 0.75
    assert found["ctxrel_tokens", "input", MODEL] > 0


def summary_with(**changes: Any) -> Record:  # noqa: ANN401  # values of a summary
    """A summary as reports need it."""
    gate = {"gate": "--fail-under \x00<1>", "evaluator": "e", "figure": "score", "threshold": 1, "value": 0.5, "met": False, "message": "a | b"}  # fmt: skip
    block: Record = {"prompt": "e@1", "score": None, "n": 0, "evaluated": 0, "errors": {}, "coverage": None, "interval_95": None, "figures": {"x_counts": {}}}  # fmt: skip
    timings = {"started": "2026-01-01T00:00:00+00:00", "ended": "2026-01-01T00:00:01+00:00", "seconds": 1.0}
    counts = {"records": 3, "population": 9}
    requests = {"sent": 1, "reused": 0, "not_needed": 0}
    judge = {"model": 'a"b\\c\nd', "description": "a *judge*"}
    return {
        "version": "1", "status": "complete", "error": None, "gates": [gate], "evaluators": {"e": block},
        "timings": timings, "input": counts, "requests": requests, "judge": judge, "tokens": {}, "cost": None,
        "configuration": {"output": None, "inputs": ["-"]}, **changes,
    }  # fmt: skip


def test_odd_names_in_reports() -> None:
    """What XML cannot hold is replaced, what has a meaning in Markdown or in labels is escaped."""
    summary = summary_with()
    (suite,) = JUnitXml.fromstring(junit_xml(summary).encode())
    assert [case.name for case in suite] == ["run", "--fail-under \ufffd<1>"]
    assert "| a \\| b |" in markdown_summary(summary)
    assert "3 of 9 records, judged by a \\*judge\\*." in markdown_summary(summary)
    families = list(text_string_to_metric_families(prometheus_text(summary)))
    models = {sample.labels["model"] for family in families for sample in family.samples if "model" in sample.labels}
    assert models == {'a"b\\c\nd'}


def test_stability_in_reports() -> None:
    """What further opinions come to is a line of Markdown and a metric for each figure."""
    summary = summary_with()
    share = {"share": 0.5, "interval_95": [0.1, 0.9], "n": 4}
    summary["evaluators"]["e"]["stability"] = {
        "opinions": 4,
        "errors": {},
        "repeats": {"repeat": 2, "agreement": 0.5, "unanimous": share, "ties": 2, "score_by_majority": None},
        "judges": {"model": "j|2", "asked": "always", "n": 4, "agreement": share, "kappa": 0.25, "score": 1.0},
        "order": None,
    }
    text = markdown_summary(summary)
    assert "- stability of e: self-agreement 50.0% over 2 answers" in text
    assert "agreement with j\\|2 50.0%, kappa 0.25 on 4 records" in text
    samples = [
        sample for family in text_string_to_metric_families(prometheus_text(summary)) for sample in family.samples
    ]
    found = {each.labels["figure"]: each.value for each in samples if each.name == "ctxrel_stability"}
    assert found == {
        "repeats.agreement": 0.5, "repeats.unanimous": 0.5,
        "judges.agreement": 0.5, "judges.kappa": 0.25, "judges.score": 1.0,
    }  # fmt: skip


@pytest.mark.parametrize(
    ("cost", "total"), [(None, None), (0.25, 0.25), ({"total": 0.5, "currency": "USD"}, 0.5), ({"total": None}, None)]
)
def test_cost(cost: object, total: float | None) -> None:
    """What a run cost, where that is known."""
    summary = summary_with(cost=cost)
    assert total_cost(summary) == total
    assert ("ctxrel_cost_usd" in prometheus_text(summary)) is (total is not None)
