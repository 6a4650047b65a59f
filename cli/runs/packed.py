"""Records and outcomes as bytes, between processes of one run."""

import pickle
from dataclasses import dataclass, replace

import orjson

from ...evaluators.costs.tariff import Tariff
from ...evaluators.errors import Failure, FailureKind
from ...evaluators.evaluator import Evaluation
from ...evaluators.judging import Outcome
from ...evaluators.replies import Reply
from ..records.log import Position


def pack(position: Position) -> bytes:
    """A record and what goes along with it."""
    carried = {name: orjson.dumps(value) for name, value in position.carried.items()}
    return pickle.dumps((position.record, carried), pickle.HIGHEST_PROTOCOL)


def unpack(data: bytes) -> Position:
    """The same as it was packed by a process of this run; nothing else may be given."""
    record, carried = pickle.loads(data)  # noqa: S301  # by our own process, through Ray, which does the same
    return Position(record, None, {name: orjson.Fragment(value) for name, value in carried.items()})


@dataclass(frozen=True, slots=True)
class _Counted:
    """What is counted of an outcome; texts are in its row."""

    score: float | None
    facts: tuple[object, ...] | None
    kind: FailureKind | None
    replies: list[Reply]
    found: list[Reply]
    requests: int
    reused: int
    repaired: bool


def pack_outcome(outcome: Outcome) -> bytes:
    """What is counted of an outcome."""
    evaluation, failure = outcome.evaluation, outcome.failure
    counted = _Counted(
        score=evaluation.score if evaluation else None,
        facts=evaluation.facts if evaluation else None,
        kind=failure.kind if failure else None,
        replies=_without_texts(outcome.replies),
        found=_without_texts(outcome.found),
        requests=outcome.requests,
        reused=outcome.reused,
        repaired=outcome.repaired,
    )
    return pickle.dumps(counted, pickle.HIGHEST_PROTOCOL)


def _without_texts(replies: list[Reply]) -> list[Reply]:
    return [replace(reply, text=None, refusal=None) for reply in replies]


def unpack_outcome(data: bytes, tariff: Tariff) -> Outcome:
    """An outcome that counts as the one that was packed."""
    counted: _Counted = pickle.loads(data)  # noqa: S301  # as above
    facts = counted.facts
    return Outcome(
        evaluation=None if facts is None else Evaluation(score=counted.score, outputs={}, facts=facts),
        failure=Failure(counted.kind, "") if counted.kind else None,
        replies=counted.replies,
        found=counted.found,
        tariff=tariff,
        requests=counted.requests,
        reused=counted.reused,
        repaired=counted.repaired,
    )
