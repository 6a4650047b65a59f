"""Requests on their way into parts: on the disk, no more than one part at a time."""

from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import BinaryIO

from ....evaluators.errors import OutputError
from ....evaluators.judges.transport import open_private
from . import limits
from .ledger import Ledger, part_file
from .parts import Part, Planned


class Spool:
    """Gathers requests until they are a part."""

    def __init__(self, folder: Path, ledger: Ledger, *, most_requests: int) -> None:
        self._most_requests = most_requests
        self._folder = folder
        self._ledger = ledger
        self._path = folder / "batches" / "next.jsonl"
        self._stream: BinaryIO | None = None
        self._planned: dict[bytes, Planned] = {}
        self._bytes = self._tokens = 0
        try:
            self._path.parent.mkdir(mode=0o700, exist_ok=True)
        except OSError as error:
            raise OutputError(f"cannot make the folder {str(self._path.parent)!r}: {error.strerror}") from None

    def __contains__(self, key: bytes) -> bool:
        return key in self._planned

    def has_room(self, size: int, tokens: int) -> bool:
        """Whether a line of so many bytes fits into the part; an empty part takes any."""
        most = self._ledger.most_tokens
        fits = len(self._planned) < self._most_requests and self._bytes + size <= limits.MOST_BYTES
        return not self._planned or (fits and (most is None or self._tokens + tokens <= most))

    def add(self, planned: Planned, line: bytes, tokens: int) -> None:
        """Add a request. Raises OutputError."""
        if self._stream is None:
            self._stream = open_private(self._path)
        try:
            self._stream.write(line)
        except OSError as error:
            raise self._failed(error) from None
        self._planned[planned.key] = planned
        self._bytes += len(line)
        self._tokens += tokens

    def take(self, dialect: str) -> Part | None:
        """What was gathered as a part that is written down, None where there is nothing. Raises OutputError."""
        if self._stream is None:
            return None
        found = blake2b(digest_size=12)
        for key, _, room in self._planned.values():
            found.update(key + room.name.encode())
        try:
            self._stream.close()
            path = self._path.with_name(f"{found.hexdigest()}.jsonl")
            self._path.replace(path)
        except OSError as error:
            raise self._failed(error) from None
        part = self._ledger.plan(found.hexdigest(), self._bytes, self._tokens, dialect, list(self._planned.values()))
        assert path == part_file(self._folder, part)  # noqa: S101  # else it would not be found again
        self._stream, self._planned, self._bytes, self._tokens = None, {}, 0, 0
        return part

    def close(self) -> None:
        """Let go of what was gathered and is no part."""
        if self._stream:
            self._stream.close()
        self._path.unlink(missing_ok=True)

    def _failed(self, error: OSError) -> OutputError:
        return OutputError(f"cannot write {str(self._path)!r}: {error.strerror}; what was judged is kept in the store")


def forget_files(folder: Path, ledger: Ledger) -> None:
    """Remove request files that no open part needs, and the folder with the last of them."""
    place = folder / "batches"
    needed = {part_file(folder, part) for part in ledger.parts(under_way=True)}
    with suppress(OSError):  # what cannot be removed is in nobody's way
        for path in place.iterdir():
            if path not in needed:
                path.unlink(missing_ok=True)
        if not needed:
            place.rmdir()
