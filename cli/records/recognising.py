"""Which format a log has: by its first bytes, and by its suffix where they leave it open."""

import io
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...evaluators.errors import InputError
from ...evaluators.jsontext import NotJSON, loads
from .arrow import OLD_FEATHER_MAGIC
from .delimited import header_of, reading_of_table
from .document import reading_of, reading_of_list
from .finding import names_a_question
from .formats import BINARIES, LINES, NAMES, TEXTS, binary_of
from .lenient import BOM
from .packing import packing_of, unpacked
from .paths import FieldPath
from .place import LocalFile, Place
from .shape import Wanted, find_shape, items_of, prefix_of, reading_of_shape
from .source import Source, printable
from .streams import BROKEN, File, Reading, StreamedFile, StreamedPipe, cannot_read

ANY = Wanted()
_HEAD = 1 << 13
_LONGEST = 1 << 20
"""Of a first line that is looked at."""


def open_file(path: Path, wanted: Wanted = ANY) -> Source:
    """The log in a file or named pipe. Raises InputError."""
    try:
        if not path.is_file():
            return open_pipe(printable(path), os.open(path, os.O_RDONLY), wanted)
        return open_place(LocalFile(path), wanted)
    except OSError as error:
        raise InputError(f"cannot read {str(path)!r}: {error.strerror}") from None


def open_place(place: Place, wanted: Wanted = ANY) -> Source:
    """The log at a place. Raises InputError."""
    try:
        if place.size is None:
            return open_stream(place.name, place.open(), wanted)
        file = File(place)
    except OSError as error:
        raise InputError(cannot_read(place.name, None, error)) from None
    try:
        with file.open() as stream:
            head = stream.read(_HEAD)
        if wanted.path:
            return StreamedFile(file, _reading_of_named(file, head, wanted.path))
        return _binary_file(file, head) or StreamedFile(file, _reading_of_file(file, head, wanted.usual))
    except BROKEN as error:
        raise InputError(cannot_read(file.name, file.packing, error)) from None


def open_pipe(name: str, descriptor: int, wanted: Wanted = ANY) -> Source:
    """The log in a stream; waits for its first bytes. Raises InputError."""
    # Not sys.stdin: a thread that waits in it would hold its lock when the program ends.
    return open_stream(name, io.BufferedReader(io.FileIO(descriptor, closefd=False)), wanted)


def open_stream(name: str, stream: BinaryIO, wanted: Wanted = ANY) -> Source:
    """The same for bytes that come once and in order. Raises InputError."""
    try:
        if packing := packing_of(_peek(stream)):
            stream = unpacked(stream, packing)
        head = _peek(stream)
    except BROKEN as error:
        raise InputError(cannot_read(name, None, error)) from None
    if binary := binary_of(head):
        raise InputError(f"{name}: {binary.name} is read from a file, not from a pipe; give the file's name")
    start = head.removeprefix(BOM).lstrip()
    if wanted.path:
        _check_object(name, start, wanted.path)
        return StreamedPipe(name, stream, reading_of_list(prefix_of(wanted.path)), packing)
    if start.startswith(b"["):
        return StreamedPipe(name, stream, reading_of_list(), packing)
    _refuse_document(name, start)
    return StreamedPipe(name, stream, _delimited(head) or LINES, packing)


def _refuse_document(name: str, start: bytes) -> None:
    """An object over several lines takes two passes, which a pipe does not give. Raises InputError."""
    lines = [line for part in start.split(b"\n")[:-1] if (line := part.strip())][:2]
    if len(lines) > 1 and _goes_on(*lines):
        raise InputError(
            f"{name}:1: a JSON object over several lines, which cannot be read from a pipe; "
            "give the file's name, or the list of its records, as --records results"
        )


def _goes_on(first: bytes, second: bytes) -> bool:
    """Whether a line is the beginning of an object over several lines, and no record that is broken."""
    opens = first.startswith(b"{") and first.endswith((b"{", b"[", b",", b":"))
    return opens and not _is_object(first) and not _is_object(second)


def _peek(stream: BinaryIO) -> bytes:
    return stream.peek(_HEAD) if isinstance(stream, io.BufferedReader) else b""


