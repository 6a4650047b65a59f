"""The Ray cluster of a run: an existing one, or one that lasts as long as the run."""

import logging
import os
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from ...evaluators.errors import RunError

_OBJECT_STORE_BYTES = 256 << 20
"""Of a cluster of ours: blocks are small, and few are under way."""
_QUIET = {
    "RAY_USAGE_STATS_ENABLED": "0",  # Ray reports nothing to its makers
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_BACKEND_LOG_LEVEL": "fatal",
}


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Be connected to a cluster: at an address, or of processes of our own. Raises RunError."""
    for name, value in _QUIET.items():
        os.environ.setdefault(name, value)
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    own = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES} if address is None else {}
    try:
        # Without an address of its own RAY_ADDRESS would be used.
        ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **own)
    except (OSError, RuntimeError, ValueError) as error:
        where = f"at {address!r}" if address else "on this machine"
        raise RunError(f"no Ray {where}: {' '.join(str(error).split())[:300]}") from None
    try:
        yield
    finally:
        ray.shutdown()
