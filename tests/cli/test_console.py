"""What a person, a log file and a program see of a run that goes on."""

import json
from collections.abc import Callable
from pathlib import Path

import pytest
from servers.loopback import MODEL, Answer, LoopbackServer, judge_by_hash

from ctxrel.cli.console import ProgressKind, Reporter, progress_json, progress_line
from ctxrel.cli.records import Fields
from ctxrel.cli.runs.job import carry_out
from ctxrel.cli.runs.plan import RunOptions, plan_run
from ctxrel.cli.runs.runner import Course
from ctxrel.cli.runs.tally import Tally
from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.costs.budget import Budget
from ctxrel.evaluators.costs.price import Price
from ctxrel.evaluators.costs.tariff import Tariff
from ctxrel.evaluators.judges.asking import Asker
from ctxrel.evaluators.judges.offline import OfflineJudge
from ctxrel.evaluators.replies import Reply, Usage


def course(**facts: float | None) -> Course:
    return Course(tallies={"e": Tally(load_evaluator("context_relevance"))}, **facts)  # type: ignore[arg-type]


async def test_progress_line() -> None:
    """Rate, failures, tokens, cost, share and time left; what is unknown is left out."""
    price = Price(input=1, output=1, cached_input=1)
    asker = Asker(OfflineJudge(), budget=Budget(Tariff(lambda _: price, "m")))
    assert progress_line(course(), asker, 0.0) == "0 rows, 0.0/s"
    assert progress_line(course(rows=1200), asker, 60) == "1,200 rows, 20.0/s"
    asker.usage = Usage(5000, 7)
    asker.budget.pay(Reply(text="{}", finish_reason="stop", model="m", usage=asker.usage))
    half = course(rows=1200, fraction=0.25)
    half.tallies["e"].errors["timeout"] = 3
    assert progress_line(half, asker, 60) == "1,200 rows, 20.0/s, 3 failed, 5,007 tokens, $0.0050, 25%, 3 min left"
    assert json.loads(progress_json(half, asker, 60)) == {
        "rows": 1200,
        "failed": 3,
        "sent": 0,
        "reused": 0,
        "tokens": {"input_tokens": 5000, "output_tokens": 7, "cached_tokens": 0, "reasoning_tokens": 0},
        "cost": 0.005007,
        "fraction": 0.25,
        "seconds": 60,
    }


@pytest.mark.parametrize("kind", [ProgressKind.PLAIN, ProgressKind.AUTO])
async def test_heartbeat(
    server: LoopbackServer,
    write_log: Callable[..., Path],
    capsys: pytest.CaptureFixture[str],
    kind: ProgressKind,
) -> None:
    """Where stderr is no terminal a line tells now and then how far the run is, without control codes."""
    server.script = lambda seen: Answer(body=judge_by_hash(seen).body, delay=0.1)
    reporter = Reporter(kind)
    assert reporter.interval == 30
    reporter.interval = 0.15
    records = [{"question": f"q{number}?", "contexts": ["a b"]} for number in range(5)]
    options = RunOptions(
        inputs=[str(write_log(records))],
        evaluators=["context_relevance"],
        model=MODEL,
        base_url=server.url,
        api_key_env="NONE",
        parameters={},
        concurrency=1,
        fields=Fields(),
        output=None,
        store=None,
        raise_on_failure=False,
        timeout=9,
        attempts=1,
        explain=False,
        max_input_tokens=None,
    )
    await carry_out(plan_run(options, reporter), reporter)
    told = capsys.readouterr().err
    beats = [line for line in told.splitlines() if " rows, " in line]
    assert len(beats) >= 2
    assert "\x1b" not in told
    assert "\r" not in told
