"""Many records through one evaluator, concurrently, with results in the order of the records."""

import asyncio
from collections.abc import Callable, Iterable, Sequence

from .errors import RecordFailed
from .evaluator import Evaluator
from .judging import Judging, Outcome
from .record import Record

_AHEAD = 2
"""Records under way for each request that may be in flight: those that wait for another try hold up nobody."""


async def judge_batch(
    judging: Judging,
    evaluator: Evaluator,
    records: Sequence[Record],
    *,
    stop_on_failure: bool = False,
    on_done: Callable[[], object] = lambda: None,
) -> list[Outcome]:
    """The outcomes of all records; failures are data in them.

    Raises RunError where no record can be judged, and RecordFailed at the first failure with `stop_on_failure`.
    """
    outcomes: dict[int, Outcome] = {}
    rest = iter(enumerate(records))

    async def work(pairs: Iterable[tuple[int, Record]]) -> None:
        for place, record in pairs:
            outcome = outcomes[place] = await judging.judge(record, evaluator)
            on_done()
            if outcome.failure and stop_on_failure:
                failure = outcome.failure
                raise RecordFailed(f"record {place} failed: {failure.kind}: {failure.message}") from failure

    workers = [asyncio.create_task(work(rest)) for _ in range(_AHEAD * judging.asker.judge.concurrency)]
    try:
        await asyncio.gather(*workers)
    finally:
        for worker in workers:
            worker.cancel()
        await asyncio.gather(*workers, return_exceptions=True)
        await judging.cancel()
    return [outcomes[place] for place in range(len(records))]
