"""How many may be in flight, how fast, and what everybody is told."""

import asyncio
import random
from collections.abc import Callable
from itertools import pairwise

import pytest

from ctxrel.evaluators.judges.growth import MOST, START, Growth
from ctxrel.evaluators.judges.limiter import Limiter, Limits
from ctxrel.evaluators.judges.pace import Pace


class Endpoint:
    """An endpoint in made-up time: each answer takes `latency` seconds, no more than `servers` are worked at once."""

    def __init__(self, growth: Growth, *, latency: float, servers: int, most: int = 10_000) -> None:
        self.growth = growth
        self.now = 0.0
        self._latency, self._servers, self._most = latency, servers, most
        growth.open(self.now)

    def answer(self, count: int) -> None:
        """Let it answer so many requests while as many as allowed are in flight."""
        for _ in range(count):
            in_flight = self.growth.limit
            if in_flight > self._most:
                self.growth.limited(self.now)
                in_flight = self.growth.limit
            self.now += self._latency / min(in_flight, self._servers)
            self.growth.answered(self.now, full=True)


def test_grows_while_it_is_of_use() -> None:
    """The limit doubles up to what the endpoint can work at once, and not far beyond."""
    growth = Growth()
    Endpoint(growth, latency=1.0, servers=64).answer(4000)
    assert growth.limit == 64
    assert max(step.limit for step in growth.course) == 128


def test_one_at_a_time() -> None:
    """Where more in flight bring nothing, few are in flight."""
    growth = Growth()
    Endpoint(growth, latency=1.0, servers=1).answer(2000)
    assert growth.limit == START
    assert max(step.limit for step in growth.course) == 2 * START


def test_grows_to_the_most_there_may_be() -> None:
    """An endpoint without an end is asked by so many and no more."""
    growth = Growth(100)
    Endpoint(growth, latency=1.0, servers=100_000).answer(5000)
    assert growth.limit == 100


def test_not_without_use() -> None:
    """While there is less to ask than might be asked, the limit stays."""
    growth = Growth()
    growth.open(0.0)
    for moment in range(2000):
        growth.answered(float(moment), full=False)
    assert growth.limit == START


def test_halved_and_grown_again() -> None:
    """Around the rate limit of an endpoint the limit goes up step by step and down by half."""
    growth = Growth()
    Endpoint(growth, latency=1.0, servers=10_000, most=50).answer(6000)
    limits = [step.limit for step in growth.course]
    assert growth.cuts > 3
    assert max(limits[5:]) <= 64
    assert min(limits[5:]) >= 20
    rises = [after - before for before, after in pairwise(limits[6:]) if after > before]
    assert max(rises) <= 50 // 8


def test_errors_pause_the_growth() -> None:
    """While many errors come the limit does not grow; it is not cut either."""
    growth = Growth()
    growth.open(0.0)
    for moment in range(1000):
        growth.answered(moment / 10, full=True)
        if moment % 5 == 0:
            growth.failed()
    assert growth.limit == START


def test_growth_among_errors() -> None:
    """An endpoint that fails now and then for ever is one whose limit grows again after a rate limit, step by step."""
    growth = Growth()
    growth.open(0.0)
    for _ in range(4):
        growth.limited(0.0)
    assert growth.limit == 1
    for moment in range(1000):
        growth.answered(moment / 10, full=True)
        if moment % 20 == 0:
            growth.failed()
    assert growth.limit > START
    assert max(after - before for before, after in pairwise(step.limit for step in growth.course)) <= growth.limit // 8


def test_what_brought_nothing_is_tried_again() -> None:
    """An endpoint that has become larger is found out."""
    growth = Growth()
    endpoint = Endpoint(growth, latency=1.0, servers=8)
    endpoint.answer(500)
    assert growth.limit == START
    endpoint._servers = 64
    endpoint.answer(20_000)
    assert growth.limit >= 32


def test_fixed() -> None:
    """A fixed number is that number whatever happens."""
    growth = Growth(12, fixed=True)
    growth.open(0.0)
    growth.limited(1.0)
    growth.failed()
    for moment in range(500):
        growth.answered(float(moment), full=True)
    assert (growth.limit, growth.cuts) == (12, 0)
    assert growth.summary() == {
        "fixed": True, "lowest": 12, "highest": 12, "last": 12, "cuts": 0, "course": [[0.0, 12]],
    }  # fmt: skip


