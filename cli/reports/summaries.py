"""Summaries of runs, read back from their files."""

from pathlib import Path
from typing import Any

import orjson

from ...evaluators.errors import InputError
from ..records.source import printable

SUMMARY = "summary.json"
_NEEDED = ("status", "evaluators", "judge", "input", "requests", "tokens", "timings", "configuration")


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
        raise InputError(f"{name} is no summary of a run: {error}") from None
    if not isinstance(summary, dict) or any(key not in summary for key in _NEEDED):
        raise InputError(f"{name} is no summary of a run; name a run's folder or its {SUMMARY}")
    return {"gates": [], "error": None, "version": "unknown", **summary}
