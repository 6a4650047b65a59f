"""JSON as it is met: orjson first, the standard library where orjson is stricter than people's files."""

import datetime as dt
import json
import math
import re
from decimal import Decimal

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


def dumps_anything(value: object) -> bytes:
    """Any value as JSON: dates and decimals become texts, the arrays of numpy lists.

    Raises TypeError where it holds what JSON cannot, or is nested so deeply that it could stand in no other value.
    """
    wrapped = orjson.dumps([[[[value]]]], default=_plain, option=orjson.OPT_SERIALIZE_NUMPY | orjson.OPT_NON_STR_KEYS)
    return wrapped[4:-4]


def _plain(value: object) -> object:
    if isinstance(value, bytes):
        return value.decode(errors="replace")
    if isinstance(value, (Decimal, dt.timedelta)):
        return str(value)
    to_list = getattr(value, "tolist", None)
    if callable(to_list):
        return to_list()
    raise TypeError(f"there is {type(value).__name__} in it")


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
