"""Limits, pauses and patience, with a scripted judge and no network."""

import asyncio
from collections.abc import Callable
from itertools import pairwise

import pytest

from ctxrel.evaluators import memory
from ctxrel.evaluators.errors import (
    EndpointDown,
    EndpointUnreachable,
    Failure,
    FailureKind,
    KeyRefused,
    MemoryBusy,
    OutputError,
    RateLimited,
)
from ctxrel.evaluators.judges.asking import Asker, Patience
from ctxrel.evaluators.judges.inside import InsideJudge
from ctxrel.evaluators.judges.limiter import Limiter, Limits
from ctxrel.evaluators.prompt import Prompt, Request
from ctxrel.evaluators.replies import Reply, Usage

REQUEST = Request(Prompt(name="x", system="s", schema={}), "{}")
REPLY = Reply(text="ok", finish_reason="stop", model="m", usage=Usage(1, 1, 0, 0))
QUICK = Patience(first_wait=0.001, longest_wait=0.002)


class ScriptedJudge(InsideJudge):
    """Gives what the script says for each number of a request; an exception is raised."""

    model = description = "scripted"
    known = reached = False

    def __init__(self, script: Callable[[int], Reply | Exception], *, concurrency: int = 4, delay: float = 0) -> None:
        super().__init__()
        self.concurrency = concurrency
        self.opened = self.in_flight = self.most = 0
        self.enlarged: list[bool] = []
        self._script = script
        self._delay = delay

    def fingerprint(self, prompt: Prompt) -> bytes:
        return prompt.name.encode()

    def parameters(self, prompt: Prompt) -> dict[str, object]:
        return prompt.parameters

    async def open(self) -> None:
        self.opened += 1
        await asyncio.sleep(0.01)

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:
        number = self.sent
        self.sent += 1
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
    assert refusing.sent == 1
    outcomes = await asyncio.gather(*tasks, return_exceptions=True)
    assert [type(outcome) for outcome in outcomes] == [KeyRefused] * 9
    assert refusing.sent == 1


@pytest.mark.parametrize("kind", ["timeout", "connection"])
async def test_nothing_was_ever_answered(kind: str) -> None:
    """An endpoint that never answered ends the run; one that did is worth an error row."""
    with pytest.raises(EndpointUnreachable):
        raise (await ask(ScriptedJudge(lambda _: failing(FailureKind(kind)))))[0]  # type: ignore[misc]
    judge = ScriptedJudge(lambda number: failing(FailureKind(kind)) if number else failing(FailureKind.SERVER_ERROR))
    (outcome,) = await ask(judge)
    assert isinstance(outcome, Failure)
    assert (outcome.kind, judge.sent) == (kind, QUICK.attempts)


async def test_only_the_first_is_tried_while_nothing_is_answered() -> None:
    """An endpoint that hangs is found out by one request and its tries, however many wait behind it."""
    judge = ScriptedJudge(lambda _: failing(FailureKind.TIMEOUT))
    outcomes = await ask(judge, 50)
    assert {type(outcome) for outcome in outcomes} == {EndpointUnreachable}
    assert judge.sent == QUICK.attempts


async def test_any_answer_opens_up() -> None:
    """An endpoint that refuses record after record is no reason to ask one after the other."""
    judge = ScriptedJudge(lambda _: failing(FailureKind.REJECTED), delay=0.01)
    await ask(judge, 20)
    assert judge.most == 4


@pytest.mark.parametrize("doubtful", [True, False], ids=["403 of a gateway", "401"])
async def test_a_refusal_that_may_be_meant_for_one_record(doubtful: bool) -> None:  # noqa: FBT001
    """Where others were answered a gateway's refusal is a failed record; one after the other they are meant for all."""
    refusal = KeyRefused("no")
    refusal.doubtful = doubtful
    judge = ScriptedJudge(lambda number: refusal if number == 1 or number > 3 else REPLY, concurrency=1)
    outcomes = await ask(judge, 30)
    kinds = [outcome if isinstance(outcome, str) else type(outcome).__name__ for outcome in outcomes]
    if doubtful:
        assert kinds == ["ok", "Failure", "ok", "ok", *["Failure"] * 5, *["KeyRefused"] * 21]
    else:
        assert kinds == ["ok", *["KeyRefused"] * 29]


