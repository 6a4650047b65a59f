"""JSON Lines: one object per line, from a file or a pipe."""

from collections.abc import Iterator
from itertools import chain, islice
from pathlib import Path
from typing import BinaryIO

from ...evaluators.errors import InputError
from ...evaluators.jsontext import NotJSON, loads
from .source import Row, printable

BOM = b"\xef\xbb\xbf"
_KINDS = {list: "an array", str: "a string", int: "a number", float: "a number", bool: "a boolean", type(None): "null"}


class JsonLinesFile:
    """A regular file, opened anew for each pass."""

    def __init__(self, path: Path) -> None:
        self.name = printable(path)
        self.size: int | None = path.stat().st_size
        self._path = path

    def peek(self, most: int) -> list[Row]:
        """The first rows."""
        return list(islice(self.rows(), most))

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:  # noqa: ARG002  # a line is read whole
        """All rows. Raises InputError."""
        try:
            with self._path.open("rb") as stream:
                yield from _read_lines(self.name, stream)
        except OSError as error:
            raise InputError(f"cannot read {self.name!r}: {error.strerror}") from None


class JsonLinesPipe:
    """A stream that can be read once: what was peeked at comes again."""

    def __init__(self, name: str, stream: BinaryIO) -> None:
        self.name = name
        self.size: int | None = None
        self._rest = _read_lines(name, stream)
        self._seen: list[Row] = []
        self._used = False

    def peek(self, most: int) -> list[Row]:
        """The first rows; waits until they have arrived."""
        self._seen += islice(self._rest, most - len(self._seen))
        return self._seen[:most]

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:  # noqa: ARG002  # a line is read whole
        """All rows, once."""
        if self._used:
            raise RuntimeError("a pipe was to be read twice")
        self._used = True
        return chain(self._seen, self._rest)


def _read_lines(name: str, stream: BinaryIO) -> Iterator[Row]:
    done = 0
    first = True
    for number, line in enumerate(stream, start=1):
        done += len(line)
        text = (line.removeprefix(BOM) if number == 1 else line).rstrip()
        if not text:
            continue
        row = _read_line(f"{name}:{number}", text, done)
        if first:
            _refuse_other_json(row, text)
            first = False
        yield row


def _read_line(where: str, text: bytes, done: int) -> Row:
    try:
        value = loads(text)
    except NotJSON as error:
        return Row(where, None, f"{where}: not valid JSON: {error}", done)
    if not isinstance(value, dict):
        return Row(where, None, f"{where}: {_KINDS[type(value)]}, not a JSON object", done)
    return Row(where, value, None, done)


def _refuse_other_json(row: Row, text: bytes) -> None:
    """A document of another shape is one mistake, not a thousand broken lines. Raises InputError."""
    start = text.lstrip()
    if start.startswith(b"["):
        raise InputError(
            f"{row.where}: a JSON array, not JSON Lines; write a record per line: jq -c '.[]' FILE > FILE.jsonl"
        )
    if start == b"{":
        raise InputError(
            f"{row.where}: JSON over several lines, not JSON Lines; write a record per line, "
            "for example: jq -c '.results[]' FILE > FILE.jsonl"
        )
    if start.startswith((b"\xff\xfe", b"\xfe\xff")) or b"\0" in start[:64]:
        raise InputError(f"{row.where}: no UTF-8 text; save the log as UTF-8 JSON Lines or as Parquet")
