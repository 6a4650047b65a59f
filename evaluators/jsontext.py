"""JSON as it is met: orjson first, the standard library where orjson is stricter than people's files."""

import json
import math
import re

import orjson

_LENIENT = re.compile(r"NaN|Infinity|\\u[dD][89a-fA-F]")
_BRACKET = re.compile(r"[\[{]|[\]}]")
_DEEPEST = 200
"""Of brackets, also of those in texts: what the standard library reads without running out of stack."""
_LONGEST_INT = 19
_SURROGATE = re.compile("[\ud800-\udfff]")


class NotJSON(ValueError):
    """The text is no JSON; the message says what is wrong where."""


def loads(text: str | bytes) -> object:
    """The value of a JSON text; bare NaN and Infinity become null, lone surrogates U+FFFD.

    Raises NotJSON.
    """
    try:
        return orjson.loads(text)
    except orjson.JSONDecodeError as error:
        return _loads_slowly(text, error)


def replace_surrogates(text: str) -> str:
    """The text with lone surrogates, which UTF-8 cannot hold, as U+FFFD; its length stays."""
    return text if text.isascii() else _SURROGATE.sub("\ufffd", text)


def _loads_slowly(text: str | bytes, error: orjson.JSONDecodeError) -> object:
    """For what orjson rejects and json takes: NaN, Infinity, lone surrogates."""
    try:
        decoded = text if isinstance(text, str) else text.decode()
        if _LENIENT.search(decoded) and _depth(decoded) <= _DEEPEST:
            return _clean(json.loads(decoded, parse_constant=lambda _: None, parse_int=_whole))
    except UnicodeDecodeError:
        raise NotJSON("not UTF-8") from None
    except ValueError:
        pass
    raise NotJSON(f"{error.msg} at column {error.colno}")


def _whole(digits: str) -> float:
    """A whole number, as the fraction that orjson makes of one that is too long."""
    return int(digits) if len(digits) < _LONGEST_INT else float(digits)


def _clean(value: object) -> object:
    if isinstance(value, str):
        return replace_surrogates(value)
    if isinstance(value, float):
        return value if math.isfinite(value) else None
    if isinstance(value, list):
        return [_clean(item) for item in value]
    if isinstance(value, dict):
        return {replace_surrogates(key): _clean(item) for key, item in value.items()}
    return value


def _depth(text: str) -> int:
    depth = deepest = 0
    for bracket in _BRACKET.finditer(text):
        depth += 1 if bracket[0] in "[{" else -1
        deepest = max(deepest, depth)
    return deepest
