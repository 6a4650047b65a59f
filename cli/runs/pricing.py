"""What a run's replies cost, as far as that can be known before anything is sent."""

import datetime as dt
from collections.abc import Callable, Iterable
from pathlib import Path
from urllib.parse import urlsplit

from ...evaluators.costs.budget import Amount, Budget, Caps
from ...evaluators.costs.extra import extra_version
from ...evaluators.costs.price import show_dollars
from ...evaluators.costs.price_list import ANY_HOST, EXAMPLE, read_prices
from ...evaluators.costs.tariff import FREE_TARIFF, Tariff, find_tariff
from ...evaluators.errors import NotFinished, UsageError
from ...evaluators.judges.asking import Asker
from ...evaluators.judges.endpoint import Endpoint, is_loopback
from ...evaluators.judges.preflight import shutdown_notice
from ...evaluators.replies import Reply, Usage
from ...evaluators.wording import counted
from .batching.parts import State
from .store import Store

_UNDER_WAY = """
SELECT coalesce(sum(requests), 0) FROM batches
WHERE state IN (?, ?) AND run IN (SELECT number FROM batch_runs WHERE output = ?)
"""


def tariff_for(endpoint: Endpoint | None, prices: Path | None, caps: Caps) -> Tariff:
    """The tariff of an endpoint's model, of the offline judge where there is none.

    Raises UsageError where the price is not known and the cost is capped.
    """
    if endpoint is None:
        return FREE_TARIFF
    own = read_prices(prices) if prices else None
    sold = None if is_loopback(urlsplit(endpoint.base_url).hostname or "") else endpoint.base_url
    tariff = find_tariff(sold, endpoint.host, endpoint.model, own)
    if tariff.price is None and caps.cost is not None:
        host = urlsplit(endpoint.base_url).hostname or ANY_HOST
        example = EXAMPLE.replace("localhost", host).replace("my-model", endpoint.model)
        extra = ", install more prices (pip install 'ctxrel[prices]')" if sold and extra_version() is None else ""
        raise UsageError(
            f"no price of {endpoint.model!r} at {host} is known, so --max-cost cannot hold; name a file by "
            f"--prices with USD for a million tokens, as {example}{extra}, or use --max-tokens-total"
        )
    return tariff


def shutdown_warning(tariff: Tariff, today: dt.date) -> str | None:
    """That a model will soon answer no more by the price list, in the words for endpoints that say so themselves."""
    day = tariff.price.shutdown if tariff.price else None
    return shutdown_notice(tariff.model, day.isoformat(), today=today) if day else None


def spent_before(store: Store, tariff: Tariff, output: str, *, alone: bool) -> Amount:
    """What earlier runs of an output have spent, at today's prices."""
    total = Amount()
    for model, batch, usage in store.spent(output, alone=alone):
        price = tariff.price_of(model)
        paid = price.paid(usage, batch=batch).total if price else 0
        total = total.plus(Amount(paid, usage.input_tokens + usage.output_tokens))
    lost = store.unanswered(output)
    tokens = lost.input_tokens + lost.output_tokens
    most = tariff.price.bound(lost) if tariff.price else 0
    return total.plus(Amount(most, tokens))


def tell_of_batches(store: Store, output: Path, caps: Caps, *, warn: Callable[[str], None]) -> None:
    """Tell of an output's batches that are under way where it is about to be judged without them.

    Raises NotFinished where there is a cap: what they will cost is not known, and comes on top.
    """
    ((requests,),) = store.rows(_UNDER_WAY, (State.CREATING, State.SENT, str(output.resolve())))
    if not requests:
        return
    what = f"batches with {counted(requests, 'request')} are under way for this output"
    if caps.any:
        raise NotFinished(f"{what}, and what they will cost counts for the caps; collect them with --batch first")
    warn(f"{what}: what they answer is paid as well, and collected with --batch")


def cost_line(cost: dict[str, float]) -> str:
    """What a run has cost, in a line for people."""
    parts = [
        f"{name} {show_dollars(cost[key])}"
        for key, name in (
            ("input", "input"),
            ("cached_input", "cached input"),
            ("output", "output"),
            ("reasoning", "reasoning"),
        )
        if cost[key]
    ]
    saved = [
        f"{show_dollars(cost[key])} by {by}"
        for key, by in (("saved_by_store", "the store"), ("saved_by_caching", "the provider's cache"))
        if cost[key]
    ]
    line = f"cost: {show_dollars(cost['total'])}" + (f" ({', '.join(parts)})" if parts else "")
    if cost["unanswered"]:
        line += f"; attempts without a reply may have cost up to {show_dollars(cost['unanswered'])}"
    return line + (f"; saved: {', '.join(saved)}" if saved else "")


def settle(asker: Asker, store: Store, run: float) -> None:
    """Count what the run has paid by its replies: workers that were killed cannot tell."""
    asker.usage = recall_spending(asker.budget, store.paid_by(run), store.lost_by(run))


def recall_spending(budget: Budget, replies: Iterable[Reply], lost: Iterable[Usage]) -> Usage:
    """Count what a store has of a run's replies, and of its attempts without one; gives the replies' tokens."""
    usage = Usage()
    for reply in replies:
        usage = usage.plus(reply.usage)
        budget.pay(reply)
    for most in lost:
        amount = budget.bound(most)
        budget.bill.unanswered += amount.pico
        budget.spent = budget.spent.plus(amount)
    return usage
