"""What the user's inputs name: files, folders, globs, addresses, standard input."""

import glob
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from ...evaluators.errors import InputError
from .addresses import is_remote, shown
from .formats import PLAIN_SUFFIXES, SUFFIXES
from .partition import Partition, could_hold, partition_of
from .remote import RemoteFile, find_remote
from .where import Condition

STDIN = "-"


class Found(NamedTuple):
    """One file of the input."""

    file: Path | RemoteFile | None
    """None for standard input."""
    partition: Partition
    """Fields that stand in the names of its folders."""


class Inputs(NamedTuple):
    """What was found, in order."""

    files: Sequence[Found]
    several: bool
    """Whether there could be several: anything but a single file or standard input was named."""

    def that_could_hold(self, conditions: Sequence[Condition]) -> Sequence[Found]:
        """The files that can hold a record that meets the conditions. Raises InputError where there is none."""
        found = [each for each in self.files if could_hold(each.partition, conditions)]
        if self.files and not found:
            given = " and ".join(map(str, conditions))
            raise InputError(f"none of {len(self.files):,} files is in a folder that meets --where {given}")
        return found


def find_inputs(given: Sequence[str]) -> Inputs:
    """The files of what the user named. Raises InputError where there are none."""
    if given.count(STDIN) > 1:
        raise InputError("standard input (-) can be read only once")
    found = [_find(name) for name in given]
    return Inputs([each for files, _ in found for each in files], len(found) > 1 or any(many for _, many in found))


def _find(given: str) -> tuple[list[Found], bool]:
    """The files of one input, and whether there could be several."""
    if not given:
        raise InputError("an input is empty text; is a variable unset?")
    if given == STDIN:
        return [Found(None, {})], False
    path = Path(given)
    if path.is_file() or (path.exists() and not path.is_dir()):
        return [_local(given)], False
    if path.is_dir():
        files = sorted(map(str, _logs_in(path)))
        missing = f"the folder {given!r} holds no {', '.join(PLAIN_SUFFIXES)} file (of folders in it those like date=2026-11-30 are read)"  # noqa: E501
        return _refuse_nothing([_local(name) for name in files], missing), True
    if is_remote(given):
        found, several = find_remote(given)
        return _refuse_nothing(
            [Found(file, partition_of(file.name)) for file in found], f"no log at {shown(given)!r}"
        ), several
    names = sorted(name for name in glob.glob(given, recursive=True) if Path(name).is_file())  # noqa: PTH207
    return _refuse_nothing([_local(name) for name in names], f"no file {given!r}"), True


def _refuse_nothing(found: list[Found], missing: str) -> list[Found]:
    if not found:
        raise InputError(f"{missing}; check the path")
    return found


def _local(name: str) -> Found:
    return Found(Path(name), partition_of(name))


def _logs_in(folder: Path) -> Iterator[Path]:
    """The files of a folder that end as logs do, and those of folders in it that are named like date=2026-11-30."""
    for entry in folder.iterdir():
        if entry.is_dir():
            if "=" in entry.name:
                yield from _logs_in(entry)
        elif entry.name.lower().endswith(SUFFIXES) and entry.is_file():
            yield entry
