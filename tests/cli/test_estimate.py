"""`ctxrel estimate`: what it says is what a run then does, and nothing is sent or written for it."""

import json
import re
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from conftest import Record, RunCommand, read_summary
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, error, judge_by_hash
from servers.tokens import count_tokens

from ctxrel.cli.commands.estimate import estimate
from ctxrel.cli.runs import estimating
from ctxrel.evaluators.costs.forecast import IN_FLIGHT, SECONDS, Workload, seconds
from ctxrel.evaluators.costs.tokens import likely_tokens

WriteLog = Callable[..., Path]
ENGLISH: list[Record] = [
    {
        "question": "How long does a refund take?",
        "contexts": [
            "Refunds are paid back to the card that was used within five working days. Ask your bank if it takes longer.",
            "Our shop in Bremen opens at 9:30 on weekdays, and at 10:00 on Saturdays. It is closed on public holidays.",
        ],
    },
    {
        "question": "Which cable fits the old charger?",
        "contexts": ["- USB-C, 60 W (2021 and later)\n- Micro-USB, 10 W (until 2020)\n", "The charger weighs 112 g."],
    },
    {
        "question": "Can I change my plan during the month?",
        "contexts": ["Plans change at the end of a billing period."],
    },
]
KOREAN: list[Record] = [
    {
        "question": "환불은 얼마나 걸리나요?",
        "contexts": [
            "환불은 결제에 사용한 카드로 영업일 기준 5일 이내에 처리됩니다. 더 오래 걸리면 은행에 문의하세요.",
            "매장은 평일 오전 9시 30분에 문을 열고 공휴일에는 쉽니다.",
        ],
    },
    {"question": "배송지를 바꿀 수 있나요?", "contexts": ["주문이 발송되기 전까지 주소를 변경할 수 있습니다."]},
]
OTHERS: list[Record] = [
    {
        "question": "Сколько времени занимает возврат?",
        "contexts": ["Деньги возвращаются на карту в течение пяти рабочих дней."],
    },
    {
        "question": "返金にはどのくらいかかりますか。",
        "contexts": ["返金は五営業日以内にカードへ行われます。店は九時半に開きます。"],
    },
    {
        "question": "退款需要多长时间？",
        "contexts": ["退款将在五个工作日内退回到您使用的银行卡。", "商店在公休日不营业。"],
    },
    {"question": "كم يستغرق استرداد المبلغ؟", "contexts": ["يعاد المبلغ إلى البطاقة خلال خمسة أيام عمل."]},
    {"question": "धन वापसी में कितना समय लगता है?", "contexts": ["राशि पाँच कार्य दिवसों में कार्ड पर लौटा दी जाती है।"]},
    {
        "question": "¿Cuánto tarda el reembolso?",
        "contexts": ["El importe se devuelve a la tarjeta en cinco días hábiles."],
    },
]


def counting(seen: Seen) -> Answer:
    """Judges, and counts tokens as an endpoint with this tokenizer does."""
    answer = judge_by_hash(seen)
    assert isinstance(answer.body, dict)
    texts = [message["content"] for message in seen.body["messages"]]
    texts.append(json.dumps(seen.body["response_format"]["json_schema"]["schema"], separators=(",", ":")))
    written = count_tokens(answer.body["choices"][0]["message"]["content"])
    sent = sum(map(count_tokens, texts)) + 11
    answer.body["usage"] = {"prompt_tokens": sent, "completion_tokens": written}
    return answer


@pytest.fixture
def options(server: LoopbackServer, tmp_path: Path) -> list[str | Path]:
    path = tmp_path / "prices.yaml"
    path.write_text("127.0.0.1: {batch: 0.5, models: {judge-1: {input: 1, cached_input: 0.1, output: 10}}}\n")
    return ["-m", MODEL, "--base-url", server.url, "--prices", path]


