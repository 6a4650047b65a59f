"""What a run may spend, handed out to its workers bit by bit."""

from dataclasses import dataclass

from ...evaluators.costs.allowance import may_send
from ...evaluators.costs.budget import NOTHING, Amount, Budget
from ...evaluators.costs.price import PICO

_PARTS = 2
"""Each worker is allowed such a part of its equal share of what is left."""
_UNCAPPED = 1 << 62


@dataclass(kw_only=True)
class _Pocket:
    """A worker's part."""

    allowed: Amount = NOTHING
    spent: Amount = NOTHING

    @property
    def committed(self) -> Amount:
        """What it has spent, or may have by now."""
        return Amount(*map(max, self.allowed, self.spent))


class Purse:
    """Hands out allowances that with everything spent are never more than the caps.

    A worker passes its allowance by no more than one reply can add; nobody is allowed more after that.
    """

    def __init__(self, budget: Budget) -> None:
        """`budget` knows the caps, and what earlier runs have spent."""
        self._budget = budget
        self._pockets: dict[str, _Pocket] = {}
        self._gone = NOTHING

    def join(self, worker: str) -> None:
        """A worker starts, or starts anew: what the process before it was allowed counts as spent."""
        self.leave(worker)
        self._pockets[worker] = _Pocket()

    def leave(self, worker: str) -> None:
        """A worker is gone."""
        if pocket := self._pockets.pop(worker, None):
            self._gone = self._gone.plus(pocket.committed)

    def allow(self, worker: str, spent: Amount, *, busy: bool) -> Amount:
        """What a worker may spend in all from its start on; one without work is allowed nothing for the moment."""
        pocket = self._pockets.setdefault(worker, _Pocket())
        pocket.spent = pocket.allowed = spent
        if busy:
            free = self._free()
            parts = _PARTS * len(self._pockets)
            pocket.allowed = Amount(*(has + _part(left, parts) for has, left in zip(spent, free, strict=True)))
        return pocket.allowed

    @property
    def empty(self) -> bool:
        """Whether nothing is left, and no worker may send."""
        caps = self._budget.caps
        if not caps.any or may_send(caps, self._free(), NOTHING):
            return False
        return not any(may_send(caps, pocket.allowed, pocket.spent) for pocket in self._pockets.values())

    def spent(self) -> Budget:
        """The budget with what workers have said they spent."""
        budget = Budget(self._budget.bill.tariff, self._budget.caps, earlier=self._budget.spent.plus(self._gone))
        for pocket in self._pockets.values():
            budget.spent = budget.spent.plus(pocket.spent)
        return budget

    def _free(self) -> Amount:
        caps = self._budget.caps
        total = Amount(
            _UNCAPPED if caps.cost is None else round(caps.cost * PICO),
            _UNCAPPED if caps.tokens is None else caps.tokens,
        )
        taken = self._budget.spent.plus(self._gone)
        for pocket in self._pockets.values():
            taken = taken.plus(pocket.committed)
        return total.minus(taken)


def _part(left: int, parts: int) -> int:
    return max(1, left // parts) if left > 0 else 0
