"""YAML whose values know their lines, so that an error can point at one."""

import math
from pathlib import Path
from typing import NamedTuple, NoReturn

import yaml

from .errors import DefinitionError
from .jsontext import replace_surrogates

_INT_LIMIT = 2**63
_DEEPEST = 50
Place = tuple[str | int, ...]


class Source(NamedTuple):
    """A parsed YAML file."""

    name: str
    value: object
    lines: dict[Place, int]
    """Line (from 1) of each key and list item, by its path; `()` is the document. Empty where it is no file."""

    def fail(self, place: Place, message: str) -> NoReturn:
        """Raise a DefinitionError that points at `place`, or at the nearest thing around it."""
        if not self.lines:  # from Python
            path = "".join(f"[{step}]" if isinstance(step, int) else f".{step}" for step in place).lstrip(".")
            raise DefinitionError(f"{self.name}: {path and f'{path}: '}{message}")
        while place and place not in self.lines:
            place = place[:-1]
        raise DefinitionError(f"{self.name}:{self.lines.get(place, 1)}: {message}")


def read_yaml(path: Path) -> Source:
    """The file's value and lines. Raises DefinitionError."""
    try:
        text = path.read_text(encoding="utf-8-sig")
    except (OSError, ValueError) as error:
        if isinstance(error, UnicodeDecodeError):
            raise DefinitionError(f"{path}: not UTF-8 at byte {error.start}; is it a YAML file?") from None
        reason = (isinstance(error, OSError) and error.strerror) or error
        raise DefinitionError(f"cannot read {str(path)!r}: {reason}") from None
    return parse_yaml(text, str(path))


def parse_yaml(text: str, name: str) -> Source:
    """The text's value and lines; `name` stands for the file in messages. Raises DefinitionError."""
    source = Source(name, None, {(): 1})
    try:
        loader = yaml.SafeLoader(text)
        node = loader.get_single_node()
        return source._replace(value=None if node is None else _Builder(source, loader).build(node, ()))
    except yaml.MarkedYAMLError as error:
        mark = error.problem_mark or error.context_mark
        hint = "; put a text that holds ': ' in quotes" if "mapping values" in str(error.problem) else ""
        raise DefinitionError(f"{name}:{mark.line + 1 if mark else 1}: not valid YAML: {error.problem}{hint}") from None
    except DefinitionError:
        raise
    except (yaml.YAMLError, ValueError) as error:
        raise DefinitionError(f"{name}: not valid YAML: {' '.join(str(error).split())}") from None
    except RecursionError:
        raise DefinitionError(f"{name}: not valid YAML: nested too deeply") from None


class _Builder:
    """Turns nodes into plain values and notes where each one stands."""

    def __init__(self, source: Source, loader: yaml.SafeLoader) -> None:
        self._source = source
        self._loader = loader
        self._built: set[int] = set()

    def build(self, node: yaml.Node, place: Place) -> object:
        self._source.lines[place] = node.start_mark.line + 1
        if len(place) > _DEEPEST:
            self._source.fail(place, "nested too deeply")
        if id(node) in self._built:  # a handful of them can stand for a billion values
            self._source.fail(place, "an alias (*) cannot be used here; write the value out")
        self._built.add(id(node))
        if isinstance(node, yaml.MappingNode):
            return self._mapping(node, place)
        if isinstance(node, yaml.SequenceNode):
            return [self.build(item, (*place, number)) for number, item in enumerate(node.value)]
        try:
            value: object = self._loader.construct_object(node)
        except ValueError:  # a date that is none
            value = self._source.fail(place, f"{node.value!r} makes no sense as it stands; put it in quotes")
        if isinstance(value, str) and replace_surrogates(value) != value:
            self._source.fail(place, f"{value!r} holds half of a character (a lone surrogate)")
        if value is None or isinstance(value, (str, bool)) or _is_json_number(value):
            return value
        return self._source.fail(place, f"{node.value!r} is read as {type(value).__name__}; put it in quotes")

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


def _is_json_number(value: object) -> bool:
    return (isinstance(value, int) and abs(value) < _INT_LIMIT) or (isinstance(value, float) and math.isfinite(value))
