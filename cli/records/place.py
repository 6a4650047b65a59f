"""Where a log's bytes are: in a file of this machine, or behind an address."""

from pathlib import Path, PurePath
from typing import TYPE_CHECKING, BinaryIO, Protocol

from .source import printable

if TYPE_CHECKING:
    import pyarrow as pa


class Place(Protocol):
    """Bytes that can be read from their beginning any number of times."""

    name: str
    """For messages and rows; no secret is in it."""
    base: PurePath
    """The name without folders, whose suffix may tell the format."""
    size: int | None
    """Bytes in all, None where nobody says."""

    def open(self) -> BinaryIO:
        """The bytes from the beginning. Raises OSError."""

    def open_arrow(self) -> "pa.NativeFile":
        """The same for pyarrow, to be read in any order. Raises OSError."""


class LocalFile:
    """A regular file."""

    def __init__(self, path: Path) -> None:
        """Raises OSError."""
        self.name = printable(path)
        self.base = PurePath(path.name)
        self.size: int | None = path.stat().st_size
        self._path = path

    def __getstate__(self) -> dict[str, object]:
        """With a path that holds in a process that works elsewhere."""
        return {**self.__dict__, "_path": self._path.absolute()}

    def open(self) -> BinaryIO:
        """The bytes from the beginning. Raises OSError."""
        return self._path.open("rb")

    def open_arrow(self) -> "pa.NativeFile":
        """The same for pyarrow, to be read in any order. Raises OSError."""
        import pyarrow as pa  # noqa: PLC0415  # 0.15 s that a JSON Lines log need not pay

        return pa.OSFile(str(self._path), "r")
