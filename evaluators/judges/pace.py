"""At most so much per minute."""

_BURST = 6
"""Parts of a minute's amount that may be spent at once."""


class Pace:
    """A bucket that fills at a steady rate and is emptied by what is sent (token bucket; RFC 2697's terms).

    An amount larger than the bucket is let through when the bucket is full, and paid off afterwards.
    """

    def __init__(self, per_minute: float, now: float) -> None:
        self._rate = per_minute / 60
        self._most = max(1.0, per_minute / _BURST)
        self._level = self._most
        self._filled = now

    def wait(self, amount: float, now: float) -> float:
        """Seconds until the amount may be spent."""
        self._fill(now)
        return max(0.0, min(amount, self._most) - self._level) / self._rate

    def spend(self, amount: float, now: float) -> None:
        """Take an amount out; a negative one gives back what was reserved and not used."""
        self._fill(now)
        self._level = min(self._most, self._level - amount)

    def _fill(self, now: float) -> None:
        self._level = min(self._most, self._level + max(0.0, now - self._filled) * self._rate)
        self._filled = now
