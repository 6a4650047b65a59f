"""Prices, what replies cost by them, and the budget that is never passed by more than a reply."""

import asyncio
import datetime as dt
import json
import random
import re
from pathlib import Path

import pytest
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, cite, error

from ctxrel.cli.runs.pricing import shutdown_warning
from ctxrel.evaluators.costs import extra
from ctxrel.evaluators.costs.bounds import MOST_OUTPUT, Bounds
from ctxrel.evaluators.costs.budget import Amount, Budget, Caps
from ctxrel.evaluators.costs.price import PICO, Price, dollars, show_dollars
from ctxrel.evaluators.costs.price_list import family, find_price, own_prices, read_prices
from ctxrel.evaluators.costs.tariff import FREE_TARIFF, UNKNOWN_TARIFF, Tariff, find_tariff
from ctxrel.evaluators.errors import BudgetReached, DefinitionError, Failure, FailureKind
from ctxrel.evaluators.judges.asking import Asker, Patience
from ctxrel.evaluators.judges.endpoint import DEFAULT_BASE_URL, Endpoint
from ctxrel.evaluators.judges.limiter import Limits
from ctxrel.evaluators.judges.openai_chat import ChatJudge
from ctxrel.evaluators.prompt import Prompt, Request
from ctxrel.evaluators.replies import Reply, Usage

PRICE = Price(input=1, output=10, cached_input=0.1)
PROMPT = Prompt(name="n", system="judge this", schema=None, parameters={"max_completion_tokens": 300})


def reply(model: str | None = None, **usage: int) -> Reply:
    return Reply(text="{}", finish_reason="stop", model=model, usage=Usage(**usage))


def tariff(price: Price = PRICE) -> Tariff:
    return Tariff(lambda _: price, "m")


@pytest.mark.parametrize(
    ("usage", "parts"),
    [
        (Usage(100, 7, 64, 3), (36, 6.4, 40, 30)),
        (Usage(100, 0, 0, 0), (100, 0, 0, 0)),
        (Usage(10, 5, 99, 99), (0, 1, 0, 50)),
        (Usage(), (0, 0, 0, 0)),
    ],
    ids=["all", "input", "more cached than sent", "nothing"],
)
def test_parts(usage: Usage, parts: tuple[float, ...]) -> None:
    """Input that was cached is cheaper, reasoning is a part of the output; in millionths of a USD."""
    found = PRICE.parts(usage)
    assert tuple(part / 10**6 for part in found) == parts
    assert found.total == sum(found)


def test_cache_writes() -> None:
    """Where writing to the cache costs more, all input of a prompt that is long enough counts as written."""
    price = Price(input=1, output=1, cached_input=0, cache_write=1.25)
    assert dollars(price.parts(Usage(1024, 0, 24)).total) == 0.00125
    assert dollars(price.parts(Usage(1000, 0, 0)).total) == 0.001


@pytest.mark.parametrize(
    ("name", "found"),
    [
        ("gpt-5-mini", "gpt-5-mini"),
        ("gpt-5-mini-2025-08-07", "gpt-5-mini"),
        ("claude-20250807", "claude"),
        ("models/gemini-2.5-flash", "gemini-2.5-flash"),
        ("gpt-5-mini-high", "gpt-5-mini-high"),
        ("ft:gpt-4o-mini-2024-07-18:org::id", "ft:gpt-4o-mini-2024-07-18:org::id"),
        ("mistral-small-2603", "mistral-small-2603"),
    ],
)
def test_family(name: str, found: str) -> None:
    """A date at the end and Google's prefix go, and nothing else: another name may have another price."""
    assert family(name) == found


def test_own_prices() -> None:
    """Every price of ours has a source and a day, cached input is no dearer, and the default's end is known."""
    for models in own_prices().values():
        for name, price in models.items():
            assert price.source.startswith("https://"), name
            assert dt.date.fromisoformat(price.checked) <= dt.date(2026, 12, 1), name
            assert 0 < price.cached_input <= price.input <= price.output, name
    found = find_price(own_prices(), "api.openai.com", "gpt-5-mini-2025-08-07")
    assert found
    assert (found.input, found.cached_input, found.output, found.batch) == (0.25, 0.025, 2.0, 0.5)
    assert found.shutdown == dt.date(2026, 12, 11)


