"""Limits, pauses and patience, with a scripted judge and no network."""

import asyncio
from collections.abc import Callable

import pytest

from ctxrel.evaluators.errors import EndpointUnreachable, Failure, FailureKind, KeyRefused, RateLimited
from ctxrel.evaluators.judges.asking import Asker, Patience
from ctxrel.evaluators.judges.limiter import Limiter
from ctxrel.evaluators.prompt import Prompt, Request
from ctxrel.evaluators.replies import Reply, Usage

REQUEST = Request(Prompt(name="x", system="s", schema={}), "{}")
REPLY = Reply(text="ok", finish_reason="stop", model="m", usage=Usage(1, 1, 0, 0))
QUICK = Patience(first_wait=0.001, longest_wait=0.002)


class ScriptedJudge:
    """Gives what the script says for each number of a request; an exception is raised."""

    model = description = "scripted"

    def __init__(self, script: Callable[[int], Reply | Exception], *, concurrency: int = 4, delay: float = 0) -> None:
        self.concurrency = concurrency
        self.opened = self.asked = self.in_flight = self.most = 0
        self.enlarged: list[bool] = []
        self._script = script
        self._delay = delay

    def fingerprint(self, prompt: Prompt) -> bytes:
        return prompt.name.encode()

    async def open(self) -> None:
        self.opened += 1
        await asyncio.sleep(0.01)

    async def close(self) -> None:
        pass

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:
        number = self.asked
        self.asked += 1
        self.in_flight += 1
        self.most = max(self.most, self.in_flight)
        self.enlarged.append(enlarged)
        await asyncio.sleep(self._delay)
        self.in_flight -= 1
        answer = self._script(number)
        if isinstance(answer, Exception):
            raise answer
        return answer


async def ask(judge: ScriptedJudge, times: int = 1) -> list[str | BaseException]:
    asker = Asker(judge, QUICK)
    asked = [asker.ask(REQUEST, lambda reply: str(reply.text), lambda _: None) for _ in range(times)]
    return await asyncio.gather(*asked, return_exceptions=True)


def failing(kind: FailureKind) -> Failure:
    return Failure(kind, "no")


async def test_first_request_goes_alone() -> None:
    """Until one request was answered nobody else sends; then as many as allowed, and never more."""
    judge = ScriptedJudge(lambda _: REPLY, delay=0.01)
    assert await ask(judge, 30) == ["ok"] * 30
    assert (judge.opened, judge.most) == (1, 4)
    refusing = ScriptedJudge(lambda _: KeyRefused("no"), delay=0.05)
    asker = Asker(refusing, QUICK)
    tasks = [asyncio.ensure_future(asker.ask(REQUEST, str, lambda _: None)) for _ in range(9)]
    await asyncio.sleep(0.04)
    assert refusing.asked == 1
    for task in tasks:
        task.cancel()
    await asyncio.gather(*tasks, return_exceptions=True)


@pytest.mark.parametrize("kind", ["timeout", "connection"])
async def test_nothing_was_ever_answered(kind: str) -> None:
    """An endpoint that never answered ends the run; one that did is worth an error row."""
    with pytest.raises(EndpointUnreachable):
        raise (await ask(ScriptedJudge(lambda _: failing(FailureKind(kind)))))[0]  # type: ignore[misc]
    judge = ScriptedJudge(lambda number: failing(FailureKind(kind)) if number else failing(FailureKind.SERVER_ERROR))
    (outcome,) = await ask(judge)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, judge.asked) == (kind, QUICK.attempts)


async def test_kinds_share_one_budget() -> None:
    """Failures of changing kinds use up the same tries."""
    kinds = [FailureKind.SERVER_ERROR, FailureKind.TIMEOUT, FailureKind.CONNECTION]
    judge = ScriptedJudge(lambda number: failing(kinds[number % 3]))
    await ask(judge)
    assert judge.asked == QUICK.attempts


async def test_enlarged_after_truncation() -> None:
    """After a truncated reply the next try has more room, and there is one such try."""
    judge = ScriptedJudge(lambda _: failing(FailureKind.TRUNCATED))
    await ask(judge)
    assert judge.enlarged == [False, True]


async def test_a_reply_is_kept_before_it_is_read() -> None:
    """What was paid for is kept even if it does not fit."""
    kept: list[Reply] = []

    def refuse(_: Reply) -> str:
        raise failing(FailureKind.INVALID_REPLY)

    asker = Asker(ScriptedJudge(lambda _: REPLY), QUICK)
    with pytest.raises(Failure):
        await asker.ask(REQUEST, refuse, kept.append)
    assert (len(kept), asker.sent, asker.usage.input_tokens) == (3, 3, 3)


async def test_one_pause_for_all() -> None:
    """While a rate limit lasts nobody sends, and the limit is cut once for all who are told so."""
    loop = asyncio.get_running_loop()
    sent: list[float] = []

    def script(number: int) -> Reply | Exception:
        sent.append(loop.time())
        return RateLimited("slow", wait=0.2) if 1 <= number <= 4 else REPLY

    judge = ScriptedJudge(script, concurrency=8, delay=0.01)
    asker = Asker(judge, QUICK)
    asked = [asker.ask(REQUEST, lambda reply: str(reply.text), lambda _: None) for _ in range(20)]
    assert await asyncio.gather(*asked) == ["ok"] * 20
    told = sent[1]
    assert not [moment for moment in sent if told + 0.02 < moment < told + 0.2]
    assert asker.limiter.limit >= 4


async def test_limit_grows_back() -> None:
    """After a cut the limit grows by one with as many good answers as it has slots, up to where it was."""
    limiter = Limiter(8)
    limiter.answered()
    assert limiter.limit == 8
    limiter.pause(0)
    assert limiter.limit == 4
    for _ in range(4 + 5):
        limiter.answered()
    assert limiter.limit == 6
    for _ in range(100):
        limiter.answered()
    assert limiter.limit == 8


async def test_slots_go_to_who_came_first() -> None:
    """Nobody who comes later overtakes those who wait."""
    limiter = Limiter(1)
    order: list[int] = []

    async def take(number: int) -> None:
        async with limiter.slot():
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(take(number) for number in range(20)))
    assert order == list(range(20))


async def test_a_cancelled_waiter_passes_its_slot_on() -> None:
    """A slot given to somebody who has gone is not lost."""
    limiter = Limiter(1)
    held = asyncio.Event()

    async def hold() -> None:
        async with limiter.slot():
            await held.wait()

    async def use() -> None:
        async with limiter.slot():
            pass

    first = asyncio.ensure_future(hold())
    await asyncio.sleep(0)
    second = asyncio.ensure_future(use())
    third = asyncio.ensure_future(use())
    await asyncio.sleep(0)
    held.set()
    await first
    second.cancel()
    await asyncio.wait_for(third, 1)
    assert limiter.in_flight == 0


def test_full_jitter() -> None:
    """Waits are random up to a bound that doubles and is capped."""
    patience = Patience(first_wait=1, longest_wait=4)
    for tries, bound in ((1, 1), (2, 2), (3, 4), (9, 4)):
        waits = [patience.wait(tries) for _ in range(300)]
        assert 0 <= min(waits) < bound / 4
        assert bound * 3 / 4 < max(waits) <= bound
