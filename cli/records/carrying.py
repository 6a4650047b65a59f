"""What of a log's records goes along into their rows."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import orjson

from ...evaluators.jsontext import dumps_anything
from .fields import optional
from .paths import FieldPath
from .source import Row


@dataclass(frozen=True, kw_only=True)
class Carrying:
    """What goes along: single fields, the whole record."""

    keep: Sequence[FieldPath] = ()
    whole: bool = False

    def columns(self, others: frozenset[str]) -> frozenset[str] | None:
        """The top-level fields that are read for it beside others, None for all."""
        return None if self.whole else others | {path.top for path in self.keep}

    @property
    def names(self) -> list[str]:
        """The further columns that rows have for it."""
        return ["kept"] * bool(self.keep) + ["input"] * self.whole

    def of(self, row: Row) -> Mapping[str, object]:
        """Further columns for the rows of a record; null where it has nothing, or what JSON cannot hold."""
        carried: dict[str, object] = {}
        if self.keep:
            value = row.value or {}
            carried["kept"] = {path.text: _written(optional(path, value)) for path in self.keep}
        if self.whole:
            carried["input"] = _written(row.value)
        return carried

    def absent(self, rows: Sequence[Row]) -> list[FieldPath]:
        """The single fields that none of some rows has, not even null."""
        values = [row.value for row in rows if row.value is not None]
        return [path for path in self.keep if not any(path.stands_in(value) for value in values)]

    def describe(self) -> dict[str, object]:
        """The same as JSON can hold it."""
        return {"keep": [path.text for path in self.keep], "with_input": self.whole}


def _written(value: object) -> object:
    """A value that is written already, so that it is written once for all evaluators."""
    try:
        return orjson.Fragment(dumps_anything(value))
    except TypeError:
        return None