def estimated(ctxrel: RunCommand, *arguments: str | Path) -> dict[str, Any]:
    done = ctxrel("estimate", *arguments, "--json")
    assert done.returncode == 0, done.stderr
    found: dict[str, Any] = json.loads(done.stdout)
    return found


def grown(records: list[Record], times: int) -> list[Record]:
    """Records that all differ, and are like these."""
    return [{**record, "question": f"{record['question']} ({n})"} for n in range(times) for record in records]


@pytest.mark.parametrize("records", [ENGLISH, KOREAN, OTHERS], ids=["English", "Korean", "others"])
def test_tokens_are_those_of_the_run(
    ctxrel: RunCommand, server: LoopbackServer, options: list[str | Path], write_log: WriteLog, records: list[Record]
) -> None:
    """Input tokens within 10 % of what the endpoint counts, and within 1 % once it was seen; so is the price."""
    log, more = write_log(grown(records, 20)), write_log(grown(records, 60), "more.jsonl")
    server.script = counting
    before = estimated(ctxrel, log, *options)
    assert ctxrel("run", log, *options, "--store", "s.sqlite").returncode == 0
    summary = read_summary(Path("log.ctxrel"))
    assert before["requests"]["to_send"] == summary["requests"]["sent"]
    assert before["tokens"]["input"]["likely"] == pytest.approx(summary["tokens"]["input_tokens"], rel=0.1)
    for name in ("input", "output"):
        actual = summary["tokens"][f"{name}_tokens"]
        assert before["tokens"][name]["low"] <= actual <= before["tokens"][name]["high"]
    assert before["cost"]["low"] <= summary["cost"]["total"] <= before["cost"]["high"]
    assert before["assumed"] == ["context_relevance"]
    after = estimated(ctxrel, more, *options, "--store", "s.sqlite")
    assert ctxrel("run", more, *options, "--store", "s.sqlite").returncode == 0
    summary = read_summary(Path("more.ctxrel"))
    assert after["requests"]["stored"] == len(records) * 20
    assert after["requests"]["to_send"] == summary["requests"]["sent"] == len(records) * 40
    assert after["tokens"]["input"]["likely"] == pytest.approx(summary["tokens"]["input_tokens"], rel=0.01)
    assert after["tokens"]["output"]["likely"] == pytest.approx(summary["tokens"]["output_tokens"], rel=0.1)
    assert after["cost"]["likely"] == pytest.approx(summary["cost"]["total"], rel=0.05)
    assert after["cost_in_batches"]["likely"] == pytest.approx(after["cost"]["likely"] / 2, abs=1e-6)
    assert after["assumed"] == []


def test_nothing_is_sent_or_written(
    ctxrel: RunCommand, server: LoopbackServer, options: list[str | Path], write_log: WriteLog, tmp_path: Path
) -> None:
    """Neither without a store nor with one that is there, which stays as it was."""
    log = write_log(ENGLISH)
    files = set(tmp_path.iterdir())
    estimated(ctxrel, log, *options)
    assert set(tmp_path.iterdir()) == files
    ctxrel("run", log, *options)
    sent, looked = len(server.seen), len(server.model_requests)
    before = {path: path.read_bytes() for path in Path("log.ctxrel").iterdir()}
    found = estimated(ctxrel, log, *options)
    assert {path: path.read_bytes() for path in Path("log.ctxrel").iterdir()} == before
    assert (len(server.seen), len(server.model_requests)) == (sent, looked)
    assert found["requests"] == {"to_send": 0, "stored": 3, "identical": 0, "not_needed": 0, "unusable": 0}
    assert found["cost"] == {"low": 0, "likely": 0, "high": 0}
    assert found["seconds"] == 0