def _binary_file(file: File, head: bytes) -> Source | None:
    """The source of a binary format, None for texts. Raises InputError."""
    if binary := binary_of(head):
        if file.packing:
            raise InputError(f"{file.name!r} holds {binary.name} inside {file.packing}; unpack it first")
        return binary.open(file.place)
    if head.startswith(OLD_FEATHER_MAGIC):
        raise InputError(f"{file.name!r} is Feather of the first version; save it again as Feather V2 or Parquet")
    if meant := next((binary for binary in BINARIES if file.suffix in binary.suffixes), None):
        raise InputError(f"{file.name!r} is no {meant.name} file by its first bytes; is it complete?")
    return None


def _reading_of_named(file: File, head: bytes, path: FieldPath) -> Reading:
    """How the list is read that a user named. Raises InputError."""
    _check_object(file.name, head.removeprefix(BOM).lstrip(), path)
    shape = find_shape(file.name, file.open())
    if shape.has_more:
        raise InputError(f"{file.name} is JSON Lines; --records {path.text} names a list in one object, leave it out")
    prefix = prefix_of(path)
    with file.open() as stream:
        if not any(True for _ in items_of(stream, f"{prefix}.item")):
            there = ", ".join((*shape.tables, *shape.columns, *shape.empty, *shape.others))
            raise InputError(f"{file.name}: no records under {path.text!r}; name another list (there are: {there})")
    return reading_of_list(prefix)


def _check_object(name: str, start: bytes, path: FieldPath) -> None:
    """Raise InputError for a log that holds no lists by name."""
    if not start.startswith(b"{"):
        raise InputError(f"{name} is no JSON object; --records {path.text} names a list in one, leave it out")


def _reading_of_file(file: File, head: bytes, usual: Sequence[str]) -> Reading:
    """How a text is read. Raises InputError."""
    start = head.removeprefix(BOM).lstrip()
    if file.suffix in (".yaml", ".yml"):
        raise InputError(f"{file.name!r} is no log; if it is an evaluator, give it with an -e of its own")
    if start.startswith(b"["):
        return reading_of_list()
    if start.startswith(b"{"):
        return _reading_of_object(file, usual)
    if reading := TEXTS.get(file.suffix) or _delimited(head):
        return reading
    suffix = repr(file.suffix) if file.suffix else "a name without suffix"
    raise InputError(
        f"cannot tell the format of {file.name!r} by {suffix} or by its beginning; "
        f"convert it to {', '.join(NAMES[:-1])} or {NAMES[-1]}, with the suffix of its format"
    )


def _delimited(head: bytes) -> Reading | None:
    """How a table is read whose header names a question."""
    delimiter, names = header_of(head)
    if len(names) > 1 and any(map(names_a_question, names)):
        return reading_of_table(delimiter)
    return None


def _reading_of_object(file: File, usual: Sequence[str]) -> Reading:
    """How a text is read that starts with an object: a line of many, or a document. Raises InputError."""
    with file.open() as stream:
        lines = [line for _ in range(2) if (line := _next_line(stream))]
    is_whole = len(lines[0]) < _LONGEST
    follows = len(lines) > 1 and is_whole
    if _is_object(lines[0]) and follows:
        return LINES
    if is_whole and not _is_object(lines[0]):  # a record that is broken, or a document over several lines
        return _reading_of_document(file, usual) if follows and _goes_on(*lines) else LINES
    names_lines = file.suffix != ".json" and TEXTS.get(file.suffix) is LINES
    return LINES if names_lines else _reading_of_document(file, usual, or_lines=True)


def _reading_of_document(file: File, usual: Sequence[str], *, or_lines: bool = False) -> Reading:
    shape = find_shape(file.name, file.open())
    if shape.has_more and or_lines:
        return LINES
    if shape.has_more:
        raise InputError(
            f"{file.name}:1: JSON over several lines, not JSON Lines; "
            "write a record per line, for example: jq -c . FILE > FILE.jsonl"
        )
    if known := next((key for key in usual if key in shape.tables), None):
        return reading_of_list(known)
    return reading_of(reading_of_shape(file.name, shape, names_a_question))


def _next_line(stream: BinaryIO) -> bytes:
    """The next line that is not blank, as far as it is looked at."""
    for line in iter(partial(stream.readline, _LONGEST), b""):
        if text := line.removeprefix(BOM).strip():
            return text if len(line) < _LONGEST else line
    return b""


def _is_object(text: bytes) -> bool:
    try:
        return isinstance(loads(text), dict)
    except NotJSON:
        return False
