"""The form of a price list, as `--prices` reads it."""

from ...evaluators.costs.price_list import MOST, RATES
from .parts import Schema, closed, document, entries, mapping, number, text

_TOLD = {
    "input": "USD for a million tokens that are sent and not read from the provider's cache.",
    "cached_input": "USD for a million tokens that are read from that cache; `input` by default.",
    "cache_write": "USD for a million tokens that are written to that cache, where they cost more than `input`.",
    "output": "USD for a million tokens that are received, reasoning included.",
}
_DAY = r"^\d{4}-?(\d{2}-?\d{2}|W\d{2}(-?\d)?)$"
_SHARED: dict[str, Schema] = {
    "source": text("Where the prices stand."),
    "checked": text('The day on which they stood there, as "2026-11-30".', pattern=_DAY),
    "batch": number("The share of the price that a request in a batch pays.", minimum=0, maximum=1),
}
_OWN: dict[str, Schema] = {
    **{name: number(_TOLD[name], minimum=0, maximum=MOST) for name in RATES},
    "shutdown": text('The day from which on the model answers no more, as "2026-12-11".', pattern=_DAY),
}


def prices_schema() -> Schema:
    """The form of a price list."""
    optional = [*_SHARED, *(name for name in _OWN if name not in ("input", "output"))]
    model = closed(entries("What a model costs; what is not here is that of its host.", {**_OWN, **_SHARED},
                           sometimes=optional))  # fmt: skip
    models = mapping("Prices by the model's name, with or without its date.", model)
    host = closed(entries("What a host sells.", {"models": models, **_SHARED}, sometimes=[*_SHARED]))
    return document(
        "prices",
        "A price list of ctxrel",
        "Prices by host (of the base URL, with or without its port; `*` for every other) and model, for --prices FILE.",
        {"type": "object", "additionalProperties": host},
    )
