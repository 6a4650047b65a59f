"""Result rows: one per record and evaluator, in input order, nothing volatile in them."""

import errno
import os
import queue
import select
import threading
from collections.abc import Iterable, Mapping
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

import orjson

from ...evaluators.errors import OutputError
from ...evaluators.evaluator import Evaluator
from ...evaluators.judging import Outcome
from ...evaluators.record import Record

_BUFFERED = 1 << 16
_LAST_WORDS_SECONDS = 1.0


def result_row(record: Record, evaluator: Evaluator, outcome: Outcome, carried: Mapping[str, object]) -> bytes:
    """The row as a line of JSON; `carried` are further columns."""
    evaluation, failure = outcome.evaluation, outcome.failure
    row: dict[str, object] = {
        "index": record.index,
        "id": record.id,
        "evaluator": evaluator.name,
        "status": "evaluated" if evaluation else "error",
        "score": evaluation.score if evaluation else None,
        "question": record.question,
        **(evaluation.outputs if evaluation else evaluator.empty_outputs),
        "model": outcome.model,
        "prompt": evaluator.prompt,
        "repaired": outcome.repaired,
        "usage": outcome.usage._asdict(),
        "cost": outcome.cost,
        "error": {"kind": failure.kind, "message": failure.message} if failure else None,
    }
    if outcome.requests > 1:
        row["requests"] = outcome.requests
    return orjson.dumps({**row, **carried}, option=orjson.OPT_APPEND_NEWLINE)


class Results(Protocol):
    """Where rows go."""

    @property
    def name(self) -> str | None:
        """The file that holds them now, None for a stream."""

    @property
    def backlog(self) -> int:
        """Bytes that were handed over and are not written yet."""

    @property
    def hash(self) -> str | None:
        """Of all rows, where they are in a file that is complete."""

    def write(self, row: bytes) -> None:
        """Add a row. Raises OutputError."""

    def flush(self) -> None:
        """Let others see what was written. Raises OutputError."""

    def finish(self, *, complete: bool) -> None:
        """End the output. Raises OutputError."""


class ResultsFile:
    """`results.jsonl`, growing as `results.jsonl.part` until the run is complete."""

    def __init__(self, path: Path) -> None:
        self._path = path
        self._part = path.with_name(f"{path.name}.part")
        self.name: str | None = self._part.name
        self.backlog = 0
        self.hash: str | None = None
        self._hash = blake2b(digest_size=16)
        try:
            self._stream = open(self._part, "wb", buffering=_BUFFERED, opener=_private)  # noqa: SIM115  # Path.open knows no opener
        except OSError as error:
            raise OutputError(f"cannot write {str(self._part)!r}: {error.strerror}") from None

    def write(self, row: bytes) -> None:
        """Add a row. Raises OutputError."""
        self._hash.update(row)
        try:
            self._stream.write(row)
        except OSError as error:
            raise self._failed(error) from None

    def flush(self) -> None:
        """Let others see what was written. Raises OutputError."""
        try:
            self._stream.flush()
        except OSError as error:
            raise self._failed(error) from None

    def finish(self, *, complete: bool) -> None:
        """Close; give a complete file its name. Raises OutputError."""
        try:
            self._stream.close()
            if complete:
                self._part.replace(self._path)
                self.name = self._path.name
                self.hash = self._hash.hexdigest()
        except OSError as error:
            raise self._failed(error) from None

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(f"cannot write {str(self._part)!r}: {error.strerror}; what was judged is kept in the store")


class ResultsStream:
    """Rows on standard output, written on a thread: a reader that pauses holds up no request."""

    def __init__(self, descriptor: int = 1) -> None:
        # Not sys.stdout: the interpreter would flush it once more after the reader has gone.
        self.name: str | None = None
        self.hash: str | None = None
        self._descriptor = descriptor
        self._buffer = bytearray()
        self._handed_over: queue.SimpleQueue[bytes | None] = queue.SimpleQueue()
        self._backlog = 0
        self._error: OSError | None = None
        self._thread = threading.Thread(target=self._write_all, name="ctxrel-writer", daemon=True)
        self._thread.start()

    @property
    def backlog(self) -> int:
        """Bytes that were handed over and are not written yet."""
        return self._backlog

    def write(self, row: bytes) -> None:
        """Add a row. Raises OutputError."""
        self._raise()
        self._buffer += row
        if len(self._buffer) >= _BUFFERED:
            self.flush()

    def flush(self) -> None:
        """Hand over what was added. Raises OutputError."""
        self._raise()
        if self._buffer:
            self._backlog += len(self._buffer)
            self._handed_over.put(bytes(self._buffer))
            self._buffer.clear()

    def finish(self, *, complete: bool) -> None:  # noqa: ARG002  # a stream has no name to give
        """End the thread; what a reader who pauses has not taken by now is lost to it. Raises OutputError."""
        try:
            self.flush()
        finally:
            self._handed_over.put(None)
            self._thread.join(_LAST_WORDS_SECONDS)
        self._raise()

    def _write_all(self) -> None:
        while (data := self._handed_over.get()) is not None:
            try:
                self._write(memoryview(data))
            except OSError as error:
                self._error = error
                return
            self._backlog -= len(data)

    def _write(self, data: memoryview) -> None:
        while data:
            try:
                data = data[os.write(self._descriptor, data) :]
            except BlockingIOError:  # somebody has made the stream non-blocking
                select.select([], [self._descriptor], [])

    def _raise(self) -> None:
        if self._error is None:
            return
        if self._error.errno == errno.EPIPE:
            raise OutputError("standard output was closed before the run ended")
        raise OutputError(f"cannot write to standard output: {self._error.strerror}")


def write_atomically(path: Path, data: bytes) -> None:
    """The file whole or not at all. Raises OutputError."""
    write_parts(path, [data])


def write_parts(path: Path, parts: Iterable[bytes]) -> int:
    """The file of several parts, whole or not at all; its size in bytes. Raises OutputError."""
    part = path.with_name(f"{path.name}.part")
    try:
        with open(part, "wb", opener=_private) as stream:
            stream.writelines(parts)
            size = stream.tell()
        part.replace(path)
    except OSError as error:
        raise OutputError(f"cannot write {str(path)!r}: {error.strerror}") from None
    return size


def _private(path: str, flags: int) -> int:
    descriptor = os.open(path, flags, 0o600)
    os.fchmod(descriptor, 0o600)  # also where an older file is written over
    return descriptor
