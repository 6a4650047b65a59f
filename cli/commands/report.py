"""`ctxrel report`: a run as a page."""

import sys
from collections.abc import Iterable
from pathlib import Path
from typing import Annotated

import typer

from ...evaluators.errors import UsageError
from ...evaluators.wording import counted
from ..console import write_error
from ..reports.html import MOST_RECORDS, folder_of, make_report
from ..runs.folder import REPORT
from ..runs.results import write_parts

EPILOG = "Example: ctxrel report support_en.ctxrel"
_STDOUT = "-"
_PAGE = b"<!doctype html"


def report(
    folder: Annotated[Path, typer.Argument(metavar="DIR", help="The output folder of a run, ended or not.")],
    *,
    output: Annotated[
        str | None,
        typer.Option("-o", "--output", metavar="FILE", help="The page, DIR/report.html by default; - is stdout."),
    ] = None,
    by: Annotated[
        list[str] | None,
        typer.Option(
            metavar="FIELD",
            help="Compare scores by this field of the rows' kept or input, or by language; repeatable. By default by "
            "those with few values.",
        ),
    ] = None,
    limit: Annotated[
        int, typer.Option(min=1, metavar="N", help="Show N records at most, drawn by chance where there are more.")
    ] = MOST_RECORDS,
) -> None:
    """Write a run as one HTML page.

    It shows score, charts, and every record with what was relevant in its contexts. The page needs no network and asks
    for nothing; it holds the records it shows.
    """
    folder = folder_of(folder)
    path = Path(output) if output is not None else folder / REPORT
    if output != _STDOUT and _holds_something_else(path):
        raise UsageError(f"--output {str(path)!r} is there, and is no page; name another file")
    page = make_report(folder, by=by or [], limit=limit)
    if output == _STDOUT:
        _write_out(page.parts())
        return
    size = write_parts(path, page.parts())
    write_error(f"written: {path} ({counted(page.records, 'record')}, {size / 1e6:,.1f} MB)")


def _holds_something_else(path: Path) -> bool:
    """Whether a file is no page, but rows, a summary or a log, which would be gone."""
    try:
        with path.open("rb") as stream:
            start = stream.read(len(_PAGE))
    except OSError:  # writing tells
        return False
    return bool(start) and start.lower() != _PAGE


def _write_out(parts: Iterable[bytes]) -> None:
    for part in parts:
        sys.stdout.buffer.write(part)
    sys.stdout.buffer.flush()
