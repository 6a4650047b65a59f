"""What tokens cost: in whole picodollars, so that sums are exact and rows are the same on every machine."""

import datetime as dt
import math
from dataclasses import dataclass
from typing import NamedTuple

from ..replies import Usage

PICO = 10**12
"""Picodollars in a USD."""
_PER_TOKEN = 10**6
"""Picodollars for a token, by USD for a million of them."""
LEAST_CACHED = 1024
"""Tokens from which on the beginning of a prompt is kept in a provider's cache."""


class Parts(NamedTuple):
    """What replies cost, by what it was paid for; picodollars."""

    input: int = 0
    cached_input: int = 0
    output: int = 0
    """Without reasoning."""
    reasoning: int = 0

    @property
    def total(self) -> int:
        """All of it."""
        return sum(self)

    def plus(self, other: "Parts") -> "Parts":
        """The cost of both."""
        return Parts(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))


@dataclass(frozen=True, kw_only=True)
class Price:
    """List prices of a model, in USD for a million tokens."""

    input: float
    output: float
    """Reasoning included."""
    cached_input: float
    """Input that was read from the provider's prompt cache."""
    cache_write: float | None = None
    """Input that is written to that cache, where that costs more."""
    batch: float | None = None
    """The share of the price that a request in a batch pays, None where there is no batch or it is not known."""
    shutdown: dt.date | None = None
    """From which day on the model is announced to answer no more."""
    source: str = ""
    checked: str = ""
    """The day on which the source said so, as 2026-11-30."""

    def parts(self, usage: Usage) -> Parts:
        """What a reply costs.

        No usage tells how much was written to the cache: where that costs more, all input of a prompt that is long
        enough counts as written.
        """
        cached = min(usage.cached_tokens, usage.input_tokens)
        reasoning = min(usage.reasoning_tokens, usage.output_tokens)
        written = self.cache_write is not None and usage.input_tokens >= LEAST_CACHED
        return Parts(
            (usage.input_tokens - cached) * _rate(self.dearest_input if written else self.input),
            cached * _rate(self.cached_input),
            (usage.output_tokens - reasoning) * _rate(self.output),
            reasoning * _rate(self.output),
        )

    def saved_by_caching(self, usage: Usage) -> int:
        """Picodollars by which a reply was cheaper for what the provider had in its prompt cache."""
        return min(usage.cached_tokens, usage.input_tokens) * (_rate(self.input) - _rate(self.cached_input))

    def bound(self, most: Usage) -> int:
        """Picodollars that a request with so many tokens can cost at most."""
        return most.input_tokens * _rate(self.dearest_input) + most.output_tokens * _rate(self.output)

    @property
    def dearest_input(self) -> float:
        """The most that a token of input can cost."""
        return max(self.input, self.cache_write or 0.0)

    def describe(self) -> dict[str, object]:
        """The price for a summary."""
        return {
            "input": self.input,
            "cached_input": self.cached_input,
            "cache_write": self.cache_write,
            "output": self.output,
            "batch": self.batch,
            "source": self.source or None,
            "checked": self.checked or None,
        }


FREE = Price(input=0, output=0, cached_input=0, source="no endpoint is asked")
"""Of a judge that is no service."""


def _rate(usd: float) -> int:
    return round(usd * _PER_TOKEN)


def dollars(pico: int) -> float:
    """An amount in USD."""
    return pico / PICO


def show_dollars(usd: float) -> str:
    """An amount for people: `$12.40`, `$0.0312`, `$0.0000031`, `$0`."""
    if not usd:
        return "$0"
    places = max(4, 1 - math.floor(math.log10(usd)))
    return f"${usd:,.2f}" if usd >= 1 else f"${usd:.{places}f}"
