"""What the replies of one judge cost."""

from collections.abc import Callable, Iterable

from ..replies import Reply
from .extra import extra_price, extra_version
from .price import FREE, Parts, Price, dollars
from .price_list import PriceList, find_price, own_prices


class Tariff:
    """Prices of the model that is asked, and of those that an endpoint answers with in its place."""

    def __init__(self, find: Callable[[str], Price | None], model: str, *, basis: object = None) -> None:
        """`basis` tells what the prices come from, so that other prices can be told from them."""
        self.model = model
        self._find = find
        self.price = find(model)
        """Of the model that is asked; None where it is not known."""
        self.basis = [basis, self.price and self.price.describe()]
        """What costs depend on."""
        self._found: dict[str, Price | None] = {}

    def price_of(self, name: str | None) -> Price | None:
        """The price of a model by the name that a reply bears; that of the model that was asked where it has none."""
        if name is None:
            return self.price
        if name not in self._found:
            self._found[name] = self._find(name) or self.price
        return self._found[name]

    def cost(self, replies: Iterable[Reply]) -> float | None:
        """USD at list price, 0 for no replies; None where a price is not known."""
        total = 0
        for reply in replies:
            price = self.price_of(reply.model)
            if price is None:
                return None
            total += price.parts(reply.usage).total
        return dollars(total)

    def paid(self, reply: Reply) -> Parts | None:
        """What a reply was paid with; None where its price is not known.

        Rows show the list price (`cost`): a discount on how a reply was bought, as in a batch, has its place here.
        """
        price = self.price_of(reply.model)
        return price.parts(reply.usage) if price else None


def find_tariff(base_url: str | None, host: str, model: str, own: PriceList | None) -> Tariff:
    """The tariff of a model at a host: by the user's `own` prices, else by ours, else by genai-prices.

    Prices are those of the host that sells: a gateway, Azure or a machine of one's own has none but the user's.
    genai-prices is asked about a base URL, not at all where there is none.
    """
    lists = [own or {}, own_prices()]

    def find(name: str) -> Price | None:
        found = next((price for prices in lists if (price := find_price(prices, host, name))), None)
        return found or (extra_price(base_url, name) if base_url else None)

    return Tariff(find, model, basis=[_described(prices) for prices in lists] + [extra_version()])


def _described(prices: PriceList) -> object:
    return {host: {name: price.describe() for name, price in models.items()} for host, models in prices.items()}


FREE_TARIFF = Tariff(lambda _: FREE, "")
UNKNOWN_TARIFF = Tariff(lambda _: None, "")
