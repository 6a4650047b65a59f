"""Rows as runs write them, made up."""

from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from conftest import Record

USAGE = {"input_tokens": 10, "output_tokens": 2, "cached_tokens": 0, "reasoning_tokens": 0}


def row(number: int, score: float | None, **changes: Any) -> Record:  # noqa: ANN401  # columns of a row
    """The row of a record; without a score it is an error."""
    failed = {"kind": "timeout", "message": "no answer"} if score is None else None
    return {
        "index": number, "id": f"r{number}", "evaluator": "e", "status": "error" if failed else "evaluated",
        "score": score, "question": f"What is {number}?", "model": "m-1", "prompt": "e@1", "usage": USAGE,
        "error": failed, **changes,
    }  # fmt: skip


def rows(scores: Sequence[float | None], **changes: Any) -> list[Record]:  # noqa: ANN401  # columns of a row
    """A row for each score."""
    return [row(number, score, **changes) for number, score in enumerate(scores)]


def write_parts(folder: Path, given: Sequence[Record], *, each: int = 1) -> None:
    """The rows as Ray leaves them: in files that are each in order, and together in none; `each` is rows of a record."""
    folder.mkdir(parents=True)
    for number in range(2):
        part = [row for place, row in enumerate(given) if place // each % 2 == number]
        pq.write_table(pa.Table.from_pylist(part), folder / f"part-{number:05}.parquet")
