"""A log read once before it is divided: what is in it, and where each file begins."""

from typing import NamedTuple

from ..records.log import Log
from ..records.pieces import Piece, pieces_of
from .finished import Hashes, InputHash


class Survey(NamedTuple):
    """What there is to judge."""

    records: int
    pieces: list[Piece]
    hashes: Hashes


def survey(log: Log) -> Survey:
    """The log's pieces; with the records' positions and the input's hashes as if one process had read it.

    Raises InputError.
    """
    hashes = InputHash()
    records, last = 0, -1
    for position in log.records():
        hashes.add(position)
        records += 1
        last = position.record.index
    return Survey(records, pieces_of(log, last), hashes.result())
