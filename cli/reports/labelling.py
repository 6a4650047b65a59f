"""A file of labels that somebody adds to, one record after the other."""

import math
import os
from pathlib import Path
from typing import BinaryIO

import orjson

from ...evaluators.errors import OutputError, UsageError
from ..records.lenient import BOM
from ..records.source import printable

_ID = "id"
_WORDS = {"y": 1.0, "yes": 1.0, "n": 0.0, "no": 0.0}


class LabelFile:
    """JSON Lines with `id` and a label, each line written as soon as it is given."""

    def __init__(self, path: Path, field: str) -> None:
        """`field` is the name under which the label stands, another one for each rater. Raises UsageError."""
        self._path = path
        self._field = field
        if field in ("", _ID):
            raise UsageError(f"--rater {field!r} cannot be the name of a label; write another")
        if path.is_dir():
            raise UsageError(f"--labels {printable(path)!r} is a folder; name a file")
        if not path.parent.is_dir():
            raise UsageError(f"--labels {printable(path)!r}: the folder {printable(path.parent)!r} is not there")

    def known(self) -> set[str]:
        """Ids that this rater has labelled. Raises UsageError for a file that lines cannot be added to."""
        if not self._path.exists():
            return set()
        labels = [self._label(number, line) for number, line in enumerate(self._lines(), start=1) if line.strip()]
        return {str(label[_ID]) for label in labels if self._field in label}

    def _lines(self) -> list[bytes]:
        try:
            return self._path.read_bytes().removeprefix(BOM).splitlines()
        except OSError as error:
            raise UsageError(f"cannot read {printable(self._path)!r}: {error.strerror}") from None

    def _label(self, number: int, line: bytes) -> dict[str, object]:
        try:
            label = orjson.loads(line)
        except orjson.JSONDecodeError:
            label = None
        if not isinstance(label, dict) or _ID not in label:
            raise UsageError(
                f"{printable(self._path)}:{number}: no line with an id, and labels are added to such lines; "
                "name a new file with --labels"
            )
        return label

    def add(self, name: str, label: float) -> None:
        """Write a record's label. Raises OutputError."""
        value = int(label) if label == int(label) else label
        try:
            with self._path.open("a+b") as stream:
                if stream.tell() and _last_byte(stream) != b"\n":  # as some editors leave a file
                    stream.write(b"\n")
                stream.write(orjson.dumps({_ID: name, self._field: value}, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            raise OutputError(f"cannot write {printable(self._path)!r}: {error.strerror}") from None


def _last_byte(stream: BinaryIO) -> bytes:
    stream.seek(-1, os.SEEK_END)
    return stream.read(1)


def parse_label(text: str) -> float | None:
    """The label of what somebody typed: y, n or a number; None where it is none."""
    word = text.strip().lower()
    if word in _WORDS:
        return _WORDS[word]
    try:
        value = float(word)
    except ValueError:
        return None
    return value if math.isfinite(value) else None
