"""JSON documents: an array of records, a list of them under a key, columns, or one record."""

import math
from collections.abc import Iterator
from contextlib import ExitStack
from decimal import Decimal
from functools import partial

from ...evaluators.errors import InputError
from ...evaluators.jsontext import NotJSON, loads
from .jsonl import kind_of
from .lenient import BOM, TooDeep
from .shape import Columns, Single, Table, items_of, reason_of
from .source import Row
from .streams import Open, Reading

_LARGEST = 1 << 64


def reading_of(shape: Table | Columns | Single) -> Reading:
    """How a document of a shape is read."""
    match shape:
        case Table(key):
            return reading_of_list(key)
        case Columns(keys):
            return Reading(f"JSON, columns {', '.join(keys)}", partial(_read_columns, keys=keys))
        case Single():
            return Reading("JSON, one object", _read_single)


def reading_of_list(key: str | None = None) -> Reading:
    """How an array is read: the document itself, or the one under a key."""
    return Reading(f"JSON, list under {key!r}" if key else "JSON, a list", partial(read_list, key=key))


def read_list(name: str, open_: Open, *, key: str | None = None) -> Iterator[Row]:
    """A row for each item of an array: of the document itself, or of the one under a key. Raises InputError."""
    import ijson  # noqa: PLC0415  # a JSON Lines log need not pay for it

    number = 0
    with open_() as stream:
        items = items_of(stream, "item" if key is None else f"{key}.item")
        try:
            for item in items:
                yield _row(f"{name}:{key or ''}[{number}]", item)
                number += 1
        except ijson.JSONError as error:
            place = f"{name}:{key or ''}[{number}]"
            raise InputError(f"{place}: not valid JSON: {reason_of(error)}; the records before it were read") from None
        except TooDeep as error:
            raise InputError(f"{name}:{key or ''}[{number}] or soon after: {error}") from None


def _read_columns(name: str, open_: Open, *, keys: tuple[str, ...]) -> Iterator[Row]:
    """A row for each position: every column is read by a pass of its own, side by side."""
    import ijson  # noqa: PLC0415  # a JSON Lines log need not pay for it

    with ExitStack() as stack:
        columns = [items_of(stack.enter_context(open_()), f"{key}.item") for key in keys]
        number = 0
        try:
            for values in zip(*columns, strict=False):
                yield _row(f"{name}:[{number}]", dict(zip(keys, values, strict=True)))
                number += 1
        except ijson.JSONError as error:  # the file has changed since its shape was found
            raise InputError(f"{name}:[{number}]: not valid JSON: {reason_of(error)}") from None
        except TooDeep as error:
            raise InputError(f"{name}:[{number}] or soon after: {error}") from None


def _read_single(name: str, open_: Open) -> Iterator[Row]:
    with open_() as stream:
        text = stream.read().removeprefix(BOM)
    try:
        yield _row(f"{name}:1", loads(text))
    except NotJSON as error:
        raise InputError(f"{name}:1: not valid JSON: {error}") from None


def _row(where: str, value: object) -> Row:
    if not isinstance(value, dict):
        return Row(where, None, f"{where}: {kind_of(value)}, not a JSON object", 0.0)
    try:
        return Row(where, {key: _plain(item) for key, item in value.items()}, None, 0.0)
    except RecursionError:
        return Row(where, None, f"{where}: nested too deeply", 0.0)


def _plain(value: object) -> object:
    """The value with its numbers as JSON Lines have them."""
    if isinstance(value, Decimal):
        number = float(value)
        return number if math.isfinite(number) else None
    if isinstance(value, int) and not isinstance(value, bool) and not -_LARGEST // 2 <= value < _LARGEST:
        return _plain(Decimal(value))
    if isinstance(value, list):
        return [_plain(item) for item in value]
    if isinstance(value, dict):
        return {key: _plain(item) for key, item in value.items()}
    return value
