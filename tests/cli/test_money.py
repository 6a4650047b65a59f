"""What a run costs: told in rows and summary, capped, and counted over all runs of an output."""

import contextlib
import json
import shutil
import signal
import sqlite3
import subprocess
import sys
import time
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand, read_rows, read_summary
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, cite

from ctxrel.cli.runs import pricing
from ctxrel.cli.runs.store import Store
from ctxrel.cli.runs.store_schema import VERSIONS
from ctxrel.evaluators.costs.budget import Caps
from ctxrel.evaluators.errors import UsageError
from ctxrel.evaluators.judges.endpoint import Endpoint
from ctxrel.evaluators.replies import Reply, Usage

WriteLog = Callable[..., Path]
PRICES = "127.0.0.1: {batch: 0.5, models: {judge-1: {input: 1, cached_input: 0.1, output: 10}}}\n"
EACH = 0.0001124
"""USD of the loopback endpoint's usual reply: 36 tokens in, 64 cached, 7 out."""


def records(count: int) -> list[Record]:
    return [
        {"id": n, "question": f"What is item {n}?", "contexts": [f"Item {n} is red.", "Else."]} for n in range(count)
    ]


@pytest.fixture
def command(server: LoopbackServer, tmp_path: Path) -> list[str | Path]:
    """`ctxrel run` with prices for the loopback endpoint."""
    path = tmp_path / "prices.yaml"
    path.write_text(PRICES)
    return ["run", tmp_path / "log.jsonl", "-m", MODEL, "--base-url", server.url, "--prices", path]


def costing(output: int, delay: float = 0.0) -> Callable[[Seen], Answer]:
    """A script whose replies have 100 tokens in and so many out."""

    def script(_: Seen) -> Answer:
        answer = cite(1)
        assert isinstance(answer.body, dict)
        answer.body["usage"] = {"prompt_tokens": 100, "completion_tokens": output}
        return Answer(body=answer.body, delay=delay)

    return script


def stored(path: Path) -> list[tuple[Any, ...]]:
    with contextlib.closing(sqlite3.connect(path)) as opened:
        return opened.execute("SELECT input_tokens, output_tokens, run FROM replies").fetchall()


def test_rows_and_summary(ctxrel: RunCommand, command: list[str | Path], write_log: WriteLog, tmp_path: Path) -> None:
    """Rows have the list price of their replies, whoever paid for them; the summary what this run paid and saved."""
    write_log([*records(2), {**records(1)[0], "id": "again"}, {"question": "Empty?", "contexts": []}])
    done = ctxrel(*command)
    assert done.returncode == 0, done.stderr
    rows = read_rows(tmp_path / "log.ctxrel")
    assert [row["cost"] for row in rows] == [EACH, EACH, EACH, 0]
    cost = read_summary(tmp_path / "log.ctxrel")["cost"]
    assert cost == {
        "currency": "USD", "total": 2 * EACH, "input": 0.000072, "cached_input": 0.0000128, "output": 0.00008,
        "reasoning": 0.00006, "unanswered": 0, "saved_by_store": EACH, "saved_by_caching": 0.0001152,
        "price": {
            "model": MODEL, "input": 1, "cached_input": 0.1, "cache_write": None, "output": 10, "batch": 0.5,
            "source": str(tmp_path / "prices.yaml"), "checked": None,
        },
    }  # fmt: skip
    assert (
        "cost: $0.00022 (input $0.000072, cached input $0.000013, output $0.000080, reasoning $0.000060); "
        "saved: $0.00011 by the store, $0.00012 by the provider's cache\n" in done.stderr
    )
    assert ctxrel(*command).returncode == 0
    cost = read_summary(tmp_path / "log.ctxrel")["cost"]
    assert (cost["total"], cost["saved_by_store"]) == (0, pytest.approx(3 * EACH))


def test_other_prices_make_other_rows(
    ctxrel: RunCommand, server: LoopbackServer, command: list[str | Path], write_log: WriteLog, tmp_path: Path
) -> None:
    """A finished run is written anew where prices have changed, and nothing is sent for it."""
    write_log(records(2))
    ctxrel(*command)
    (tmp_path / "prices.yaml").write_text(PRICES.replace("10", "20"))
    assert ctxrel(*command).returncode == 0
    assert [row["cost"] for row in read_rows(tmp_path / "log.ctxrel")] == [EACH + 0.00007] * 2
    assert read_summary(tmp_path / "log.ctxrel")["cost"]["saved_by_store"] == 2 * (EACH + 0.00007)
    assert len(server.seen) == 2


