"""Price lists: YAML files of hosts and the models that they sell."""

import datetime as dt
import re
from collections.abc import Mapping
from functools import lru_cache
from importlib.resources import files
from pathlib import Path

from .. import checks
from ..yaml_source import Place, Source, parse_yaml, read_yaml
from .price import Price

PriceList = Mapping[str, Mapping[str, Price]]
"""Prices by host, then by the family of models; the host `*` stands for every other."""
ANY_HOST = "*"
EXAMPLE = '"localhost": {models: {my-model: {input: 0, output: 0}}}'
"""A price list in a line, for messages."""
_DATED = re.compile(r"(?:-\d{4}-\d{2}-\d{2}|-20\d{6})$")
_PREFIX = "models/"
RATES = ("input", "cached_input", "cache_write", "output")
MOST = 1e6
"""USD for a million tokens; nothing costs a dollar for a token."""


def family(model: str) -> str:
    """A model's name without its date (`gpt-5-mini-2025-08-07`) and without Google's prefix (`models/…`)."""
    return _DATED.sub("", model.removeprefix(_PREFIX))


def find_price(prices: PriceList, host: str, model: str) -> Price | None:
    """The price of a model at a host, by its whole name before its family's; None where the list has none.

    `host` is that of the base URL, with its port if it has one; an entry without a port is for all ports.
    """
    for place in dict.fromkeys((host, re.sub(r":\d+$", "", host), ANY_HOST)):
        models = prices.get(place, {})
        for name in (model, family(model)):
            if price := models.get(name):
                return price
    return None


def read_prices(path: Path) -> PriceList:
    """The prices of a file. Raises DefinitionError with file, line, value and what would be right."""
    return _prices(read_yaml(path))


@lru_cache(maxsize=1)
def own_prices() -> PriceList:
    """The prices that come along."""
    text = files(__package__).joinpath("prices.yaml").read_text(encoding="utf-8")
    return _prices(parse_yaml(text, "prices.yaml"))


def _prices(source: Source) -> PriceList:
    if not isinstance(source.value, dict):
        source.fail((), f"expected hosts and their models, found {checks.kind_of(source.value)}; as {EXAMPLE}")
    return {host.lower(): _models(source, (host,), value) for host, value in source.value.items()}


def _models(source: Source, place: Place, value: object) -> dict[str, Price]:
    host = checks.mapping(source, place, value, required=["models"], optional=["source", "checked", "batch"])
    models = host["models"]
    if not isinstance(models, dict):
        source.fail((*place, "models"), f"expected models and their prices, found {checks.kind_of(models)}")
    shared = {key: value for key, value in host.items() if key != "models"}
    _price(source, place, {**shared, "input": 0, "output": 0})  # what is wrong in them is told with their own lines
    return {
        name: _price(source, (*place, "models", name), _joined(source, (*place, "models", name), shared, prices))
        for name, prices in models.items()
    }


def _joined(source: Source, place: Place, shared: Mapping[str, object], value: object) -> dict[str, object]:
    own = checks.mapping(
        source,
        place,
        value,
        required=["input", "output"],
        optional=["cached_input", "cache_write", "batch", "shutdown", "source", "checked"],
    )
    return {**shared, **own}


def _price(source: Source, place: Place, value: Mapping[str, object]) -> Price:
    rates = {name: _rate(source, (*place, name), value[name], MOST) for name in RATES if name in value}
    checked = _date(source, (*place, "checked"), value["checked"]) if "checked" in value else None
    return Price(
        input=rates["input"],
        output=rates["output"],
        cached_input=rates.get("cached_input", rates["input"]),
        cache_write=rates.get("cache_write"),
        batch=_rate(source, (*place, "batch"), value["batch"], 1) if "batch" in value else None,
        shutdown=_date(source, (*place, "shutdown"), value["shutdown"]) if "shutdown" in value else None,
        source=checks.text(source, (*place, "source"), value["source"]) if "source" in value else source.name,
        checked=checked.isoformat() if checked else "",
    )


def _rate(source: Source, place: Place, value: object, most: float) -> float:
    number = checks.number(source, place, value)
    if not 0 <= number <= most:
        source.fail(place, f"{place[-1]} is {number}; write a number from 0 to {most:g}")
    return number


def _date(source: Source, place: Place, value: object) -> dt.date:
    text = checks.text(source, place, value)
    try:
        return dt.date.fromisoformat(text)
    except ValueError:
        source.fail(place, f'{place[-1]} is {text!r}; write a day as "2026-12-11"')
