"""What carries a run out: this process, or Ray."""

from enum import StrEnum
from importlib.util import find_spec
from pathlib import Path

from ...evaluators.errors import UsageError
from ...evaluators.judges.llamacpp import LocalModel
from ..records import Log


class Engine(StrEnum):
    """Who judges."""

    LOCAL = "local"
    RAY = "ray"


def check_engine(engine: Engine, *, folder: Path | None, log: Log, local: LocalModel | None) -> None:
    """Raise UsageError where a run is not one for the engine."""
    if engine is Engine.LOCAL:
        return
    if find_spec("ray") is None:
        raise UsageError("--engine ray needs Ray; pip install 'ctxrel[ray]'")
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
