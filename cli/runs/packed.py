"""Records and outcomes as bytes, between processes of one run."""

import pickle
from dataclasses import dataclass, replace
from typing import NamedTuple

import orjson

from ...evaluators.costs.tariff import Tariff
from ...evaluators.errors import Failure, FailureKind
from ...evaluators.evaluator import Evaluation
from ...evaluators.judging import Outcome
from ...evaluators.replies import Reply
from ..records.log import Position
from .batch import Line


def pack(position: Position) -> bytes:
    """A record and what goes along with it."""
    carried = {name: orjson.dumps(value) for name, value in position.carried.items()}
    return pickle.dumps((position.record, carried, position.stratum), pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Position:
    """The same as it was packed by a process of this run; nothing else may be given."""
    record, carried, stratum = pickle.loads(data)  # noqa: S301  # by our own process, through Ray, which does the same
    return Position(record, None, {name: orjson.Fragment(value) for name, value in carried.items()}, stratum)


@dataclass(frozen=True, slots=True)
class _Packed:
    """What is counted of an outcome; texts are in its row."""

    score: float | None
    facts: tuple[object, ...] | None
    kind: FailureKind | None
    replies: list[Reply]
    found: list[Reply]
    requests: int
    reused: int
    repaired: bool
    cluster: int | None
    stratum: str | None


class Counted(NamedTuple):
    """What is counted of a row."""

    outcome: Outcome
    cluster: int | None
    stratum: str | None


def pack_outcome(line: Line) -> bytes:
    """What is counted of a row."""
    outcome = line.outcome
    evaluation, failure = outcome.evaluation, outcome.failure
    counted = _Packed(
        score=evaluation.score if evaluation else None,
        facts=evaluation.facts if evaluation else None,
        kind=failure.kind if failure else None,
        replies=_without_texts(outcome.replies),
        found=_without_texts(outcome.found),
        requests=outcome.requests,
        reused=outcome.reused,
        repaired=outcome.repaired,
        cluster=line.cluster,
        stratum=line.stratum,
    )
    return pickle.dumps(counted, pickle.HIGHEST_PROTOCOL)


def _without_texts(replies: list[Reply]) -> list[Reply]:
    return [replace(reply, text=None, refusal=None) for reply in replies]


def unpack_outcome(data: bytes, tariff: Tariff) -> Counted:
    """What counts as the row that was packed."""
    counted: _Packed = pickle.loads(data)  # noqa: S301  # as above
    facts = counted.facts
    outcome = Outcome(
        evaluation=None if facts is None else Evaluation(score=counted.score, outputs={}, facts=facts),
        failure=Failure(counted.kind, "") if counted.kind else None,
        replies=counted.replies,
        found=counted.found,
        tariff=tariff,
        requests=counted.requests,
        reused=counted.reused,
        repaired=counted.repaired,
    )
    return Counted(outcome, counted.cluster, counted.stratum)
