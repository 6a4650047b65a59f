"""What one of several askers may spend of a budget that somebody else keeps."""

from collections.abc import Callable

from ..replies import Usage
from .budget import NOTHING, Amount, Budget, Caps
from .tariff import Tariff


class Allowance(Budget):
    """A budget that is never exhausted by itself: where the allowance is used up, who asks waits for more of it.

    It is never passed: a request leaves if all that it can cost is allowed.
    """

    def __init__(self, tariff: Tariff, caps: Caps, *, on_loss: Callable[[Usage], None]) -> None:
        super().__init__(tariff, caps, on_loss=on_loss)
        self.allowed = NOTHING
        """May be spent in all since the beginning, of what is capped."""

    @property
    def used(self) -> Amount:
        """What is spent, or may be by what is in flight."""
        return self.spent.plus(self.reserved)

    def admits(self, bound: Amount) -> bool:
        """Whether a request that can cost so much may leave now."""
        return not self.caps.any or not self._over(self.used.plus(bound))

    @property
    def exhausted(self) -> bool:
        """Never: whoever keeps the budget knows."""
        return False

    def let_go(self, *, keep: bool) -> None:
        """Give up what is not used: half of it, to go on with, or all of it."""
        used = self.used
        unused = self.allowed.minus(used)
        self.allowed = used.plus(Amount(*(max(0, left // 2) for left in unused))) if keep else used

    def lacks(self, bound: Amount) -> Amount:
        """What more has to be allowed for a request that can cost so much."""
        return Amount(*(max(0, more) for more in self.used.plus(bound).minus(self.allowed)))

    def _over(self, amount: Amount) -> bool:
        money = self.caps.cost is not None and amount.pico > self.allowed.pico
        return money or (self.caps.tokens is not None and amount.tokens > self.allowed.tokens)
