"""What carries a run out: this process, or Ray."""

import os
import secrets
from enum import StrEnum
from importlib.metadata import PackageNotFoundError, version
from pathlib import Path

from ...evaluators.errors import UsageError
from ...evaluators.judges.llamacpp import LocalModel
from ..records import Log
from .folder import Format

_RAY = {
    "RAY_USAGE_STATS_ENABLED": "0",  # nothing is reported to its makers
    "RAY_DATA_DISABLE_PROGRESS_BARS": "1",
    "RAY_ACCEL_ENV_VAR_OVERRIDE_ON_ZERO": "0",
    "RAY_ENABLE_AUTO_CONNECT": "0",  # what goes on after a run was stopped at once starts no Ray of its own
    "RAY_BACKEND_LOG_LEVEL": "fatal",  # what matters comes as an error
}
_PACKAGES = ("ray", "pandas", "fsspec")
"""What the extra installs and Ray Data imports; Ray alone comes without the latter two."""


class Engine(StrEnum):
    """Who judges."""

    LOCAL = "local"
    RAY = "ray"


def results_format(engine: Engine, given: Format | None) -> Format:
    """The format of the rows, where the user has `given` one or not. Raises UsageError for one the engine has not."""
    if engine is Engine.LOCAL:
        return given or Format.JSONL
    if given is Format.JSONL:
        raise UsageError(
            "--engine ray writes a folder of Parquet files, each by a process of its own; leave out --format jsonl, or "
            "--engine ray"
        )
    return Format.PARQUET


def check_engine(engine: Engine, *, folder: Path | None, log: Log, local: LocalModel | None) -> None:
    """Raise UsageError where a run is not one for the engine."""
    if engine is Engine.LOCAL:
        return
    try:
        for package in _PACKAGES:
            version(package)
    except PackageNotFoundError as missing:
        raise UsageError(f"--engine ray needs the package {missing.name}; pip install 'ctxrel[ray]'") from None
    if folder is None:
        raise UsageError("--engine ray writes a folder of Parquet files and no stream; name it with --output")
    if log.size is None:
        raise UsageError(
            "--engine ray reads files, which several readers can open, and no pipe; write the log to a file"
        )
    if local:
        raise UsageError(
            f"{local.endpoint.model!r} is a model file, which is served on one machine; serve it there and name its "
            "--base-url, or leave out --engine ray"
        )


def prepare_ray(address: str | None) -> None:
    """Set Ray's variables that nobody has set, which it reads while it is imported.

    A cluster of our own lets in who knows a word made for it, which else Ray would write into the home folder.
    """
    settings = _RAY if address else {**_RAY, "RAY_AUTH_MODE": "token", "RAY_AUTH_TOKEN": secrets.token_hex(32)}
    for name, value in settings.items():
        os.environ.setdefault(name, value)