def test_replies_that_a_killed_run_on_ray_left(
    ctxrel: RunCommand, options: list[str | Path], write_log: WriteLog, tmp_path: Path
) -> None:
    """What its workers have paid for is asked for no more, though the run's own store knows nothing of it yet."""
    log = write_log(ENGLISH)
    ctxrel("run", log, *options)
    stores = Path("log.ctxrel/stores")
    stores.mkdir()
    Path("log.ctxrel/store.sqlite").rename(stores / "worker-1.sqlite")
    (stores / "worker-2.sqlite").touch()
    assert estimated(ctxrel, log, *options)["requests"]["stored"] == 3
    assert not Path("log.ctxrel/store.sqlite").exists()
    assert estimated(ctxrel, log, *options, "-o", "other", "--store", tmp_path / "s")["requests"]["to_send"] == 3


def test_needs_no_key(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The price of OpenAI's models is told without one, and so is when they end."""
    done = ctxrel("estimate", write_log(ENGLISH), "-m", "gpt-5-mini")
    assert done.returncode == 0
    assert "estimate: gpt-5-mini at api.openai.com\n" in done.stdout
    assert "price: $0.25 in, $0.025 cached, $2 out for a million tokens of gpt-5-mini (https://" in done.stdout
    assert re.search(r"note: the model gpt-5-mini (will|was to) be shut down on 2026-12-11", done.stderr)


def test_decisions_write_nothing(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """A judge by probabilities has no output tokens; its requests are shown as they are sent."""
    found = json.loads(ctxrel("estimate", write_log(ENGLISH), "--api", "decisions", "--json", "--show").stdout)
    assert found["tokens"]["output"] == {"low": 0, "likely": 0, "high": 0}
    assert found["tokens"]["input"]["likely"] > 100
    assert {question["type"] for question in found["request"]["questions"]} == {"predicate"}


def test_what_is_asked_once_is_counted_once(ctxrel: RunCommand, options: list[str | Path], write_log: WriteLog) -> None:
    """Identical records, empty contexts, broken lines and what is in the store are told apart as the run does."""
    log = write_log([*ENGLISH, ENGLISH[0], {"question": "Empty?", "contexts": [" "]}, {"question": "?", "contexts": 3}])
    ctxrel("run", log, *options, "--limit", "1", "--store", "s.sqlite")
    options = [*options, "--store", "s.sqlite", "-e", "context_relevance", "-e", "context_relevance_graded"]
    found = estimated(ctxrel, log, *options)
    assert found["records"] == 6
    # The graded form reads the same replies: what is sent is sent for one of them.
    assert found["requests"] == {"to_send": 2, "stored": 4, "identical": 2, "not_needed": 2, "unusable": 2}
    assert ctxrel("run", log, *options).returncode in (0, 3)
    assert read_summary(Path("log.ctxrel"))["requests"]["sent"] == 2


def test_more_requests_than_are_remembered(
    monkeypatch: pytest.MonkeyPatch, write_log: WriteLog, capsys: pytest.CaptureFixture[str]
) -> None:
    """Of a log with more requests than are told apart the later ones are compared with the first: never too few."""
    monkeypatch.setattr(estimating, "_MOST_KEYS", 2)
    log = write_log([ENGLISH[place] for place in (0, 1, 2, 2, 0, 1)])
    estimate([str(log)], model="gpt-5-mini", json=True)
    requests = json.loads(capsys.readouterr().out)["requests"]
    assert (requests["to_send"], requests["identical"]) == (4, 2)


def test_divided_records(ctxrel: RunCommand, options: list[str | Path], write_log: WriteLog) -> None:
    """Records that --max-input-tokens divides are counted as the run divides them."""
    log = write_log([{"question": "Which?", "contexts": [f"Context {n} " + "is long. " * 60 for n in range(4)]}])
    options = [*options, "--max-input-tokens", "2000"]
    found = estimated(ctxrel, log, *options)
    ctxrel("run", log, *options)
    assert 1 < found["requests"]["to_send"] == read_summary(Path("log.ctxrel"))["requests"]["sent"]


def test_show(ctxrel: RunCommand, server: LoopbackServer, options: list[str | Path], write_log: WriteLog) -> None:
    """The request that is shown is the first that is sent, and holds no key."""
    log = write_log(ENGLISH)
    found = estimated(ctxrel, log, *options, "--show")
    ctxrel("run", log, *options)
    assert found["request"] == server.seen[0].body
    done = ctxrel("estimate", write_log(KOREAN, "ko.jsonl"), *options, "--show")
    assert "the first request:\n{" in done.stdout
    assert "환불은" in done.stdout


def test_dry_run(ctxrel: RunCommand, server: LoopbackServer, options: list[str | Path], write_log: WriteLog) -> None:
    """`ctxrel run --dry-run` says the same."""
    log = write_log(ENGLISH)
    dry = ctxrel("run", log, *options, "--dry-run")
    assert dry.returncode == 0
    assert dry.stdout == ctxrel("estimate", log, *options).stdout
    assert not Path("log.ctxrel").exists()
    assert not server.seen


def test_offline(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The offline judge takes no tokens and costs nothing."""
    found = estimated(ctxrel, write_log(ENGLISH), "-m", "offline")
    assert found["tokens"]["input"] == found["tokens"]["output"] == {"low": 0, "likely": 0, "high": 0}
    assert found["cost"]["high"] == 0


def test_unknown_price(ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog) -> None:
    """An unknown price is null, and told."""
    log = write_log(ENGLISH)
    found = estimated(ctxrel, log, "-m", MODEL, "--base-url", server.url)
    assert found["cost"] is found["cost_in_batches"] is found["price"] is None
    done = ctxrel("estimate", log, "-m", MODEL, "--base-url", server.url)
    assert "price: not known; name a file with prices by --prices\n" in done.stdout


def test_experience_of_errors(
    ctxrel: RunCommand, server: LoopbackServer, options: list[str | Path], write_log: WriteLog
) -> None:
    """A run without a reply teaches nothing."""
    log = write_log(ENGLISH)
    server.script = lambda _: error(400, "no")
    ctxrel("run", log, *options)
    assert estimated(ctxrel, log, *options)["requests"]["to_send"] == 3


def test_config_file(ctxrel: RunCommand, write_log: WriteLog) -> None:
    """The file of `ctxrel run` holds for the estimate as well."""
    Path("ctxrel.toml").write_text('[run]\nmodel = "offline"\nlimit = 2\nmax-cost = 3\n')
    assert estimated(ctxrel, write_log(ENGLISH))["records"] == 2


@pytest.mark.parametrize(
    ("limits", "wanted"),
    [
        ({}, 640 / IN_FLIGHT * SECONDS),
        ({"in_flight": 1}, 640 * SECONDS),
        ({"rpm": 10}, 64 * 60),
        ({"tpm": 1000}, 640 * 60),
    ],
    ids=["found out", "one", "rpm", "tpm"],
)
def test_seconds(limits: dict[str, int], wanted: float) -> None:
    """Whichever limit holds up longest."""
    given: dict[str, Any] = {"in_flight": None, "rpm": None, "tpm": None, **limits}
    assert seconds(640, 640_000, **given) == wanted


def test_workload() -> None:
    """Replies of a model that reasons are longer; the cache holds the common beginning of all requests but the first."""
    work = Workload(frame=2000, examples=500, replies=[10, 20], limit=100, reasons=False, requests=10, records=5000)
    assert work.input == pytest.approx((21250, 25000, 28750))
    assert work.output == pytest.approx((50, 150, 1000))
    assert work.cacheable == pytest.approx(18000 / 25000)
    assert replace(work, records=0, reasons=True, effort="none").output == pytest.approx((50, 150, 1000))
    assert replace(work, frame=1000).cacheable == 0


@pytest.mark.parametrize("text", ["", "a", "안녕 \ud800", "\U0001f600" * 3, "a" * 10_000])
def test_any_text(text: str) -> None:
    """Every text has an estimate."""
    assert 0 <= likely_tokens(text) <= 4 * len(text)
