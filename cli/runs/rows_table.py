"""Rows of JSON as an Arrow table."""

import orjson
import pyarrow as pa


def rows_table(rows: list[bytes]) -> pa.Table:
    """The rows as they are."""
    return pa.Table.from_pylist([orjson.loads(row) for row in rows])
