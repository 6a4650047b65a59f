"""The Ray cluster of a run: an existing one, or one that lasts as long as the run."""

import logging
import os
import re
import signal
import socket
import sys
from collections.abc import Iterator
from contextlib import contextmanager

import ray

from ...evaluators.errors import RunError

_OBJECT_STORE_BYTES = 256 << 20
"""Of a cluster of ours: blocks are small, and few are under way."""
_CONNECT_SECONDS = 10.0
_VERSIONS = re.compile(r"Ray: (\S+)\s+Python: (\S+)")


@contextmanager
def cluster(address: str | None) -> Iterator[None]:
    """Be connected to a cluster: at an address, or of processes of our own. Raises RunError."""
    for name in ("ray", "ray.data"):
        logging.getLogger(name).setLevel(logging.CRITICAL)
    own = {"include_dashboard": False, "object_store_memory": _OBJECT_STORE_BYTES} if address is None else {}
    where = f"at {address!r}" if address else "on this machine"
    try:
        if address and ":" in address:
            _knock(address)
        # Without an address of its own RAY_ADDRESS would be used.
        with _native_words_unheard(), _same_end_by_sigterm():
            ray.init(address=address or "local", log_to_driver=False, logging_level=logging.CRITICAL, **own)
    except (OSError, RuntimeError, ValueError, ray.exceptions.RayError) as error:
        raise RunError(f"no Ray {where}: {_reason(error, address)}") from None
    try:
        yield
    finally:
        ray.shutdown()


def _knock(address: str) -> None:
    """Raise OSError where nobody listens: Ray itself tries for minutes."""
    host, _, port = address.rpartition(":")
    with socket.create_connection((host.strip("[]"), int(port)), timeout=_CONNECT_SECONDS):
        pass


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


@contextmanager
def _same_end_by_sigterm() -> Iterator[None]:
    """Whoever stops the process before it judges ends it as ever: Ray's handler has it exit with code 15."""
    kept = signal.getsignal(signal.SIGTERM)
    try:
        yield
    except SystemExit:
        sys.exit(128 + signal.SIGTERM)
    finally:
        signal.signal(signal.SIGTERM, kept)


def _reason(error: Exception, address: str | None) -> str:
    """What Ray says, in a sentence, and what to do about it."""
    text = str(error)
    if isinstance(error, ray.exceptions.AuthenticationError) or text.startswith("Failed to connect to Ray cluster"):
        return (
            "it asks for another token, or has ended; give the command RAY_AUTH_MODE=token, and the cluster's token as "
            "RAY_AUTH_TOKEN or in a file that RAY_AUTH_TOKEN_PATH names"
        )
    if len(versions := _VERSIONS.findall(text)) == 2:  # noqa: PLR2004  # there and here
        there, here = (f"Ray {of_ray} with Python {of_python}" for of_ray, of_python in versions)
        return f"{there} runs there, and {here} here; install the same versions on all machines"
    said = next(iter(text.splitlines()), type(error).__name__).partition(". ")[0]
    hint = "; start one with `ray start`, or leave out --ray-address for a Ray of the run's own" if address else ""
    return f"{said}{hint}"
