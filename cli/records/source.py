"""What every log format offers: its rows, one after the other."""

import os
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple, Protocol


def printable(name: str | Path) -> str:
    """A path as text that any file can hold: bytes that are none become U+FFFD."""
    return os.fsencode(name).decode("utf-8", "replace")


class Row(NamedTuple):
    """One entry of a log as it was read."""

    where: str
    """`file:line`, for messages."""
    value: dict[str, object] | None
    """None where the entry is no object; then `problem` says why."""
    problem: str | None
    done: float
    """Bytes of the file that are behind this row, as far as the format lets one tell."""


class Source(Protocol):
    """A log that can be read row by row in bounded memory."""

    name: str
    size: int | None
    """Bytes in all, None for a pipe."""
    format: str
    """What it was recognised as, in words: `JSON Lines`, `JSON, list under 'results'`."""
    packing: str | None
    """`gzip` or `zstd` where it is packed in one."""

    def peek(self, most: int) -> list[Row]:
        """The first rows, without using them up; a pipe gives no more than `most` and waits for them."""

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:
        """All rows; `columns` are the top-level fields that are needed, None for all. Raises InputError."""
