"""gzip and Zstandard around a log, known by their first bytes."""

import gzip
import io
from typing import TYPE_CHECKING, BinaryIO, cast

if TYPE_CHECKING:
    from _typeshed import WriteableBuffer

SUFFIXES = (".gz", ".zst")
_GZIP = "gzip"
_ZSTD = "zstd"
_MAGIC = {b"\x1f\x8b": _GZIP, b"\x28\xb5\x2f\xfd": _ZSTD}
_PIECE = 1 << 16


def packing_of(head: bytes) -> str | None:
    """The name of the packing that starts so, None for plain bytes."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def unpacked(stream: BinaryIO, packing: str) -> BinaryIO:
    """The bytes inside, as they are read; closing it closes the stream."""
    return io.BufferedReader(_Unpacked(stream, _unpacker(stream, packing)), _PIECE)


def _unpacker(stream: BinaryIO, packing: str) -> BinaryIO:
    if packing == _GZIP:
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    import pyarrow as pa  # noqa: PLC0415  # 0.15 s that a plain log need not pay

    return cast("BinaryIO", pa.CompressedInputStream(cast("io.IOBase", stream), "zstd"))


class _Unpacked(io.RawIOBase):
    """An unpacker and the stream it reads from, closed together."""

    def __init__(self, packed: BinaryIO, unpacker: BinaryIO) -> None:
        self._packed = packed
        self._unpacker = unpacker

    def readable(self) -> bool:
        return True

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        target = memoryview(buffer)
        data = self._unpacker.read(len(target))
        target[: len(data)] = data
        return len(data)

    def close(self) -> None:
        if not self.closed:
            self._packed.close()
        super().close()
