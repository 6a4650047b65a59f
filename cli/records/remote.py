"""Logs behind addresses, by fsspec: object stores, data sets, the web; read block by block."""

import errno
import io
import re
from collections.abc import Iterator
from contextlib import contextmanager
from http import HTTPStatus
from pathlib import PurePath, PurePosixPath
from typing import TYPE_CHECKING, Any, BinaryIO

from ...evaluators.errors import InputError
from .addresses import WEB, protocol_of, shown
from .formats import SUFFIXES
from .source import printable

if TYPE_CHECKING:
    import pyarrow as pa
    from _typeshed import WriteableBuffer

_BLOCK = 4 << 20
_BUFFER = 1 << 18
_PROBE = 1 << 10
_PACKAGES = {
    "s3": "s3fs",
    "s3a": "s3fs",
    "gs": "gcsfs",
    "gcs": "gcsfs",
    "hf": "huggingface_hub",
    "abfs": "adlfs",
    "abfss": "adlfs",
    "az": "adlfs",
}
"""What reads a protocol beside fsspec."""
_LONGEST_REASON = 300
_NUMBER = re.compile(r"^\[Errno \d+\] ")


class RemoteFile:
    """A file behind an address."""

    def __init__(self, system: Any, path: str, info: dict[str, Any]) -> None:  # noqa: ANN401  # fsspec has no types
        """`info` is what the file system says of it. Raises OSError."""
        self.name = address_of(system, path)
        self.base = PurePath(PurePosixPath(self.name).name)
        self.size: int | None = info.get("size")
        self._system = system
        self._path = path
        self._in_blocks = self.size is not None and self._can_skip()

    def open(self) -> BinaryIO:
        """The bytes from the beginning. Raises OSError."""
        return io.BufferedReader(self._open(), _BUFFER)

    def open_arrow(self) -> "pa.NativeFile":
        """The same for pyarrow, to be read in any order. Raises OSError."""
        import pyarrow as pa  # noqa: PLC0415  # 0.15 s that a JSON Lines log need not pay

        if not self._in_blocks:
            raise OSError(errno.ESPIPE, "the server gives it as a whole only; download it, and give the file's name")
        return pa.PythonFile(self._open(), "r")

    def _open(self) -> "_Stream":
        with _as_os_error():
            block = _BLOCK if self._in_blocks else 0
            return _Stream(self._system.open(self._path, "rb", block_size=block), seekable=self._in_blocks)

    def _can_skip(self) -> bool:
        """Whether parts of it can be asked for: of a web server only trying tells."""
        if not _is_web(self._system) or not self.size:
            return True
        try:
            with _as_os_error(), self._system.open(self._path, "rb", block_size=_PROBE) as stream:
                stream.seek(1)
                stream.read(1)
        except OSError:
            return False
        return True


class _Stream(io.RawIOBase):
    """A file of fsspec that raises nothing but OSError."""

    def __init__(self, file: Any, *, seekable: bool) -> None:  # noqa: ANN401  # as above
        self._file = file
        self._seekable = seekable
        self._at = 0

    def readable(self) -> bool:
        return True

    def seekable(self) -> bool:
        return self._seekable

    def tell(self) -> int:
        return self._at

    def seek(self, offset: int, whence: int = io.SEEK_SET, /) -> int:
        with _as_os_error():
            self._at = self._file.seek(offset, whence)
        return self._at

    def readinto(self, buffer: "WriteableBuffer", /) -> int:
        target = memoryview(buffer).cast("B")
        with _as_os_error():
            data = self._file.read(len(target))
        target[: len(data)] = data
        self._at += len(data)
        return len(data)

    def close(self) -> None:
        if not self.closed:
            with _as_os_error():
                self._file.close()
        super().close()


