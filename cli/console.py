"""What a person or a log sees of ctxrel: results on stdout, everything else on stderr."""

import contextlib
import os
import sys
import time
from collections.abc import Sequence
from enum import StrEnum
from typing import TYPE_CHECKING

import orjson

from ..evaluators.costs.price import dollars, show_dollars
from ..evaluators.judges.asking import Asker
from ..evaluators.wording import counted
from .runs.batching.progress import Counts
from .runs.runner import Course

if TYPE_CHECKING:
    from rich.progress import Progress as Bar

_HEARTBEAT_SECONDS = 30.0
_JSON_SECONDS = 5.0
_BAR_SECONDS = 0.25


class ProgressKind(StrEnum):
    """How progress is shown."""

    AUTO = "auto"
    BAR = "bar"
    PLAIN = "plain"
    JSON = "json"
    NONE = "none"


def write_out(text: str) -> None:
    """A command's result, on standard output."""
    sys.stdout.write(text if text.endswith("\n") else f"{text}\n")


def write_json(value: object) -> None:
    """A command's result as one JSON object, on standard output."""
    write_out(orjson.dumps(value, option=orjson.OPT_INDENT_2).decode())


def write_error(message: str) -> None:
    """A line on standard error, if anybody is there to read it: a run does not end because nobody watches."""
    with contextlib.suppress(OSError, ValueError):
        sys.stderr.write(f"{message}\n")
        sys.stderr.flush()


class Reporter:
    """Tells how a run goes, in the way the user chose."""

    def __init__(self, kind: ProgressKind) -> None:
        # FORCE_COLOR makes rich write cursor codes into pipes: the terminal itself is asked.
        can_draw = sys.stderr.isatty() and os.environ.get("TERM") != "dumb"
        drawn = kind in (ProgressKind.AUTO, ProgressKind.BAR)
        self._kind = (ProgressKind.BAR if can_draw else ProgressKind.PLAIN) if drawn else kind
        self.interval = {ProgressKind.BAR: _BAR_SECONDS, ProgressKind.JSON: _JSON_SECONDS}.get(
            self._kind, _HEARTBEAT_SECONDS
        )
        self._started = time.monotonic()
        self._warned: set[str] = set()
        self._bar: _ProgressBar | None = None
        self._told: Counts | None = None
        self._next_line = 0.0

    def note(self, message: str) -> None:
        """Something worth knowing."""
        if self._kind in (ProgressKind.BAR, ProgressKind.PLAIN):
            self._line(message)

    def warn(self, message: str) -> None:
        """Something that may need action; said once."""
        if message in self._warned:
            return
        self._warned.add(message)
        if self._kind in (ProgressKind.BAR, ProgressKind.PLAIN):
            self._line(f"note: {message}")

    def progress(self, course: Course, asker: Asker, *, ended: bool) -> None:
        """How far the run is."""
        seconds = time.monotonic() - self._started
        if self._kind is ProgressKind.BAR:
            self._show_bar(course, asker, ended=ended)
        elif self._kind is ProgressKind.JSON:
            write_error(progress_json(course, asker, seconds))
        elif self._kind is ProgressKind.PLAIN and not ended:
            write_error(progress_line(course, asker, seconds))

    def batches(self, counts: Counts, *, ended: bool) -> None:
        """How far the batches are that a run waits for."""
        seconds = time.monotonic() - self._started
        if self._kind is ProgressKind.BAR:
            self._bar = self._bar or _ProgressBar()
            self._bar.show("batches", counts.completed + counts.failed, counts.total, batches_line(counts, seconds))
            if ended:
                self._bar.close()
                self._bar = None
        elif self._kind is ProgressKind.JSON:
            write_error(orjson.dumps({"batches": counts._asdict(), "seconds": round(seconds, 3)}).decode())
        elif self._kind is ProgressKind.PLAIN and not ended and counts != self._told and seconds >= self._next_line:
            self._told, self._next_line = counts, seconds + self.interval
            write_error(batches_line(counts, seconds))

    def _line(self, message: str) -> None:
        if self._bar:
            self._bar.print(message)
        else:
            write_error(message)

    def _show_bar(self, course: Course, asker: Asker, *, ended: bool) -> None:
        if self._bar is None:
            self._bar = _ProgressBar()
        self._bar.update(course, asker, time.monotonic() - self._started)
        if ended:
            self._bar.close()
            self._bar = None


