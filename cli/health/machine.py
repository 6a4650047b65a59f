"""The installation, the terminal and the disk."""

import platform
import re
import shutil
import sys
import sysconfig
import tempfile
from collections.abc import Iterator
from importlib.metadata import PackageNotFoundError, metadata, requires, version
from pathlib import Path

from ...evaluators.judges.model_file import in_bytes
from .finding import Finding, failed, warned

_FOR_DEVELOPERS = ("browser", "dev", "docs", "protocol")
_NAME = re.compile(r"[A-Za-z0-9._-]+")
_EXTRA = re.compile(r"""extra\s*==\s*["']([^"']+)["']""")
_LITTLE_ROOM = 1 << 30
_NO_ROOM = 10 << 20


def look_at_installation() -> list[Finding]:
    """Versions of ctxrel, Python and what both need, and which extras are there."""
    return [Finding(name="ctxrel", found=version("ctxrel")), _python(), _dependencies(), _extras()]


def _python() -> Finding:
    found = f"{platform.python_implementation()} {platform.python_version()} on {platform.system()}"
    if platform.system() != "Linux":
        return warned("python", found, "ctxrel is tested on Linux only")
    if sysconfig.get_config_var("Py_GIL_DISABLED"):
        return warned("python", f"{found}, free-threaded", "ctxrel is not tested without the GIL; use the usual build")
    return Finding(name="python", found=found)


def _dependencies() -> Finding:
    versions = {name: _version(name) for name, extra in _requirements() if extra is None}
    missing = [name for name, found in versions.items() if found is None]
    if missing:
        return failed("packages", f"not installed: {', '.join(missing)}", "install ctxrel again with pip")
    return Finding(name="packages", found=", ".join(f"{name} {found}" for name, found in versions.items()))


def _extras() -> Finding:
    packages: dict[str, list[str]] = {name: [] for name in metadata("ctxrel").get_all("Provides-Extra") or []}
    for name, extra in _requirements():
        packages.setdefault(extra or "", []).append(name)
    absent, there = [], []
    for extra in sorted(packages.keys() - {"", *_FOR_DEVELOPERS}):
        versions = [f"{name} {_version(name)}" for name in packages[extra] if _version(name)]
        if len(versions) == len(packages[extra]):
            there.append(f"{extra} ({', '.join(versions)})")
        else:
            absent.append(extra)
    found = [*there, f"not installed: {', '.join(absent)}"] if absent else there
    advice = "pip install 'ctxrel[NAME]' adds one" if absent else None
    return Finding(name="extras", found="; ".join(found), advice=advice)


def _requirements() -> Iterator[tuple[str, str | None]]:
    """Names of the packages that ctxrel wants, and the extra each belongs to."""
    for line in requires("ctxrel") or []:
        name, extra = _NAME.match(line), _EXTRA.search(line)
        if name:
            yield name[0], extra[1] if extra else None


def _version(name: str) -> str | None:
    try:
        return version(name)
    except PackageNotFoundError:
        return None


def look_at_terminal() -> Finding:
    """Whether what is printed can be read."""
    encoding = (sys.stdout.encoding or "none").lower().replace("_", "-")
    if encoding not in ("utf-8", "utf8"):
        return warned("terminal", f"the encoding is {encoding}", "set PYTHONUTF8=1, or a UTF-8 locale as LANG=C.UTF-8")
    return Finding(name="terminal", found="the encoding is utf-8")


def look_at_folder(folder: Path) -> Finding:
    """Whether a run could write there, and how much."""
    place = folder.absolute()
    while not place.exists() and place != place.parent:
        place = place.parent
    shown = repr(str(folder))
    try:
        with tempfile.TemporaryFile(dir=place):
            free = shutil.disk_usage(place).free
    except OSError as error:
        return failed("output", f"cannot write to {shown}: {error.strerror}", "name another folder with --output")
    found = f"{shown} can be written to, {in_bytes(free)} free"
    if free < _NO_ROOM:
        return failed("output", found, "make room, or name another folder with --output")
    if free < _LITTLE_ROOM:
        return warned("output", found, "a row and its reply take some kilobytes")
    return Finding(name="output", found=found)
