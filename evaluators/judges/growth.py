"""How many requests may be in flight: found out by what the endpoint does, or fixed."""

from typing import NamedTuple

START = 8
MOST = 256
_GAIN = 1.2
"""Times as many answers per second that twice as many in flight have to bring, or they are taken back."""
_FULL = 0.8
"""Share of a window's answers that have to come while all slots are in use."""
_FLAKY = 0.1
"""Errors for each answer of a window from which on they stop the growth: an endpoint that fails now and then for
ever has to be able to grow again after a rate limit."""
_LEAST_WINDOW = 16
_HOLD_WINDOWS = 50
"""Windows after which what brought nothing is tried again."""
_COURSE = 200


class Step(NamedTuple):
    """A change of the limit."""

    seconds: float
    """Since the first request."""
    limit: int


class _Level(NamedTuple):
    limit: int
    rate: float
    """Answers per second."""


class Growth:
    """The limit and its course.

    Doubled for as long as twice as many requests bring more answers per second and nothing goes wrong. Halved at a
    rate limit, then grown step by step (additive increase, multiplicative decrease; Chiu and Jain, Computer Networks
    17 (1989) 1). Errors and timeouts end the doubling, and where they are many the growth for a while. A fixed limit
    stays what it is.
    """

    def __init__(self, most: int = MOST, *, fixed: bool = False) -> None:
        self.most = most
        self.fixed = fixed
        self.limit = 1
        self.cuts = 0
        self.course: list[Step] = []
        self._begun: float | None = None
        self._doubling = True
        self._doubles_again = False
        self._before: _Level | None = None
        self._hold = 0
        self._new_window(skip=0)

    def deal(self, most: int) -> None:
        """Another fixed number from now on; until the endpoint has answered one of them is used, and none of 0."""
        self.most = most
        self.limit = min(most, 1) if self._begun is None else most

    def open(self, now: float) -> None:
        """The endpoint has answered for the first time: more than one may be in flight."""
        self._set(self.most if self.fixed else min(START, self.most), now)

    def answered(self, now: float, *, full: bool) -> None:
        """A reply came; `full` tells whether all slots were in use."""
        if self.fixed:
            return
        if self._skip:
            self._skip -= 1
            self._since = now
            return
        self._answers += 1
        self._full += full
        if self._answers >= max(2 * self.limit, _LEAST_WINDOW):
            self._judge_window(now)

    def limited(self, now: float) -> None:
        """A rate limit was reached: half as many, once for all who were told so at a time."""
        if self.fixed:
            return
        self.cuts += 1
        self._doubling = self._doubles_again = False
        self._before, self._hold = None, 0
        self._set(max(1, self.limit // 2), now)

    def failed(self) -> None:
        """A request met an error or had no answer: no doubling, and where there are many no growth for two windows."""
        self._doubling, self._before = False, None
        self._failures += 1

    def summary(self) -> dict[str, object]:
        """The course of the limit, for the account of a run."""
        limits = [step.limit for step in self.course]
        return {
            "fixed": self.fixed,
            "lowest": min(limits, default=None),
            "highest": max(limits, default=None),
            "last": self.limit if limits else None,
            "cuts": self.cuts,
            "course": [[round(step.seconds, 1), step.limit] for step in self.course],
        }

    def _judge_window(self, now: float) -> None:
        rate = self._answers / max(now - self._since, 1e-9)
        used = self._full >= _FULL * self._answers
        before, self._before = self._before, None
        if self._failures > _FLAKY * self._answers:
            self._hold = max(self._hold, 2)
        if before and used and rate < before.rate * _GAIN:
            self._doubling, self._doubles_again, self._hold = False, True, _HOLD_WINDOWS
            self._set(before.limit, now)
        elif self._hold or not used or self.limit == self.most:
            self._hold = max(0, self._hold - 1)
            if not self._hold and self._doubles_again:
                self._doubling, self._doubles_again = True, False
            self._new_window(skip=0, now=now)
        elif self._doubling:
            self._before = _Level(self.limit, rate)
            self._set(min(self.most, 2 * self.limit), now)
        else:
            self._set(min(self.most, self.limit + max(1, self.limit // 8)), now)

    def _set(self, limit: int, now: float) -> None:
        if self._begun is None:
            self._begun = now
        if limit != self.limit or not self.course:
            self.limit = limit
            self.course.append(Step(now - self._begun, limit))
            if len(self.course) > _COURSE:
                del self.course[1:-1:2]
        self._new_window(skip=limit, now=now)

    def _new_window(self, *, skip: int, now: float = 0.0) -> None:
        """Count anew, without the first answers: they tell of the limit before."""
        self._skip = skip
        self._answers = self._full = self._failures = 0
        self._since = now
