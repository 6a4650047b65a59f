"""The Ray cluster of a run: an existing one, or one that lasts as long as the run."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from ...evaluators.errors import RunError

_OBJECT_STORE_BYTES = 256 << 20
"""Of a cluster of ours: blocks are small, and few are under way."""


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Be connected to a cluster: at an address, or of processes of our own. Raises RunError."""
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    own = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES} if address is None else {}
    try:
        # Without an address of its own RAY_ADDRESS would be used.
        with _native_words_unheard():
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **own)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {address!r}" if address else "on this machine"
        raise RunError(f"no Ray {where}: {_reason(error)}") from None
    try:
        yield
    finally:
        ray.shutdown()


@contextmanager
def _native_words_unheard() -> Iterator[None]:
    """Standard error leads nowhere: Ray's native part tells there at which level it tells things."""
    kept, nowhere = os.dup(2), os.open(os.devnull, os.O_WRONLY)
    os.dup2(nowhere, 2)
    os.close(nowhere)
    try:
        yield
    finally:
        os.dup2(kept, 2)
        os.close(kept)


def _reason(error: Exception) -> str:
    """The first line of what Ray says."""
    return next(iter(str(error).splitlines()), type(error).__name__).partition(" Last connection error")[0]