class _ProgressBar:
    """A rich progress bar on a terminal."""

    def __init__(self) -> None:
        from rich.console import Console  # noqa: PLC0415  # 0.12 s that --help need not pay
        from rich.progress import BarColumn, Progress, TextColumn  # noqa: PLC0415

        self._bar: Bar = Progress(
            TextColumn("{task.description}"), BarColumn(), TextColumn("{task.fields[facts]}"),
            console=Console(stderr=True), transient=True, auto_refresh=False,
        )  # fmt: skip
        self._task = self._bar.add_task("judging", total=None, facts="")
        self._bar.start()

    def update(self, course: Course, asker: Asker, seconds: float) -> None:
        total = None if course.fraction is None else 1.0
        facts = progress_line(course, asker, seconds)
        self._bar.update(self._task, total=total, completed=course.fraction or 0, facts=facts, refresh=True)

    def show(self, what: str, done: int, total: int, facts: str) -> None:
        self._bar.update(self._task, description=what, total=total or None, completed=done, facts=facts, refresh=True)

    def print(self, message: str) -> None:
        self._bar.console.print(message, markup=False, highlight=False)

    def close(self) -> None:
        self._bar.stop()


def progress_line(course: Course, asker: Asker, seconds: float) -> str:
    """Rows, rate, failures, tokens and time left in a line."""
    parts = [counted(course.rows, "row"), f"{course.rows / seconds if seconds else 0:,.1f}/s"]
    if course.failed:
        parts.append(f"{course.failed:,} failed")
    if tokens := asker.usage.input_tokens + asker.usage.output_tokens:
        parts.append(counted(tokens, "token"))
    if cost := asker.budget.bill.total:
        parts.append(show_dollars(dollars(cost)))
    if (pause := asker.limiter.paused_for) >= 1:
        parts.append(f"paused for {duration(pause)} as the endpoint asked")
    if course.fraction:
        parts.append(f"{course.fraction:.0%}")
        parts.append(f"{duration(seconds / course.fraction - seconds)} left")
    return ", ".join(parts)


def batches_line(counts: Counts, seconds: float) -> str:
    """Requests and batches in a line."""
    parts = [f"batches under way: {counts.parts:,}, {counts.completed:,} of {counts.total:,} requests answered"]
    if counts.failed:
        parts.append(f"{counts.failed:,} failed")
    if counts.held:
        parts.append(f"{counts.held:,} wait for room")
    return ", ".join([*parts, duration(seconds)])


def progress_json(course: Course, asker: Asker, seconds: float) -> str:
    """The same for a program that reads along."""
    return orjson.dumps(
        {
            "rows": course.rows,
            "failed": course.failed,
            "sent": asker.sent,
            "reused": course.reused,
            "tokens": asker.usage._asdict(),
            "cost": None if (cost := asker.budget.bill.total) is None else dollars(cost),
            "fraction": course.fraction,
            "seconds": round(seconds, 3),
        }
    ).decode()


def duration(seconds: float) -> str:
    """`45 s`, `12 min`, `3 h 05 min`."""
    if seconds < 60:  # noqa: PLR2004
        return f"{seconds:.0f} s"
    minutes = round(seconds / 60)
    return f"{minutes} min" if minutes < 60 else f"{minutes // 60} h {minutes % 60:02d} min"  # noqa: PLR2004


def one_line(text: str) -> str:
    """A record's text in a line, without what a terminal would take for a command."""
    return "".join(filter(str.isprintable, " ".join(text.split())))


def harmless(text: str) -> str:
    """A record's text with its lines, without what a terminal would take for a command."""
    return "".join(sign for sign in text if sign.isprintable() or sign in "\n\t")


def show_table(title: str, columns: Sequence[str], rows: Sequence[Sequence[str]], *, to_stderr: bool) -> None:
    """A table for people: drawn on a terminal, plain columns in a pipe."""
    stream = sys.stderr if to_stderr else sys.stdout
    if not stream.isatty():
        text = f"{title}\n{plain_table(columns, rows)}" if title else plain_table(columns, rows)
        (write_error if to_stderr else write_out)(text.rstrip("\n"))
        return
    from rich.console import Console  # noqa: PLC0415
    from rich.table import Table  # noqa: PLC0415

    table = Table(*columns, title=title, title_justify="left")
    for row in rows:
        table.add_row(*row)
    Console(file=stream).print(table, markup=False)


def plain_table(columns: Sequence[str], rows: Sequence[Sequence[str]]) -> str:
    """Columns padded with spaces."""
    lines = [list(columns), *map(list, rows)]
    widths = [max(len(line[place]) for line in lines) for place in range(len(columns))]
    padded = ("  ".join(cell.ljust(width) for cell, width in zip(line, widths, strict=True)) for line in lines)
    return "".join(f"{line.rstrip()}\n" for line in padded)
