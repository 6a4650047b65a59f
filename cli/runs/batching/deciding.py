"""Whether a request without a usable reply is tried once more, by the same rules as in a live run."""

from collections.abc import Sequence

from ....evaluators.errors import Failure, FailureKind
from ....evaluators.judges.asking import Patience
from ....evaluators.judges.openai_chat import Room
from .parts import OTHER_WAY, REPLIED, Try


def next_try(
    tries: Sequence[Try], replies: Sequence[Failure], noted: Failure | None, patience: Patience
) -> Room | Failure:
    """How a request is tried next, or the failure that it ends with.

    `tries` are those of this run, `replies` what is wrong with each reply there is, also from earlier runs; `noted` is
    the failure that the last try without a reply has left.
    """
    answered = sum(one.outcome == REPLIED for one in tries)
    earlier = max(0, len(replies) - answered)
    since = iter(replies[earlier:])
    # A reply that was cut in an earlier run need not be cut again.
    kinds = [FailureKind.TRUNCATED] if any(one.kind is FailureKind.TRUNCATED for one in replies[:earlier]) else []
    room = Room.WANTED
    last: Failure | None = None
    for one in tries:
        outcome = one.outcome or ""
        if outcome.startswith(OTHER_WAY):
            room = Room[outcome.removeprefix(f"{OTHER_WAY}: ")]
            continue
        last = next(since, None) if outcome == REPLIED else noted or Failure(FailureKind(outcome), "it failed")
        kinds.append(last.kind if last and outcome == REPLIED else FailureKind(outcome))
    if last and not patience.allows(kinds):
        return last
    return Room.ENLARGED if FailureKind.TRUNCATED in kinds else room