def find_remote(address: str) -> tuple[list[RemoteFile], bool]:
    """The file behind an address, or the files that its glob or folder holds, and whether it could be several.

    Raises InputError, also where what reads the protocol is not installed.
    """
    name = shown(address)
    system, path = _connect(address)
    with _as_input_error(name):
        if "*" in path or (not _is_web(system) and any(sign in path for sign in "?[")):
            found = {found: info for found, info in system.glob(path, detail=True).items() if info["type"] == "file"}
            several = True
        else:
            info = system.info(path)
            several = info["type"] == "directory" or (_is_web(system) and path.endswith("/"))
            found = dict(_logs_in(system, path)) if several else {path: info}
        return [RemoteFile(system, path, found[path]) for path in sorted(found)], several


def _logs_in(system: Any, folder: str) -> Iterator[tuple[str, dict[str, Any]]]:  # noqa: ANN401  # as above
    """The files of a folder that end as logs do, and those of folders in it that are named like date=2026-11-30."""
    for info in system.ls(folder, detail=True):
        path = info["name"]
        base = path.rstrip("/").rpartition("/")[2]
        if info["type"] == "directory" and "=" in base and path.rstrip("/") != folder.rstrip("/"):
            yield from _logs_in(system, path)
        elif info["type"] == "file" and base.lower().endswith(SUFFIXES):
            yield path, info


def address_of(system: Any, path: str) -> str:  # noqa: ANN401  # as above
    """A path of a file system as it is shown."""
    return shown(printable(system.unstrip_protocol(path)))


def _connect(address: str) -> tuple[Any, str]:
    """The file system of an address, and the path there. Raises InputError."""
    name, protocol = shown(address), protocol_of(address)
    try:
        import fsspec  # noqa: PLC0415  # an extra
    except ImportError:
        raise InputError(f"{name!r} is not on this machine; to read it: pip install 'ctxrel[remote]'") from None
    try:
        with _as_input_error(name):
            system, path = fsspec.core.url_to_fs(address, **_options(address))
    except ImportError as error:
        package = _PACKAGES.get(protocol)
        needed = f"pip install {package}" if package else reason_of(error)
        raise InputError(f"{name!r} needs one more package to be read: {needed}") from None
    return system, str(path)


def _options(address: str) -> dict[str, Any]:
    """What a file system is told: web servers may take their time, and the proxy of the environment is used."""
    if protocol_of(address) not in WEB:
        return {}
    import aiohttp  # noqa: PLC0415  # 0.2 s that a local log need not pay

    timeout = aiohttp.ClientTimeout(total=None, sock_connect=30, sock_read=120)
    return {"client_kwargs": {"timeout": timeout, "trust_env": True}, "encoded": "%" in address}


def _is_web(system: Any) -> bool:  # noqa: ANN401  # as above
    protocols = system.protocol if isinstance(system.protocol, (list, tuple)) else [system.protocol]
    return any(protocol in WEB for protocol in protocols)


def reason_of(error: BaseException) -> str:
    """What a client says was wrong, without what is secret in it."""
    cause = error.__cause__ or error
    text = _NUMBER.sub("", " ".join(str(cause).split())) or type(cause).__name__
    return shown(text)[:_LONGEST_REASON]


@contextmanager
def _as_os_error() -> Iterator[None]:
    """Whatever a client raises while a file is read, as OSError."""
    try:
        yield
    except Exception as error:  # noqa: BLE001  # each file system raises what its own client does
        raise OSError(errno.EIO, reason_of(error)) from None


@contextmanager
def _as_input_error(name: str) -> Iterator[None]:
    """Whatever a client raises while a file is looked for, as InputError."""
    try:
        yield
    except (InputError, ImportError):
        raise
    except Exception as error:  # noqa: BLE001  # as above
        if isinstance(error, FileNotFoundError) and _is_absent(error):
            raise InputError(f"no file {name!r}; check the address") from None
        raise InputError(f"cannot read {name!r}: {reason_of(error)}") from None


def _is_absent(error: FileNotFoundError) -> bool:
    """Whether the file is really not there: fsspec says so of a web server that cannot be reached, too."""
    cause = error.__cause__
    return (
        cause is None or isinstance(cause, FileNotFoundError) or getattr(cause, "status", None) == HTTPStatus.NOT_FOUND
    )
