"""What one of several askers may spend of a budget that somebody else keeps."""

from collections.abc import Callable

from ..replies import Usage
from .budget import NOTHING, Amount, Budget, Caps
from .tariff import Tariff


class Allowance(Budget):
    """A budget that is never exhausted by itself: where the allowance is spent, who asks waits for more of it.

    It is passed by no more than one reply can add.
    """

    def __init__(self, tariff: Tariff, caps: Caps, *, on_loss: Callable[[Usage], None]) -> None:
        super().__init__(tariff, caps, on_loss=on_loss)
        self.allowed = NOTHING
        """May be spent in all since the beginning, of what is capped."""

    @property
    def admits(self) -> bool:
        """Whether another request may leave now."""
        return not self.caps.any or may_send(self.caps, self.allowed, self.spent.plus(self.reserved))

    @property
    def exhausted(self) -> bool:
        """Never: whoever keeps the budget knows."""
        return False


def may_send(caps: Caps, allowed: Amount, spent: Amount) -> bool:
    """Whether something is left of all that is capped."""
    money = caps.cost is None or spent.pico < allowed.pico
    return money and (caps.tokens is None or spent.tokens < allowed.tokens)
