"""Which process is at the other end of a loopback connection."""

import re
from pathlib import Path

_SOCKET = re.compile(r"socket:\[(\d+)\]")


def process_at(port: int) -> int | None:
    """The process whose own end of a TCP connection has this port; None where there is none."""
    inode = _inode_of(port)
    if inode is None:
        return None
    for folder in Path("/proc").iterdir():
        if folder.name.isdigit() and inode in _sockets_of(folder):
            return int(folder.name)
    return None


def _inode_of(port: int) -> str | None:
    for line in Path("/proc/net/tcp").read_text(encoding="ascii").splitlines()[1:]:
        cells = line.split()
        if int(cells[1].rpartition(":")[2], 16) == port and cells[9] != "0":
            return cells[9]
    return None


def _sockets_of(folder: Path) -> set[str]:
    found: set[str] = set()
    try:
        for entry in (folder / "fd").iterdir():
            if match := _SOCKET.fullmatch(str(entry.readlink())):
                found.add(match[1])
    except OSError:  # another user's, or gone
        pass
    return found
