"""The records as blocks of text that no browser runs: JSON, compressed, in base64."""

import base64
import zlib
from array import array
from collections.abc import Mapping, Sequence
from tempfile import SpooledTemporaryFile
from typing import Any

import orjson

from .records import Row

MOST_BYTES = 150 << 20
"""Of the page's data: what browsers still open in seconds."""
_IN_MEMORY = 32 << 20
_CHUNK_BYTES = 1 << 18
_CHUNK_RECORDS = 200
_LONGEST_QUESTION = 200
_LEVEL = 6


class Blocks:
    """Records in chunks, each of them unpacked by the page when it is needed, and an index over all of them."""

    def __init__(self, evaluators: Sequence[str], fields: Mapping[str, Sequence[str]]) -> None:
        """`fields` are those that can be filtered by, with the values that can be told apart."""
        self.file = SpooledTemporaryFile(max_size=_IN_MEMORY)  # noqa: SIM115  # closed by who reads it
        self.records = 0
        self.size = 0
        """Bytes so far."""
        self._fields = {name: {value: place for place, value in enumerate(v)} for name, v in fields.items()}
        self._starts: list[int] = []
        self._chunk: list[bytes] = []
        self._chunk_size = 0
        self._columns: dict[str, Any] = {"index": [], "id": [], "question": [], "contexts": []}
        self._rows: dict[str, dict[str, list[Any]]] = {name: {"score": [], "error": []} for name in evaluators}
        self._places: dict[str, array[int]] = {name: array("i") for name in fields}

    def add(self, detail: Mapping[str, Any], rows: Sequence[Row], values: Mapping[str, str]) -> None:
        """Add a record: what is shown of it, its rows, and the values of its fields."""
        columns = self._columns
        columns["index"].append(detail["index"])
        columns["id"].append(detail["id"])
        columns["question"].append(detail["question"][:_LONGEST_QUESTION])
        columns["contexts"].append(_context_count(detail))
        by_name = {row["evaluator"]: row for row in rows}
        for name, column in self._rows.items():
            row = by_name.get(name)
            column["score"].append(row["score"] if row else None)
            column["error"].append(_error_of(row))
        for name, places in self._places.items():
            places.append(self._fields[name].get(values.get(name, ""), -1))
        self.records += 1
        written = orjson.dumps(detail)
        self._chunk.append(written)
        self._chunk_size += len(written)
        if self._chunk_size >= _CHUNK_BYTES or len(self._chunk) >= _CHUNK_RECORDS:
            self._end_chunk()

    def finish(self) -> None:
        """Write the index; nothing can be added after it."""
        self._end_chunk()
        fields = [
            {"name": name, "values": list(values), "places": list(self._places[name])}
            for name, values in self._fields.items()
        ]
        index = {**self._columns, "evaluators": self._rows, "fields": fields, "chunks": self._starts}
        self._write("index", orjson.dumps(index))

    def _end_chunk(self) -> None:
        if self._chunk:
            self._write(f"chunk-{len(self._starts)}", b"[" + b",".join(self._chunk) + b"]")
            self._starts.append(self.records - len(self._chunk))
            self._chunk, self._chunk_size = [], 0

    def _write(self, name: str, data: bytes) -> None:
        packed = base64.b64encode(zlib.compress(data, _LEVEL))
        block = b'<script type="text/plain" id="%b">%b</script>\n' % (name.encode(), packed)
        self.file.write(block)
        self.size += len(block)


def _context_count(detail: Mapping[str, Any]) -> int | None:
    if "contexts" in detail:
        return len(detail["contexts"])
    counts = [len(verdict["contexts"]) for verdict in detail["verdicts"] if "contexts" in verdict]
    return max(counts, default=None)


def _error_of(row: Row | None) -> str | None:
    """The kind of error, empty text where there was none, None where there is no row."""
    if row is None:
        return None
    return str(row["error"]["kind"]) if row["error"] else ""
