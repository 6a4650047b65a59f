"""The shell commands in Markdown pages: which there are, and which are not run for what reason."""

import re
import shlex
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

ROOT = Path(__file__).parents[2]
PAGES = [ROOT / "README.md", *sorted((ROOT / "docs").rglob("*.md"))]
_PART = re.compile(
    r"<!-- (?P<kind>before|file|not run)(?: \((?P<only>[^)]+)\))?:?\s(?P<said>.*?)\s*-->"
    r"|^(?P<indent> *)```(?:bash|sh|shell|console)\n(?P<text>.*?)^(?P=indent)```$",
    re.DOTALL | re.MULTILINE,
)
_OPERATORS = set("|&;<>()`$")
_CALL = re.compile(r"(?<![\w./-])ctxrel (?=[a-z-])")
_COMPOUND = re.compile(r"^ *(?:if|for|while|case|until) |<<|^\w+\(\)", re.MULTILINE)

NOT_RUN = {
    r"pip install|-m venv": "installs: .ci/run does so, in environments of their own",
    r"^pytest\b": "the whole suite: .ci/run runs it",
    r"\.gguf\b": "needs a model file: tests/protocol judges with one",
    r"--engine ray|^ray |^serve ": "needs Ray: tests/on_ray runs it",
    r"^sudo |^systemctl |^apt-get ": "changes the machine",
}
"""What is not run on any page: a pattern of a line, and the reason."""


class Line(NamedTuple):
    """A command of a page, over several lines where it is continued."""

    text: str
    reason: str | None
    """Why it is not run."""

    @property
    def words(self) -> list[str] | None:
        """The words of a plain command, None where a shell has to understand it."""
        lexer = shlex.shlex(self.text, posix=True, punctuation_chars="|&;<>()")
        lexer.whitespace_split = True
        words = list(lexer)
        plain = not any(set(word) <= _OPERATORS for word in words) and not {"$", "`"} & set(self.text)
        return shlex.split(self.text, comments=True) if plain else None


def lines_of(page: str) -> list[Line]:
    """The commands of all blocks, in order, with those that a hidden comment asks for before them.

    `<!-- before: COMMANDS -->` are run and not shown; `<!-- not run: REASON -->` is for the next block, and
    `<!-- not run (WORD): REASON -->` for those of its lines that hold the word. What stands behind `<!-- file: NAME -->`
    is a file.
    """
    found: list[Line] = []
    reasons: list[tuple[str, str]] = []
    for part in _PART.finditer(page):
        if part["kind"] == "not run":
            reasons.append((part["only"] or "", part["said"]))
        elif part["kind"] == "file":
            reasons.append(("", "is a file"))
        elif part["kind"] == "before":
            found += [Line(text, None) for text in _joined(part["said"])]
        else:
            found += [Line(text, _reason(text, reasons)) for text in _joined(part["text"])]
            reasons = []
    return found


def _joined(block: str) -> Iterator[str]:
    """Its commands, each in one piece: continued lines, quotes over several lines, and loops and such as a whole."""
    if _COMPOUND.search(block):
        yield block
        return
    begun = ""
    for line in block.replace("\\\n", " ").splitlines():
        begun += line.strip().removeprefix("$ ")
        if not _is_whole(begun):
            begun += "\n"
            continue
        if begun and not begun.startswith("#"):
            yield begun
        begun = ""


def _is_whole(text: str) -> bool:
    try:
        shlex.split(text, comments=True)
    except ValueError:
        return False
    return True


def _reason(text: str, reasons: list[tuple[str, str]]) -> str | None:
    own = (reason for only, reason in reasons if only in text)
    general = (reason for pattern, reason in NOT_RUN.items() if re.search(pattern, text))
    return next(own, None) or next(general, None)


def calls(text: str) -> list[list[str]]:
    """The arguments of every call of ctxrel in a command."""
    whole = text.replace("\\\n", " ")
    return [_first_command(whole[match.end() :].splitlines()[0]) for match in _CALL.finditer(whole)]


def _first_command(text: str) -> list[str]:
    """Words up to what ends a command."""
    lexer = shlex.shlex(text, posix=True, punctuation_chars="|&;<>()")
    lexer.whitespace_split = True
    words: list[str] = []
    for word in lexer:
        if set(word) <= _OPERATORS:
            break
        words.append(word)
    return words
