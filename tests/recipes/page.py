"""A recipe: its blocks, and the files that it gives in full."""

import re
from pathlib import Path
from typing import NamedTuple

RECIPES = Path(__file__).parent.parent.parent / "docs" / "recipes"
_BLOCK = re.compile(r"(?P<before>[^\n]*)\n```(?P<language>\w+)\n(?P<text>.*?)```", re.DOTALL)
_FILE = re.compile(r"<!-- file: (\S+) -->")


class Block(NamedTuple):
    """What stands between two fences."""

    language: str
    text: str
    file: str | None
    """The name of the file that it is, by the hidden comment before it."""


class Page:
    """A page in docs/recipes/; blocks behind `<!-- not run: reason -->` are not there."""

    def __init__(self, name: str) -> None:
        self.text = (RECIPES / name).read_text(encoding="utf-8")
        self._blocks = [
            Block(found["language"], found["text"], named[1] if (named := _FILE.match(found["before"])) else None)
            for found in _BLOCK.finditer(self.text)
            if not found["before"].startswith("<!-- not run: ")
        ]

    def blocks(self, language: str) -> list[str]:
        """The blocks of a language that are no files, in order."""
        return [block.text for block in self._blocks if block.language == language and block.file is None]

    def block(self, language: str, holding: str) -> str:
        """The only one that holds a text."""
        (found,) = [text for text in self.blocks(language) if holding in text]
        return found

    def file(self, name: str) -> str:
        """The text of a file."""
        (found,) = [block.text for block in self._blocks if block.file == name]
        return found

    def write(self, *names: str) -> None:
        """Write files into the current folder."""
        for name in names:
            Path(name).parent.mkdir(parents=True, exist_ok=True)
            Path(name).write_text(self.file(name), encoding="utf-8")
