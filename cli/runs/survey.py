"""A log read once before it is divided: what is in it, and where each file begins."""

from typing import NamedTuple

from ..records.log import Log
from ..records.pieces import Piece, pieces_of
from .finished import Hashes, InputHash
from .packed import pack

_WEIGHED = 100
"""Every so many records one is weighed."""


class Survey(NamedTuple):
    """What there is to judge."""

    records: int
    pieces: list[Piece]
    hashes: Hashes
    bytes_per_record: float


def survey(log: Log) -> Survey:
    """The log's pieces; with the records' positions and the input's hashes as if one process had read it.

    Raises InputError.
    """
    hashes = InputHash()
    records = weighed = weight = 0
    last = -1
    for position in log.records():
        hashes.add(position)
        if records % _WEIGHED == 0:
            weighed += 1
            weight += len(pack(position))
        records += 1
        last = position.record.index
    return Survey(records, pieces_of(log, last), hashes.result(), weight / max(weighed, 1))
