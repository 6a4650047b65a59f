"""The same run night after night."""

import json
from pathlib import Path

import pytest
from conftest import Record, RunCommand


@pytest.fixture
def nights() -> None:
    """Ten nights, the last of them bad and with another model; one that was interrupted between them."""
    scores = [0.80, 0.82, 0.79, 0.81, 0.80, 0.83, 0.80, 0.81, 0.79, 0.60]
    for number, score in enumerate(scores):
        write_night(number, score, model="m-2" if number == 9 else "m-1")
    write_night(20, 0.1, started="2026-01-05T12:00:00+00:00", status="interrupted")


def write_night(
    number: int, score: float | None, *, model: str = "m-1", status: str = "complete", started: str = ""
) -> None:
    block: Record = {
        "score": score,
        "interval_95": None,
        "evaluated": 100,
        "n": 100,
        "prompt": "e@1",
        "errors": {},
        "figures": {},
    }
    summary = {
        "status": status, "evaluators": {"e": block}, "judge": {"model": model, "models": {model: 100}}, "input": {},
        "requests": {}, "tokens": {}, "configuration": {},
        "timings": {"started": started or f"2026-01-{number + 1:02d}T02:00:00+00:00"},
    }  # fmt: skip
    Path(f"night-{number}").mkdir()
    Path(f"night-{number}/summary.json").write_text(json.dumps(summary))


@pytest.mark.usefixtures("nights")
def test_band(ctxrel: RunCommand) -> None:
    """The band is that of the complete nights, in the order of time, and names those that fall out of it."""
    found = json.loads(ctxrel("trend", "night-*/summary.json", "--json").stdout)["evaluators"]["e"]
    # By hand: mean 0.785; moving ranges 0.02 0.03 0.02 0.01 0.03 0.03 0.01 0.02 0.19, their mean 0.04.
    assert found["band"] == pytest.approx({"low": 0.785 - 0.12 / 1.128, "centre": 0.785, "high": 0.785 + 0.12 / 1.128})
    assert [night["summary"] for night in found["nights"] if night["outside"]] == ["night-9/summary.json"]
    assert [night["side"] for night in found["nights"] if night["outside"]] == ["worse"]
    assert [night["started"] for night in found["nights"]] == sorted(night["started"] for night in found["nights"])
    assert [night["counts"] for night in found["nights"]] == [True] * 5 + [False] + [True] * 5
    assert found["nights"][-1]["changed"] == ["model", "models"]


@pytest.mark.usefixtures("nights")
def test_chart(ctxrel: RunCommand) -> None:
    """A table with a line for each night, whether folders are named or a glob."""
    done = ctxrel("trend", *(f"night-{number}" for number in (3, 2, 1, 9)), "night-20")
    assert done.stdout == (
        "e\n"
        "started           score  95 % interval  evaluated\n"
        "2026-01-02 02:00  0.820  -              100                           |         :  o      |\n"
        "2026-01-03 02:00  0.790  -              100                           |         :o        |\n"
        "2026-01-04 02:00  0.810  -              100                           |         : o       |\n"
        "2026-01-05 12:00  0.100  -              100        o                  |         :         |  interrupted, not counted\n"
        "2026-01-10 02:00  0.600  -              100                           |  o      :         |  other model\n"
        "band of chance: 0.525 to 0.985 around 0.755; none of 5 outside\n"
    )


def test_few_nights(ctxrel: RunCommand) -> None:
    """Two nights have no band; a night without a score is no point."""
    write_night(0, 0.5)
    write_night(1, None)
    write_night(2, 0.5)
    done = ctxrel("trend", "night-0", "night-1", "night-2")
    assert "no band of chance: it takes 3 complete runs" in done.stdout
    assert "no score" in done.stdout


@pytest.mark.parametrize(
    ("arguments", "said"),
    [
        (["nights/*"], "no file 'nights/*'; name folders of runs or their summaries, as 'runs/*/summary.json'"),
        (["night-0", "-e", "f"], "no summary has a block of f; known are e"),
    ],
)
def test_nothing_to_show(ctxrel: RunCommand, arguments: list[str], said: str) -> None:
    """What matches nothing is told."""
    write_night(0, 0.5)
    done = ctxrel("trend", *arguments)
    assert (done.returncode, done.stderr) == (2, f"ctxrel: {said}\n")


@pytest.mark.usefixtures("nights")
def test_each_run_once(ctxrel: RunCommand) -> None:
    """A run that is named by its folder and by its summary is one night."""
    done = ctxrel("trend", "night-1", "night-*/summary.json", "./night-1/", "--json")
    assert len(json.loads(done.stdout)["evaluators"]["e"]["nights"]) == 11
