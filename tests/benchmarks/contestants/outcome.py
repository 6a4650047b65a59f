"""What every driver reads and writes; nothing but the standard library, as it runs in the peers' environments."""

import json
import math
import os
import sys
from collections.abc import Iterable, Mapping
from typing import Any

MODEL = os.environ.get("JUDGE_MODEL", "gpt-4o")
"""A name that the peers' own tables of models and prices know."""


def records() -> list[dict[str, Any]]:
    """The log's records: id, question, contexts."""
    with open(sys.argv[1], encoding="utf-8") as log:  # noqa: PTH123  # one line
        return [json.loads(line) for line in log]


def option(name: str) -> bool:
    """Whether a variant of the peer's own way is wanted, as `cache`."""
    return name in sys.argv[3:]


def write(scores: Iterable[float | None], *, told: int, mean: float | None = None) -> None:
    """The scores in any order, how many failures the peer told of, and the mean if the peer itself gives one."""
    listed = [None if score is None or math.isnan(score) else float(score) for score in scores]
    outcome: Mapping[str, Any] = {"scores": listed, "told": told, "mean": mean}
    with open(sys.argv[2], "w", encoding="utf-8") as stream:  # noqa: PTH123
        json.dump(outcome, stream)