def test_the_course_is_bounded() -> None:
    """However long a run takes, its account stays short, and begins and ends as it did."""
    growth = Growth()
    growth.open(0.0)
    for moment in range(1, 5000):
        growth.limited(float(moment))
        growth._set(growth.limit + 2, moment + 0.5)
    assert len(growth.course) <= 200
    assert growth.course[0] == (0.0, START)
    assert growth.course[-1].limit == growth.limit <= MOST


def test_pace() -> None:
    """Over any minute no more than so much, whatever the amounts; nothing is held up for longer than need be."""
    chance = random.Random(3)
    pace, now = Pace(600, 0.0), 0.0
    spent: list[tuple[float, int]] = []
    for _ in range(500):
        amount = chance.randrange(1, 40)
        now += pace.wait(amount, now)
        assert pace.wait(amount, now) < 1e-6
        pace.spend(amount, now)
        spent.append((now, amount))
    for begin, _ in spent:
        within = sum(amount for moment, amount in spent if begin <= moment < begin + 60)
        assert within <= 600 + 600 / 6 + 40
    total = sum(amount for _, amount in spent)
    assert now == pytest.approx((total - 100) / 10, rel=0.05)


def test_pace_of_more_than_the_bucket() -> None:
    """What is larger than the bucket goes when it is full, and is paid off."""
    pace = Pace(60, 0.0)
    assert pace.wait(1000, 0.0) == 0
    pace.spend(1000, 0.0)
    assert pace.wait(1, 0.0) == pytest.approx(991)
    pace.spend(-500, 0.0)  # half of it was not used
    assert pace.wait(1, 0.0) == pytest.approx(491)


async def sent_at(limits: Limits, count: int, tokens: int = 0) -> list[float]:
    limiter = Limiter(limits)
    limiter.open()
    loop = asyncio.get_running_loop()
    begun = loop.time()
    moments: list[float] = []

    async def send() -> None:
        async with limiter.slot(lambda: tokens):
            moments.append(loop.time() - begun)

    await asyncio.gather(*(send() for _ in range(count)))
    return moments


@pytest.mark.parametrize(
    ("limits", "tokens"),
    [(Limits(most=50, fixed=True, rpm=600), 0), (Limits(most=50, fixed=True, tpm=60_000), 100)],
    ids=["rpm", "tpm"],
)
async def test_a_pace_is_kept(limits: Limits, tokens: int) -> None:
    """After a burst of a sixth of a minute's amount requests go at a steady rate: ten a second here."""
    moments = await sent_at(limits, 104, tokens)
    assert moments[99] < 0.1
    assert 0.35 < moments[103] < 2
    assert moments == sorted(moments)


async def test_tokens_are_settled() -> None:
    """What was reserved and not used is given back."""
    limiter = Limiter(Limits(most=4, fixed=True, tpm=6000))
    limiter.open()
    async with limiter.slot(lambda: 1000):
        limiter.succeeded(reserved=1000, used=10)
    async with asyncio.timeout(0.5), limiter.slot(lambda: 900):
        pass


async def test_a_trip_lets_one_through_at_a_time() -> None:
    """After a trip one request at a time is let through, until one is answered."""
    limiter = Limiter(Limits(most=8, fixed=True))
    limiter.open()
    assert limiter.limit == 8
    limiter.trip(0.0)
    assert limiter.limit == 1
    limiter.succeeded()
    assert limiter.limit == 8


async def in_flight_never_above(limiter: Limiter, disturb: Callable[[], None]) -> int:
    most = 0

    async def work() -> None:
        nonlocal most
        async with limiter.slot():
            most = max(most, limiter.in_flight)
            assert limiter.in_flight <= max(limiter.growth.limit, 1) or limiter.growth.cuts
            await asyncio.sleep(random.random() / 1000)
            limiter.succeeded()
        disturb()

    await asyncio.gather(*(work() for _ in range(2000)))
    return most


async def test_never_above_the_limit() -> None:
    """However answers and cuts fall, nobody is let in above the limit."""
    random.seed(4)
    limiter = Limiter(Limits(most=64))
    limiter.open()
    most = await in_flight_never_above(
        limiter, lambda: limiter.pause(0.001, asyncio.get_running_loop().time()) if random.random() < 0.01 else None
    )
    assert 8 <= most <= 64
    assert limiter.in_flight == 0


async def test_a_closed_limiter_holds_nobody_up() -> None:
    """Who waits between two tries is told at once that there is none."""
    limiter = Limiter(Limits(most=1, fixed=True))
    waiting = asyncio.ensure_future(limiter.sleep(60))
    await asyncio.sleep(0)
    limiter.close(RuntimeError())
    await asyncio.wait_for(waiting, 1)
