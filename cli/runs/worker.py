"""A worker: judges batches of records with a judge of its own, within its share of the run's limits."""

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field
from pathlib import Path
from traceback import extract_tb
from typing import Any, Protocol

from ...evaluators.costs.allowance import Allowance
from ...evaluators.costs.budget import Amount, Caps
from ...evaluators.costs.tariff import Tariff
from ...evaluators.errors import CtxrelError, Failure, FailureKind, RunError
from ...evaluators.evaluator import Evaluator
from ...evaluators.judges.asking import Asker, Patience
from ...evaluators.judges.dialect import recall_dialect
from ...evaluators.judges.endpoint import Api, find_endpoint
from ...evaluators.judges.growth import MOST
from ...evaluators.judges.judge import Judge
from ...evaluators.judges.limiter import Limits
from ...evaluators.judges.named import NAMED
from ...evaluators.judges.openai_chat import ChatJudge
from ...evaluators.judges.openai_decisions import DecisionsJudge
from ...evaluators.judging import Judging, Outcome
from ..records.log import Position
from .batch import Line, judge_batch, line_of
from .coordinator import News, Report, Share
from .experience import experience_of
from .gate import Gate
from .pricing import recall_spending
from .purse import Claim
from .runner import record_failed
from .shares import NOBODY_SENDS, Amounts
from .suspects import Attempt
from .worker_store import Run, WorkerStore

_REPORT_SECONDS = 0.5
_LEASE_SECONDS = 10.0
"""A worker that has not heard of its share for so long sends nothing."""
_GUILTY = "the worker's process ended each time when it judged this record: with others, in a small group, and alone"


class Meeting(Protocol):
    """The coordinator, as a worker sees it."""

    async def join(self, worker: str, spent: Amount) -> None:
        """Start, with what processes before this one have spent."""

    async def report(self, worker: str, report: Report) -> Share:
        """Tell what was done, and get a share."""

    async def listen(self, version: int) -> News:
        """Wait for news."""

    async def end(self, error: RunError) -> None:
        """End the run."""

    async def begin(self, worker: str, batch: int, indexes: Sequence[int]) -> Attempt:
        """Begin a batch."""

    async def judge(self, batch: int, indexes: Sequence[int]) -> None:
        """Tell which of its records are judged now."""

    async def finish(self, batch: int) -> None:
        """End a batch."""


@dataclass(frozen=True, kw_only=True)
class Assignment:
    """What every worker of a run is told; no secret is in it."""

    evaluators: Sequence[Evaluator]
    endpoint: Mapping[str, Any] | None
    """How the endpoint is found, in the worker's own environment, which holds the key; None for one of NAMED."""
    model: str
    api: Api
    facts: Mapping[str, object] | None
    """What an earlier run found out about the endpoint."""
    stores: Path
    """The folder of the workers' stores."""
    run: Run
    tariff: Tariff
    caps: Caps
    run_store: Path
    alone: bool
    """Whether nobody writes to the run's store while the run lasts."""
    concurrency: int | None
    attempts: int
    grace: float
    raise_on_failure: bool
    max_input_tokens: int | None


@dataclass(kw_only=True)
class _Done:
    """What the worker has done."""

    rows: int = 0
    failed: int = 0
    reused: int = 0
    notices: list[str] = field(default_factory=list)
    """Not told yet."""


