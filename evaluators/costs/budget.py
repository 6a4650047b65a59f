"""What a run may spend: reserved before a request leaves, settled by its reply."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import NamedTuple

from ..errors import BudgetReached
from ..replies import Reply, Usage
from .bill import Bill
from .price import PICO, dollars, show_dollars
from .tariff import UNKNOWN_TARIFF, Tariff


class Amount(NamedTuple):
    """Money and tokens."""

    pico: int = 0
    """Picodollars."""
    tokens: int = 0
    """In and out."""

    def plus(self, other: "Amount") -> "Amount":
        """Both."""
        return Amount(self.pico + other.pico, self.tokens + other.tokens)

    def minus(self, other: "Amount") -> "Amount":
        """What is left."""
        return Amount(self.pico - other.pico, self.tokens - other.tokens)


NOTHING = Amount()


@dataclass(frozen=True, kw_only=True)
class Caps:
    """What a run, with all earlier ones at the same output, may spend; None where there is no limit."""

    cost: float | None = None
    """USD."""
    tokens: int | None = None
    """In and out."""

    @property
    def any(self) -> bool:
        """Whether there is one."""
        return self.cost is not None or self.tokens is not None


NO_CAPS = Caps()


class Budget:
    """Keeps the account of a run. A request may leave while what is spent and reserved is below the caps.

    So a cap is passed by no more than one reply can add.
    """

    def __init__(
        self,
        tariff: Tariff = UNKNOWN_TARIFF,
        caps: Caps = NO_CAPS,
        *,
        earlier: Amount = NOTHING,
        on_loss: Callable[[Usage], None] = lambda _: None,
    ) -> None:
        """`earlier` was spent before this run; `on_loss` gets the bounds of attempts that had no reply."""
        self.bill = Bill(tariff)
        self.caps = caps
        self.spent = earlier
        """By this run and earlier ones, attempts that may have been billed without a reply included."""
        self.reserved = NOTHING
        """For what is in flight."""
        self._on_loss = on_loss

    def admits(self, bound: Amount) -> bool:  # noqa: ARG002  # one request may pass the cap, whatever it costs
        """Whether a request that can cost so much may leave now."""
        return not self.caps.any or not self._reached(self.spent.plus(self.reserved))

    @property
    def exhausted(self) -> bool:
        """Whether no request may leave any more."""
        return self._reached(self.spent)

    def check(self) -> None:
        """Raise BudgetReached where no request may leave any more."""
        if self.exhausted:
            raise self.reached()

    def check_batch(self, amount: Amount, requests: int) -> None:
        """Raise BudgetReached where a batch of so many requests, which can cost so much, could pass a cap."""
        caps, whole = self.caps, self.spent.plus(self.reserved).plus(amount)
        if caps.cost is not None and whole.pico > round(caps.cost * PICO):
            most, left = show_dollars(dollars(amount.pico)), caps.cost - dollars(whole.pico - amount.pico)
            raise BudgetReached(
                f"a batch of {requests:,} requests may cost up to {most}, and of --max-cost {caps.cost:g} no more than "
                f"{show_dollars(max(0.0, left))} is free; run the same command once other batches are collected, with "
                "a higher --max-cost, or without --batch"
            )
        if caps.tokens is not None and whole.tokens > caps.tokens:
            raise BudgetReached(
                f"a batch of {requests:,} requests may take up to {amount.tokens:,} tokens, more than is free of "
                f"--max-tokens-total {caps.tokens}; run the same command once other batches are collected, with a "
                "higher --max-tokens-total, or without --batch"
            )

    def bound(self, most: Usage, *, batch: bool = False) -> Amount:
        """The most that requests can cost which have no more tokens than this, live or in a batch."""
        price = self.bill.tariff.price
        return Amount(price.bound(most, batch=batch) if price else 0, most.input_tokens + most.output_tokens)

    def reserve(self, amount: Amount) -> None:
        """A request leaves."""
        self.reserved = self.reserved.plus(amount)

    def release(self, amount: Amount) -> None:
        """It is back."""
        self.reserved = self.reserved.minus(amount)

    def pay(self, reply: Reply) -> None:
        """Count a reply."""
        parts = self.bill.add(reply)
        self.spent = self.spent.plus(Amount(parts.total, reply.usage.input_tokens + reply.usage.output_tokens))

    def lose(self, most: Usage) -> None:
        """Count an attempt without a reply that may have been billed, as all that it can have cost."""
        amount = self.bound(most)
        self.bill.unanswered += amount.pico
        self.spent = self.spent.plus(amount)
        self._on_loss(most)

    def reached(self) -> BudgetReached:
        """Why the run ends."""
        caps = self.caps
        if caps.cost is not None and self.spent.pico >= round(caps.cost * PICO):
            spent = show_dollars(dollars(self.spent.pico))
            return BudgetReached(
                f"{spent} of --max-cost {caps.cost:g} are spent; run the same command with a higher --max-cost to go on"
            )
        return BudgetReached(
            f"{self.spent.tokens:,} tokens of --max-tokens-total {caps.tokens} are spent; run the same command with a "
            "higher --max-tokens-total to go on"
        )

    def summary(self) -> dict[str, object] | None:
        """The caps and what is spent of them; None where there are none."""
        if not self.caps.any:
            return None
        return {
            "max_cost": self.caps.cost,
            "max_tokens_total": self.caps.tokens,
            "spent": None if self.bill.tariff.price is None else dollars(self.spent.pico),
            "spent_tokens": self.spent.tokens,
        }

    def _reached(self, amount: Amount) -> bool:
        cost, tokens = self.caps.cost, self.caps.tokens
        over = cost is not None and amount.pico >= round(cost * PICO)
        return over or (tokens is not None and amount.tokens >= tokens)
