"""Reports in files: whole or not at all, readable by whoever may read the folder."""

import os
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

from ...evaluators.errors import OutputError, UsageError
from ..records.formats import SUFFIXES

_NO_REPORTS = (*SUFFIXES, ".sqlite")
"""What logs, rows, summaries and stores end in."""


class ReportFiles(NamedTuple):
    """Which reports are wanted, and where."""

    junit: Path | None = None
    markdown: Path | None = None
    metrics: Path | None = None

    def check(self) -> None:
        """Raise UsageError where a report could not be written."""
        for option, path in zip(("--junit", "--markdown", "--metrics-file"), self, strict=True):
            if path is None:
                continue
            if str(path) == "-":
                raise UsageError(f"{option} cannot be standard output; name a file")
            if path.is_dir() or not path.name:
                raise UsageError(f"{option} {str(path)!r} is a folder; name a file")
            if path.exists() and path.name.endswith(_NO_REPORTS):
                raise UsageError(f"{option} {str(path)!r} is there, and by its name no report; name another file")
            if not os.access(path.parent, os.W_OK):
                what = "cannot be written to" if path.parent.is_dir() else "is not there"
                raise UsageError(f"{option} {str(path)!r}: the folder {str(path.parent)!r} {what}")

    def write(self, summary: Mapping[str, Any]) -> None:
        """Write the wanted ones. Raises OutputError."""
        from .junit import junit_xml  # noqa: PLC0415  # 10 ms that a run without reports need not pay
        from .markdown import markdown_summary  # noqa: PLC0415
        from .metrics import prometheus_text  # noqa: PLC0415

        writers: list[Callable[[Mapping[str, Any]], str]] = [junit_xml, markdown_summary, prometheus_text]
        for path, make in zip(self, writers, strict=True):
            if path is not None:
                write_report(path, make(summary))


def write_report(path: Path, text: str) -> None:
    """The file whole or not at all, with the permissions of any new file. Raises OutputError."""
    part = path.with_name(f"{path.name}.{os.getpid()}.part")
    try:
        part.write_text(text, encoding="utf-8", errors="replace")
        part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {str(path)!r}: {error.strerror}") from None
