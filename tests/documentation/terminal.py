"""The first command of the README in a terminal, as text and as a picture."""

import fcntl
import io
import os
import pty
import re
import struct
import subprocess
import termios
from xml.etree import ElementTree as ET

from rich.console import Console
from rich.terminal_theme import MONOKAI
from rich.text import Text

COLUMNS = 96
COMMAND = "ctxrel run sample_data/support_en.jsonl --model offline"
_REDRAWN = re.compile(r"[^\n]*\x1b\[2K")
"""What stood in a line before it was drawn again."""
_CURSOR = re.compile(r"\x1b\[(?:\?25[lh]|\d*A)|\r")

_FONT_FACE = re.compile(r" *@font-face {.*?}\n", re.DOTALL)
"""rich's picture would fetch a font from the network."""
_CELL = 12.2
"""Width of a character in rich's pictures."""


def run_in_terminal(command: list[str]) -> str:
    """What a command writes to a terminal, with colours; of a line that is drawn again, what it holds at last."""
    ours, its = pty.openpty()
    fcntl.ioctl(its, termios.TIOCSWINSZ, struct.pack("HHHH", 40, COLUMNS, 0, 0))
    environment = {**os.environ, "TERM": "xterm-256color", "COLORTERM": "truecolor"}
    with subprocess.Popen(command, stdin=its, stdout=its, stderr=its, env=environment):
        os.close(its)
        written = b"".join(iter(lambda: _read(ours), b""))
    os.close(ours)
    return _CURSOR.sub("", _REDRAWN.sub("", written.decode()))


def _read(terminal: int) -> bytes:
    try:
        return os.read(terminal, 1 << 16)
    except OSError:  # Linux says so when the other end is closed
        return b""


def draw(written: str) -> str:
    """The prompt, the command and what it wrote, as SVG."""
    console = Console(record=True, width=COLUMNS, file=io.StringIO())
    console.print(Text.assemble(("$ ", "bold green"), (COMMAND, "bold")))
    console.print(Text.from_ansi(written))
    picture = console.export_svg(title="ctxrel", theme=MONOKAI, unique_id="terminal")
    return _FONT_FACE.sub("", picture).replace("Fira Code", "ui-monospace, Menlo, Consolas, DejaVu Sans Mono")


def text_of(picture: str) -> str:
    """The lines of a picture that `draw` made, without the title."""
    lines: dict[float, str] = {}
    for element in ET.fromstring(picture).iter("{http://www.w3.org/2000/svg}text"):  # noqa: S314  # our own
        if "clip-path" in element.attrib:
            height, column = float(element.attrib["y"]), round(float(element.attrib["x"]) / _CELL)
            lines[height] = lines.get(height, "").ljust(column) + (element.text or "")
    return "\n".join(line.replace("\xa0", " ").rstrip() for _, line in sorted(lines.items())).rstrip("\n")
