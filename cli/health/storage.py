"""A store, looked at without a change to it."""

import sqlite3
from contextlib import closing
from pathlib import Path
from typing import NamedTuple

from ...evaluators.judges.model_file import in_bytes
from ..runs.store_schema import SCHEMA_VERSION
from .finding import Finding, failed, warned

_ANOTHER = "name another with --store"
_NAME = "store"


class _Facts(NamedTuple):
    version: int
    integrity: str
    """`ok`, or the first damage."""
    wal: bool
    """Whether it has a write-ahead log; else it has a rollback journal."""
    replies: int
    failures: int
    runs: int


def look_at_store(path: Path) -> Finding:
    """Whether it opens, is whole and of a known version, and what it holds."""
    shown = repr(str(path))
    if not path.exists():
        return warned(_NAME, f"{shown} is not there yet", "a run makes it; if it should be there, check --store")
    try:
        facts = _read(path)
        size = sum(part.stat().st_size for part in (path, Path(f"{path}-wal")) if part.exists())
    except sqlite3.OperationalError as error:
        return failed(_NAME, f"cannot open {shown}: {error}", f"check its rights, or {_ANOTHER}")
    except sqlite3.DatabaseError as error:
        return failed(_NAME, f"{shown} is no store, or damaged: {error}", _ANOTHER)
    except OSError as error:
        return failed(_NAME, f"cannot open {shown}: {error.strerror}", _ANOTHER)
    return _judge(shown, path, facts, size)


def _judge(shown: str, path: Path, facts: _Facts | int, size: int) -> Finding:
    if facts == 0:
        return failed(_NAME, f"{shown} is a database, but no store of ctxrel", _ANOTHER)
    if isinstance(facts, int):
        return failed(_NAME, f"{shown} was written by a newer ctxrel (version {facts})", "update ctxrel to use it")
    found = (
        f"{shown}: version {facts.version}, {facts.replies:,} replies, {facts.failures:,} failures, "
        f"{facts.runs:,} runs, {in_bytes(size)}"
    )
    if facts.integrity != "ok":
        return failed(_NAME, f"{found}, damaged: {facts.integrity}", "move it away; a run asks for its replies again")
    if not _writable(path):
        return failed(_NAME, f"{found}, and may not be written to", f"change its rights, or {_ANOTHER}")
    if not facts.wal:
        return warned(
            _NAME, f"{found}, with a rollback journal", "a file system with shared memory would take replies faster"
        )
    return Finding(name=_NAME, found=f"{found}, intact")


def _read(path: Path) -> _Facts | int:
    """What the file holds; its version alone where that is not ours. Raises sqlite3.Error and OSError."""
    # Nobody has it open where it has no log: then nothing is left beside it, which reading alone would do.
    how = "mode=ro" if Path(f"{path}-wal").exists() else "immutable=1"
    with closing(sqlite3.connect(f"{path.absolute().as_uri()}?{how}", uri=True)) as database:

        def value(statement: str) -> object:
            return database.execute(statement).fetchone()[0]

        version = int(str(value("PRAGMA user_version")))
        if not 0 < version <= SCHEMA_VERSION:
            return version
        counts = [int(str(value(f"SELECT count(*) FROM {table}"))) for table in ("replies", "failures", "runs")]  # noqa: S608  # our own names
        return _Facts(version, str(value("PRAGMA integrity_check(1)")), _has_log(path), *counts)


def _has_log(path: Path) -> bool:
    """By the header (sqlite.org/fileformat2.html, 1.3.3): of a file opened as immutable SQLite knows no log."""
    with path.open("rb") as file:
        return file.read(20)[18:] == b"\x02\x02"


def _writable(path: Path) -> bool:
    try:
        with path.open("ab"):
            return True
    except OSError:
        return False
