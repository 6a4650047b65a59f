"""What the replies of a run were paid with."""

from ..replies import Reply
from .price import Parts, dollars
from .tariff import Tariff


class Bill:
    """Sums over replies that were paid for, and over those that need not be."""

    def __init__(self, tariff: Tariff) -> None:
        self.tariff = tariff
        self.parts = Parts()
        """Of the replies whose price is known."""
        self.unanswered = 0
        """Picodollars that attempts without a reply may have cost at most."""
        self.saved_by_caching = 0
        """Picodollars that the provider's prompt cache has saved."""
        self.saved_by_store = 0.0
        """USD that replies would have cost which were not asked for again."""
        self._known = tariff.price is not None

    @property
    def total(self) -> int | None:
        """Picodollars of this run's replies; None where the price of one is not known."""
        return self.parts.total if self._known else None

    def add(self, reply: Reply) -> Parts:
        """Count a reply, and give what it was paid with (nothing, where its price is not known)."""
        parts = self.tariff.paid(reply)
        price = self.tariff.price_of(reply.model)
        if parts is None or price is None:
            self._known = False
            return Parts()
        self.parts = self.parts.plus(parts)
        self.saved_by_caching += price.saved_by_caching(reply.usage)
        return parts

    def summary(self) -> dict[str, object] | None:
        """The run's cost in USD at list price, and what the price is; None where it is not known."""
        price = self.tariff.price
        if self.total is None or price is None:
            return None
        return {
            "currency": "USD",
            "total": dollars(self.total),
            **{name: dollars(part) for name, part in self.parts._asdict().items()},
            "unanswered": dollars(self.unanswered),
            "saved_by_store": round(self.saved_by_store, 12),
            "saved_by_caching": dollars(self.saved_by_caching),
            "price": {"model": self.tariff.model, **price.describe()},
        }
