"""`ctxrel schemas`: the exports of other tools that --schema reads."""

from typing import Annotated

import typer

from ...evaluators.errors import UsageError
from ..console import show_table
from ..records.schemas import ROLES, all_schemas, find_schema
from .forms import FORMS

EPILOG = "Example: ctxrel schemas ragas"


def schemas(
    name: Annotated[str | None, typer.Argument(metavar="NAME", help="Show the fields of one of them.")] = None,
) -> None:
    """List the exports of other tools that --schema NAME reads.

    With a name: the fields that are tried for it. The JSON Schemas of ctxrel's own files are what ctxrel schema
    prints.
    """
    if name is None:
        rows = [[schema.name, schema.holds, schema.goes_with or ""] for schema in all_schemas().values()]
        show_table("", ["schema", "what it reads", "mostly needs"], rows, to_stderr=False)
        return
    if name in FORMS:
        raise UsageError(
            f"no tool's export is called {name!r}; the form of that file of ctxrel's: ctxrel schema {name}"
        )
    schema = find_schema(name)
    rows = [[role, path] for role in ROLES for path in schema.paths(role)]
    show_table("", ["what", "field, tried in this order"], rows, to_stderr=False)
