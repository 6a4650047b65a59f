"""Fields that stand in the names of a log's folders, as Hive writes them: `date=2026-11-30/lang=ko/part-0.parquet`."""

from collections.abc import Iterator, Mapping, Sequence
from urllib.parse import unquote

from .source import Row, Source
from .where import Condition

Partition = Mapping[str, str | None]
"""Values of a file's fields by their names, all of them texts."""
NULL = "__HIVE_DEFAULT_PARTITION__"


def partition_of(path: str) -> Partition:
    """The fields in the folders of a path; percent-encoded characters are decoded, Hive's name for null is null."""
    found: dict[str, str | None] = {}
    for folder in path.split("/")[:-1]:
        key, equals, value = folder.partition("=")
        if key and equals:
            found[unquote(key)] = None if value == NULL else unquote(value)
    return found


def could_hold(partition: Partition, conditions: Sequence[Condition]) -> bool:
    """Whether a file can hold a record that meets the conditions, by the fields that all of its records share."""
    return all(condition.holds(dict(partition)) for condition in conditions if condition.path.text in partition)


class PartitionedSource:
    """A source whose records have further fields; they take the place of fields of the same names."""

    def __init__(self, source: Source, partition: Partition) -> None:
        self.name = source.name
        self.size = source.size
        self.format = source.format
        self.packing = source.packing
        self._source = source
        self._partition = partition

    def peek(self, most: int) -> list[Row]:
        """The first rows, with all fields."""
        return [self._extended(row) for row in self._source.peek(most)]

    def rows(self, columns: frozenset[str] | None = None) -> Iterator[Row]:
        """All rows with the named fields. Raises InputError."""
        for row in self._source.rows(columns):
            yield self._extended(row)

    def _extended(self, row: Row) -> Row:
        return row if row.value is None else row._replace(value={**row.value, **self._partition})
