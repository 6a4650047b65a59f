"""Prices out of the package genai-prices (extra `prices`), asked where our own list has none."""

import datetime as dt
from importlib.metadata import PackageNotFoundError, version
from typing import Any

from .price import Price

PACKAGE = "genai-prices"


def extra_version() -> str | None:
    """The version of the package, None where it is not installed."""
    try:
        return version(PACKAGE)
    except PackageNotFoundError:
        return None


def extra_price(base_url: str, model: str) -> Price | None:
    """The price of a model behind a base URL, where it changes with the hour that of noon; None where it is not known.

    The host has to be known to the package: a name alone says nothing of who sells it.
    """
    if (known := extra_version()) is None:
        return None
    from genai_prices import Usage, calc_price  # noqa: PLC0415  # an extra

    noon = dt.datetime.now(dt.UTC).replace(hour=12, minute=0, second=0, microsecond=0)
    usage = Usage(input_tokens=1, output_tokens=1)
    try:
        found: Any = calc_price(usage, model, provider_api_url=base_url, genai_request_timestamp=noon).model_price
    except (LookupError, ValueError):  # it is not known, or not sold by the token
        return None
    rates = {name: _base(getattr(found, name, None)) for name in ("input_mtok", "output_mtok", "cache_read_mtok")}
    if rates["input_mtok"] is None or rates["output_mtok"] is None:
        return None
    cached = rates["cache_read_mtok"]
    return Price(
        input=rates["input_mtok"],
        output=rates["output_mtok"],
        cached_input=rates["input_mtok"] if cached is None else cached,
        cache_write=_base(getattr(found, "cache_write_mtok", None)),
        source=f"{PACKAGE} {known}",
    )


def _base(rate: Any) -> float | None:  # noqa: ANN401  # the package's own kinds of rates
    """A rate in USD for a million tokens; of one in tiers that for prompts of usual length."""
    rate = getattr(rate, "base", rate)
    return None if rate is None else float(rate)
