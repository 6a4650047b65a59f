"""The one place where the workers of a run meet: limits, waits, the end, what was sent, and who died of what."""

import asyncio
import time
from collections import Counter
from collections.abc import Mapping, Sequence
from contextlib import suppress
from dataclasses import dataclass, field, replace
from typing import NamedTuple

from ...evaluators.costs.budget import NOTHING, Amount, Budget
from ...evaluators.costs.experience import Experience
from ...evaluators.errors import FailureKind, RunError
from ...evaluators.replies import Usage
from .purse import Claim, Purse
from .shares import Amounts, Dealer
from .suspects import Attempt, Suspects

GONE_SECONDS = 30.0
"""After so long without a word a worker's share is dealt to others; it has stopped sending long before."""
_LISTEN_SECONDS = 20.0


@dataclass(frozen=True, kw_only=True)
class Report:
    """A worker's word, all sums since it started."""

    held: Amounts
    """What it may be using."""
    money: Claim
    busy: bool
    sent: int
    usage: Usage
    failed: Counter[FailureKind]
    course: list[list[float]]
    """Of its number of requests in flight."""
    experience: Mapping[bytes, Experience]
    """What it learned of the endpoint, by the prompt's fingerprint."""
    rows: int
    failed_rows: int
    reused: int
    notices: Sequence[str] = ()
    """New ones."""
    hold: float = 0.0
    """Seconds for which the endpoint wants nobody to send, told since the last report."""
    limited: bool = False
    """Whether that was a rate limit."""
    error: RunError | None = None
    """Why the run has to end."""


class Share(NamedTuple):
    """What a worker may do from now on."""

    amounts: Amounts
    allowed: Amount
    """To be spent since its start."""


@dataclass(frozen=True, kw_only=True)
class News:
    """What all workers have to know."""

    version: int
    hold: float = 0.0
    """Seconds for which nobody sends."""
    limited: bool = False
    told_by: str = ""
    ended: bool = False
    """Whether nothing may be sent any more."""


@dataclass(kw_only=True)
class Progress:
    """What the workers have done so far."""

    sent: int = 0
    usage: Usage = field(default_factory=Usage)
    failed: Counter[FailureKind] = field(default_factory=Counter)
    courses: dict[str, list[list[float]]] = field(default_factory=dict)
    """By worker."""
    experience: dict[bytes, Experience] = field(default_factory=dict)
    """By the prompt's fingerprint."""
    rows: int = 0
    failed_rows: int = 0
    reused: int = 0
    notices: list[str] = field(default_factory=list)
    paused_for: float = 0.0
    starts: int = 0
    """Processes that were started as workers."""
    error: RunError | None = None


class Coordinator:
    """Runs as an actor of its own; its methods are short, and none of them judges anything."""

    def __init__(self, total: Amounts, budget: Budget) -> None:
        """`budget` has the caps of the run, and what earlier ones have spent."""
        self._dealer = Dealer(total)
        self._purse = Purse(budget)
        self._suspects = Suspects()
        self._reports: dict[str, Report] = {}
        self._past: list[Report] = []
        self._heard: dict[str, float] = {}
        self._notices: dict[str, None] = {}
        self._starts = 0
        self._error: RunError | None = None
        self._news = News(version=0)
        self._hold_until = 0.0
        self._changed = asyncio.Condition()

    async def join(self, worker: str, spent: Amount = NOTHING) -> None:
        """A worker's process starts; what an earlier one under its name had done stays counted, money as `spent`."""
        self._starts += 1
        if before := self._reports.pop(worker, None):
            self._past.append(before)
        self._heard[worker] = time.monotonic()
        self._dealer.join(worker)
        self._purse.join(worker, spent)

    async def report(self, worker: str, report: Report) -> Share:
        """Take a worker's word; gives its share from now on."""
        now = time.monotonic()
        self._heard[worker] = now
        self._reports[worker] = report
        self._notices |= dict.fromkeys(report.notices)
        for other in [name for name, heard in self._heard.items() if now - heard > GONE_SECONDS]:
            self._dealer.leave(other)
            self._purse.leave(other)
            del self._heard[other]
        # Dealt before anything is waited for: a worker's reports are taken in the order in which it sent them.
        share = Share(
            self._dealer.deal(worker, report.held, busy=report.busy),
            self._purse.allow(worker, report.money, busy=report.busy),
        )
        if report.error:
            await self.end(report.error)
        if report.hold:
            again = self._news.limited and self._held_for() > 0
            self._hold_until = max(self._hold_until, now + report.hold)
            await self._tell(limited=report.limited or again, told_by=worker)
        if report.money.lacks is not None and self._purse.exhausted:
            await self.end(self._purse.spent().reached())
        return share

    async def listen(self, version: int) -> News:
        """News since a version, as soon as there are any; after a while what there is."""
        with suppress(TimeoutError):
            async with asyncio.timeout(_LISTEN_SECONDS), self._changed:
                await self._changed.wait_for(lambda: self._news.version > version)
        return replace(self._news, hold=self._held_for())

    async def end(self, error: RunError) -> None:
        """Nothing may be sent any more; the first error is the one to tell."""
        if self._error is None:
            self._error = error
            await self._tell(ended=True)

    async def ended(self) -> bool:
        """Whether nothing may be sent any more."""
        return self._error is not None

    async def begin(self, worker: str, batch: int, indexes: Sequence[int]) -> Attempt:
        """A batch is begun; gives what is known of it."""
        return self._suspects.begin(worker, batch, indexes)

    async def judge(self, batch: int, indexes: Sequence[int]) -> None:
        """Some records of a batch are judged from now on, and no others of it."""
        self._suspects.judge(batch, indexes)

    async def finish(self, batch: int) -> None:
        """A batch has ended."""
        self._suspects.end(batch)

    async def progress(self) -> Progress:
        """What the workers have done so far."""
        progress = Progress(starts=self._starts, notices=list(self._notices), error=self._error)
        progress.paused_for = self._held_for()
        for report in (*self._past, *self._reports.values()):
            progress.sent += report.sent
            progress.usage = progress.usage.plus(report.usage)
            progress.failed += report.failed
            for fingerprint, seen in report.experience.items():
                progress.experience[fingerprint] = progress.experience.get(fingerprint, Experience()).plus(seen)
            progress.rows += report.rows
            progress.failed_rows += report.failed_rows
            progress.reused += report.reused
        progress.courses = {worker: report.course for worker, report in self._reports.items()}
        return progress

    def _held_for(self) -> float:
        return max(0.0, self._hold_until - time.monotonic())

    async def _tell(self, *, limited: bool = False, told_by: str = "", ended: bool = False) -> None:
        before = self._news
        self._news = News(version=before.version + 1, limited=limited, told_by=told_by, ended=ended or before.ended)
        async with self._changed:
            self._changed.notify_all()
