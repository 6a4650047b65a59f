"""The rows of finished runs, read back from their files."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

from ...evaluators.errors import InputError
from ..records.source import Row, printable
from .parts import holds_parts, holds_rows, is_torn, rows_at
from .summaries import SUMMARY, read_summary

_COLUMNS = frozenset(("id", "evaluator", "score", "status", "question", "error", "model", "prompt", "usage"))
_NEEDED = ("id", "evaluator", "score", "status")
NAMES = ("results.jsonl.part", "results.parquet.part", "results.part", "results.jsonl", "results.parquet", "results")
"""Under which a folder holds its rows, if no summary names the file: a run that began anew writes beside older rows."""


class Verdict(NamedTuple):
    """A row, as far as it is compared."""

    id: str
    evaluator: str
    score: float | None
    """None where the record could not be judged, or the evaluator gives no score."""
    error: str | None
    """The kind of the error, None of a row that was evaluated."""
    question: str
    model: str | None
    prompt: str | None
    tokens: int
    """Of the replies that the row was derived from, in and out."""


@dataclass(frozen=True, kw_only=True)
class ResultsFile:
    """The rows of a run, and its summary where there is one beside them."""

    name: str
    """As the user gave it."""
    path: Path
    summary: Mapping[str, Any] | None

    @property
    def folder(self) -> Path:
        """The run's."""
        return self.path.parent

    @property
    def notes(self) -> list[str]:
        """What has to be known before figures over the rows are believed."""
        return [note for note in (self.unweighted, self.torn) if note]

    @property
    def torn(self) -> str | None:
        """What is to be known of rows whose last one was being written, else None. Raises InputError."""
        if not is_torn(self.path):
            return None
        return f"{self.name}: the last row in {self.path.name} is cut off, and left out: the run has not ended"

    @property
    def unweighted(self) -> str | None:
        """What is to be known of a sample in which values of a field have other shares than in the log, else None."""
        sample = self.summary and self.summary["input"].get("sample")
        if not isinstance(sample, dict) or not sample.get("by"):
            return None
        return (
            f"{self.name} is a sample by {sample['by']!r} (--sample-by): here every record counts the same, "
            "and not, as in its summary, for as many as the log has of its value"
        )

    def verdicts(self) -> Iterator[Verdict]:
        """The rows in their order. Raises InputError."""
        for row in rows_at(self.path, _COLUMNS):
            yield _verdict(row)


def open_results(given: Path) -> ResultsFile:
    """The results in a run's folder, in a file of rows, or in the folder of files that Ray left. Raises InputError.

    A run's summary stands for its folder.
    """
    if given.name == SUMMARY and given.is_file():
        given = given.parent
    if not given.is_dir() or holds_parts(given):
        if not given.exists():
            raise InputError(f"no file {printable(given)!r}; name a run's folder or its results")
        beside = given.parent / SUMMARY
        summary = _own_summary(beside, given.name) if beside.is_file() else None
        return ResultsFile(name=printable(given), path=given, summary=summary)
    summary = read_summary(given) if (given / SUMMARY).exists() else None
    if summary and (named := summary.get("results")):
        if not holds_rows(given / named):
            raise InputError(
                f"the folder {printable(given)!r} holds no {named!r}, which its summary names; "
                "run the same `ctxrel run` again"
            )
        return ResultsFile(name=printable(given), path=given / named, summary=summary)
    for name in NAMES:
        if holds_rows(given / name):
            return ResultsFile(name=printable(given), path=given / name, summary=summary)
    raise InputError(f"the folder {printable(given)!r} holds no {' and no '.join(NAMES[3:5])}; name a run's folder")


def _own_summary(path: Path, results: str) -> dict[str, Any] | None:
    """The summary beside a file of rows, if it is that file's."""
    try:
        summary = read_summary(path)
    except InputError:
        return None
    return summary if summary.get("results") == results else None


def _verdict(row: Row) -> Verdict:
    value = row.value
    if value is None:
        raise InputError(f"{row.problem}; results are rows as ctxrel run writes them")
    for name in _NEEDED:
        if name not in value:
            raise InputError(f"{row.where}: no row of a run: it has no {name!r}")
    score, error, usage = value["score"], value.get("error"), value.get("usage")
    if score is not None and (isinstance(score, bool) or not isinstance(score, (int, float))):
        raise InputError(f"{row.where}: the score is {score!r}, which is no number")
    kind = str(error.get("kind")) if isinstance(error, dict) else "error"
    counted = usage if isinstance(usage, dict) else {}
    return Verdict(
        id=str(value["id"]),
        evaluator=str(value["evaluator"]),
        score=score,
        error=None if value["status"] == "evaluated" else kind,
        question=str(value.get("question") or ""),
        model=_text(value.get("model")),
        prompt=_text(value.get("prompt")),
        tokens=sum(counted.get(name) or 0 for name in ("input_tokens", "output_tokens")),
    )


def _text(value: object) -> str | None:
    return None if value is None else str(value)
