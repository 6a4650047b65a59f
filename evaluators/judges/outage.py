"""Whether an endpoint is down: it answers nothing but errors, record after record."""

from collections.abc import Sequence


class Outage:
    """Counts the different records that failed since the last answer; one that fails again and again tells nothing."""

    def __init__(self, trouble: int, waits: Sequence[float]) -> None:
        """`trouble` records, and two for each slot, are an outage; `waits` are the seconds before each single probe."""
        self.requests = 0
        """Requests that failed since the last answer."""
        self._trouble = trouble
        self._waits = waits
        self._records: set[int] = set()
        self._trips = 0
        self._tripped_at = float("-inf")

    def answered(self) -> None:
        """The endpoint has answered, with whatever."""
        self._records.clear()
        self._trips = self.requests = 0

    def failed(self, record: int, *, retry: bool, started: float, now: float, slots: int) -> float | None:
        """Seconds for which nobody should send after a request failed that was `started` then.

        None as long as it is no outage, infinity where all probes have failed. That a record fails once more tells of
        an outage only where there is one already: at the end of a log those that cannot be judged are among themselves.
        """
        if started <= self._tripped_at:  # sent before, it tells nothing new
            return None
        self.requests += 1
        if retry and not self._trips:
            return None
        self._records.add(record)
        if not self._trips and len(self._records) < self._trouble + 2 * slots:
            return None
        if self._trips == len(self._waits):
            return float("inf")
        self._tripped_at = now
        self._trips += 1
        return self._waits[self._trips - 1]
