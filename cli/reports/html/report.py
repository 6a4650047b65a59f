"""A run's report: its rows read twice, the records they are about once, and nothing held but what is on the page."""

import random
import shlex
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from pathlib import Path

from ....evaluators.errors import CtxrelError, UsageError
from ..parts import holds_parts
from ..rows import NAMES, ResultsFile, open_results
from ..summaries import SUMMARY
from .blocks import MOST_BYTES, Blocks
from .detail import detail_of
from .originals import NoOriginals, Originals, find_originals, log_changed
from .page import Page, check_packages, render_page
from .records import records_of
from .survey import Survey, survey_of

MOST_RECORDS = 50_000
_PIECE = 1 << 20
_SEED = 0


@dataclass(frozen=True, kw_only=True)
class Report:
    """A page that is ready to be written."""

    page: Page
    blocks: Blocks

    @property
    def records(self) -> int:
        """How many of the run's records can be opened on the page."""
        return self.blocks.records

    def parts(self) -> Iterator[bytes]:
        """The page from its beginning to its end, once."""
        yield self.page.head
        with self.blocks.file as file:
            file.seek(0)
            while piece := file.read(_PIECE):
                yield piece
        yield self.page.tail


def folder_of(given: Path) -> Path:
    """The folder of a run, where its rows or its summary may be given. Raises UsageError."""
    if not given.exists():
        raise UsageError(f"no folder {str(given)!r}; name the output folder of a run, as log.ctxrel")
    if given.name in (SUMMARY, *NAMES) and (given.is_file() or holds_parts(given)):
        return given.parent
    if given.is_dir():
        return given
    raise UsageError(
        f"{str(given)!r} is no run's folder but a file; to judge a log: ctxrel run {shlex.quote(str(given))}"
    )


def make_report(folder: Path, *, by: Sequence[str], limit: int = MOST_RECORDS) -> Report:
    """The report on the run in a folder. Raises UsageError.

    `by` are the fields whose values are compared, none for those that have a few; of more than `limit` records so many
    are drawn by chance, the same ones each time: figures and charts are over all rows.
    """
    check_packages()
    run = open_results(folder)
    survey = survey_of(records_of(run.path), by)
    shown = _drawn(survey.records, limit)
    blocks, notes = _gather(run, survey, shown)
    if shown is not None:
        notes.append(
            f"The list below holds {len(shown):,} of {survey.records:,} records, drawn by chance; figures and charts "
            "are over all of them. --limit N shows another number."
        )
    return Report(page=render_page(run, survey, blocks.records, notes), blocks=blocks)


def _drawn(records: int, limit: int) -> frozenset[int] | None:
    """Which records are shown, by their order; None for all."""
    if records <= limit:
        return None
    return frozenset(random.Random(_SEED).sample(range(records), limit))  # noqa: S311  # a sample, no secret


def _gather(run: ResultsFile, survey: Survey, shown: frozenset[int] | None) -> tuple[Blocks, list[str]]:
    """The records with what they were judged by, and what is to be said about that."""
    try:
        originals = find_originals(run)
        gathered = _embed(run, survey, shown, originals)
        if not originals.changed():
            return gathered
        gathered[0].file.close()
        originals = log_changed(run)
    except CtxrelError as error:
        originals = NoOriginals(f"The log cannot be read again: {error}")
    return _embed(run, survey, shown, originals)


def _embed(
    run: ResultsFile, survey: Survey, shown: frozenset[int] | None, originals: Originals
) -> tuple[Blocks, list[str]]:
    blocks = Blocks([*survey.evaluators], survey.filters())
    unknown = cut = 0
    for place, rows in enumerate(records_of(run.path)):
        if shown is not None and place not in shown:
            continue
        record = originals.of(rows)
        if record and blocks.size > MOST_BYTES:
            record, cut = None, cut + 1
        elif record is None:
            unknown += 1
        detail = detail_of(rows, record, with_contexts=originals.with_contexts, shown=originals.shown)
        blocks.add(detail, rows, survey.values_of(rows[0]))
    blocks.finish()
    notes = [originals.missing] if originals.missing else []
    if unknown and not originals.missing:
        notes.append(f"Of {unknown:,} records the contexts are not shown: what the log holds is not what was judged.")
    if cut:
        notes.append(
            f"Of {cut:,} records the contexts are left out, for the page would exceed {MOST_BYTES >> 20} MB; "
            "--limit N shows fewer records in full."
        )
    return blocks, notes
