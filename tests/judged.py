"""Rows as runs write them, made up."""

from collections.abc import Sequence
from typing import Any

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
