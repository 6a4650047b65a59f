"""What an endpoint says of the room that is left in its rate limits (`x-ratelimit-*`)."""

import re
from collections.abc import Mapping

from ..replies import Usage

_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|h|m|s)?")
_SECONDS = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "": 1.0}
_LONGEST = 3600.0


def wait_for_room(headers: Mapping[str, str], usage: Usage) -> float:
    """Seconds until there is room for another request like the one that had this usage; 0 where there is."""
    if "x-ratelimit-remaining-requests" not in headers and "x-ratelimit-remaining-tokens" not in headers:
        return 0.0
    requests = _wait(headers, "requests", 1)
    return max(requests, _wait(headers, "tokens", usage.input_tokens + usage.output_tokens))


def _wait(headers: Mapping[str, str], what: str, needed: int) -> float:
    """Seconds until `needed` of something are left, if it comes back at a steady rate until its reset."""
    remaining = _number(headers.get(f"x-ratelimit-remaining-{what}"))
    reset = parse_duration(headers.get(f"x-ratelimit-reset-{what}", ""))
    if remaining is None or reset is None or remaining >= needed:
        return 0.0
    most = _number(headers.get(f"x-ratelimit-limit-{what}"))
    share = (needed - remaining) / (most - remaining) if most is not None and most > remaining else 1.0
    return min(_LONGEST, reset * min(1.0, share))


def parse_duration(text: str) -> float | None:
    """Seconds of a duration as `6m0s`, `120ms` or `17.5`; None where it is none."""
    parts = _PART.findall(text.strip())
    if not parts or "".join(number + unit for number, unit in parts) != text.strip():
        return None
    return sum(float(number) * _SECONDS[unit] for number, unit in parts)


def _number(text: str | None) -> float | None:
    try:
        return float(text) if text is not None else None
    except ValueError:
        return None
