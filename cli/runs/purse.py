"""What a run may spend, handed out to its workers bit by bit."""

from collections.abc import Iterable
from dataclasses import dataclass
from functools import reduce
from typing import NamedTuple

from ...evaluators.costs.budget import NOTHING, Amount, Budget
from ...evaluators.costs.price import PICO

_UNCAPPED = 1 << 62


class Claim(NamedTuple):
    """A worker's word on what it spends; sums since it started."""

    spent: Amount = NOTHING
    allowed: Amount = NOTHING
    """What it goes on with until it is allowed more: spent, in flight, or kept for what comes next."""
    lacks: Amount | None = None
    """What the next request can cost beyond that; None where none waits."""


@dataclass(kw_only=True)
class _Pocket:
    """A worker's part."""

    spent: Amount = NOTHING
    allowed: Amount = NOTHING
    """What it may have spent by now."""
    busy: bool = True
    gone: bool = False

    @property
    def held(self) -> Amount:
        """Allowed, and not known to be spent."""
        return self.allowed.minus(self.spent)


class Purse:
    """Hands out allowances; who is allowed something may commit no more than that.

    As in one process the next request is allowed while what is spent, in flight and handed out is below the caps: so
    over all workers they are passed by no more than one reply can add. An allowance grows only by what is free or
    what another worker has said it let go of.
    """

    def __init__(self, budget: Budget) -> None:
        """`budget` knows the caps, and what earlier runs have spent."""
        self._budget = budget
        self._pockets: dict[str, _Pocket] = {}

    def join(self, worker: str, spent: Amount) -> None:
        """A worker starts, or starts anew with what processes before it are known to have `spent`."""
        self._pockets[worker] = _Pocket(spent=spent, allowed=spent)

    def leave(self, worker: str) -> None:
        """A worker is gone: what it was allowed counts as spent."""
        if pocket := self._pockets.get(worker):
            pocket.spent, pocket.gone = pocket.allowed, True

    def allow(self, worker: str, claim: Claim, *, busy: bool) -> Amount:
        """What a worker may spend in all from its start on: what it goes on with, and more while there is any."""
        pocket = self._pockets.setdefault(worker, _Pocket())
        pocket.spent, pocket.allowed = claim.spent, claim.allowed
        pocket.busy, pocket.gone = busy, False
        if busy:
            pocket.allowed = claim.allowed.plus(self._more(pocket, claim.lacks))
        return pocket.allowed

    @property
    def exhausted(self) -> bool:
        """Whether a cap is reached by what is spent."""
        return self.spent().exhausted

    def spent(self) -> Budget:
        """The budget with what workers have said they spent."""
        budget = Budget(self._budget.bill.tariff, self._budget.caps, earlier=self._budget.spent)
        for pocket in self._pockets.values():
            budget.spent = budget.spent.plus(pocket.spent)
        return budget

    def _more(self, pocket: _Pocket, lacks: Amount | None) -> Amount:
        """Half of what a worker has not of its equal share, at least what it lacks for one request."""
        left = self._left()
        free = left.minus(_sum(each.held for each in self._pockets.values()))
        if min(free) <= 0:
            return NOTHING
        workers = sum(each.busy and not each.gone for each in self._pockets.values())
        room = Amount(*(each // workers for each in left)).minus(pocket.held)
        more = Amount(*(max(0, min(each) // 2) for each in zip(free, room, strict=True)))
        if lacks and (pocket.held == NOTHING or _fits(lacks, room)):
            more = Amount(*map(max, more, lacks))
        return more

    def _left(self) -> Amount:
        """What is not spent."""
        caps = self._budget.caps
        total = Amount(
            _UNCAPPED if caps.cost is None else round(caps.cost * PICO),
            _UNCAPPED if caps.tokens is None else caps.tokens,
        )
        return total.minus(self.spent().spent)


def _sum(amounts: Iterable[Amount]) -> Amount:
    return reduce(Amount.plus, amounts, NOTHING)


def _fits(amount: Amount, room: Amount) -> bool:
    return all(one <= other for one, other in zip(amount, room, strict=True))
