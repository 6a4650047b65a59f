"""What requests that have not been sent will take: tokens, money and time, each from low to high."""

import math
from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import NamedTuple

from .experience import Experience
from .price import LEAST_CACHED, Price
from .tokens import ERROR

SECONDS = 2.0
"""An answer is assumed to take so long."""
IN_FLIGHT = 32
"""So many requests are assumed to be in flight where their number is found out."""
_CITED = 0.1
"""Tokens for each of a record's that a reply may have which cites every sentence."""
_KNOWN = 20
"""Replies from which on what was seen counts more than what is assumed."""
_MEASURED_ERROR = 0.05
_REASONING = {"none": (0, 0, 50), "minimal": (0, 20, 100), "low": (50, 150, 500), "high": (500, 2000, 6000)}
_USUAL_REASONING = (100, 400, 1500)
"""Tokens of reasoning that are assumed for a reply: low, likely, high; by the effort that is asked for."""


class Range(NamedTuple):
    """A figure that is not known yet."""

    low: float
    likely: float
    high: float

    def plus(self, other: "Range") -> "Range":
        """Both, as if one were low whenever the other is."""
        return Range(*(mine + theirs for mine, theirs in zip(self, other, strict=True)))

    def times(self, factor: float) -> "Range":
        """So many of them."""
        return Range(*(factor * value for value in self))


NONE = Range(0, 0, 0)


@dataclass(kw_only=True)
class Workload:
    """The requests of one evaluator."""

    frame: float
    """Tokens of each request that are the same for all."""
    examples: float
    """Those of them that are worked examples."""
    replies: Sequence[float]
    """Tokens of the examples' replies."""
    limit: int
    """Tokens that a reply has at most."""
    reasons: bool
    """Whether the model reasons before it answers."""
    effort: str = ""
    experience: Experience = field(default_factory=Experience)
    """With this prompt."""
    ratio: float | None = None
    """Tokens for each estimated one, as the model was seen to count them with any prompt."""
    requests: int = 0
    records: float = 0.0
    """Tokens of all records."""

    @property
    def measured(self) -> bool:
        """Whether the length of replies was seen and not assumed."""
        return self.experience.replies >= _KNOWN

    @property
    def input(self) -> Range:
        """Tokens sent."""
        likely = (self.requests * self.frame + self.records) * (self.ratio or 1.0)
        error = _MEASURED_ERROR if self.ratio else ERROR
        return Range(likely * (1 - error), likely, likely * (1 + error))

    @property
    def output(self) -> Range:
        """Tokens received, reasoning included."""
        if self.measured:
            seen = self.experience
            spread = 2 * seen.output_deviation * math.sqrt(1 / seen.replies + 1 / max(1, self.requests))
            reply = Range(max(1.0, seen.mean_output - spread), seen.mean_output, seen.mean_output + spread)
        else:
            reply = self._assumed()
        return Range(*(min(tokens, self.limit) for tokens in reply)).times(self.requests)

    @property
    def cacheable(self) -> float:
        """The share of the input that a provider's cache can hold: the common beginning of all requests but one."""
        frame = self.frame * (self.ratio or 1.0)
        if frame < LEAST_CACHED or not self.requests:
            return 0.0
        return frame * (self.requests - 1) / self.input.likely

    @property
    def cached(self) -> Range:
        """The share of the input that comes from the provider's cache, where the price is low, likely and high."""
        likely = self.experience.cached_share if self.measured else 0.0
        return Range(max(self.cacheable, likely), likely, 0.0)

    def _assumed(self) -> Range:
        replies = self.replies or [20.0]
        visible = sum(replies) / len(replies)
        cited = _CITED * self.records / max(1, self.requests)
        shown = Range(min(replies) / 2, visible, 3 * max(replies) + cited)
        return shown.plus(Range(*_REASONING.get(self.effort, _USUAL_REASONING))) if self.reasons else shown


def cost(workloads: Sequence[Workload], price: Price) -> Range:
    """USD of all requests at list price."""
    total = NONE
    for work in workloads:
        sent, received, cached = work.input, work.output, work.cached
        rates = (price.input, price.input, price.dearest_input)
        total = total.plus(
            Range(
                *(
                    (tokens * ((1 - share) * rate + share * price.cached_input) + out * price.output) / 1e6
                    for tokens, share, rate, out in zip(sent, cached, rates, received, strict=True)
                )
            )
        )
    return total


def seconds(requests: int, tokens: float, *, in_flight: int | None, rpm: float | None, tpm: float | None) -> float:
    """Time for requests within the limits, whichever of them holds up longest."""
    limits = [requests * SECONDS / min(in_flight or IN_FLIGHT, max(1, requests))]
    if rpm:
        limits.append(60 * requests / rpm)
    if tpm:
        limits.append(60 * tokens / tpm)
    return max(limits)
