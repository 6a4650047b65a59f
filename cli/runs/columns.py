"""The columns of result rows and their types: those of every row, of the evaluators, and of what is carried along."""

from collections.abc import Sequence
from typing import TYPE_CHECKING

from ...evaluators.errors import UsageError
from ...evaluators.evaluator import Evaluator
from ...evaluators.outputs.columns import ColumnType, ColumnTypes, Scalar
from ...evaluators.replies import Usage

if TYPE_CHECKING:
    import pyarrow as pa

SCHEMA_VERSION = 1
"""Of the forms of all files, written and read; another number where a reader of one could not read the next."""
FIRST: ColumnTypes = {
    "index": Scalar.INTEGER,
    "id": Scalar.TEXT,
    "evaluator": Scalar.TEXT,
    "status": Scalar.TEXT,
    "score": Scalar.NUMBER,
    "question": Scalar.TEXT,
}
LAST: ColumnTypes = {
    "model": Scalar.TEXT,
    "prompt": Scalar.TEXT,
    "repaired": Scalar.BOOLEAN,
    "usage": dict.fromkeys(Usage._fields, Scalar.INTEGER),
    "cost": Scalar.NUMBER,
    "error": {"kind": Scalar.TEXT, "message": Scalar.TEXT},
    "requests": Scalar.INTEGER,
}
_OPINION: ColumnTypes = {
    "judge": Scalar.TEXT,
    "repeat": Scalar.INTEGER,
    "shuffled": Scalar.BOOLEAN,
    "status": Scalar.TEXT,
    "score": Scalar.NUMBER,
    "contexts_relevant": [Scalar.BOOLEAN],
    "usage": dict.fromkeys(Usage._fields, Scalar.INTEGER),
    "cost": Scalar.NUMBER,
    "error": Scalar.TEXT,
}
FURTHER: ColumnTypes = {
    "opinions": [_OPINION],
    "majority": Scalar.NUMBER,
    "file": Scalar.TEXT,
    "kept": Scalar.JSON,
    "input": Scalar.JSON,
}


def column_types(evaluators: Sequence[Evaluator], further: Sequence[str]) -> ColumnTypes:
    """The columns of a run's rows, in order: the union of what its evaluators fill.

    `further` are those of `opinions`, `majority`, `file`, `kept` and `input` that its rows have. Raises UsageError
    where two evaluators fill a column with values of different types.
    """
    outputs: ColumnTypes = {}
    owners: dict[str, str] = {}
    for evaluator in evaluators:
        for name, kind in evaluator.column_types.items():
            owner = owners.setdefault(name, evaluator.name)
            outputs[name] = _common(outputs.get(name, kind), kind, name, (owner, evaluator.name))
    return {**FIRST, **outputs, **LAST, **{name: FURTHER[name] for name in further}}


def _common(one: ColumnType, other: ColumnType, name: str, owners: tuple[str, str]) -> ColumnType:
    """The type that holds values of both. Raises UsageError."""
    if one == other:
        return one
    if isinstance(one, list) and isinstance(other, list):
        return [_common(one[0], other[0], name, owners)]
    if {str(one), str(other)} == {Scalar.INTEGER, Scalar.NUMBER}:
        return Scalar.NUMBER
    raise UsageError(
        f"{owners[0]!r} and {owners[1]!r} fill the column {name!r} with values of different types, which Parquet does "
        "not take; give one of the outputs another name, or write --format jsonl"
    )


def arrow_schema(types: ColumnTypes) -> "pa.Schema":
    """The same as Arrow's schema; what can be of any type is JSON as text."""
    import pyarrow as pa  # noqa: PLC0415  # 0.15 s that JSON Lines need not pay

    fields = [pa.field(name, _arrow(kind)) for name, kind in types.items()]
    return pa.schema(fields, metadata={"ctxrel.schema": str(SCHEMA_VERSION)})


def _arrow(kind: ColumnType) -> "pa.DataType":
    import pyarrow as pa  # noqa: PLC0415

    if isinstance(kind, list):
        return pa.list_(_arrow(kind[0]))
    if isinstance(kind, dict):
        return pa.struct([pa.field(name, _arrow(part)) for name, part in kind.items()])
    scalars: dict[Scalar, pa.DataType] = {
        Scalar.TEXT: pa.string(),
        Scalar.INTEGER: pa.int64(),
        Scalar.NUMBER: pa.float64(),
        Scalar.BOOLEAN: pa.bool_(),
        Scalar.JSON: pa.string(),
    }
    return scalars[kind]
