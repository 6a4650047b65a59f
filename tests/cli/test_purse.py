"""A cap over several workers, without Ray: whoever asks when, it is passed by no more than one reply can add."""

import asyncio
import random
from collections.abc import Callable
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path

import pytest
from crew import Crew, records
from servers.loopback import Answer, LoopbackServer, Seen, judge_by_hash

from ctxrel.cli.runs.pricing import recall_spending
from ctxrel.cli.runs.purse import Claim, Purse
from ctxrel.cli.runs.shares import Amounts
from ctxrel.cli.runs.store import Store
from ctxrel.evaluators.costs.allowance import Allowance
from ctxrel.evaluators.costs.budget import NO_CAPS, NOTHING, Amount, Budget, Caps
from ctxrel.evaluators.costs.price import PICO, Price
from ctxrel.evaluators.costs.tariff import Tariff
from ctxrel.evaluators.errors import BudgetReached
from ctxrel.evaluators.replies import Reply, Usage

WriteLog = Callable[..., Path]


@dataclass(kw_only=True)
class Sender:
    """A worker that is nothing but its account; a reply costs at random, within its bound."""

    chance: random.Random
    budget: Allowance
    waiting: list[Usage]
    in_flight: list[Usage] = field(default_factory=list)
    share: Amount | None = None
    """On its way to the worker."""

    def send(self) -> None:
        """Let a few of those that wait leave, as far as money goes."""
        for _ in range(self.chance.randint(0, 5)):
            if self.waiting and self.budget.admits(bound := self.budget.bound(self.waiting[0])):
                self.budget.reserve(bound)
                self.in_flight.append(self.waiting.pop(0))

    def receive(self) -> None:
        """Get a reply, or none for which might be billed all the same."""
        if not self.in_flight:
            return
        most = self.in_flight.pop(self.chance.randrange(len(self.in_flight)))
        if self.chance.random() < 0.05:
            self.budget.lose(most)
        else:
            usage = Usage(self.chance.randint(0, most.input_tokens), self.chance.randint(0, most.output_tokens))
            self.budget.pay(Reply(text="", finish_reason="stop", model="m", usage=usage))
        self.budget.release(self.budget.bound(most))

    def talk(self, purse: Purse, name: str) -> None:
        """Take the share that has come, or tell what is spent: the answer to that comes later."""
        if self.share is not None:
            self.budget.allowed, self.share = self.share, None
            return
        wanted = self.budget.bound(self.waiting[0]) if self.waiting else None
        short = wanted is not None and not self.budget.admits(wanted)
        busy = bool(self.waiting or self.in_flight)
        self.budget.let_go(keep=busy and not short)
        claim = Claim(self.budget.spent, self.budget.allowed, None if wanted is None else self.budget.lacks(wanted))
        self.share = purse.allow(name, claim, busy=busy)

    def die(self) -> None:
        """Start anew with what is paid; what was in flight is asked for again."""
        self.waiting += self.in_flight
        self.in_flight, self.share = [], None
        self.budget.reserved, self.budget.allowed = NOTHING, self.budget.spent


def tariff(chance: random.Random) -> Tariff:
    price = Price(input=chance.uniform(0.1, 10), output=chance.uniform(0.1, 10), cached_input=0.1)
    return Tariff(lambda _: price, "m")


@pytest.mark.parametrize("capped", ["cost", "tokens", "both"])
@pytest.mark.parametrize("seed", range(40))
def test_cap(seed: int, capped: str) -> None:
    """Spent and in flight stay below the caps and one bound, with workers that die; money that is left is spent."""
    chance = random.Random(seed)
    prices, requests = tariff(chance), chance.choice([5, 200])
    most = chance.choice([100, 2000])
    caps = Caps(
        cost=None if capped == "tokens" else chance.uniform(0.001, 0.02),
        tokens=None if capped == "cost" else chance.randint(1000, 50_000),
    )
    purse = Purse(Budget(prices, caps, earlier=Amount(10**8, 100)))
    workers = {
        name: Sender(
            chance=chance,
            budget=Allowance(prices, caps, on_loss=lambda _: None),
            waiting=[Usage(chance.randint(1, most), chance.randint(0, most)) for _ in range(requests)],
        )
        for name in "abc"[: chance.randint(1, 3)]
    }
    bounds = [worker.budget.bound(each) for worker in workers.values() for each in worker.waiting]
    for name in workers:
        purse.join(name, NOTHING)
    for _ in range(200_000):
        name = chance.choice(list(workers))
        worker = workers[name]
        acts: list[Callable[[], None]] = [worker.send, worker.receive, partial(worker.talk, purse, name)]
        chance.choice(acts)()
        if chance.random() < 0.001:
            worker.die()
            purse.join(name, worker.budget.spent)
        spent = sum(each.budget.spent.pico for each in workers.values()) + 10**8
        tokens = sum(each.budget.spent.tokens for each in workers.values()) + 100
        flying = [each.budget.reserved for each in workers.values()]
        if caps.cost:
            assert spent + sum(each.pico for each in flying) < caps.cost * PICO + max(bounds).pico
        if caps.tokens:
            assert tokens + sum(each.tokens for each in flying) < caps.tokens + max(each.tokens for each in bounds)
        done = not any(each.waiting or each.in_flight for each in workers.values())
        if done or (purse.exhausted and not any(each.in_flight for each in workers.values())):
            break
    else:
        raise AssertionError("nobody may send, and there is money left")
    if not done:
        assert (caps.cost and spent >= caps.cost * PICO) or (caps.tokens and tokens >= caps.tokens)
        assert isinstance(purse.spent().reached(), BudgetReached)


