"""Where the exports of other tools keep what a record is made of."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cache
from importlib import resources
from typing import Any

import yaml

from ...evaluators.checks import closest
from ...evaluators.errors import UsageError
from .paths import FieldPath

ROLES = ("question", "contexts", "answer", "id")
Group = tuple[FieldPath, ...]
"""Paths that exclude each other: a log that has several of them is ambiguous."""


@dataclass(frozen=True, kw_only=True)
class Schema:
    """The fields of a tool's export."""

    name: str
    holds: str
    """What it is, for people."""
    fields: Mapping[str, Sequence[Group]]
    """By roles; of several groups the first one that a log has counts, as a tool's versions differ."""
    records: Sequence[str] = ()
    """Keys of a JSON document under which the records may stand."""
    goes_with: str | None = None
    """The option that such a log mostly needs as well."""

    def paths(self, role: str) -> list[str]:
        """The paths of a role, in the order in which they are tried."""
        return [path.text for group in self.fields.get(role, ()) for path in group]

    def told(self, role: str) -> str:
        """The paths of a role, for people."""
        *others, last = map(repr, self.paths(role))
        return f"{', '.join(others)} or {last}" if others else last


@cache
def all_schemas() -> Mapping[str, Schema]:
    """Every schema by its name."""
    text = resources.files("ctxrel.cli.records").joinpath("schemas.yaml").read_text(encoding="utf-8")
    return {name: _schema(name, entry) for name, entry in yaml.safe_load(text).items()}


def find_schema(name: str) -> Schema:
    """The schema of a name. Raises UsageError with a name that is near, or with all of them."""
    schemas = all_schemas()
    if name not in schemas:
        raise UsageError(f"no schema {name!r}; {closest(name, schemas)} (ctxrel schemas says what each of them reads)")
    return schemas[name]


def _schema(name: str, entry: dict[str, Any]) -> Schema:
    return Schema(
        name=name,
        holds=entry["holds"],
        fields={role: [_group(item) for item in entry[role]] for role in ROLES if role in entry},
        records=tuple(entry.get("records", ())),
        goes_with=entry.get("goes_with"),
    )


def _group(item: str | list[str]) -> Group:
    return tuple(map(FieldPath, [item] if isinstance(item, str) else item))
