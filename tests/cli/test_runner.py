"""The run from inside: bounded, in order, and ending well whatever happens."""

import asyncio
import contextlib
import signal
from collections.abc import Callable, Iterator

import pytest

from ctxrel.cli.records.log import Position
from ctxrel.cli.runs import runner as runner_module
from ctxrel.cli.runs.feed import Feed
from ctxrel.cli.runs.runner import Interrupted, Runner
from ctxrel.cli.runs.store import Store
from ctxrel.evaluators import Record, load_evaluator
from ctxrel.evaluators.errors import InputError, OutputError, RunError
from ctxrel.evaluators.judges.asking import Asker
from ctxrel.evaluators.judges.offline import OfflineJudge
from ctxrel.evaluators.judging import Judging
from ctxrel.evaluators.prompt import Request
from ctxrel.evaluators.replies import Reply


class ListedLog:
    """A log of numbered records that may break off with an error."""

    def __init__(self, count: int, error: Exception | None = None, *, text: str = "a b.") -> None:
        self.read = 0
        self._count = count
        self._error = error
        self._text = text

    def records(self) -> Iterator[Position]:
        for index in range(self._count):
            self.read += 1
            yield Position(
                Record(index=index, id=str(index), where=f"log:{index}", question=f"q{index}?", contexts=(self._text,)),
                None,
            )
        if self._error:
            raise self._error


class Rows:
    """Rows kept in a list."""

    def __init__(self, *, fail_at: int | None = None) -> None:
        self.name = None
        self.backlog = 0
        self.rows: list[bytes] = []
        self._fail_at = fail_at
        self._written = 0

    def write(self, row: bytes) -> None:
        self._written += 1
        if self._written == self._fail_at:
            raise OutputError("no room")
        self.rows.append(row)

    def flush(self) -> None:
        pass

    def finish(self, *, complete: bool) -> None:
        pass


class SlowJudge(OfflineJudge):
    """Waits before it answers, the first request for as long as it is told."""

    def __init__(self, *, first: float, concurrency: int = 4) -> None:
        super().__init__()
        self.concurrency = concurrency
        self._first = first

    async def ask(self, request: Request, *, enlarged: bool = False) -> Reply:
        if "q1?" in request.user:
            await asyncio.sleep(self._first)
        return await super().ask(request, enlarged=enlarged)


Make = Callable[..., Runner]


@pytest.fixture
def make() -> Iterator[Make]:
    """Make a runner over a temporary store."""
    with contextlib.ExitStack() as opened:

        def make(log: ListedLog, rows: Rows, judge: OfflineJudge | None = None, *, grace: float = 5) -> Runner:
            store = opened.enter_context(contextlib.closing(Store(None)))
            judging = Judging(Asker(judge or OfflineJudge()), store)
            return Runner(log, [load_evaluator("context_relevance")], judging, rows, grace=grace)  # type: ignore[arg-type]

        yield make


async def test_a_log_that_breaks_off(make: Make) -> None:
    """A reader's error in the middle is the run's error, not the log's end; what was read before stays in order."""
    rows = Rows()
    runner = make(ListedLog(300, InputError("torn")), rows)
    with pytest.raises(RunError, match="torn"):
        await runner.run()
    assert runner.course.hashes is None
    assert rows.rows == sorted(rows.rows, key=lambda row: int(row.split(b'"index":')[1].split(b",")[0]))


async def test_a_bug_in_the_reader_is_no_end_either(make: Make) -> None:
    """Any error of the reader comes out."""
    with pytest.raises(ZeroDivisionError):
        await make(ListedLog(3, ZeroDivisionError()), Rows()).run()


async def test_rows_that_cannot_be_written(make: Make) -> None:
    """An output that fails ends the run with its error, and no row is written behind one that is missing."""
    rows = Rows(fail_at=10)
    with pytest.raises(OutputError, match="no room"):
        await make(ListedLog(100), rows).run()
    assert len(rows.rows) == 9


async def stop_when_still(runner: Runner, log: ListedLog) -> None:
    """Let the run go on until it reads no further, then end it."""
    running = asyncio.ensure_future(runner.run())
    still = before = 0
    while still < 3 or not log.read:
        still = still + 1 if log.read == before else 0
        before = log.read
        await asyncio.sleep(0.2)
    runner._end(Interrupted(signal.SIGINT))
    with pytest.raises(Interrupted):
        await running


async def test_reads_no_further_than_needed(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """While one record takes its time, a bounded number of others is read, judged and held."""
    monkeypatch.setattr(runner_module, "_UNWRITTEN_ROWS", 50)
    log, rows = ListedLog(100_000), Rows()
    await stop_when_still(make(log, rows, SlowJudge(first=60), grace=0.1), log)
    assert len(rows.rows) == 1
    assert 50 < log.read <= 50 + 2 * 64 + 8 + 2


async def test_large_rows_are_held_by_size(make: Make, monkeypatch: pytest.MonkeyPatch) -> None:
    """Rows that wait are bounded by their bytes as well."""
    monkeypatch.setattr(runner_module, "_UNWRITTEN_BYTES", 20_000)
    log = ListedLog(100_000)
    await stop_when_still(make(log, Rows(), SlowJudge(first=60), grace=0.1), log)
    assert log.read < 400


async def test_grace_ends(make: Make) -> None:
    """What is in flight may finish, for as long as the grace lasts."""
    runner = make(ListedLog(50), Rows(), SlowJudge(first=60), grace=0.2)
    running = asyncio.ensure_future(runner.run())
    await asyncio.sleep(0.2)
    runner._end(Interrupted(signal.SIGTERM))
    with pytest.raises(Interrupted):
        await asyncio.wait_for(running, 5)


async def test_fingerprint(make: Make) -> None:
    """The fingerprint tells logs apart by what is judged, and by nothing else."""

    async def fingerprint(log: ListedLog) -> str:
        runner = make(log, Rows())
        await runner.run()
        assert runner.course.hashes
        return runner.course.hashes.fingerprint

    assert await fingerprint(ListedLog(3)) == await fingerprint(ListedLog(3))
    assert await fingerprint(ListedLog(3)) != await fingerprint(ListedLog(4))
    assert await fingerprint(ListedLog(3)) != await fingerprint(ListedLog(3, text="a c."))


async def test_nothing_is_left_behind(make: Make) -> None:
    """After a run no task, no request and no waiting is left."""
    runner = make(ListedLog(200), Rows(), SlowJudge(first=0.01))
    await runner.run()
    assert runner.judging._under_way == {}
    assert runner.judging.asker.limiter.in_flight == 0
    assert len(asyncio.all_tasks()) == 1


async def test_feed_reads_a_bounded_number_ahead() -> None:
    """A reader that is faster than its reader waits."""
    taken: list[int] = []

    def items() -> Iterator[int]:
        for number in range(10_000):
            taken.append(number)
            yield number

    feed = Feed(items(), ahead=8)
    iterator = aiter(feed)
    assert await anext(iterator) == 0
    await asyncio.sleep(0.1)
    assert len(taken) <= 8 + 2
    feed.stop()
