"""The folder a run lives in: its name, and whether it may be used."""

import os
import re
import shutil
from collections.abc import Callable, Sequence
from enum import StrEnum
from pathlib import Path

import orjson

from ...evaluators.errors import OutputError, UsageError
from ..records.addresses import is_remote, shown
from ..records.inputs import STDIN
from ..records.log import STDIN_NAME
from ..records.packing import SUFFIXES as PACKINGS

STDOUT = "-"
PARTS = "results"
"""The folder in it that holds the rows of a run on Ray."""
PART = "part-"
"""What the name of each file in that folder begins with."""
SUMMARY = "summary.json"
REPORT = "report.html"
DEFAULT_STORE = "store.sqlite"
_GLOB = re.compile(r"[*?\[]")


class Format(StrEnum):
    """How rows are written."""

    JSONL = "jsonl"
    PARQUET = "parquet"

    @property
    def file(self) -> str:
        """The name of the file in the run's folder."""
        return f"results.{self.value}"


def outdated_report(folder: Path, results: str) -> bool:
    """Whether there is a report in the folder that is older than its rows."""
    try:
        return (folder / REPORT).stat().st_mtime_ns < (folder / results).stat().st_mtime_ns
    except OSError:
        return False


def output_folder(inputs: Sequence[str], output: str | None) -> Path | None:
    """Where the run lives, None for standard output. Raises UsageError where several inputs name no folder."""
    if output == STDOUT:
        return None
    if output is not None:
        if not output:
            raise UsageError("--output is empty text; is a variable unset?")
        if is_remote(output):
            raise UsageError(f"results are written on this machine; name a local folder, not {shown(output)!r}")
        return expanded(Path(output))
    if len(inputs) != 1:
        if evaluators := [name for name in inputs if name.endswith((".yaml", ".yml"))]:
            raise UsageError(f"{evaluators[0]!r} is no log; if it is an evaluator, give it with an -e of its own")
        raise UsageError("several inputs have no common name; name the output folder with --output")
    return Path(f"{_stem(inputs[0])}.ctxrel")


def _stem(given: str) -> str:
    """A name for what is read: a file's, a folder's, or that of the folder a glob looks into."""
    if given == STDIN:
        return "stdin"
    path = Path(shown(given) if is_remote(given) else given)
    while _GLOB.search(path.name) and not path.exists():
        path = path.parent
    path = path if is_remote(given) else path.resolve()
    if path.is_dir():
        return path.name or "log"
    return (path.with_suffix("") if path.suffix in PACKINGS else path).stem or "log"


def expanded(path: Path) -> Path:
    """A path with the home folder in place of `~`, which a shell leaves in `--store=~/…`. Raises UsageError."""
    try:
        return path.expanduser()
    except RuntimeError:
        raise UsageError(f"there is no home folder for {str(path)!r}; write the whole path") from None


def check_folder(
    folder: Path | None, inputs: Sequence[str], files: Sequence[str], *, chosen: bool, note: Callable[[str], None]
) -> None:
    """Raise UsageError where results would take the place of another log's, or stand among the logs.

    `inputs` is what the user named, `files` what was found there; `chosen` tells that the user named the folder.
    """
    if folder is None:
        return
    places = {os.path.realpath(Path(name).parent) for name in files if name != STDIN_NAME}
    if os.path.realpath(folder) in places:
        raise UsageError(f"the output folder {str(folder)!r} holds a log that is read; name another with --output")
    before = _inputs_before(folder)
    if before and _resolved(before) != _resolved(inputs):
        said = f"{str(folder)!r} holds the results of {', '.join(before[:3])}{' …' if before[3:] else ''}"
        if not chosen:
            raise UsageError(f"{said}; name another folder with --output, or the same one to replace them")
        note(f"{said}; they are replaced")


def _resolved(inputs: Sequence[str]) -> list[str]:
    return [name if name == STDIN else os.path.realpath(name) for name in inputs]


def _inputs_before(folder: Path) -> list[str]:
    """The inputs of the run that the folder holds, as far as it says so."""
    try:
        inputs = orjson.loads((folder / SUMMARY).read_bytes())["configuration"]["inputs"]
    except (OSError, orjson.JSONDecodeError, KeyError, TypeError):
        return []
    return [name for name in inputs if isinstance(name, str)] if isinstance(inputs, list) else []


def remove_summary(folder: Path) -> None:
    """Take away the summary of an earlier run: without one a run has not ended. Raises OutputError."""
    remove(folder / SUMMARY)


def remove_other_results(folder: Path, name: str) -> None:
    """Take away the rows of an earlier run in another format: a folder has one file of them. Raises OutputError."""
    names = [*(each.file for each in Format), PARTS]
    others = [path for each in names for path in (folder / each, folder / f"{each}.part")]
    for path in others:
        if path.name not in (name, f"{name}.part"):
            remove(path)


def publish(folder: Path, name: str) -> None:
    """Give unfinished rows their name; those of an earlier run go, and nothing else does. Raises OutputError."""
    remove(folder / name)
    remove_other_results(folder, name)
    (folder / f"{name}.part").rename(folder / name)


def remove(path: Path) -> None:
    """Take away a file or folder, if it is there. Raises OutputError."""
    try:
        if path.is_dir():
            shutil.rmtree(path)
        else:
            path.unlink(missing_ok=True)
    except OSError as error:
        raise OutputError(f"cannot replace {str(path)!r}: {error.strerror}") from None


def make_folder(folder: Path) -> None:
    """Make the folder if it is not there. Raises UsageError and OutputError."""
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError):
        raise UsageError(f"{str(folder)!r} is no folder; name another with --output") from None
    except OSError as error:
        raise OutputError(
            f"cannot make the folder {str(folder)!r}: {error.strerror}; name another with --output"
        ) from None
