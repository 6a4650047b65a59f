"""The formats of logs: what a file is read by, by its suffix or its first bytes.

JSON Lines, JSON and tables are told by their content first, see `recognising`.
"""

from collections.abc import Callable
from typing import NamedTuple

from .arrow import FILE_MAGIC, STREAM_MAGIC, ArrowFile
from .delimited import read_table
from .jsonl import read_lines
from .packing import SUFFIXES as PACKINGS
from .parquet import MAGIC as PARQUET_MAGIC
from .parquet import ParquetFile
from .place import Place
from .source import Source
from .streams import Reading

LINES = Reading("JSON Lines", read_lines)
TEXTS = {
    ".jsonl": LINES,
    ".ndjson": LINES,
    ".json": LINES,
    ".csv": Reading("CSV", read_table),
    ".tsv": Reading("TSV", read_table),
}
"""Formats that are read from the first byte to the last, by suffix."""


class Binary(NamedTuple):
    """A format that is read in any order."""

    name: str
    suffixes: tuple[str, ...]
    magics: tuple[bytes, ...]
    """What its files begin with; what begins so is of this format, whatever its name."""
    open: Callable[[Place], Source]


BINARIES = [
    Binary("Parquet", (".parquet",), (PARQUET_MAGIC,), ParquetFile),
    Binary("Arrow", (".arrow", ".feather", ".ipc"), (FILE_MAGIC, STREAM_MAGIC), ArrowFile),
]

PLAIN_SUFFIXES = (*TEXTS, *(suffix for binary in BINARIES for suffix in binary.suffixes))
SUFFIXES = (*PLAIN_SUFFIXES, *(f"{text}{packing}" for text in TEXTS for packing in PACKINGS))
"""What a folder's logs end in."""
NAMES = list(
    dict.fromkeys(
        [LINES.format, "JSON", *(text.format for text in TEXTS.values()), *(binary.name for binary in BINARIES)]
    )
)


def binary_of(head: bytes) -> Binary | None:
    """The binary format of a file that begins so."""
    return next((binary for binary in BINARIES if head.startswith(binary.magics)), None)
