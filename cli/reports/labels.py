"""People's labels, read from a log of any format."""

import math
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field
from pathlib import Path
from statistics import median_low

from ...evaluators.errors import InputError
from ..records.fields import optional
from ..records.paths import FieldPath
from ..records.recognising import open_file
from ..records.source import Row, printable
from ..records.texts import id_of

_WORDS = {"yes": 1.0, "true": 1.0, "no": 0.0, "false": 0.0}
_SHOWN = 8


@dataclass(frozen=True, kw_only=True)
class Labels:
    """What people said of records."""

    ratings: dict[str, list[float]]
    """By the records' ids, one for each rater who gave one."""
    repeated: int
    """Ids that stand in several rows, whose ratings are taken together."""
    ties: set[str] = field(default_factory=set)
    """Ids on which as many raters said 1 as 0: they have no label."""

    @property
    def binary(self) -> bool:
        """Whether all are 0 or 1."""
        return all(rating in (0, 1) for ratings in self.ratings.values() for rating in ratings)

    def labels(self) -> dict[str, float]:
        """One label for each record: the majority's, of grades the (lower) median."""
        return {name: median_low(ratings) for name, ratings in self.ratings.items() if name not in self.ties}


def read_labels(path: Path, fields: Sequence[FieldPath], id_field: FieldPath) -> Labels:
    """The labels in a file, those of several raters in several fields, in a list, or in several rows of an id.

    A record without an id has its position for one, as in results. Raises InputError.
    """
    ratings: dict[str, list[float]] = {}
    repeated: set[str] = set()
    seen: dict[str, None] = {}
    for index, row in enumerate(open_file(path).rows()):
        if row.value is None:
            raise InputError(f"{row.problem}; labels are records with an id and a label")
        seen |= dict.fromkeys(row.value)
        found = [rating for each in fields for rating in _ratings(row, optional(each, row.value))]
        if not found:
            continue
        name = id_of(optional(id_field, row.value), index)
        if name in ratings:
            repeated.add(name)
        ratings.setdefault(name, []).extend(found)
    if not ratings:
        wanted = " or ".join(repr(each.text) for each in fields)
        there = ", ".join([*seen][:_SHOWN]) or "none"
        raise InputError(
            f"{printable(path)}: no record has a label under {wanted}; name the field with --label-field; "
            f"there are {there}"
        )
    ties = {name for name, given in ratings.items() if _is_tie(given)}
    return Labels(ratings=ratings, repeated=len(repeated), ties=ties)


def _is_tie(ratings: Sequence[float]) -> bool:
    return {*ratings} == {0, 1} and 2 * sum(ratings) == len(ratings)


def _ratings(row: Row, value: object) -> Iterator[float]:
    """The numbers of a field: one, or those of a list. Raises InputError."""
    if isinstance(value, list):
        for item in value:
            yield from _ratings(row, item)
    elif value is not None and value != "":
        yield _rating(row, value)


def _rating(row: Row, value: object) -> float:
    if isinstance(value, str):
        text = value.strip().lower()
        try:
            number = _WORDS[text] if text in _WORDS else float(text)
        except ValueError:
            number = math.nan
    else:
        number = float(value) if isinstance(value, (int, float)) else math.nan
    if not math.isfinite(number):
        raise InputError(f"{row.where}: the label is {value!r}; write 1 or 0, true or false, yes or no, or a grade")
    return number
