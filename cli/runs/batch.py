"""Records in, rows out: what every engine makes of a judgement."""

import asyncio
from collections.abc import Sequence
from typing import NamedTuple

from ...evaluators.evaluator import Evaluator
from ...evaluators.judging import Begun, Judging, Outcome
from ..records.log import Position
from .opinions.opinion import Opinion
from .results import result_row
from .tally import cluster_of

_AT_ONCE = 8


class Line(NamedTuple):
    """A finished row."""

    position: int
    """Of the record in the whole input."""
    row: bytes
    evaluator: str
    outcome: Outcome
    fraction: float | None
    cluster: int | None
    """Which question it is about."""
    stratum: str | None
    """Which part of the population the record was drawn from."""
    opinions: Sequence[Opinion] = ()
    """What further answers on the record say."""


class Batch(NamedTuple):
    """What became of some records."""

    lines: list[Line]
    """In the order of the records and of the evaluators, without those that have no outcome."""
    error: BaseException | None
    """Why there are fewer rows than there could be, None where there are all."""


def line_of(position: Position, evaluator: Evaluator, outcome: Outcome) -> Line:
    """The row of an outcome."""
    row = result_row(position.record, evaluator, outcome, position.carried)
    cluster = cluster_of(position.record.question)
    return Line(position.record.index, row, evaluator.name, outcome, position.fraction, cluster, position.stratum)


async def judge_batch(judging: Judging, evaluators: Sequence[Evaluator], positions: Sequence[Position]) -> Batch:
    """The rows of all records; it never raises, and what befalls one record is no other one's loss."""
    pairs = [(position, evaluator) for position in positions for evaluator in evaluators]
    begun: list[Begun | Exception] = []
    for number, (position, evaluator) in enumerate(pairs, start=1):
        try:
            begun.append(judging.begin(position.record, evaluator))
        except Exception as error:  # noqa: BLE001  # it is handed back
            begun.append(error)
        if number % _AT_ONCE == 0:
            await asyncio.sleep(0)  # what is in flight has its turn
    ends = await asyncio.gather(*(_end(judging, each) for each in begun), return_exceptions=True)
    lines: list[Line] = []
    errors: list[BaseException] = []
    for (position, evaluator), end in zip(pairs, ends, strict=True):
        if isinstance(end, Outcome):
            lines.append(line_of(position, evaluator, end))
        else:
            errors.append(end)
    told = [error for error in errors if not isinstance(error, asyncio.CancelledError)] or errors
    return Batch(lines, told[0] if told else None)


async def _end(judging: Judging, begun: Begun | Exception) -> Outcome:
    if isinstance(begun, Exception):
        raise begun
    return await judging.finish(begun)
