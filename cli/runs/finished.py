"""A run that has ended already, and whether anything has changed since."""

import asyncio
from collections.abc import Iterable, Sequence
from hashlib import blake2b
from importlib.metadata import version
from pathlib import Path
from typing import Any, NamedTuple

import orjson

from ...evaluators.definition import LOWER
from ...evaluators.evaluator import Evaluator
from ...evaluators.judges.judge import Judge
from ...evaluators.prompt import digest
from ..records.log import Log, Position
from .folder import PART, SUMMARY
from .store import Store

_NEEDED = {
    "status": str,
    "results": str,
    "results_hash": str,
    "setting": str,
    "evaluators": dict,
    "input": {"size": int, "fingerprint": str, "ids": str},
    "requests": {"sent": int, "reused": int, "not_needed": int},
    "judge": {"models": dict},
}
_CHUNK = 1 << 20
_TURN = 500
"""Records after which others have a turn."""


class Hashes(NamedTuple):
    """What tells one input from another."""

    fingerprint: str
    """Over everything that is judged or carried along, in order."""
    ids: str
    """Over the records' ids, in order."""


class InputHash:
    """Both hashes, record by record."""

    def __init__(self) -> None:
        self._content = blake2b(digest_size=16)
        self._ids = blake2b(digest_size=16)

    def add(self, position: Position) -> None:
        """Count a record, and what goes along with it."""
        record = position.record
        problems = (record.problem, dict(record.problems))
        self._content.update(orjson.dumps((record.question, record.contexts, record.answer, record.fields, problems)))
        if position.carried:
            self._content.update(orjson.dumps(position.carried))
        self._ids.update(orjson.dumps(record.id))

    def result(self) -> Hashes:
        """The hashes of the records so far."""
        return Hashes(self._content.hexdigest(), self._ids.hexdigest())


def setting_hash(evaluators: Sequence[Evaluator], judge: Judge, log: Log, **options: object) -> str:
    """A hash over everything but the input that the rows and the summary of a run depend on."""
    asked = [[evaluator.prompt, judge.fingerprint(evaluator.static).hex()] for evaluator in evaluators]
    low = [[evaluator.name] for evaluator in evaluators if evaluator.better == LOWER]
    return digest(version("ctxrel"), asked + low, log.layouts(), options).hex()


async def finished_before(
    folder: Path, store: Store, log: Log, setting: str, results: str, *, failures_allowed: bool = True
) -> dict[str, Any] | None:
    """The summary of the run that the folder holds, if the same run would give the same rows again without a request.

    That is so where the setting is the same, no record failed that could be asked about again, results and store are
    the ones of that run, and the log, no pipe, reads as it did. Only where all of the rest is so the log is read.
    `results` is the name of the file, or of the folder of files, that would hold the rows.
    """
    if log.size is None:  # what a pipe holds can be read only once
        return None
    summary = _summary_of(folder)
    if summary is None or summary["setting"] != setting or log.size != summary["input"]["size"]:
        return None
    allowed = {"bad_input"} if failures_allowed else set()
    if summary["results"] != results:
        return None
    if any(_errors(block) - allowed for block in summary["evaluators"].values()):
        return None
    if not store.knows_results(summary["results_hash"]) or hash_of(folder / results) != summary["results_hash"]:
        return None
    hashes = await _read(log.records())
    before = Hashes(summary["input"]["fingerprint"], summary["input"]["ids"])
    return summary if hashes == before else None


def _errors(block: dict[str, Any]) -> set[str]:
    """The kinds of failures of an evaluator, those of further opinions included."""
    stability = block.get("stability")
    further = stability.get("errors") if isinstance(stability, dict) else None
    return {*block["errors"], *(further or ())}


async def _read(positions: Iterable[Position]) -> Hashes:
    hashes = InputHash()
    for number, position in enumerate(positions):
        hashes.add(position)
        if number % _TURN == 0:
            await asyncio.sleep(0)  # an interrupt has its turn
    return hashes.result()


def _summary_of(folder: Path) -> dict[str, Any] | None:
    """The summary of a complete run, None where there is none that could be used."""
    try:
        summary: dict[str, Any] = orjson.loads((folder / SUMMARY).read_bytes())
    except (OSError, orjson.JSONDecodeError):
        return None
    return summary if _is_whole(summary) else None


def _is_whole(summary: object) -> bool:
    """Whether a summary holds everything that is read of it here and in the one that takes its place."""
    if not _fits(summary, _NEEDED):
        return False
    assert isinstance(summary, dict)  # noqa: S101  # it fits
    blocks = summary["evaluators"].values()
    return summary["status"] == "complete" and all(
        isinstance(block, dict) and _fits(block, {"errors": dict}) for block in blocks
    )


def _fits(value: object, shape: object) -> bool:
    if isinstance(shape, dict):
        return isinstance(value, dict) and all(
            name in value and _fits(value[name], kind) for name, kind in shape.items()
        )
    return type(value) is shape


def hash_of(path: Path) -> str | None:
    """Of a file of rows, or of all files of rows in a folder; None where they cannot be read."""
    found = blake2b(digest_size=16)
    try:
        for file in sorted(path.glob(f"{PART}*")) if path.is_dir() else [path]:
            with file.open("rb") as stream:
                while chunk := stream.read(_CHUNK):
                    found.update(chunk)
    except OSError:
        return None
    return found.hexdigest()
