"""gzip and Zstandard around a log, known by their first bytes."""

import gzip
import io
from typing import BinaryIO, cast

SUFFIXES = (".gz", ".zst")
_GZIP = "gzip"
_ZSTD = "zstd"
_MAGIC = {b"\x1f\x8b": _GZIP, b"\x28\xb5\x2f\xfd": _ZSTD}


def packing_of(head: bytes) -> str | None:
    """The name of the packing that starts so, None for plain bytes."""
    return next((name for magic, name in _MAGIC.items() if head.startswith(magic)), None)


def unpacked(stream: BinaryIO, packing: str) -> BinaryIO:
    """The bytes inside, as they are read."""
    if packing == _GZIP:
        return cast("BinaryIO", gzip.GzipFile(fileobj=stream))
    import pyarrow as pa  # noqa: PLC0415  # 0.15 s that a plain log need not pay

    return io.BufferedReader(pa.CompressedInputStream(stream, _ZSTD))  # type: ignore[arg-type]  # it is a raw stream
