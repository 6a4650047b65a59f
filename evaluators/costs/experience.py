"""What the replies so far tell of those to come: sums over them, kept by prompt."""

import math
from collections.abc import Mapping
from dataclasses import asdict, dataclass

from ..replies import Usage

_ENOUGH = 500


@dataclass(kw_only=True)
class Experience:
    """Sums over the replies to requests with the same prompt."""

    replies: int = 0
    estimated: float = 0.0
    """Tokens that the requests were estimated to have."""
    input: int = 0
    """Tokens that they had."""
    cached: int = 0
    output: int = 0
    squares: int = 0
    """Of the output tokens of each reply."""

    @property
    def wanting(self) -> bool:
        """Whether more replies would tell much more."""
        return self.replies < _ENOUGH

    def add(self, estimated: float, usage: Usage) -> None:
        """Count a reply."""
        self.replies += 1
        self.estimated += estimated
        self.input += usage.input_tokens
        self.cached += min(usage.cached_tokens, usage.input_tokens)
        self.output += usage.output_tokens
        self.squares += usage.output_tokens**2

    def plus(self, other: "Experience") -> "Experience":
        """Both."""
        return Experience(**{name: value + asdict(other)[name] for name, value in asdict(self).items()})

    def sums(self) -> dict[str, float]:
        """What is kept of it."""
        return asdict(self)

    @property
    def ratio(self) -> float | None:
        """Tokens for each that was estimated; None where there is nothing to go by."""
        return self.input / self.estimated if self.estimated else None

    @property
    def cached_share(self) -> float:
        """The share of the input that came from the provider's cache."""
        return self.cached / self.input if self.input else 0.0

    @property
    def mean_output(self) -> float:
        """Tokens of a reply."""
        return self.output / self.replies

    @property
    def output_deviation(self) -> float:
        """The standard deviation of the tokens of a reply."""
        variance = (self.squares - self.output**2 / self.replies) / max(1, self.replies - 1)
        return math.sqrt(max(0.0, variance))


def recall_experience(sums: Mapping[str, object]) -> Experience:
    """What was kept as `sums`; nothing where it cannot be read."""
    fields = {name: value for name in asdict(Experience()) if isinstance(value := sums.get(name), (int, float))}
    return Experience(**fields) if len(fields) == len(asdict(Experience())) else Experience()  # type: ignore[arg-type]  # JSON has no other whole numbers