class Worker:
    """Never raises while it judges: what goes wrong is told to the coordinator, and what rows there are come back."""

    def __init__(self, name: str, assignment: Assignment, coordinator: Meeting) -> None:
        self.name = name
        self._assignment = assignment
        self._coordinator = coordinator
        self._ranks = {evaluator.name: rank for rank, evaluator in enumerate(assignment.evaluators)}
        self._started: asyncio.Task[None] | None = None
        self._tasks: list[asyncio.Task[None]] = []
        self._share = NOBODY_SENDS
        self._done = _Done()
        self._hold = 0.0
        self._limited = self._ended = self._is_open = False

    async def judge(self, positions: Sequence[Position]) -> list[Line]:
        """The rows of a batch, without those that have no outcome where the run has ended meanwhile."""
        lines: list[Line] = []
        try:
            if self._started is None:
                self._started = asyncio.create_task(self._start())
            await asyncio.shield(self._started)
            if not self._ended and positions:
                await self._judge(positions, lines)
            if self._is_open:
                await self._report()  # before the rows leave: who counts them knows what they took
        except Exception as error:  # noqa: BLE001  # told to all
            await self._fail(error)
        return sorted(lines, key=lambda line: (line.position, self._ranks[line.evaluator]))

    async def close(self) -> None:
        """Stop reporting, close judge and store."""
        for task in self._tasks:
            task.cancel()
        await asyncio.gather(*self._tasks, return_exceptions=True)
        if self._is_open:
            await self._asker.close()
            self._store.close()

    async def _start(self) -> None:
        given = self._assignment
        self._gate, self._wake, self._reporting = Gate(), asyncio.Event(), asyncio.Lock()
        given.stores.mkdir(parents=True, exist_ok=True)
        self._store = WorkerStore(given.stores, self.name, given.run_store, run=given.run, alone=given.alone)
        judge = self._make_judge()
        fixed = given.concurrency is not None or given.endpoint is None
        self._limits = Limits(most=judge.concurrency, fixed=fixed)
        self._budget = Allowance(given.tariff, given.caps, on_loss=self._store.keep_unanswered)
        if given.caps.any:  # what a process of this name had paid before it was killed
            recall_spending(self._budget, self._store.paid(), self._store.lost())
        self._asker = Asker(judge, Patience(attempts=given.attempts), self._limits, self._budget)
        self._asker.limiter.on_hold, self._asker.limiter.on_short = self._held_up, self._wake.set
        self._judging = Judging(self._asker, self._store, max_input_tokens=given.max_input_tokens)
        await self._coordinator.join(self.name, self._budget.spent)
        self._is_open = True
        await self._report()
        self._tasks = [asyncio.create_task(self._report_often()), asyncio.create_task(self._listen())]

    def _make_judge(self) -> Judge:
        if self._assignment.endpoint is None:
            return NAMED[self._assignment.model]()
        endpoint = find_endpoint(**self._assignment.endpoint)
        concurrency, facts = self._assignment.concurrency or MOST, dict(self._assignment.facts or {})
        if self._assignment.api is Api.DECISIONS:
            service = f"{endpoint.address}/{Api.DECISIONS}"
            return DecisionsJudge(
                endpoint,
                concurrency=concurrency,
                known=bool(facts),
                on_answer=lambda: self._store.keep_facts(service, endpoint.model, {"answers": True}),
                on_notice=self._done.notices.append,
            )
        return ChatJudge(
            endpoint,
            concurrency=concurrency,
            dialect=recall_dialect(facts),
            on_dialect=lambda found: self._store.keep_facts(endpoint.address, endpoint.model, found),
            on_notice=self._done.notices.append,
        )

    async def _judge(self, positions: Sequence[Position], lines: list[Line]) -> None:
        """Judge a batch; the suspects among its records are judged in small groups, with nothing else beside them."""
        by_index = {position.record.index: position for position in positions}
        batch = positions[0].record.index
        async with self._gate.shared():
            attempt = await self._coordinator.begin(self.name, batch, list(by_index))
            for worker in attempt.workers:
                self._store.consult(worker)
            lines += self._given_up([by_index[index] for index in attempt.guilty()])
            lines += await self._rows([by_index[index] for index in by_index if index not in attempt.deaths])
        for group in attempt.groups():
            async with self._gate.exclusive():
                await self._coordinator.judge(batch, group)
                lines += await self._rows([by_index[index] for index in group])
        await self._coordinator.finish(batch)

    def _given_up(self, positions: Sequence[Position]) -> list[Line]:
        failure = Failure(FailureKind.BAD_INPUT, _GUILTY)
        return [
            line_of(position, evaluator, Outcome(failure=failure))
            for position in positions
            for evaluator in self._assignment.evaluators
        ]

    async def _rows(self, positions: Sequence[Position]) -> list[Line]:
        if self._ended:
            return []
        batch = await judge_batch(self._judging, self._assignment.evaluators, positions)
        self._count(batch.lines)
        if batch.error:
            await self._fail(batch.error)
        elif self._assignment.raise_on_failure:
            failed = {line.position: line.outcome.failure for line in batch.lines if line.outcome.failure}
            if failed:
                index, failure = next(iter(failed.items()))
                record = next(position.record for position in positions if position.record.index == index)
                await self._fail(record_failed(record, failure))
        return batch.lines

    def _count(self, lines: Sequence[Line]) -> None:
        self._done.rows += len(lines)
        self._done.failed += sum(line.outcome.failure is not None for line in lines)
        self._done.reused += sum(line.outcome.reused for line in lines)

    async def _fail(self, error: BaseException) -> None:
        """Tell everybody that the run has to end; an error of ours is told without what it was about."""
        if self._ended:
            return
        if isinstance(error, RunError):
            told = await self._asker.judge.explain(error) if self._is_open else error
        elif isinstance(error, CtxrelError):
            told = RunError(f"a worker cannot begin: {error}")
        else:
            frames = extract_tb(error.__traceback__)
            place = f" at {Path(frames[-1].filename).name}:{frames[-1].lineno}" if frames else ""
            told = RunError(f"a worker met an error of its own: {type(error).__name__}{place}")
        self._end()
        with suppress(Exception):  # nobody is left to be told
            await self._coordinator.end(told)

    def _end(self) -> None:
        """Send nothing more; what is in flight may finish while the grace lasts."""
        if self._ended:
            return
        self._ended = True
        if self._is_open:
            self._asker.limiter.close(RunError("the run has ended"))
            self._tasks.append(asyncio.create_task(self._cancel_later()))

    async def _cancel_later(self) -> None:
        await asyncio.sleep(self._assignment.grace)
        await self._judging.cancel()

    def _held_up(self, seconds: float, limited: bool) -> None:  # noqa: FBT001  # a callback takes no names
        self._hold = max(self._hold, seconds)
        self._limited |= limited
        self._wake.set()

    async def _report_often(self) -> None:
        while True:
            with suppress(TimeoutError):
                async with asyncio.timeout(_REPORT_SECONDS):
                    await self._wake.wait()
            self._wake.clear()
            try:
                async with asyncio.timeout(_LEASE_SECONDS):
                    await self._report()
            except TimeoutError:
                self._take(NOBODY_SENDS)
            except Exception as error:  # noqa: BLE001  # told to all, if anybody is left
                await self._fail(error)
                return

    async def _report(self) -> None:
        """Tell what was done and take a share; one report at a time, so that shares are taken in their order."""
        async with self._reporting:
            report = self._word()
            share = await self._coordinator.report(self.name, report)
            self._budget.allowed = share.allowed
            self._take(share.amounts)
            del self._done.notices[: len(report.notices)]

    def _word(self) -> Report:
        asker, done = self._asker, self._done
        hold, limited = self._hold, self._limited
        self._hold, self._limited = 0.0, False
        return Report(
            held=Amounts(
                slots=max(self._share.slots or 0, asker.limiter.in_flight), rpm=self._share.rpm, tpm=self._share.tpm
            ),
            money=self._claim(),
            busy=asker.limiter.busy or not self._tasks,
            sent=asker.sent,
            usage=asker.usage,
            failed=asker.failed.copy(),
            course=[[round(step.seconds, 1), step.limit] for step in asker.limiter.growth.course],
            experience=experience_of(asker),
            rows=done.rows,
            failed_rows=done.failed,
            reused=done.reused,
            notices=list(done.notices),
            hold=hold,
            limited=limited,
        )

    def _claim(self) -> Claim:
        """What is spent; of what is allowed and not used no more is kept than what the next requests need."""
        budget, limiter = self._budget, self._asker.limiter
        budget.let_go(keep=limiter.busy and not limiter.short)
        wanted = limiter.wanted
        return Claim(budget.spent, budget.allowed, None if wanted is None else budget.lacks(wanted))

    def _take(self, share: Amounts) -> None:
        """Use a share from now on."""
        self._share = share
        dealt = Limits(most=self._limits.most, fixed=False, rpm=share.rpm, tpm=share.tpm)
        if self._assignment.concurrency is not None:
            dealt = Limits(most=share.slots or 0, fixed=True, rpm=share.rpm, tpm=share.tpm)
        self._asker.limiter.deal(dealt)

    async def _listen(self) -> None:
        version = 0
        while not self._ended:
            try:
                news = await self._coordinator.listen(version)
            except Exception as error:  # noqa: BLE001  # told to all, if anybody is left
                await self._fail(error)
                return
            if news.version > version and news.hold:
                self._asker.limiter.heed(news.hold, limited=news.limited and news.told_by != self.name)
            version = news.version
            if news.ended:
                self._end()
