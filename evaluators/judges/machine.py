"""What this process may use of the machine."""

import os
import re
from pathlib import Path

_CGROUP = Path("/sys/fs/cgroup")  # a container's own; on a bare system it has none of these files
_MEMINFO = Path("/proc/meminfo")


def usable_cpus() -> int:
    """Processors by affinity, and by the container's quota where there is one; at least 1."""
    allowed = len(os.sched_getaffinity(0)) if hasattr(os, "sched_getaffinity") else os.cpu_count() or 1
    quota = re.fullmatch(r"(\d+) (\d+)\s*", _read(_CGROUP / "cpu.max"))
    return max(1, min(allowed, int(quota[1]) // int(quota[2])) if quota else allowed)


def available_memory() -> int | None:
    """Bytes that can be had without swapping, None where the system does not say."""
    found = re.search(r"^MemAvailable:\s+(\d+) kB", _read(_MEMINFO), re.MULTILINE)
    amounts = [int(found[1]) << 10] if found else []
    limit = _read(_CGROUP / "memory.max").strip()
    if limit.isdigit():  # what is used holds cached files, which give way: the limit alone is certain
        amounts.append(int(limit))
    return min(amounts, default=None)


def _read(path: Path) -> str:
    try:
        return path.read_text(encoding="ascii")
    except (OSError, UnicodeDecodeError):
        return ""
