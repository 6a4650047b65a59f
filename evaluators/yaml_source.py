"""YAML whose values know their lines, so that an error can point at one."""

from pathlib import Path
from typing import NamedTuple, NoReturn

import yaml

from .errors import DefinitionError

Place = tuple[str | int, ...]


class Source(NamedTuple):
    """A parsed YAML file."""

    name: str
    value: object
    lines: dict[Place, int]
    """Line (from 1) of each key and list item, by its path; `()` is the document."""

    def fail(self, place: Place, message: str) -> NoReturn:
        """Raise a DefinitionError that points at `place`, or at the nearest thing around it."""
        while place and place not in self.lines:
            place = place[:-1]
        raise DefinitionError(f"{self.name}:{self.lines.get(place, 1)}: {message}")


def read_yaml(path: Path) -> Source:
    """The file's value and lines. Raises DefinitionError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except OSError as error:
        raise DefinitionError(f"cannot read {str(path)!r}: {error.strerror or error}") from None
    except UnicodeDecodeError as error:
        raise DefinitionError(f"{path}: not UTF-8 at byte {error.start}; save the file as UTF-8") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> Source:
    """The text's value and lines; `name` stands for the file in messages. Raises DefinitionError."""
    source = Source(name, None, {(): 1})
    loader = yaml.SafeLoader(text)
    try:
        node = loader.get_single_node()
        value = None if node is None else _Builder(source, loader).build(node, ())
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        raise DefinitionError(f"{name}:{mark.line + 1 if mark else 1}: not valid YAML: {error.problem}") from None
    except (yaml.YAMLError, ValueError) as error:
        raise DefinitionError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from None
    finally:
        loader.dispose()
    return source._replace(value=value)


class _Builder:
    """Turns nodes into plain values and notes where each one stands."""

    def __init__(self, source: Source, loader: yaml.SafeLoader) -> None:
        self._source = source
        self._loader = loader
        self._open: set[int] = set()

    def build(self, node: yaml.Node, place: Place) -> object:
        self._source.lines[place] = node.start_mark.line + 1
        if id(node) in self._open:
            self._source.fail(place, "an anchor that contains itself")
        self._open.add(id(node))
        try:
            return self._value(node, place)
        finally:
            self._open.discard(id(node))

    def _value(self, node: yaml.Node, place: Place) -> object:
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, number)) for number, item in enumerate(node.value)]
        value: object = self._loader.construct_object(node)
        return value

    def _mapping(self, node: yaml.MappingNode, place: Place) -> dict[str, object]:
        values: dict[str, object] = {}
        for key_node, value_node in node.value:
            key = str(key_node.value)
            inside = (*place, key)
            if key in values:
                self._source.lines[inside] = key_node.start_mark.line + 1
                self._source.fail(inside, f"the key {key!r} stands twice")
            values[key] = self.build(value_node, inside)
            self._source.lines[inside] = key_node.start_mark.line + 1
        return values
