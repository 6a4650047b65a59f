"""The forms of ctxrel's files, by the names that `ctxrel schema` knows them by."""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

from ..contracts.answers import check_schema, doctor_schema, estimate_schema, inspect_schema
from ..contracts.comparisons import calibrate_schema, compare_schema, trend_schema
from ..contracts.evaluator import evaluator_schema
from ..contracts.parts import Schema
from ..contracts.prices import prices_schema
from ..contracts.row import row_schema
from ..contracts.summary import summary_schema
from .config_schema import config_schema

FORMS: Mapping[str, Callable[[Sequence[Any]], Schema]] = {
    "row": lambda _: row_schema(),
    "summary": lambda _: summary_schema(),
    "evaluator": lambda _: evaluator_schema(),
    "config": config_schema,
    "prices": lambda _: prices_schema(),
    "estimate": lambda _: estimate_schema(),
    "inspect": lambda _: inspect_schema(),
    "check": lambda _: check_schema(),
    "compare": lambda _: compare_schema(),
    "calibrate": lambda _: calibrate_schema(),
    "trend": lambda _: trend_schema(),
    "doctor": lambda _: doctor_schema(),
}
"""Each gives a JSON Schema, out of the parameters of `ctxrel run`."""
