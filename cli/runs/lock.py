"""One run at a time at an output."""

import fcntl
import os
import socket
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path

import orjson

from ...evaluators.errors import OutputError, OutputLocked


@contextmanager
def hold_lock(folder: Path) -> Iterator[None]:
    """Hold the folder; the system lets go of it however the process ends. Raises OutputLocked at once."""
    try:
        descriptor = os.open(folder / ".lock", os.O_RDWR | os.O_CREAT, 0o600)
    except OSError as error:
        raise OutputError(f"cannot write to {str(folder)!r}: {error.strerror}") from None
    try:
        _take(descriptor, folder)
        yield
    finally:
        os.close(descriptor)


def _take(descriptor: int, folder: Path) -> None:
    try:
        fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        raise OutputLocked(
            f"{_name(_read_holder(descriptor))} works at {str(folder)!r}; wait for it, then run the same command"
        ) from None
    except OSError as error:
        raise OutputError(
            f"cannot lock {str(folder)!r}: {error.strerror}; choose a local folder with --output"
        ) from None
    with suppress(OSError):  # on a full disk the next run is told less, and that is all
        os.ftruncate(descriptor, 0)
        os.pwrite(descriptor, orjson.dumps({"pid": os.getpid(), "host": socket.gethostname()}), 0)


def _read_holder(descriptor: int) -> bytes:
    """What the holder wrote of itself; one that took the lock this very moment has not written yet."""
    for _ in range(50):
        if holder := os.pread(descriptor, 1000, 0):
            return holder
        time.sleep(0.02)
    return b""


def _name(holder: bytes) -> str:
    try:
        who = orjson.loads(holder)
        return f"another run (process {who['pid']} on {who['host']})"
    except (orjson.JSONDecodeError, KeyError, TypeError):
        return "another run"