def test_prices_are_the_hosts(tmp_path: Path) -> None:
    """The same model has no price elsewhere, unless the user's file names the host, with or without its port, or any."""
    assert find_tariff(None, "me.openai.azure.com", "gpt-5-mini", None).price is None
    path = tmp_path / "p.yaml"
    path.write_text(
        '"localhost:8000": {models: {a: {input: 0, output: 0}}}\n'
        "localhost: {models: {a: {input: 1, output: 1}, b: {input: 2, output: 2}}}\n"
        '"*": {batch: 0.4, models: {a: {input: 3, output: 3, shutdown: "2027-01-01"}, gpt-5-mini: {input: 9, output: 9}}}\n'
        "api.openai.com: {models: {gpt-5-mini: {input: 8, cached_input: 4, output: 8}}}\n"
    )
    own = read_prices(path)

    def found(host: str, model: str) -> float | None:
        price = find_tariff(None, host, model, own).price
        return price.input if price else None

    assert [found(host, "a") for host in ("localhost:8000", "localhost:9", "x:1")] == [0, 1, 3]
    assert (found("localhost:8000", "b"), found("x", "b")) == (2, None)
    assert (found("api.openai.com", "gpt-5-mini-2025-08-07"), found("api.openai.com", "gpt-5-nano")) == (8, 0.05)
    price = find_price(own, "x", "a")
    assert price
    assert (price.batch, price.shutdown, price.cached_input) == (0.4, dt.date(2027, 1, 1), 3)


@pytest.mark.parametrize(
    ("text", "said"),
    [
        ("[]", ":1: expected hosts and their models, found nothing in it"),
        ("h: {}", ":1: the key 'models' is missing"),
        ("h:\n  models: []", ":2: expected models and their prices, found nothing in it"),
        ("h:\n  modles: {}", ":2: unknown key 'modles'; did you mean 'models'?"),
        ("h:\n  models:\n    a: {input: 1}", ":3: the key 'output' is missing"),
        ("h:\n  models:\n    a:\n      input: 1\n      output: -1", ":5: output is -1; write a number from 0 to"),
        ("h:\n  models:\n    a:\n      input: .nan\n      output: 1", ":4: "),
        ("h:\n  models:\n    a:\n      input: free\n      output: 1", ":4: expected a number, found 'free'"),
        ("h:\n  batch: 2\n  models: {}", ":2: batch is 2; write a number from 0 to 1"),
        ("h:\n  models:\n    a: {input: 1, output: 1, shutdown: soon}", ":3: shutdown is 'soon'; write a day as"),
        ("h:\n  models:\n    a: {input: 1, output: 1, prise: 1}", ":3: unknown key 'prise'"),
    ],
    ids=lambda text: re.sub(r"\W+", " ", text)[:30],
)
def test_wrong_prices(tmp_path: Path, text: str, said: str) -> None:
    """What is wrong in a file is told with file and line."""
    path = tmp_path / "p.yaml"
    path.write_text(text)
    with pytest.raises(DefinitionError, match=re.escape(f"{path}{said}")):
        read_prices(path)


def test_genai_prices(monkeypatch: pytest.MonkeyPatch) -> None:
    """The extra is asked about hosts it knows, and only where our list has nothing."""
    url = "https://api.x.ai/v1"
    price = find_tariff(url, "api.x.ai", "grok-4", None).price
    assert price
    assert price.source.startswith("genai-prices ")
    assert 0 < price.cached_input < price.input < price.output
    assert find_tariff(url, "api.x.ai", "no-such-model", None).price is None
    assert find_tariff("https://nowhere.example/v1", "nowhere.example", "gpt-5-mini", None).price is None
    ours = find_tariff("https://api.openai.com/v1", "api.openai.com", "gpt-5-mini", None).price
    assert ours
    assert ours.source.startswith("https://")
    monkeypatch.setattr(extra, "extra_version", lambda: None)
    assert find_tariff(url, "api.x.ai", "grok-4", None).price is None


def test_tariff() -> None:
    """A reply costs what the model that it names costs, else what the model that was asked costs, else nobody knows."""
    other = Price(input=5, output=5, cached_input=5)
    found = Tariff({"asked": PRICE, "other": other}.get, "asked")
    assert found.cost([reply("other", input_tokens=1), reply("elsewhere", input_tokens=1)]) == 0.000006
    assert found.cost([]) == UNKNOWN_TARIFF.cost([]) == FREE_TARIFF.cost([reply(input_tokens=9)]) == 0
    assert UNKNOWN_TARIFF.cost([reply(input_tokens=1)]) is None


@pytest.mark.parametrize(
    ("today", "said"),
    [
        ("2026-11-10", None),
        ("2026-11-11", "will be shut down on 2026-12-11 (in 30 days)"),
        ("2026-12-11", "will be shut down on 2026-12-11 (in 0 days)"),
        ("2028-01-01", "was to be shut down on 2026-12-11"),
    ],
)
def test_shutdown(today: str, said: str | None) -> None:
    """The price list knows when a model will be shut down, and its users are told 30 days before."""
    found = find_tariff(None, "api.openai.com", "gpt-5-mini", None)
    told = shutdown_warning(found, dt.date.fromisoformat(today))
    assert told == (said and f"the model gpt-5-mini {said}; choose its successor with --model in time")
    assert shutdown_warning(UNKNOWN_TARIFF, dt.date(2030, 1, 1)) is None


