"""At most so much per minute."""

_BURST = 6
"""Parts of a minute's amount that may be spent at once."""


class Pace:
    """A bucket that fills at a steady rate and is emptied by what is sent (token bucket; RFC 2697's terms).

    An amount larger than the bucket is let through when the bucket is full, and paid off afterwards.
    """

    def __init__(self, per_minute: float, now: float, *, full: bool = True) -> None:
        self._rate = per_minute / 60
        self._most = max(1.0, per_minute / _BURST)
        self._level = self._most if full else 0.0
        self._filled = now

    def change(self, per_minute: float, now: float) -> None:
        """Another amount per minute from now on."""
        self._fill(now)
        self._rate = per_minute / 60
        self._most = max(1.0, per_minute / _BURST)
        self._level = min(self._most, self._level)

    def wait(self, amount: float, now: float) -> float:
        """Seconds until the amount may be spent; without an end where nothing may be."""
        self._fill(now)
        missing = max(0.0, min(amount, self._most) - self._level)
        return missing / self._rate if missing and self._rate else missing and float("inf")

    def spend(self, amount: float, now: float) -> None:
        """Take an amount out; a negative one gives back what was reserved and not used."""
        self._fill(now)
        self._level = min(self._most, self._level - amount)

    def _fill(self, now: float) -> None:
        self._level = min(self._most, self._level + max(0.0, now - self._filled) * self._rate)
        self._filled = now
