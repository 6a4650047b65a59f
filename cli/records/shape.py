"""What a JSON document holds at its top: a list of records, columns, or one record."""

import json
import re
from collections.abc import Callable, Iterator, Sequence
from dataclasses import dataclass, field
from typing import Any, BinaryIO, NamedTuple

from ...evaluators.errors import InputError, UsageError
from .lenient import LenientStream, TooDeep
from .paths import FieldPath

_SHOWN = 6


@dataclass(kw_only=True)
class Shape:
    """The top of a JSON object."""

    tables: dict[str, int] = field(default_factory=dict)
    """Lengths of the lists that start with an object, by key."""
    columns: dict[str, int] = field(default_factory=dict)
    """Lengths of the lists that start with anything else."""
    empty: list[str] = field(default_factory=list)
    """Keys of lists without items."""
    others: list[str] = field(default_factory=list)
    """Keys of all else."""
    texts: list[str] = field(default_factory=list)
    """Those of them that are texts."""
    has_more: bool = False
    """Whether another value follows the object."""


def find_shape(name: str, stream: BinaryIO) -> Shape:
    """The shape of an object, in one pass and flat memory. Raises InputError."""
    import ijson  # noqa: PLC0415  # a JSON Lines log need not pay for it

    shape = Shape()
    with stream:
        walk = _Walk(shape)
        try:
            for event, value in ijson.basic_parse(LenientStream(stream), multiple_values=True):
                if walk.ended:
                    shape.has_more = True
                    break
                walk.step(event, value)
        except ijson.JSONError as error:
            raise InputError(f"{name}: not valid JSON at {walk.place}: {reason_of(error)}") from None
        except TooDeep as error:
            raise InputError(f"{name}: {error}, at {walk.place} or soon after") from None
    return shape


class _Walk:
    """Goes through a parser's events and notes what the top holds."""

    def __init__(self, shape: Shape) -> None:
        self.ended = False
        self._shape = shape
        self._depth = 0
        self._key = ""
        self._items = -1  # of the list at the top that is open, -1 where none is
        self._starts_with_object = False

    @property
    def place(self) -> str:
        """Where in the document it is, as jq writes it."""
        if not self._key:
            return "its beginning"
        return f"{self._key!r}" if self._items < 0 else f"{self._key}[{max(self._items - 1, 0)}]"

    def step(self, event: str, value: object) -> None:
        """One event further."""
        if event.startswith("end_"):
            self._depth -= 1
            if self._depth == 1 and self._items >= 0:
                self._close_list()
            self.ended = self._depth == 0
            return
        if self._depth == 1:
            self._at_top(event, value)
        elif self._depth == 2 and self._items >= 0:  # noqa: PLR2004  # an item of a list at the top
            self._starts_with_object = event == "start_map" if self._items == 0 else self._starts_with_object
            self._items += 1
        self._depth += event.startswith("start_")
        self.ended = self._depth == 0

    def _at_top(self, event: str, value: object) -> None:
        if event == "map_key":
            self._key = str(value)
        elif event == "start_array":
            self._items = 0
        else:
            self._shape.others.append(self._key)
            if event == "string":
                self._shape.texts.append(self._key)

    def _close_list(self) -> None:
        if not self._items:
            self._shape.empty.append(self._key)
        else:
            lists = self._shape.tables if self._starts_with_object else self._shape.columns
            lists[self._key] = self._items
        self._items = -1


@dataclass(frozen=True)
class Table:
    """A list of objects under a key."""

    key: str


@dataclass(frozen=True)
class Columns:
    """Lists of equal length, one per field."""

    keys: tuple[str, ...]


class Single:
    """The object is a record itself."""


class Wanted(NamedTuple):
    """Which list of a document holds the records, as far as that is known beforehand."""

    path: FieldPath | None = None
    """The one a user named."""
    usual: Sequence[str] = ()
    """Keys that a schema knows, the usual ones first."""


def prefix_of(path: FieldPath) -> str:
    """What ijson calls the place of a list. Raises UsageError where the path takes single items."""
    if any(step.is_items and step.text for step in path.steps):
        raise UsageError(f"--records {path.text}: the records are all items of a list; leave out the [N]")
    return ".".join("item" if step.is_items else step.text for step in path.steps).removesuffix(".item")


def reading_of_shape(name: str, shape: Shape, names_a_question: Callable[[str], bool]) -> Table | Columns | Single:
    """How to make records of an object. Raises InputError where it could be meant in several ways."""
    if any(map(names_a_question, shape.texts)):
        return Single()
    if any(map(names_a_question, shape.columns)):
        return _columns(name, {**shape.columns, **shape.tables})
    if len(shape.tables) > 1:
        keys = list(shape.tables)
        raise InputError(
            f"{name}: the records may be those of {_listed(keys)}; choose with --records {_quoted(keys[0])}"
        )
    if shape.tables:
        return Table(next(iter(shape.tables)))
    if len(shape.columns) > 1 and not shape.others:
        return _columns(name, shape.columns)
    if shape.empty and not shape.columns and not shape.others:
        return Table(shape.empty[0])
    return Single()


def _columns(name: str, lengths: dict[str, int]) -> Columns:
    if len(set(lengths.values())) > 1:
        told = ", ".join(f"{key!r} has {length}" for key, length in lengths.items())
        raise InputError(f"{name}: columns of unequal length ({told}); write one object per record")
    return Columns(tuple(lengths))


def _listed(keys: list[str]) -> str:
    shown = [repr(key) for key in keys[:_SHOWN]]
    return " or ".join(shown) + (" …" if len(keys) > _SHOWN else "")


def _quoted(key: str) -> str:
    """The key as it is written on a command line, in quotes where a path needs them."""
    return key if re.fullmatch(r"[\w-]+", key) else f"'{json.dumps(key, ensure_ascii=False)}'"


def items_of(stream: BinaryIO, prefix: str) -> Iterator[Any]:
    """The items under a prefix, one after the other. Raises ijson's JSONError, and TooDeep."""
    import ijson  # noqa: PLC0415  # a JSON Lines log need not pay for it

    yield from ijson.items(LenientStream(stream), prefix)


def reason_of(error: Exception) -> str:
    """What a parser found wrong, without its drawing of the place."""
    text = error.args[0] if error.args else ""
    told = text.decode("utf-8", "replace") if isinstance(text, bytes) else str(text)
    told = told.removeprefix("b'").replace("\\n", "\n")
    return told.partition("\n")[0].removeprefix("parse error: ").removeprefix("lexical error: ").rstrip(".")
