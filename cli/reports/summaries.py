"""Summaries of runs, read back from their files."""

from pathlib import Path
from typing import Any

import orjson

from ...evaluators.errors import InputError
from ..records.source import printable

SUMMARY = "summary.json"
_NEEDED = ("evaluators", "judge", "input", "requests", "tokens", "timings", "configuration")
_BLOCK = ("score", "interval_95", "n", "evaluated", "prompt")


def read_summary(given: Path) -> dict[str, Any]:
    """The summary of a run, given its folder or the file itself. Raises InputError."""
    path = given / SUMMARY if given.is_dir() else given
    name = repr(printable(path))
    try:
        summary = orjson.loads(path.read_bytes())
    except FileNotFoundError:
        what = "a run without one was killed; run it again" if given.is_dir() else "check the path"
        raise InputError(f"no file {name}; {what}") from None
    except OSError as error:
        raise InputError(f"cannot read {name}: {error.strerror}") from None
    except orjson.JSONDecodeError as error:
        raise InputError(f"{name} is no summary of a run: {error}; name a run's folder or its {SUMMARY}") from None
    if not _is_whole(summary):
        raise InputError(f"{name} is no summary of a run; name a run's folder or its {SUMMARY}")
    return {"gates": [], "error": None, "version": "unknown", **summary}


def _is_whole(summary: object) -> bool:
    """Whether somebody's JSON has the parts that every summary has."""
    if not isinstance(summary, dict) or not all(isinstance(summary.get(name), dict) for name in _NEEDED):
        return False
    named = (summary.get("status"), summary["timings"].get("started"), summary["judge"].get("model"))
    return all(isinstance(text, str) for text in named) and all(map(_is_block, summary["evaluators"].values()))


def _is_block(block: object) -> bool:
    counts = ("errors", "figures")
    return (
        isinstance(block, dict)
        and all(name in block for name in _BLOCK)
        and all(isinstance(block.get(name), dict) for name in counts)
    )
