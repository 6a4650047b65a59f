"""A log divided among readers: the same records with the same positions, whoever reads them."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass

from ...evaluators.errors import InputError
from .log import Log, Position
from .sampling import Entry, key_of


@dataclass(frozen=True, kw_only=True)
class Piece:
    """What one reader reads; it can be sent to another process."""

    log: Log
    """A single file."""
    first: int
    """Position of its first record in the whole input."""
    last: int
    """Position of the last record that is wanted; it may be beyond the file."""
    keys: Mapping[int, bytes] | None
    """The keys of the drawn records by their positions, None where no sample was drawn."""
    seed: int

    def records(self) -> Iterator[Position]:
        """The selected records of the file, in order. Raises InputError where it cannot be read, or has changed."""
        for entry in self.log.entries(self.first):
            if entry.position > self.last:
                return
            if self._wants(entry):
                yield self.log.position(entry)

    def _wants(self, entry: Entry) -> bool:
        if self.keys is None:
            value = entry.row.value
            conditions = self.log.selection.where
            return not conditions or (value is not None and all(condition.holds(value) for condition in conditions))
        key = self.keys.get(entry.position)
        if key is not None and key_of(entry, self.seed) != key:
            raise InputError("the log has changed since the sample was drawn from it; run the command again")
        return key is not None


def pieces_of(log: Log, last: int) -> list[Piece]:
    """A piece for each file of a log that was read up to the record `last`."""
    ends = [*log.firsts[1:], last + 1]
    sample = log.sample
    return [
        Piece(
            log=log.part(number),
            first=first,
            last=last,
            keys={at: key for at, key in sample.keys.items() if first <= at < max(end, first)} if sample else None,
            seed=log.selection.seed,
        )
        for number, (first, end) in enumerate(zip(log.firsts, ends, strict=True))
        if first <= last
    ]