def test_money_for_one_at_a_time() -> None:
    """Where the rest suffices for less than one request each, it is nobody's alone, and the last one may pass it."""
    purse = Purse(Budget(Tariff(lambda _: None, "m"), Caps(tokens=150)))
    for name in "ab":
        purse.join(name, NOTHING)
    need = Amount(0, 100)
    assert purse.allow("a", Claim(lacks=need), busy=True).tokens == 100
    assert purse.allow("b", Claim(lacks=need), busy=True).tokens == 100
    assert purse.allow("a", Claim(allowed=need, lacks=need), busy=True).tokens == 100
    assert purse.allow("a", Claim(spent=Amount(0, 30), allowed=Amount(0, 30), lacks=need), busy=True).tokens == 130
    assert not purse.exhausted


def test_equal_shares() -> None:
    """A worker that asks first and often does not get what the other one can use."""
    purse = Purse(Budget(Tariff(lambda _: None, "m"), Caps(tokens=1000)))
    for name in "ab":
        purse.join(name, NOTHING)
    need, allowed = Amount(0, 100), NOTHING
    for _ in range(20):
        allowed = purse.allow("a", Claim(allowed=allowed, lacks=need), busy=True)
    assert 490 <= allowed.tokens <= 500
    assert purse.allow("b", Claim(lacks=need), busy=True).tokens >= 250


def test_worker_that_is_gone() -> None:
    """What it may have spent counts until it is back, and then what it has."""
    purse = Purse(Budget(Tariff(lambda _: None, "m"), Caps(tokens=100)))
    purse.join("a", NOTHING)
    assert purse.allow("a", Claim(lacks=Amount(0, 100)), busy=True).tokens == 100
    assert not purse.spent().exhausted
    purse.leave("a")
    assert purse.spent().exhausted
    purse.join("a", Amount(0, 10))
    assert purse.spent().spent.tokens == 10


def test_spent_before_a_death(tmp_path: Path) -> None:
    """A process that takes another one's place knows by their store what that one has paid."""
    store = Store(tmp_path / "store.sqlite")
    store.begin_run(1.0, ".")
    store.keep_reply(b"k", Reply(text="", finish_reason="stop", model="m", usage=Usage(10, 1)))
    store.keep_unanswered(Usage(5, 5))
    budget = Allowance(Tariff(lambda _: None, "m"), NO_CAPS, on_loss=lambda _: None)
    assert recall_spending(budget, store.paid_by(1.0), store.lost_by(1.0)) == Usage(10, 1)
    assert budget.spent.tokens == 21
    store.close()


@pytest.mark.parametrize("seed", range(3))
async def test_workers_keep_a_cap(server: LoopbackServer, write_log: WriteLog, tmp_path: Path, seed: int) -> None:
    """Two workers pass a cap by no more than one of them would, whatever replies take, and spend all of it."""
    chance = random.Random(seed)
    paid: list[int] = []

    def script(seen: Seen) -> Answer:
        answer = judge_by_hash(seen)
        assert isinstance(answer.body, dict)
        paid.append(chance.randint(10, 1500))
        answer.body["usage"] = {"prompt_tokens": paid[-1], "completion_tokens": 0, "total_tokens": paid[-1]}
        return Answer(body=answer.body, delay=chance.uniform(0, 0.02))

    server.script = script
    crew = Crew(server, tmp_path, Amounts(8), caps=Caps(tokens=60_000), parameters={"max_tokens": 300})
    async with asyncio.timeout(60):
        lines = await crew.judge(write_log(records(300)))
    assert isinstance((await crew.coordinator.progress()).error, BudgetReached)
    assert 60_000 <= sum(paid) < 60_000 + max(paid)
    assert len(lines) == len(paid) == len(server.seen) < 300


async def test_nobody_answers(server: LoopbackServer, write_log: WriteLog, tmp_path: Path) -> None:
    """Attempts without an answer, which may be billed, keep the cap as well: also the first ones of all."""
    server.script = lambda _: Answer(fault="cut", body=b"{}")
    crew = Crew(server, tmp_path, Amounts(4), caps=Caps(tokens=100), parameters={"max_tokens": 300})
    async with asyncio.timeout(60):
        assert await crew.judge(write_log(records(20))) == []
    assert isinstance((await crew.coordinator.progress()).error, BudgetReached)
    assert len(server.seen) == 1
