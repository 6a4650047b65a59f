"""The run itself: read, judge, write in order, and end well whatever happens."""

import asyncio
import signal
from collections import Counter, deque
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import asynccontextmanager
from dataclasses import dataclass, field

from ...evaluators.errors import Failure, FailureKind, InputError, OutputError, RecordFailed, RunError
from ...evaluators.evaluator import Evaluator
from ...evaluators.judging import Begun, Judging, Outcome
from ...evaluators.record import Record
from ..records.log import Log, Position
from .batch import Line, line_of
from .feed import Feed
from .finished import Hashes, InputHash
from .opinions.opinion import Opinion
from .opinions.opinions import Opinions
from .results import Results
from .tally import Tally

GRACE_SECONDS = 30.0
"""How long what is in flight may take to finish once the run is to end."""
SIGNALS = (signal.SIGINT, signal.SIGTERM, signal.SIGHUP)
_AHEAD = 64
_UNWRITTEN_ROWS = 4096
_UNWRITTEN_BYTES = 32 << 20
_FLUSH_SECONDS = 0.5
_SETTLE_SECONDS = 1.0
"""At most, for replies that have just arrived to become rows."""
_POLL_SECONDS = 0.05
_AT_ONCE = 32


class Interrupted(RunError):
    """A signal asked the run to end."""

    def __init__(self, number: signal.Signals, advice: str = "") -> None:
        super().__init__(f"stopped by {number.name}{advice}")
        self.number = number


@dataclass(kw_only=True)
class Course:
    """How far a run has come, for progress and summary."""

    tallies: dict[str, Tally]
    records: int = 0
    """Records read."""
    rows: int = 0
    """Rows written."""
    fraction: float | None = None
    """Share of the input that is done, None where its size is unknown."""
    reused: int = 0
    """Requests that were not sent: answered from the store, or by one in flight for the same text."""
    unasked: int = 0
    """Rows that were evaluated without a request."""
    models: Counter[str] = field(default_factory=Counter)
    """Rows by the model's name as the endpoint returned it."""
    hashes: Hashes | None = None
    """Of the input; None until the whole of it is read."""

    @property
    def failed(self) -> int:
        """Rows that are errors."""
        return sum(tally.errors.total() for tally in self.tallies.values())

    def add(self, evaluator: str, outcome: Outcome, *, cluster: int | None, stratum: str | None) -> None:
        """Count a row that was written; `cluster` tells records of one question from others."""
        self.tallies[evaluator].add(outcome, cluster=cluster, stratum=stratum)
        self.rows += 1
        self.reused += outcome.reused
        self.unasked += outcome.requests == 0 and outcome.evaluation is not None
        if outcome.model:
            self.models[outcome.model] += 1


def population_of(log: Log) -> int | None:
    """The records that a simple random sample stands for; None for every other choice of records."""
    return log.sample.population if log.sample and not log.selection.by else None


def strata_of(log: Log) -> dict[str | None, int] | None:
    """The records of each stratum that a sample was drawn from; None where it was drawn by no field."""
    if not log.sample or not log.selection.by:
        return None
    return {value: stratum.population for value, stratum in log.sample.strata.items()}


