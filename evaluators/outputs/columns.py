"""What the columns of result rows hold, in plain terms: for files whose columns have types."""

from enum import StrEnum
from typing import TypeAlias, Union


class Scalar(StrEnum):
    """A single value."""

    TEXT = "text"
    INTEGER = "integer"
    NUMBER = "number"
    BOOLEAN = "boolean"
    JSON = "json"
    """Any value, whatever its type."""


ColumnType: TypeAlias = Union[Scalar, list["ColumnType"], dict[str, "ColumnType"]]  # noqa: UP007  # it names itself
"""A single value, a list `[of one type]`, or an object of named parts; all of them may be null."""
ColumnTypes: TypeAlias = dict[str, ColumnType]
"""By the columns' names."""

SPAN: ColumnType = [Scalar.INTEGER]
"""First character and the one after the last."""
CONTEXT_VERDICTS: ColumnType = [
    {
        "relevant": Scalar.BOOLEAN,
        "statements": Scalar.INTEGER,
        "relevant_statements": Scalar.INTEGER,
        "spans": [SPAN],
    }
]