@pytest.mark.parametrize("known", [True, False])
async def test_a_gateways_refusal_of_the_first(known: bool) -> None:  # noqa: FBT001
    """Whether the first refusal is the record's is known from an earlier run."""
    refusal = KeyRefused("no")
    refusal.doubtful = True
    judge = ScriptedJudge(lambda number: REPLY if number else refusal)
    judge.known = known
    asker = Asker(judge, QUICK)
    with pytest.raises(Failure if known else KeyRefused):
        await asker.ask(REQUEST, str, lambda _: None)


async def test_a_store_that_fails_stops_the_others() -> None:
    """Where a reply cannot be kept nothing else is sent: it would be paid for nothing."""

    def keep(_: Reply) -> None:
        raise OutputError("disk full")

    judge = ScriptedJudge(lambda _: REPLY, delay=0.01)
    asker = Asker(judge, QUICK)
    asked = [asker.ask(REQUEST, str, keep) for _ in range(30)]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {OutputError}
    assert judge.sent <= judge.concurrency


async def test_a_store_that_is_busy_is_waited_for() -> None:
    """While another program holds the store the event loop goes on, one reply at a time is tried, and none is lost."""
    kept: list[Reply] = []
    tries = ticks = 0

    def keep(reply: Reply) -> None:
        nonlocal tries
        tries += 1
        if ticks < 30:
            raise MemoryBusy("locked")
        kept.append(reply)

    async def tick() -> None:
        nonlocal ticks
        while True:
            ticks += 1
            await asyncio.sleep(0.01)

    ticking = asyncio.create_task(tick())
    judge = ScriptedJudge(lambda _: REPLY, concurrency=8)
    asker = Asker(judge, QUICK)
    asked = [asker.ask(REQUEST, lambda reply: str(reply.text), keep) for _ in range(40)]
    assert await asyncio.gather(*asked) == ["ok"] * 40
    ticking.cancel()
    assert (len(kept), judge.sent) == (40, 40)
    assert tries <= 40 + 8 + 30  # not each of those that wait