def test_unknown_price(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """A price that is not known is null and never 0; with --max-cost nothing is sent."""
    log = write_log(records(1))
    command = ["run", log, "-m", MODEL, "--base-url", server.url]
    capped = ctxrel(*command, "--max-cost", "1")
    assert (capped.returncode, capped.stderr) == (
        2,
        "ctxrel: no price of 'judge-1' at 127.0.0.1 is known, so --max-cost cannot hold; name a file by --prices with USD "
        'for a million tokens, as "127.0.0.1": {models: {judge-1: {input: 0, output: 0}}}, or use --max-tokens-total\n',
    )
    assert not server.seen
    assert not server.model_requests
    assert ctxrel(*command).returncode == 0
    assert read_rows(tmp_path / "log.ctxrel")[0]["cost"] is None
    assert read_summary(tmp_path / "log.ctxrel")["cost"] is None
    assert ctxrel(*command, "-o", "other", "--max-tokens-total", "1000").returncode == 0
    assert read_summary(Path("other"))["budget"] == {
        "max_cost": None, "max_tokens_total": 1000, "spent": None, "spent_tokens": 107,
    }  # fmt: skip
    again = ctxrel(*command, "-o", "other", "--max-tokens-total", "1000")
    assert "earlier runs have spent 107 tokens\n" in again.stderr


@pytest.mark.parametrize("version", [None, "0.2.3"], ids=["without the extra", "with it"])
def test_unknown_price_of_a_seller(version: str | None, monkeypatch: pytest.MonkeyPatch) -> None:
    """Where the extra could know more prices, and is not there, it is named."""
    monkeypatch.setattr(pricing, "extra_version", lambda: version)
    sold = Endpoint(model="no-such-model", base_url="https://api.openai.com/v1")
    with pytest.raises(UsageError, match=r"no price of 'no-such-model' at api\.openai\.com is known") as refused:
        pricing.tariff_for(sold, None, Caps(cost=1.0))
    assert ("pip install 'ctxrel[prices]'" in str(refused.value)) is (version is None)


def test_free(ctxrel: RunCommand, command: list[str | Path], write_log: WriteLog, tmp_path: Path) -> None:
    """What costs nothing is capped by nothing."""
    write_log(records(3))
    (tmp_path / "prices.yaml").write_text("127.0.0.1: {models: {judge-1: {input: 0, output: 0}}}")
    assert ctxrel(*command, "--max-cost", "0.000001").returncode == 0
    assert read_summary(tmp_path / "log.ctxrel")["cost"]["total"] == 0


@pytest.mark.parametrize("cap", [["--max-cost", "0.02"], ["--max-tokens-total", "2200"]], ids=["cost", "tokens"])
def test_cap(
    ctxrel: RunCommand,
    server: LoopbackServer,
    command: list[str | Path],
    write_log: WriteLog,
    tmp_path: Path,
    cap: list[str],
) -> None:
    """A run ends with 75 when the cap is reached, sends nothing more at the same cap, and goes on at a higher one."""
    write_log(records(40))
    server.script = costing(100)
    first = ctxrel(*command, *cap)
    option = cap[0]
    assert first.returncode == 75, first.stderr
    assert f"of {option} {cap[1]} are spent; run the same command with a higher {option} to go on\n" in first.stderr
    sent = len(server.seen)
    assert 11 <= sent <= 19
    summary = read_summary(tmp_path / "log.ctxrel")
    assert (summary["status"], summary["results"]) == ("budget", "results.jsonl.part")
    assert summary["budget"]["spent_tokens"] == 200 * sent
    assert summary["budget"]["spent"] == summary["cost"]["total"] == pytest.approx(0.0011 * sent)
    assert len(read_rows(tmp_path / "log.ctxrel", "results.jsonl.part")) == sent
    looked = len(server.model_requests)
    again = ctxrel(*command, *cap)
    assert again.returncode == 75
    assert (len(server.seen), len(server.model_requests)) == (sent, looked)
    assert read_summary(tmp_path / "log.ctxrel")["requests"]["sent"] == 0
    more = ctxrel(*command, option, "100000")
    assert more.returncode == 0, more.stderr
    assert len(server.seen) == 40
    assert read_summary(tmp_path / "log.ctxrel")["budget"]["spent_tokens"] == 8000
    (tmp_path / "log.ctxrel" / "summary.json").unlink()  # so that rows are made again
    assert ctxrel(*command, *cap).returncode == 0
    assert len(server.seen) == 40


def test_killed_run_counts(
    ctxrel: RunCommand, server: LoopbackServer, command: list[str | Path], write_log: WriteLog, tmp_path: Path
) -> None:
    """What a killed run has paid for counts against the cap of the next."""
    write_log(records(200))
    server.script = costing(100, delay=0.02)
    capped = [*command, "--max-cost", "0.05", "-c", "4"]
    process = subprocess.Popen(
        [sys.executable, "-m", "ctxrel.cli", *map(str, capped)], stdout=subprocess.DEVNULL, stderr=subprocess.DEVNULL
    )
    while len(server.seen) < 20 and process.poll() is None:
        time.sleep(0.001)
    process.send_signal(signal.SIGKILL)
    assert process.wait() == -signal.SIGKILL
    store = tmp_path / "log.ctxrel" / "store.sqlite"
    before = len(stored(store))
    assert 10 <= before < 40
    done = ctxrel(*capped)
    assert done.returncode == 75, done.stderr
    kept = stored(store)
    # Each costs $0.0011. The bound of a reply is some $0.045, so that the last replies come one by one.
    assert len(kept) == 46
    assert len({run for _, _, run in kept}) == 2
    summary = read_summary(tmp_path / "log.ctxrel")
    assert summary["budget"]["spent"] == pytest.approx(46 * 0.0011)
    assert summary["cost"]["total"] == pytest.approx((46 - before) * 0.0011)


def test_shared_store(
    ctxrel: RunCommand, server: LoopbackServer, command: list[str | Path], write_log: WriteLog
) -> None:
    """Of a store that others use only what runs of this output paid for counts."""
    write_log(records(30))
    server.script = costing(100)
    shared = [*command, "--store", "shared.sqlite"]
    assert ctxrel(*shared, "-o", "one", "--limit", "20").returncode == 0
    assert ctxrel(*shared, "-o", "two", "--max-cost", "0.015").returncode == 0
    assert read_summary(Path("two"))["budget"]["spent"] == pytest.approx(10 * 0.0011)
    assert ctxrel(*shared, "-o", "one", "--max-cost", "0.015", "--param", "seed=1").returncode == 75
    assert len(server.seen) == 30


def test_moved_output(
    ctxrel: RunCommand, server: LoopbackServer, command: list[str | Path], write_log: WriteLog
) -> None:
    """A folder that is moved with its store keeps its account."""
    write_log(records(20))
    server.script = costing(100)
    assert ctxrel(*command, "-o", "one", "--max-cost", "0.01").returncode == 75
    sent = len(server.seen)
    shutil.move("one", "two")
    assert ctxrel(*command, "-o", "two", "--max-cost", "0.01").returncode == 75
    assert len(server.seen) == sent


def test_timeouts_count(
    ctxrel: RunCommand, server: LoopbackServer, command: list[str | Path], write_log: WriteLog, tmp_path: Path
) -> None:
    """Attempts that were given up count as all they can have cost, in the next run too."""
    write_log(records(20))
    usual = server.script
    server.script = lambda seen: Answer(fault="hang") if "item 1?" in seen.record["question"] else usual(seen)
    capped = [*command, "--max-cost", "0.06", "--timeout", "0.5", "--attempts", "2", "-c", "1"]
    assert ctxrel(*capped).returncode == 75
    cost = read_summary(tmp_path / "log.ctxrel")["cost"]
    assert cost["unanswered"] + cost["total"] > 0.06
    sent = len(server.seen)
    assert ctxrel(*capped).returncode == 75
    assert len(server.seen) == sent


@pytest.mark.parametrize(
    ("given", "said"),
    [
        (["--max-cost", "nan"], "--max-cost nan: give an amount in USD above 0"),
        (["--max-cost", "inf"], "--max-cost inf: give an amount in USD above 0"),
        (["--max-cost", "0"], "--max-cost 0: give an amount in USD above 0"),
        (["--max-cost", "-1"], "--max-cost -1: give an amount in USD above 0"),
        (["--max-tokens-total", "0"], "Invalid value for '--max-tokens-total'"),
        (["--max-tokens-total", "1.5"], "Invalid value for '--max-tokens-total'"),
        (["--prices", "none.yaml"], "cannot read 'none.yaml': No such file or directory"),
        (["--config", "nan.toml"], "nan.toml: max-cost is nan; write a number"),
        (["--config", "zero.toml"], "--max-cost 0: give an amount in USD above 0"),
    ],
    ids=lambda value: " ".join(value) if isinstance(value, list) else "",
)
def test_no_amounts(
    ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, given: list[str], said: str
) -> None:
    """What is no amount is a usage error, also in a config file."""
    Path("nan.toml").write_text("[run]\nmax-cost = nan\n")
    Path("zero.toml").write_text("[run]\nmax-cost = 0\n")
    done = ctxrel("run", write_log(records(1)), "-m", MODEL, "--base-url", server.url, *given)
    assert done.returncode == 2
    assert said in done.stderr
    assert not server.seen


def test_store_of_an_earlier_version(tmp_path: Path) -> None:
    """An older store keeps working: its replies are there, and count where no other output can have paid for them."""
    path = tmp_path / "s.sqlite"
    with contextlib.closing(sqlite3.connect(path)) as old:
        old.executescript(VERSIONS[0])
        old.execute("PRAGMA user_version = 1")
        old.execute("INSERT INTO replies VALUES (x'6b', 0, '{}', 'stop', NULL, 'm', 5, 6, 1, 2, 0.0)")
        old.execute("INSERT INTO runs VALUES (1.0, 2.0, '{}')")
        old.commit()
    reading = Store(path, reading=True)
    (kept,) = reading.replies(b"k")
    assert kept.usage == Usage(5, 6, 1, 2)
    assert reading.experience("h", "m") == {}
    reading.close()
    store = Store(path)
    assert store.replies(b"k") == [kept]
    store.begin_run(3.0, ".")
    store.keep_reply(b"l", Reply(text="{}", finish_reason="stop", model="n", usage=Usage(1, 1)))
    store.keep_unanswered(Usage(7, 8))
    assert sorted(store.spent(".", alone=True)) == [
        ("m", False, Usage(5, 6, 1, 2)),
        ("n", False, Usage(1, 1)),
    ]
    assert store.spent(".", alone=False) == [("n", False, Usage(1, 1))]
    assert store.spent("elsewhere", alone=False) == []
    assert (store.unanswered("."), store.unanswered("elsewhere")) == (Usage(7, 8), Usage())
    store.close()


def test_shutdown_is_told_once(
    ctxrel: RunCommand, server: LoopbackServer, command: list[str | Path], write_log: WriteLog
) -> None:
    """A run tells of a model's end by the price list, and once where the endpoint says the same."""
    write_log(records(1))
    Path("prices.yaml").write_text(PRICES.replace("output: 10", 'output: 10, shutdown: "2026-11-01"'))
    server.models = Answer(body={"object": "list", "data": [{"id": MODEL, "shutdown_date": "2026-11-01"}]})
    done = ctxrel(*command)
    assert done.stderr.count(f"note: the model {MODEL} was to be shut down on 2026-11-01; ") == 1


def test_configuration(ctxrel: RunCommand, command: list[str | Path], write_log: WriteLog) -> None:
    """Caps and prices are told in the configuration."""
    write_log(records(1))
    ctxrel(*command, "--max-cost", "1", "--max-tokens-total", "100000")
    configuration = json.loads(Path("log.ctxrel/summary.json").read_text())["configuration"]
    assert (configuration["max_cost"], configuration["max_tokens_total"]) == (1, 100000)
    assert configuration["prices"].endswith("prices.yaml")
