"""A file of labels that somebody adds to, one record after the other."""

import math
from pathlib import Path

import orjson

from ...evaluators.errors import OutputError, UsageError
from ..records.recognising import open_file
from ..records.source import printable

_WORDS = {"y": 1.0, "yes": 1.0, "n": 0.0, "no": 0.0}


class LabelFile:
    """JSON Lines with `id` and a label, each line written as soon as it is given."""

    def __init__(self, path: Path, field: str) -> None:
        """`field` is the name under which the label stands, another one for each rater. Raises UsageError."""
        self._path = path
        self._field = field
        if not path.parent.is_dir():
            raise UsageError(f"--labels {printable(path)!r}: the folder {printable(path.parent)!r} is not there")

    def known(self) -> set[str]:
        """Ids that this rater has labelled. Raises InputError."""
        if not self._path.exists() or not self._path.stat().st_size:
            return set()
        rows = open_file(self._path).rows()
        return {str(row.value["id"]) for row in rows if row.value and "id" in row.value and self._field in row.value}

    def add(self, name: str, label: float) -> None:
        """Write a record's label. Raises OutputError."""
        value = int(label) if label == int(label) else label
        try:
            with self._path.open("ab") as stream:
                stream.write(orjson.dumps({"id": name, self._field: value}, option=orjson.OPT_APPEND_NEWLINE))
        except OSError as error:
            raise OutputError(f"cannot write {printable(self._path)!r}: {error.strerror}") from None


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
