"""A model in a GGUF file: what it is, and whether it can be loaded at all."""

import os
import re
from dataclasses import dataclass
from hashlib import blake2b
from pathlib import Path

from ..errors import UsageError
from .machine import available_memory

SUFFIX = ".gguf"
_MAGIC = b"GGUF"
_CHUNK = 1 << 20
_PART = re.compile(r"-(\d{5})-of-(\d{5})$")


@dataclass(frozen=True, kw_only=True)
class ModelFile:
    """A file, or several that are parts of one model."""

    path: Path
    """Of the first part."""
    size: int
    """Bytes, all parts together."""
    digest: str
    """Hash over the content, in hexadecimal."""

    @property
    def description(self) -> str:
        """File name and size, for people."""
        return f"{_printable(self.path.name)} ({in_bytes(self.size)})"


def is_model_file(model: str) -> bool:
    """Whether a model's name means a file here: it ends in .gguf, and is one or is written as a path."""
    return model.lower().endswith(SUFFIX) and (os.sep in model or Path(model).is_file())


def read_model_file(model: str, *, in_memory: bool = True) -> ModelFile:
    """The file that `model` names, read once from end to end.

    Raises UsageError where it cannot be read, is no GGUF or, where it is to be held in memory, is too large for that.
    """
    path = Path(model)
    try:
        parts = _parts(path)
        size = sum(part.stat().st_size for part in parts)
        for part in parts:
            _check_magic(part)
        available = available_memory() if in_memory else None
        if available is not None and size > available:
            raise UsageError(
                f"the model {_printable(model)!r} has {in_bytes(size)} and {in_bytes(available)} of memory are "
                "available; choose a smaller quantization, or put it on a graphics card by --param n_gpu_layers=…"
            )
        return ModelFile(path=path, size=size, digest=_digest(parts))
    except OSError as error:
        name = error.filename if isinstance(error.filename, str) else model
        raise UsageError(f"cannot read the model file {_printable(name)!r}: {error.strerror}; check --model") from None


def _parts(path: Path) -> list[Path]:
    """All parts of a model that was split; llama.cpp is given the first and finds the others by their names."""
    part = _PART.search(path.stem)
    if part is None:
        return [path]
    if int(part[1]) != 1:
        raise UsageError(f"{_printable(path.name)!r} is a part of a model; name the first one, …-00001-of-{part[2]}")
    stem = path.stem[: part.start()]
    return [path.with_name(f"{stem}-{number:05}-of-{part[2]}{path.suffix}") for number in range(1, int(part[2]) + 1)]


def _check_magic(path: Path) -> None:
    with path.open("rb") as file:
        if file.read(len(_MAGIC)) != _MAGIC:
            raise UsageError(f"the model file {_printable(path)!r} is no GGUF; --model takes one, or a model's name")


def _digest(parts: list[Path]) -> str:
    content = blake2b(digest_size=16)
    buffer = bytearray(_CHUNK)
    for part in parts:
        with part.open("rb", buffering=0) as file:
            while count := file.readinto(buffer):
                content.update(memoryview(buffer)[:count])
    return content.hexdigest()


def in_bytes(size: int) -> str:
    """A number of bytes for people, as 4.7 GB."""
    unit, name = next((pair for pair in ((10**9, "GB"), (10**6, "MB")) if size >= pair[0]), (1000, "kB"))
    return f"{size / unit:.1f} {name}"


def _printable(name: object) -> str:
    return str(name).encode(errors="surrogateescape").decode(errors="replace")
