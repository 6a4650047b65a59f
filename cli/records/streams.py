"""Logs that are read from the first byte to the last: files, opened anew for each pass, and pipes."""

import zlib
from collections.abc import Callable, Iterator
from itertools import chain, islice
from pathlib import PurePath
from typing import BinaryIO, NamedTuple

from ...evaluators.errors import InputError
from .packing import packing_of, unpacked
from .place import Place
from .source import Row

Open = Callable[[], BinaryIO]
"""Gives the bytes of a log from their beginning; of a pipe it can be called once."""
Reader = Callable[[str, Open], Iterator[Row]]
"""Makes rows of a log's name and bytes. Raises InputError."""


class Reading(NamedTuple):
    """How a log is read."""

    format: str
    """What it was recognised as, in words."""
    read: Reader


BROKEN = (OSError, EOFError, zlib.error)
"""What is raised by files that cannot be read and packings that cannot be undone."""


class File:
    """The bytes at a place, unpacked where it is packed."""

    def __init__(self, place: Place) -> None:
        """Raises OSError."""
        self.place = place
        self.name = place.name
        self.size = place.size
        with place.open() as stream:
            self.packing = packing_of(stream.read(4))
        self._raw: BinaryIO | None = None

    def __getstate__(self) -> dict[str, object]:
        """Without what is open: another process opens it anew."""
        return {**self.__dict__, "_raw": None}

    @property
    def suffix(self) -> str:
        """`.jsonl` of `log.jsonl` and of `log.jsonl.gz`."""
        base = self.place.base
        path = PurePath(base.stem) if self.packing else base
        return path.suffix.lower()

    def open(self) -> BinaryIO:
        """Its bytes from the beginning."""
        self._raw = self.place.open()
        return unpacked(self._raw, self.packing) if self.packing else self._raw

    def position(self) -> float:
        """Bytes of the file itself that are behind what was read last."""
        return float(self._raw.tell()) if self._raw and not self._raw.closed else float(self.size or 0)


class StreamedFile:
    """A regular file, opened anew for each pass."""

    def __init__(self, file: File, reading: Reading) -> None:
        self.name = file.name
        self.size: int | None = file.size
        self.format = reading.format
        self.packing = file.packing
        self._read = reading.read
        self._file = file

    def peek(self, most: int) -> list[Row]:
        """The first rows."""
        return list(islice(self.rows(), most))

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:  # noqa: ARG002  # an entry is read whole
        """All rows. Raises InputError."""
        try:
            for row in self._read(self.name, self._file.open):
                knows = row.done and not self._file.packing
                yield row if knows else row._replace(done=self._file.position())
        except BROKEN as error:
            raise InputError(cannot_read(self.name, self._file.packing, error)) from None


class StreamedPipe:
    """A stream that can be read once: what was peeked at comes again."""

    def __init__(self, name: str, stream: BinaryIO, reading: Reading, packing: str | None = None) -> None:
        self.name = name
        self.format = reading.format
        self.packing = packing
        self.size: int | None = None
        self._rest = self._translated(reading.read(name, lambda: stream))
        self._seen: list[Row] = []
        self._used = False

    def peek(self, most: int) -> list[Row]:
        """The first rows; waits until they have arrived."""
        self._seen += islice(self._rest, most - len(self._seen))
        return self._seen[:most]

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:  # noqa: ARG002  # an entry is read whole
        """All rows, once."""
        if self._used:
            raise RuntimeError("a pipe was to be read twice")
        self._used = True
        return chain(self._seen, self._rest)

    def _translated(self, rows: Iterator[Row]) -> Iterator[Row]:
        try:
            yield from rows
        except BROKEN as error:
            raise InputError(cannot_read(self.name, None, error)) from None


def cannot_read(name: str, packing: str | None, error: Exception) -> str:
    """A sentence on a file that cannot be read, or cannot be unpacked."""
    reason = getattr(error, "strerror", None) or " ".join(str(error).split()) or type(error).__name__
    if packing and not getattr(error, "strerror", None):
        return f"cannot unpack {name!r} as {packing}: {reason}; is it complete?"
    return f"cannot read {name!r}: {reason}"
