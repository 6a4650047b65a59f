"""JSON Lines: one object per line."""

from collections.abc import Iterator
from decimal import Decimal

from ...evaluators.errors import InputError
from ...evaluators.jsontext import NotJSON, loads
from .lenient import BOM
from .source import Row
from .streams import Open

_KINDS = {
    list: "an array",
    str: "a string",
    int: "a number",
    float: "a number",
    Decimal: "a number",
    bool: "a boolean",
    type(None): "null",
}


def read_lines(name: str, open_: Open) -> Iterator[Row]:
    """A row for each line that is not blank. Raises InputError for a document of another kind."""
    done = 0
    first = True
    with open_() as stream:
        for number, line in enumerate(stream, start=1):
            done += len(line)
            text = (line.removeprefix(BOM) if number == 1 else line).rstrip()
            if not text:
                continue
            row = _read_line(f"{name}:{number}", text, done)
            if first:
                _refuse_other_text(row, text)
                first = False
            yield row


def kind_of(value: object) -> str:
    """What JSON calls a value that is no object."""
    return _KINDS[type(value)]


def _read_line(where: str, text: bytes, done: int) -> Row:
    try:
        value = loads(text)
    except NotJSON as error:
        return Row(where, None, f"{where}: not valid JSON: {error}", done)
    if not isinstance(value, dict):
        return Row(where, None, f"{where}: {kind_of(value)}, not a JSON object", done)
    return Row(where, value, None, done)


def _refuse_other_text(row: Row, text: bytes) -> None:
    """Text in another encoding is one mistake, not a thousand broken lines. Raises InputError."""
    start = text.lstrip()
    if is_utf16(start):
        raise InputError(f"{row.where}: no UTF-8 text; save the log as UTF-8 JSON Lines or as Parquet")


def is_utf16(start: bytes) -> bool:
    """Whether bytes start as text in UTF-16 or UTF-32 does, or as no text at all."""
    return start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start[:64]