@pytest.mark.parametrize(
    ("usd", "shown"),
    [(0, "$0"), (0.00000312, "$0.0000031"), (0.0312, "$0.0312"), (12.4, "$12.40"), (1234.5, "$1,234.50")],
)
def test_show_dollars(usd: float, shown: str) -> None:
    """Small amounts keep their digits."""
    assert show_dollars(usd) == shown


class _Fixed:
    def __init__(self, **parameters: object) -> None:
        self._parameters = parameters

    def parameters(self, prompt: Prompt) -> dict[str, object]:
        return self._parameters


def test_bounds() -> None:
    """Bytes of everything that is sent, and the limit of the reply under either name; doubled where it was cut."""
    request = Request(PROMPT, "né")
    most = Bounds(_Fixed(max_tokens=50)).most(request)
    assert len("judge this") + 3 < most.input_tokens < 300
    assert most.output_tokens == 50
    assert Bounds(_Fixed(max_completion_tokens=50)).most(request, enlarged=True).output_tokens == 100
    assert Bounds(_Fixed()).most(request).output_tokens == MOST_OUTPUT


def test_budget_counts() -> None:
    """Replies and attempts without one are spent, reservations only while they last; earlier spending counts."""
    lost: list[Usage] = []
    budget = Budget(tariff(), Caps(cost=0.001), earlier=Amount(PICO // 2000, 10), on_loss=lost.append)
    amount = budget.bound(Usage(100, 40))
    assert amount == Amount(500 * 10**6, 140)
    admitted = [budget.admits(amount)]
    budget.reserve(amount)
    admitted += [budget.admits(amount), budget.exhausted]
    budget.release(amount)
    admitted += [budget.admits(amount)]
    assert admitted == [True, False, False, True]
    budget.pay(reply(input_tokens=100, output_tokens=10))
    budget.lose(Usage(100, 20))
    assert lost == [Usage(100, 20)]
    assert budget.exhausted
    with pytest.raises(BudgetReached, match=re.escape("$0.0010 of --max-cost 0.001 are spent; run the same command")):
        budget.check()
    assert budget.summary() == {
        "max_cost": 0.001, "max_tokens_total": None, "spent": 0.001, "spent_tokens": 240,
    }  # fmt: skip
    assert budget.bill.summary() == {
        "currency": "USD", "total": 0.0002, "input": 0.0001, "cached_input": 0.0, "output": 0.0001, "reasoning": 0.0,
        "unanswered": 0.0003, "saved_by_store": 0.0, "saved_by_caching": 0.0, "price": {"model": "m", **PRICE.describe()},
    }  # fmt: skip


class Till:
    """An endpoint that charges at random, within what was asked for, and knows what it charged."""

    def __init__(self, seed: int) -> None:
        self._chance = random.Random(seed)
        self.charged: list[Usage] = []
        self.faults = 0

    def __call__(self, seen: Seen) -> Answer:
        """A reply after a random while, or an error that costs nothing."""
        size = sum(len(message["content"].encode()) for message in seen.body["messages"])
        usage = Usage(self._chance.randint(1, size), self._chance.randint(0, seen.body["max_completion_tokens"]))
        if self._chance.random() < 0.1:
            self.faults += 1
            return error(500, "not now")
        self.charged.append(usage)
        answer = cite()
        assert isinstance(answer.body, dict)
        answer.body["usage"] = {"prompt_tokens": usage.input_tokens, "completion_tokens": usage.output_tokens}
        return Answer(body=answer.body, delay=self._chance.uniform(0, 0.01))


@pytest.mark.parametrize("seed", range(8))
async def test_cap_is_passed_by_no_more_than_a_reply(seed: int) -> None:
    """Whatever the usages, the price, the cap and how many are in flight; what is counted is what was charged."""
    chance = random.Random(seed)
    price = Price(input=chance.choice([0.05, 1, 15]), output=chance.choice([0.4, 10, 60]), cached_input=0.01)
    requests = [Request(PROMPT, f"record {number} " + "é" * chance.randint(0, 400)) for number in range(150)]
    till = Till(seed)
    with LoopbackServer(till) as server:
        judge = ChatJudge(Endpoint(model=MODEL, base_url=server.url), concurrency=32)
        bounds = Bounds(judge)
        most = [bounds.most(request) for request in requests]
        by_tokens = seed % 2 == 1
        cap = chance.uniform(0.02, 0.6) * sum(price.bound(usage) for usage in most) / PICO / 3
        caps = Caps(tokens=chance.randint(1, 20_000)) if by_tokens else Caps(cost=cap)
        budget = Budget(tariff(price), caps)
        limits = Limits(most=chance.choice([1, 4, 32]), fixed=True)
        asker = Asker(judge, Patience(first_wait=0.01, longest_wait=0.02), limits, budget)
        asked = (asker.ask(request, lambda found: found, lambda _: None) for request in requests)
        results = await asyncio.wait_for(asyncio.gather(*asked, return_exceptions=True), 60)
        await asker.close()
    assert all(isinstance(result, (Reply, BudgetReached)) for result in results)
    assert any(isinstance(result, BudgetReached) for result in results)
    assert any(isinstance(result, Reply) for result in results)
    spent = Amount(
        sum(price.parts(usage).total for usage in till.charged),
        sum(usage.input_tokens + usage.output_tokens for usage in till.charged),
    )
    assert budget.spent == spent
    assert budget.reserved == Amount()
    if by_tokens:
        assert caps.tokens
        assert caps.tokens <= spent.tokens < caps.tokens + max(u.input_tokens + u.output_tokens for u in most)
    else:
        assert cap * PICO <= spent.pico + 1 <= cap * PICO + max(price.bound(usage) for usage in most)


@pytest.mark.parametrize(
    ("answer", "lost"),
    [
        (Answer(fault="hang"), True),
        (Answer(body=b"{}", fault="cut"), True),
        (Answer(fault="reset"), True),
        (Answer(body=b"<html>"), True),
        (error(500, "no"), False),
        (error(400, "no"), False),
        (error(429, "slow down"), False),
    ],
    ids=["no answer", "cut", "reset", "no JSON", "500", "400", "429"],
)
async def test_what_may_have_been_billed(answer: Answer, lost: bool) -> None:  # noqa: FBT001  # a column of the table
    """An attempt counts as all it can have cost where the endpoint may have done the work; an error it sent costs nothing."""
    request = Request(PROMPT, "record")
    with LoopbackServer(lambda _: answer) as server:
        endpoint = Endpoint(model=MODEL, base_url=server.url, timeout=0.3)
        judge = ChatJudge(endpoint, concurrency=1)
        budget = Budget(tariff(), Caps(cost=1))
        asker = Asker(judge, Patience(attempts=1, rate_limits=0, first_wait=0.01), None, budget)
        asker._prove()  # an endpoint that has answered before
        with pytest.raises(Failure) as failed:
            await asker.ask(request, lambda found: found, lambda _: None)
        await asker.close()
    assert failed.value.billed == lost
    assert budget.spent == (budget.bound(Bounds(judge).most(request)) if lost else Amount())


async def test_no_connection_costs_nothing() -> None:
    """Nobody was there to be paid."""
    with LoopbackServer() as server:
        url = server.url
    judge = ChatJudge(Endpoint(model=MODEL, base_url=url), concurrency=1)
    with pytest.raises(Failure) as failed:
        await judge.ask(Request(PROMPT, "record"))
    await judge._transport.close()
    assert (failed.value.kind, failed.value.billed) == (FailureKind.CONNECTION, False)


def test_prompt_cache_key() -> None:
    """OpenAI's own endpoint is told which requests begin alike; it is no part of what is asked or remembered."""
    other = Prompt(name="n", system="judge that", schema=None)

    def body(prompt: Prompt, url: str = DEFAULT_BASE_URL) -> dict[str, object]:
        judge = ChatJudge(Endpoint(model="gpt-5-mini", base_url=url), concurrency=1)
        found: dict[str, object] = json.loads(judge.body(Request(prompt, "r")))
        return found

    key = body(PROMPT)["prompt_cache_key"]
    assert key == body(PROMPT)["prompt_cache_key"] != body(other)["prompt_cache_key"]
    assert len(str(key)) == 32
    assert "prompt_cache_key" not in body(PROMPT, "http://localhost:8000/v1")
    assert "prompt_cache_key" not in ChatJudge(Endpoint(), concurrency=1).parameters(PROMPT)


async def test_prompt_cache_key_that_is_not_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    """An endpoint that refuses it is asked without it from then on; nothing of it is learnt as a dialect."""
    learnt: list[dict[str, object]] = []

    def script(seen: Seen) -> Answer:
        return (
            error(400, "Unknown parameter: 'prompt_cache_key'.", param="prompt_cache_key")
            if "prompt_cache_key" in seen.body
            else cite()
        )

    with LoopbackServer(script) as server:
        monkeypatch.setattr("ctxrel.evaluators.judges.openai_chat._CACHE_KEY_HOSTS", {server.url.split("/")[2]})
        judge = ChatJudge(Endpoint(model=MODEL, base_url=server.url), concurrency=1, on_dialect=learnt.append)
        for _ in range(2):
            await judge.ask(Request(PROMPT, "r"))
        await judge._transport.close()
        assert ["prompt_cache_key" in seen.body for seen in server.seen] == [True, False, False]
    assert learnt == [{"response_format": "json_schema", "renamed": {}}]
    assert judge.notices() == []
