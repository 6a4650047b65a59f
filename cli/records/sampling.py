"""Which records of a log are judged: the first ones, those that meet conditions, a sample of them."""

import heapq
from collections import Counter
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from hashlib import blake2b
from itertools import islice
from typing import Any, NamedTuple

from ...evaluators.errors import InputError, UsageError
from ...evaluators.jsontext import dumps_anything
from .fields import Layout, optional
from .paths import FieldPath
from .source import Row
from .texts import id_of
from .where import Condition, plain_text

MOST_STRATA = 1000
_HALF = 16
"""Bytes of a key's first half, which stands for the id where there is one."""


class Entry(NamedTuple):
    """A row where it stands in the whole input."""

    row: Row
    layout: Layout
    position: int
    """In the whole input, from 0."""
    fraction: float | None
    """Of the input that is read with it; None where its size is unknown."""
    file: str
    """The name of the file it stands in."""


@dataclass(frozen=True, kw_only=True)
class Selection:
    """Which records are judged."""

    limit: int | None = None
    """Only so many, the first ones."""
    where: Sequence[Condition] = ()
    """Only those that meet all of these; a line that cannot be read meets none."""
    sample: int | None = None
    """Only so many, drawn by chance."""
    seed: int = 0
    by: FieldPath | None = None
    """So many of each value of this field."""

    def __post_init__(self) -> None:
        if self.sample and self.limit:
            raise UsageError("--sample draws from the whole log, --limit reads its beginning; give one of them")
        if self.by and not self.sample:
            raise UsageError("--sample-by needs --sample N: so many of each value are drawn")

    @property
    def columns(self) -> frozenset[str]:
        """The top-level fields it looks at."""
        return frozenset(path.top for path in (*(condition.path for condition in self.where), self.by) if path)

    def takes(self, row: Row) -> bool:
        """Whether a row meets the conditions."""
        value = row.value
        return value is not None and all(condition.holds(value) for condition in self.where)

    def matching(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Those that meet the conditions. Raises InputError where none of all does."""
        if not self.where:
            yield from entries
            return
        seen = met = 0
        samples: dict[Condition, object] = {}
        for seen, entry in enumerate(entries, start=1):  # noqa: B007  # the last one counts
            if self.takes(entry.row):
                met += 1
                yield entry
            elif not met and (value := entry.row.value) is not None:
                found = [(condition, optional(condition.path, value)) for condition in self.where]
                samples |= {condition: shown for condition, shown in found if shown is not None}
        if not met:
            why = "".join(hint for condition in self.where if (hint := _hint(condition, samples.get(condition))))
            absent = [repr(condition.path.text) for condition in self.where if condition not in samples]
            why = f"; no record has the field {' or '.join(absent)}" if absent else why
            given = " and ".join(map(str, self.where))
            raise InputError(f"{_none_of(seen)} --where {given}{why}")

    def first(self, entries: Iterable[Entry]) -> Iterator[Entry]:
        """Those that are judged where no sample is drawn. Raises InputError."""
        return islice(self.matching(entries), self.limit)

    def describe(self) -> dict[str, object]:
        """The same as JSON can hold it."""
        return {
            "n": self.sample,
            "seed": self.seed if self.sample else None,
            "by": self.by.text if self.by else None,
            "where": [str(condition) for condition in self.where],
        }


def _none_of(seen: int) -> str:
    return "the only record does not meet" if seen == 1 else f"none of {seen:,} records meets"


def _hint(condition: Condition, value: object) -> str:
    """How a condition may be meant that compares a text, as a date is, with a number."""
    if condition.number is None or not isinstance(value, str):
        return ""
    quoted = f'{condition.path.text}{condition.sign}"{condition.text}"'
    return (
        f"; the field {condition.path.text!r} is a text, as {value[:20]!r}: write --where '{quoted}' to compare texts"
    )


@dataclass(kw_only=True)
class Stratum:
    """Of the records with one value of a field, those with the lowest keys so far."""

    population: int = 0
    heap: "list[_Candidate]" = field(default_factory=list)


@dataclass(frozen=True, kw_only=True)
class Sample:
    """What was drawn."""

    strata: Mapping[str | None, Stratum]
    """By the values of the field that is drawn by; a single one under None where there is no such field."""
    seed: int
    keys: Mapping[int, bytes]
    """The drawn records' keys by their positions."""
    kept: Sequence[Entry] | None
    """The drawn entries; None where the log is read once more for them."""

    @property
    def population(self) -> int:
        """Records from which it was drawn."""
        return sum(stratum.population for stratum in self.strata.values())

    @property
    def sharing(self) -> int:
        """Drawn records that have their id in common with another one of them."""
        ids = Counter(key[:_HALF] for key in self.keys.values())
        return sum(count for count in ids.values() if count > 1)

    def summary(self) -> dict[str, Any]:
        """Records and drawn ones by value of the field, if it was drawn by one."""
        return {
            value: {"population": stratum.population, "drawn": len(stratum.heap)}
            for value, stratum in sorted((value, s) for value, s in self.strata.items() if value is not None)
        }

    def entries(self, entries: Iterator[Entry]) -> Iterator[Entry]:
        """The drawn ones in input order. Raises InputError where the log is no longer the one drawn from."""
        if self.kept is not None:
            yield from self.kept
            return
        missing = len(self.keys)
        for entry in entries:
            key = self.keys.get(entry.position)
            if key is None:
                continue
            if key_of(entry, self.seed) != key:
                break
            missing -= 1
            yield entry
            if not missing:
                return
        raise InputError("the log has changed since the sample was drawn from it; run the command again")


class _Candidate(NamedTuple):
    """An entry of a heap whose first item has the highest key."""

    order: int
    """Of the key, negative."""
    position: int
    """Of the record, negative: of two that are alike the first one stays."""
    key: bytes
    entry: Entry | None


def draw(entries: Iterable[Entry], selection: Selection, *, keep: bool) -> Sample:
    """A sample of all entries; `keep` holds the drawn ones in memory, for logs that cannot be read again.

    Each record has a number that depends on nothing but the seed and its id (else its content); those with the lowest
    numbers are drawn. Raises InputError.
    """
    strata: dict[str | None, Stratum] = {}
    size = selection.sample or 0
    for entry in selection.matching(entries):
        stratum = strata.setdefault(stratum_of(entry, selection.by), Stratum())
        if len(strata) > MOST_STRATA:
            raise InputError(
                f"the field {selection.by and selection.by.text!r} has more than {MOST_STRATA:,} values; "
                "--sample-by takes a field with few of them, as lang"
            )
        stratum.population += 1
        key = key_of(entry, selection.seed)
        candidate = _Candidate(-int.from_bytes(key), -entry.position, key, None)
        if len(stratum.heap) < size:
            heapq.heappush(stratum.heap, candidate._replace(entry=entry if keep else None))
        elif candidate > stratum.heap[0]:
            heapq.heapreplace(stratum.heap, candidate._replace(entry=entry if keep else None))
    if selection.by and strata.keys() == {plain_text(None)}:
        raise InputError(f"no record has the field {selection.by.text!r}; --sample-by takes one that they have")
    drawn = sorted((c for s in strata.values() for c in s.heap), key=lambda candidate: -candidate.position)
    return Sample(
        strata=strata,
        seed=selection.seed,
        keys={-candidate.position: candidate.key for candidate in drawn},
        kept=[candidate.entry for candidate in drawn if candidate.entry] if keep else None,
    )


def key_of(entry: Entry, seed: int) -> bytes:
    """The number by which a record is drawn: of its id, then of its content; of the content alone without an id.

    A line that cannot be read has its file and line instead.
    """
    secret = str(seed).encode()
    row, layout = entry.row, entry.layout
    if row.value is None:
        where = row.where.encode(errors="replace")
        return blake2b(where, key=secret, person=b"where").digest()[: 2 * _HALF]
    record = layout.record(row, entry.position)
    read = (record.question, record.contexts, record.answer, record.fields)
    content = blake2b(dumps_anything(read), key=secret, digest_size=_HALF, person=b"content").digest()
    found = optional(layout.id, row.value)
    if found is None or found == "":
        return content * 2
    named = id_of(found, entry.position).encode()
    return blake2b(named, key=secret, digest_size=_HALF, person=b"id").digest() + content


def stratum_of(entry: Entry, by: FieldPath | None) -> str | None:
    """The value of the field that is drawn by; None where there is no such field."""
    if by is None:
        return None
    return plain_text(optional(by, entry.row.value) if entry.row.value else None)
