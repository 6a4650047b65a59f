"""How far batches are, for whoever shows it."""

from typing import NamedTuple


class Counts(NamedTuple):
    """How far the batches under way are."""

    completed: int = 0
    failed: int = 0
    total: int = 0
    """Requests, as `completed` and `failed`."""
    parts: int = 0
    """Batches at the endpoint."""
    held: int = 0
    """Batches that are still to be made."""