async def test_a_store_that_stays_busy(monkeypatch: pytest.MonkeyPatch) -> None:
    """A store that another program holds for long ends the run, and nothing else is sent."""
    monkeypatch.setattr(memory, "_BUSY_SECONDS", 0.3)

    def keep(_: Reply) -> None:
        raise MemoryBusy("locked")

    judge = ScriptedJudge(lambda _: REPLY, delay=0.01)
    asker = Asker(judge, QUICK)
    outcomes = await asyncio.gather(*(asker.ask(REQUEST, str, keep) for _ in range(30)), return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {MemoryBusy}
    assert judge.sent <= judge.concurrency


async def test_the_first_rate_limit_is_everybodys() -> None:
    """A pause that the very first answer asks for is kept by all who wait behind it."""
    loop = asyncio.get_running_loop()
    sent: list[float] = []

    def script(number: int) -> Reply | Exception:
        sent.append(loop.time())
        return REPLY if number else RateLimited("slow", wait=0.2)

    asker = Asker(ScriptedJudge(script, concurrency=8), QUICK)
    await asyncio.gather(*(asker.ask(REQUEST, str, lambda _: None) for _ in range(20)))
    assert min(sent[1:]) - sent[0] >= 0.19


async def test_no_larger_room() -> None:
    """Where the endpoint refuses the larger room the record stays truncated."""
    kinds = [FailureKind.TRUNCATED, FailureKind.REJECTED]
    (outcome,) = await ask(ScriptedJudge(lambda number: failing(kinds[number])))
    assert isinstance(outcome, Failure)
    assert outcome.kind is FailureKind.TRUNCATED


async def test_rate_limits_without_a_wait_grow() -> None:
    """`Retry-After: 0` is no licence to hammer: waits grow until the limit is gone."""
    loop = asyncio.get_running_loop()
    end = loop.time() + 0.4
    judge = ScriptedJudge(lambda _: RateLimited("slow", wait=0) if loop.time() < end else REPLY)
    asker = Asker(judge, Patience(first_wait=0.02, longest_wait=0.2))
    assert (
        await asyncio.gather(*(asker.ask(REQUEST, lambda r: str(r.text), lambda _: None) for _ in range(5)))
        == ["ok"] * 5
    )
    assert judge.sent < 60


async def test_kinds_share_one_budget() -> None:
    """Failures of changing kinds use up the same tries."""
    kinds = [FailureKind.SERVER_ERROR, FailureKind.TIMEOUT, FailureKind.CONNECTION]
    judge = ScriptedJudge(lambda number: failing(kinds[number % 3]))
    await ask(judge)
    assert judge.sent == QUICK.attempts


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


async def test_slots_go_to_who_came_first() -> None:
    """Nobody who comes later overtakes those who wait."""
    limiter = Limiter(Limits(most=1, fixed=True))
    order: list[int] = []

    async def take(number: int) -> None:
        async with limiter.slot():
            order.append(number)
            await asyncio.sleep(0)

    await asyncio.gather(*(take(number) for number in range(20)))
    assert order == list(range(20))


async def test_a_waiter_cancelled_with_its_turn_gives_it_back() -> None:
    """A slot that was handed to somebody who is cancelled before running is free again."""
    limiter = Limiter(Limits(most=1, fixed=True))
    held = asyncio.Event()

    async def hold() -> None:
        async with limiter.slot():
            await held.wait()

    first, second = asyncio.ensure_future(hold()), asyncio.ensure_future(hold())
    await asyncio.sleep(0)
    first.cancel()
    await asyncio.gather(first, return_exceptions=True)
    assert limiter.in_flight == 1  # handed over to the second, which has not run yet
    second.cancel()
    await asyncio.gather(second, return_exceptions=True)
    assert limiter.in_flight == 0
    async with limiter.slot():
        assert limiter.in_flight == 1


async def test_a_cancelled_waiter_passes_its_slot_on() -> None:
    """A slot given to somebody who has gone is not lost."""
    limiter = Limiter(Limits(most=1, fixed=True))
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


BRIEF = Patience(first_wait=0.001, longest_wait=0.002, trouble=10, outage_waits=(0.001, 0.002, 0.003))


async def ask_many(judge: ScriptedJudge, count: int, patience: Patience = BRIEF) -> tuple[Asker, list[object]]:
    """Ask about so many different records."""
    asker = Asker(judge, patience)
    requests = [Request(REQUEST.prompt, f'{{"number": {number}}}') for number in range(count)]
    asked = [asker.ask(request, lambda reply: str(reply.text), lambda _: None) for request in requests]
    return asker, await asyncio.gather(*asked, return_exceptions=True)


@pytest.mark.parametrize("kind", ["server_error", "timeout", "connection"])
async def test_an_endpoint_that_is_down_is_left_alone(kind: str) -> None:
    """Where nothing but errors comes any more the run ends after a bounded number of requests, and says so."""
    judge = ScriptedJudge(lambda number: REPLY if number < 20 else failing(FailureKind(kind)), delay=0.001)
    asker, outcomes = await ask_many(judge, 500)
    assert outcomes[:20].count("ok") >= 15
    assert any(isinstance(outcome, EndpointDown) for outcome in outcomes)
    down = asker.limiter.closed
    assert isinstance(down, EndpointDown)
    assert "run the same command again when it does" in str(down)
    assert judge.sent <= 20 + (10 + 2 * 4) + 4 + 2 * len(BRIEF.outage_waits)
    assert asker.failed[FailureKind(kind)] == judge.sent - 20


async def test_an_outage_that_ends() -> None:
    """An endpoint that is back in time is asked on; few records have failed meanwhile."""
    judge = ScriptedJudge(lambda number: failing(FailureKind.SERVER_ERROR) if 20 <= number < 40 else REPLY, delay=0.001)
    asker, outcomes = await ask_many(judge, 300, Patience(first_wait=0.001, longest_wait=0.002, trouble=10, outage_waits=(0.01,) * 5))  # fmt: skip
    assert outcomes.count("ok") >= 295
    assert asker.limiter.limit == 4
    assert asker.limiter.closed is None


async def test_errors_among_answers_are_no_outage() -> None:
    """An endpoint that fails half of the time is asked on."""
    judge = ScriptedJudge(lambda number: failing(FailureKind.SERVER_ERROR) if number % 2 else REPLY)
    asker, outcomes = await ask_many(judge, 300)
    assert asker.limiter.closed is None
    assert outcomes.count("ok") > 250


async def test_a_wait_that_an_error_names_is_everybodys() -> None:
    """`Retry-After` of a 503 holds up all."""
    loop = asyncio.get_running_loop()
    sent: list[float] = []

    def script(number: int) -> Reply | Exception:
        sent.append(loop.time())
        return Failure(FailureKind.SERVER_ERROR, "503", wait=0.2) if number == 3 else REPLY

    await ask_many(ScriptedJudge(script, concurrency=4, delay=0.002), 60)
    told = sent[3] + 0.002
    assert not [moment for moment in sent if told + 0.01 < moment < told + 0.19]


async def test_what_the_judge_says_of_its_limits() -> None:
    """A wait that the last answer's headers ask for is kept by all."""
    loop = asyncio.get_running_loop()
    sent: list[float] = []

    class Counting(ScriptedJudge):
        def wanted_wait(self) -> float:
            return 0.1 if self.sent % 10 == 0 else 0.0

    def script(_: int) -> Reply:
        sent.append(loop.time())
        return REPLY

    await ask_many(Counting(script, concurrency=1), 30)
    gaps = [after - before for before, after in pairwise(sent)]
    assert [place for place, gap in enumerate(gaps, start=1) if gap > 0.09] == [10, 20]


@pytest.mark.parametrize("first", [True, False])
async def test_a_record_that_takes_too_long_ends_no_run(first: bool) -> None:  # noqa: FBT001
    """Where somebody answers at the address, a record that times out for ever is one failure, also as the first."""
    judge = ScriptedJudge(lambda _: REPLY)
    judge.reached = True
    slow = Request(REQUEST.prompt, "slow")
    quick = [Request(REQUEST.prompt, f"{number}") for number in range(20)]

    async def ask_slowly(request: Request, **_: bool) -> Reply:
        judge.sent += 1
        if request is slow:
            raise failing(FailureKind.TIMEOUT)
        return REPLY

    judge.ask = ask_slowly  # type: ignore[method-assign]
    asker = Asker(judge, QUICK)
    order = [slow, *quick] if first else [*quick, slow]
    asked = [asker.ask(request, lambda reply: str(reply.text), lambda _: None) for request in order]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert outcomes.count("ok") == 20
    assert asker.limiter.closed is None
    assert asker.failed == {FailureKind.TIMEOUT: QUICK.attempts}


async def test_nothing_is_ever_answered_where_somebody_listens() -> None:
    """An endpoint that lists its models and answers no request is given up after three records."""
    judge = ScriptedJudge(lambda _: failing(FailureKind.TIMEOUT))
    judge.reached = True
    asker, outcomes = await ask_many(judge, 50, QUICK)
    assert isinstance(asker.limiter.closed, EndpointUnreachable)
    assert judge.sent <= 3 * QUICK.attempts + 1
    assert sum(isinstance(outcome, Failure) for outcome in outcomes) == 2


async def test_one_record_that_fails_is_no_outage() -> None:
    """However often one record is tried, it says nothing of the endpoint."""
    patient = Patience(attempts=80, first_wait=0.0001, longest_wait=0.0002, trouble=5, outage_waits=(0.001,))
    judge = ScriptedJudge(lambda number: REPLY if number < 5 else failing(FailureKind.SERVER_ERROR))
    asker = Asker(judge, patient)
    for number in range(5):
        await asker.ask(Request(REQUEST.prompt, f"{number}"), lambda _: None, lambda _: None)
    with pytest.raises(Failure):
        await asker.ask(REQUEST, lambda _: None, lambda _: None)
    assert (judge.sent, asker.limiter.closed) == (85, None)


async def test_records_that_failed_before_are_no_outage() -> None:
    """A finished run's failed records may fail again, as many as there are."""
    asker = Asker(ScriptedJudge(lambda _: failing(FailureKind.SERVER_ERROR)), BRIEF)
    requests = [Request(REQUEST.prompt, f"{number}") for number in range(100)]
    asked = [asker.ask(request, lambda _: None, lambda _: None, suspect=True) for request in requests]
    outcomes = await asyncio.gather(*asked, return_exceptions=True)
    assert {type(outcome) for outcome in outcomes} == {Failure}
    assert asker.limiter.closed is None


async def test_a_rejection_ends_an_outage() -> None:
    """An endpoint that answers with a 400 is there again."""
    script = {number: failing(FailureKind.SERVER_ERROR) for number in range(20, 42)}
    judge = ScriptedJudge(lambda number: script.get(number) or failing(FailureKind.REJECTED if number % 4 else FailureKind.SERVER_ERROR))  # fmt: skip
    asker, _ = await ask_many(judge, 300)
    assert asker.limiter.closed is None
    assert asker.limiter.limit == 4


async def test_nothing_but_rate_limits() -> None:
    """An endpoint that answers nothing but 429 is given up in the end."""
    patience = Patience(first_wait=0.002, longest_wait=0.004, rate_limits=10_000, rate_limited_for=0.3)
    asker, outcomes = await ask_many(ScriptedJudge(lambda _: RateLimited("slow", wait=None)), 20, patience)
    assert isinstance(asker.limiter.closed, EndpointDown)
    assert "nothing but rate limits" in str(asker.limiter.closed)
    assert {type(outcome) for outcome in outcomes} == {EndpointDown}


async def test_one_cut_for_all_that_were_sent_before() -> None:
    """Answers to requests from before the cut tell of the same rate limit, however late they come."""
    limiter = Limiter(Limits(most=64))
    limiter.open()
    limiter.growth._set(64, 0.0)
    loop = asyncio.get_running_loop()
    started = loop.time()
    for _ in range(10):
        limiter.pause(0.001, started)
        await asyncio.sleep(0.002)
    assert limiter.limit == 32
    limiter.pause(0.001, loop.time())
    assert (limiter.limit, limiter.growth.cuts) == (16, 2)


async def test_tokens_are_counted_by_the_replies_there_were() -> None:
    """What is reserved for a reply is what replies have had, known once the first has come."""
    reply = Reply(text="ok", finish_reason="stop", model="m", usage=Usage(10, 2000, 0, 0))
    judge = ScriptedJudge(lambda _: reply, concurrency=64, delay=0.01)
    asker = Asker(judge, QUICK, Limits(most=64, fixed=True, tpm=60_000))
    requests = [Request(REQUEST.prompt, f"{number}") for number in range(64)]
    asked = [asyncio.ensure_future(asker.ask(request, lambda _: None, lambda _: None)) for request in requests]
    await asyncio.sleep(0.3)
    assert judge.sent <= 7
    for task in asked:
        task.cancel()
    await asyncio.gather(*asked, return_exceptions=True)


async def test_waits_named_to_many_at_once_count_once() -> None:
    """Nothing but rate limits ends as soon for many requests in flight as for one, however many are told to wait."""
    patience = Patience(first_wait=0.002, longest_wait=0.004, rate_limits=10_000, rate_limited_for=0.3)
    judge = ScriptedJudge(lambda _: RateLimited("slow", wait=0.01), concurrency=16)
    asker = Asker(judge, patience)
    asker._prove()
    requests = [Request(REQUEST.prompt, f"{number}") for number in range(40)]
    asked = [asker.ask(request, lambda _: None, lambda _: None) for request in requests]
    async with asyncio.timeout(20):
        await asyncio.gather(*asked, return_exceptions=True)
    assert isinstance(asker.limiter.closed, EndpointDown)
    loop = asyncio.get_running_loop()
    assert asker._limited_since is not None
    assert asker._named_waits <= loop.time() - asker._limited_since + 0.011