class Runner:
    """One pass over a log."""

    def __init__(
        self,
        log: Log,
        evaluators: Sequence[Evaluator],
        judging: Judging,
        results: Results,
        *,
        raise_on_failure: bool = False,
        grace: float = GRACE_SECONDS,
        population: int | None = None,
        strata: Mapping[str | None, int] | None = None,
        opinions: Opinions | None = None,
    ) -> None:
        self.course = Course(
            tallies={each.name: Tally(each, population=population, strata=strata) for each in evaluators}
        )
        self.judging = judging
        self.opinions = opinions
        self._judgings = [judging, *(opinions.judgings if opinions else [])]
        self.askers = list({id(each.asker): each.asker for each in self._judgings}.values())
        """All who ask, the main one first."""
        self._log = log
        self._evaluators = evaluators
        self._results = results
        self._raise_on_failure = raise_on_failure
        self._grace = grace
        self._queue: deque[asyncio.Task[Line] | Line] = deque()
        self._at_once = 0
        self._unwritten = 0
        self._writable = True
        # Twice as many as can be in flight, so that those that wait for another try hold up nobody.
        self._room = asyncio.Semaphore(2 * judging.asker.judge.concurrency + _AHEAD)
        self._progressed = asyncio.Event()
        self._ended: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._hurry = asyncio.Event()

    async def run(self) -> None:
        """Judge the whole log. Raises RunError (also Interrupted) where the run ends before it."""
        async with self._signals(), self._flushing():
            dispatcher = asyncio.create_task(self._dispatch())
            try:
                await asyncio.wait({dispatcher, self._ended}, return_when=asyncio.FIRST_COMPLETED)
                if dispatcher.done() and (error := dispatcher.exception()):
                    self._end(error)
                if self._ended.done():
                    await self._drain()
                    self._ended.result()
            finally:
                dispatcher.cancel()
                await asyncio.gather(dispatcher, return_exceptions=True)
                await self._cancel_all()

    async def _dispatch(self) -> None:
        feed = Feed(self._log.records(), ahead=_AHEAD)
        hashes = InputHash()
        try:
            async for position in feed:
                hashes.add(position)
                self.course.records += 1
                for evaluator in self._evaluators:
                    if self._ended.done():
                        return
                    await self._start(position, evaluator)
        except InputError as error:
            raise RunError(str(error)) from error
        finally:
            feed.stop()
        while self._queue:
            await self._wait_for_progress()
        self._results.flush()
        while self._results.backlog:  # who reads the rows sets no event; a signal ends this wait
            await asyncio.sleep(_POLL_SECONDS)
            self._results.flush()
        self.course.hashes = hashes.result()

    async def _start(self, position: Position, evaluator: Evaluator) -> None:
        while len(self._queue) >= _UNWRITTEN_ROWS or self._unwritten > _UNWRITTEN_BYTES:
            await self._wait_for_progress()
        while self._results.backlog > _UNWRITTEN_BYTES:  # noqa: ASYNC110  # who reads the rows sets no event
            await asyncio.sleep(_POLL_SECONDS)
        begun = self.judging.begin(position.record, evaluator)
        if begun.ended and (self.opinions is None or begun.request is None):
            await self._finish_at_once(self._line(position, evaluator, begun.outcome))
            return
        await self._room.acquire()
        task = asyncio.create_task(self._judge(position, begun))
        task.add_done_callback(self._advance)
        self._queue.append(task)

    async def _finish_at_once(self, line: Line) -> None:
        """A row that needed no request, and so no task; others have their turn now and then."""
        self._queue.append(line)
        self._write_ready()
        self._at_once += 1
        if self._at_once % _AT_ONCE == 0:
            await asyncio.sleep(0)

    async def _wait_for_progress(self) -> None:
        self._progressed.clear()
        await self._progressed.wait()

    async def _judge(self, position: Position, begun: Begun) -> Line:
        try:
            outcome = await self.judging.finish(begun)
            opinions = await self.opinions.gather(position.record, begun) if self.opinions else ()
        finally:
            self._room.release()
        return self._line(position, begun.evaluator, outcome, opinions)

    def _line(
        self, position: Position, evaluator: Evaluator, outcome: Outcome, opinions: Sequence[Opinion] = ()
    ) -> Line:
        if self.opinions:
            carried = {**self.opinions.columns(outcome, opinions), **position.carried}
            line = line_of(position._replace(carried=carried), evaluator, outcome)._replace(opinions=opinions)
        else:
            line = line_of(position, evaluator, outcome)
        self._unwritten += len(line.row)
        if outcome.failure and self._raise_on_failure:
            self._end(record_failed(position.record, outcome.failure))
        return line

    def _advance(self, finished: asyncio.Task[Line]) -> None:
        """Write the rows whose turn it is."""
        if finished.cancelled():
            self._end(RunError("a record's judgement was cancelled from outside"))
        elif error := finished.exception():
            self._end(error)
        self._write_ready()
        self._progressed.set()

    def _write_ready(self) -> None:
        try:
            while self._writable and self._queue and (line := _finished(self._queue[0])):
                self._queue.popleft()
                self._write(line)
        except OutputError as error:
            self._writable = False  # a row that was not written must not be followed by one that was
            self._end(error)

    def _write(self, line: Line) -> None:
        self._results.write(line.row)
        self._unwritten -= len(line.row)
        self.course.add(line.evaluator, line.outcome, cluster=line.cluster, stratum=line.stratum)
        self.course.fraction = line.fraction
        if self.judging.saves:
            self.judging.asker.budget.bill.saved_by_store += line.outcome.saved
        if self.opinions:
            self.course.reused += self.opinions.count(line.evaluator, line.outcome, line.opinions)

    def _end(self, error: BaseException) -> None:
        if not self._ended.done():
            self._ended.set_exception(error)
            for asker in self.askers:
                asker.limiter.close(error)

    async def _drain(self) -> None:
        """Let what is in flight finish, for as long as the grace lasts and nobody is in a hurry."""
        waits = [asyncio.ensure_future(wait) for wait in (self._idle(), self._hurry.wait())]
        await asyncio.wait(waits, timeout=self._grace, return_when=asyncio.FIRST_COMPLETED)
        for wait in waits:
            wait.cancel()
        tasks = self._tasks()
        if tasks and not self._hurry.is_set():  # whoever waits for a slot is told that there is none
            await asyncio.wait(tasks, timeout=_SETTLE_SECONDS)

    async def _idle(self) -> None:
        for asker in self.askers:
            await asker.limiter.idle()

    async def _cancel_all(self) -> None:
        tasks = self._tasks()
        for task in tasks:
            task.cancel()
        for judging in self._judgings:
            await judging.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    def _tasks(self) -> list[asyncio.Task[Line]]:
        return [entry for entry in self._queue if not isinstance(entry, Line)]

    @asynccontextmanager
    async def _signals(self) -> AsyncIterator[None]:
        loop = asyncio.get_running_loop()
        # nohup ignores SIGHUP, and so does whoever it starts.
        numbers = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in numbers:
            loop.add_signal_handler(number, self._signalled, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _signalled(self, number: signal.Signals) -> None:
        if self._ended.done():
            self._hurry.set()
        self._end(Interrupted(number))

    @asynccontextmanager
    async def _flushing(self) -> AsyncIterator[None]:
        flusher = asyncio.create_task(self._flush_often())
        try:
            yield
        finally:
            flusher.cancel()
            await asyncio.gather(flusher, return_exceptions=True)

    async def _flush_often(self) -> None:
        while True:
            await asyncio.sleep(_FLUSH_SECONDS)
            try:
                self._results.flush()
            except OutputError as error:
                self._writable = False
                self._end(error)


def _finished(entry: "asyncio.Task[Line] | Line") -> Line | None:
    """The row of a queue's entry, None where there is none (yet)."""
    if isinstance(entry, Line):
        return entry
    return entry.result() if entry.done() and not entry.cancelled() and entry.exception() is None else None


def record_failed(record: Record, failure: Failure) -> RecordFailed:
    """The error of a run that is to stop at the first failed record."""
    place = "" if failure.kind is FailureKind.BAD_INPUT else f" ({record.where})"  # there it stands in the message
    return RecordFailed(f"record {record.id!r}{place} failed: {failure.kind}: {failure.message}")


def nothing_but_failures(course: Course, results: str | None) -> RunError | None:
    """The error of a run in which an evaluator could judge nothing at all, else None; `results` has its rows."""
    failed = {name: tally for name, tally in course.tallies.items() if tally.n and not tally.evaluated}
    if not failed:
        return None
    kinds = sorted({kind for tally in failed.values() for kind in tally.errors})
    by = f" by {' and '.join(failed)}" if len(failed) < len(course.tallies) else ""
    where = f"; see {results}" if results else ""
    return RunError(f"none of {course.records} records could be judged{by} ({', '.join(kinds)}){where}")
