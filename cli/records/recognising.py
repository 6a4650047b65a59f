"""Which format a log has: by its first bytes, and by its suffix where they leave it open."""

import io
import os
from collections.abc import Sequence
from functools import partial
from pathlib import Path
from typing import BinaryIO

from ...evaluators.errors import InputError
from ...evaluators.jsontext import NotJSON, loads
from .arrow import FILE_MAGIC, OLD_FEATHER_MAGIC, STREAM_MAGIC, ArrowFile
from .delimited import header_of, read_delimited
from .document import read_list, reader_of
from .finding import names_a_question
from .jsonl import is_utf16, read_lines
from .lenient import BOM
from .packing import SUFFIXES as PACKINGS
from .packing import packing_of, unpacked
from .parquet import MAGIC as PARQUET_MAGIC
from .parquet import ParquetFile
from .paths import FieldPath
from .place import LocalFile, Place
from .shape import Wanted, find_shape, items_of, prefix_of, reading_of_shape
from .source import Source, printable
from .streams import BROKEN, File, Reader, StreamedFile, StreamedPipe, cannot_read

_LINES = (".jsonl", ".ndjson")
_TABLES = (".csv", ".tsv")
_TEXTS = (*_LINES, ".json", *_TABLES)
_BINARIES = (".parquet", ".arrow", ".feather", ".ipc")
SUFFIXES = (*_TEXTS, *_BINARIES, *(f"{text}{packing}" for text in _TEXTS for packing in PACKINGS))
"""What a folder's logs end in."""
KINDS = "JSON Lines, JSON, CSV, TSV, Parquet or Arrow"
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
            return StreamedFile(file, _reader_of_list(file, head, wanted.path))
        return _table_file(file, head) or StreamedFile(file, _reader_of_file(file, head, wanted.usual))
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
    if head.startswith((PARQUET_MAGIC, FILE_MAGIC, STREAM_MAGIC)):
        raise InputError(f"{name}: Parquet and Arrow are read from a file, not from a pipe; give the file's name")
    start = head.removeprefix(BOM).lstrip()
    if wanted.path:
        _check_object(name, start, wanted.path)
        return StreamedPipe(name, stream, partial(read_list, key=prefix_of(wanted.path)), packing)
    if start.startswith(b"["):
        return StreamedPipe(name, stream, read_list, packing)
    _refuse_document(name, start)
    return StreamedPipe(name, stream, _delimited(head) or read_lines, packing)


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


def _table_file(file: File, head: bytes) -> Source | None:
    """The source of a binary format, None for texts. Raises InputError."""
    if head.startswith((PARQUET_MAGIC, FILE_MAGIC, STREAM_MAGIC)) and file.packing:
        raise InputError(f"{file.name!r} holds Parquet or Arrow inside {file.packing}; unpack it first")
    if head.startswith(PARQUET_MAGIC):
        return ParquetFile(file.place)
    if head.startswith((FILE_MAGIC, STREAM_MAGIC)):
        return ArrowFile(file.place, is_stream=head.startswith(STREAM_MAGIC))
    if head.startswith(OLD_FEATHER_MAGIC):
        raise InputError(f"{file.name!r} is Feather of the first version; save it again as Feather V2 or Parquet")
    if file.suffix == ".parquet":
        raise InputError(f"{file.name!r} is no Parquet file: it does not start with PAR1")
    if file.suffix in _BINARIES:
        raise InputError(f"{file.name!r} is no Arrow file: it starts neither with ARROW1 nor as a stream does")
    return None


def _reader_of_list(file: File, head: bytes, path: FieldPath) -> Reader:
    """What reads the list that a user named. Raises InputError."""
    _check_object(file.name, head.removeprefix(BOM).lstrip(), path)
    shape = find_shape(file.name, file.open())
    if shape.has_more:
        raise InputError(f"{file.name} is JSON Lines; --records {path.text} names a list in one object, leave it out")
    prefix = prefix_of(path)
    with file.open() as stream:
        if not any(True for _ in items_of(stream, f"{prefix}.item")):
            there = ", ".join((*shape.tables, *shape.columns, *shape.empty, *shape.others))
            raise InputError(f"{file.name}: no records under {path.text!r}; name another list (there are: {there})")
    return partial(read_list, key=prefix)


def _check_object(name: str, start: bytes, path: FieldPath) -> None:
    """Raise InputError for a log that holds no lists by name."""
    if not start.startswith(b"{"):
        raise InputError(f"{name} is no JSON object; --records {path.text} names a list in one, leave it out")


def _reader_of_file(file: File, head: bytes, usual: Sequence[str]) -> Reader:
    """What reads a text. Raises InputError."""
    start = head.removeprefix(BOM).lstrip()
    if file.suffix in (".yaml", ".yml"):
        raise InputError(f"{file.name!r} is no log; if it is an evaluator, give it with an -e of its own")
    if start.startswith(b"["):
        return read_list
    if start.startswith(b"{"):
        return _object_reader(file, usual)
    if file.suffix in _TABLES:
        if is_utf16(head):
            raise InputError(f"{file.name}:1: no UTF-8 text; save the log as UTF-8")
        return partial(read_delimited, delimiter=header_of(head)[0])
    if file.suffix in (*_LINES, ".json"):
        return read_lines
    if table := _delimited(head):
        return table
    raise InputError(
        f"cannot tell the format of {file.name!r} by {file.suffix or 'a name without suffix'!r} or by its beginning; "
        f"convert it to {KINDS}, with the suffix of its format"
    )


def _delimited(head: bytes) -> Reader | None:
    """What reads a table whose header names a question."""
    delimiter, names = header_of(head)
    if len(names) > 1 and any(map(names_a_question, names)):
        return partial(read_delimited, delimiter=delimiter)
    return None


def _object_reader(file: File, usual: Sequence[str]) -> Reader:
    """What reads a text that starts with an object: a line of many, or a document. Raises InputError."""
    with file.open() as stream:
        lines = [line for _ in range(2) if (line := _next_line(stream))]
    is_whole = len(lines[0]) < _LONGEST
    follows = len(lines) > 1 and is_whole
    if _is_object(lines[0]) and follows:
        return read_lines
    if is_whole and not _is_object(lines[0]):  # a record that is broken, or a document over several lines
        return _document_reader(file, usual) if follows and _goes_on(*lines) else read_lines
    return read_lines if file.suffix in _LINES else _document_reader(file, usual, or_lines=True)


def _document_reader(file: File, usual: Sequence[str], *, or_lines: bool = False) -> Reader:
    shape = find_shape(file.name, file.open())
    if shape.has_more and or_lines:
        return read_lines
    if shape.has_more:
        raise InputError(
            f"{file.name}:1: JSON over several lines, not JSON Lines; "
            "write a record per line, for example: jq -c . FILE > FILE.jsonl"
        )
    if known := next((key for key in usual if key in shape.tables), None):
        return partial(read_list, key=known)
    return reader_of(reading_of_shape(file.name, shape, names_a_question))


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
