"""JSON as people write it, for a parser that takes it strictly and piece by piece."""

import re
from typing import BinaryIO

BOM = b"\xef\xbb\xbf"
_STRING_END = re.compile(rb'[^"\\]*+(?:\\.[^"\\]*+)*+"', re.DOTALL)
_MARK = re.compile(rb'"|-?(?:NaN|Infinity)')
_LONGEST = len(b"-Infinity")
_PIECE = 1 << 16
_DEEPEST = 1000
"""Levels of lists and objects; the parser takes squared time for deeper ones, and single lines take no more."""
_NO_BRACKETS = bytes(set(range(256)) - set(b"[]{}"))


class TooDeep(ValueError):
    """Lists and objects are nested beyond all measure."""

    def __init__(self) -> None:
        super().__init__(f"nested more than {_DEEPEST:,} levels deep")


class LenientStream:
    """A stream without its byte order mark, and with null where NaN or Infinity stands outside of a string.

    Reading it raises TooDeep.
    """

    def __init__(self, stream: BinaryIO) -> None:
        self._read = getattr(stream, "read1", stream.read)  # what is there already, where a pipe gives it bit by bit
        self._held = b""
        self._in_string = False
        # The parser goes over a string again with every piece of it: pieces of equal size would take it squared time.
        self._inside = 0
        self._at_start = True
        self._ended = False
        self._depth = 0

    def read(self, size: int = -1) -> bytes:
        """The next bytes, about as many as asked for; none at the end."""
        out = b""
        while size and not out and not self._ended:
            piece = self._piece(size if size > 0 else _PIECE)
            data = self._held + piece
            if self._at_start and (self._ended or len(data) >= len(BOM)):
                data = data.removeprefix(BOM)
                self._at_start = False
            out = b"" if self._at_start else self._replaced(data)
            if self._at_start:
                self._held = data
        return out

    def _piece(self, size: int) -> bytes:
        """The next bytes as they are: the more, the longer the string is that they are inside of."""
        pieces = [self._read(size)]
        gathered = len(pieces[0])
        while pieces[-1] and gathered < self._inside:
            pieces.append(self._read(max(size, self._inside - gathered)))
            gathered += len(pieces[-1])
        self._ended = not pieces[-1]
        return b"".join(pieces)

    def _replaced(self, data: bytes) -> bytes:
        """What of the data can be told by now; the rest is held back."""
        parts: list[bytes] = []
        outside: list[bytes] = []
        copied = at = 0
        while True:
            if self._in_string:
                end = _STRING_END.match(data, at)
                if end is None:
                    self._inside = self._inside + len(data) if at == 0 else 0
                    cut = len(data) - (not self._ended and _ends_in_escape(data[at:]))
                    break
                at = end.end()
                self._in_string = False
                self._inside = 0
            mark = _MARK.search(data, at)
            if mark is None:
                cut = len(data) if self._ended else max(at, len(data) - _LONGEST + 1)
                outside.append(data[at:cut])
                break
            outside.append(data[at : mark.start()])
            at = mark.end()
            if mark[0] == b'"':
                self._in_string = True
            else:
                parts += data[copied : mark.start()], b"null"
                copied = at
        self._descend(b"".join(outside).translate(None, _NO_BRACKETS))
        self._held = data[cut:]
        parts.append(data[copied:cut])
        return b"".join(parts)

    def _descend(self, brackets: bytes) -> None:
        """Note how deep some more brackets lead. Raises TooDeep."""
        if self._depth + len(brackets) <= _DEEPEST:
            self._depth += 2 * (brackets.count(b"[") + brackets.count(b"{")) - len(brackets)
            return
        for bracket in brackets:
            self._depth += 1 if bracket in b"[{" else -1
            if self._depth > _DEEPEST:
                raise TooDeep


def _ends_in_escape(data: bytes) -> bool:
    """Whether the last byte is a backslash that waits for what it escapes."""
    return (len(data) - len(data.rstrip(b"\\"))) % 2 == 1
