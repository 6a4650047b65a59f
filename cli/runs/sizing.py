"""How a log is cut into batches for several workers."""

from typing import NamedTuple

from ...evaluators.judges.growth import MOST

_FEWEST, _MOST = 64, 512
"""Records of a batch. The driver keeps up with 5,000 records a second in batches of 64, with 22,000 in those of 512."""
_BYTES = 1 << 20
"""Of a batch, if that leaves it the fewest records: what is under way has to fit into memory."""
_FOR_EACH_WORKER = 16
"""Batches, if that leaves them the fewest records: workers are to end at the same time."""
_AT_ONCE = 16


class Sizes(NamedTuple):
    """How much a worker is handed."""

    batch: int
    """Records in a batch."""
    at_once: int
    """Batches that a worker has at a time."""


def sizes_for(records: int, size: int, workers: int, concurrency: int | None) -> Sizes:
    """The sizes for a log of so many records and bytes, with so many requests in flight over all workers.

    A worker has twice as many records as it can have in flight, and one batch more.
    """
    wanted = min(records // (workers * _FOR_EACH_WORKER), _BYTES * records // max(size, 1))
    batch = max(_FEWEST, min(wanted, _MOST))
    slots = -(-(concurrency or MOST * workers) // workers)
    return Sizes(batch, min(_AT_ONCE, 1 + -(-2 * slots // batch)))
