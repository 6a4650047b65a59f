"""What a run may do in all, dealt out among its workers: at no moment is more in their hands than there is."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import NamedTuple


class Amounts(NamedTuple):
    """What may be done; None where there is no limit."""

    slots: int | None = None
    """Requests in flight."""
    rpm: float | None = None
    """Requests per minute."""
    tpm: float | None = None
    """Tokens per minute."""


NOBODY_SENDS = Amounts(0, 0.0, 0.0)
_IDLE = 0.1
"""What a worker without work has of a busy one's share: enough to begin with when work comes."""


@dataclass(kw_only=True)
class _Hand:
    """A worker's share."""

    busy: bool = True
    held: Amounts = field(default=NOBODY_SENDS)
    """What it may be using, by its last word and by what it was given since."""


class Dealer:
    """Deals a total out in equal shares to those that are busy.

    A share grows only by what others have let go of, which they say in their next report: shares of a moment ago are
    never in force beside those of now.
    """

    def __init__(self, total: Amounts) -> None:
        self._total = total
        self._hands: dict[str, _Hand] = {}

    def join(self, worker: str) -> None:
        """A worker starts, or starts anew: it holds nothing."""
        self._hands[worker] = _Hand()

    def leave(self, worker: str) -> None:
        """A worker is gone for good."""
        self._hands.pop(worker, None)

    def deal(self, worker: str, held: Amounts, *, busy: bool) -> Amounts:
        """A worker's new share; `held` is what it may be using at this moment."""
        hand = self._hands.setdefault(worker, _Hand())
        hand.busy = busy
        share = Amounts(
            slots=None if self._total.slots is None else self._slots(worker, self._total.slots),
            rpm=self._rate(worker, self._total.rpm, "rpm"),
            tpm=self._rate(worker, self._total.tpm, "tpm"),
        )
        hand.held = Amounts(
            slots=None if share.slots is None else max(held.slots or 0, share.slots),
            rpm=None if share.rpm is None else max(held.rpm or 0.0, share.rpm),
            tpm=None if share.tpm is None else max(held.tpm or 0.0, share.tpm),
        )
        return share

    def _slots(self, worker: str, total: int) -> int:
        """Whole ones: those that cannot be divided go to the first busy ones, and an idle worker keeps one."""
        busy = [name for name, hand in self._hands.items() if hand.busy]
        rest = total - (len(self._hands) - len(busy))
        if worker not in busy:
            fair = 1
        else:
            each, more = divmod(max(rest, 0), len(busy))
            fair = each + (busy.index(worker) < more)
        return max(0, min(fair, total - sum(hand.held.slots or 0 for hand in self._others(worker))))

    def _rate(self, worker: str, total: float | None, name: str) -> float | None:
        if total is None:
            return None
        weights = {each: 1.0 if hand.busy else _IDLE for each, hand in self._hands.items()}
        fair = total * weights[worker] / sum(weights.values())
        taken = sum(getattr(hand.held, name) or 0.0 for hand in self._others(worker))
        return max(0.0, min(fair, total - taken))

    def _others(self, worker: str) -> list[_Hand]:
        return [hand for name, hand in self._hands.items() if name != worker]

    @property
    def held(self) -> Mapping[str, Amounts]:
        """What each worker may be using."""
        return {name: hand.held for name, hand in self._hands.items()}
