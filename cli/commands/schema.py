"""`ctxrel schema`: the forms of files as JSON Schemas."""

from typing import Annotated, Any

import typer

from ...evaluators.checks import closest
from ...evaluators.errors import UsageError
from ..console import show_table, write_json
from ..records.schemas import all_schemas
from .completing import complete_form
from .config import TABLE
from .forms import FORMS

EPILOG = "Example: ctxrel schema evaluator"


def schema(
    context: typer.Context,
    name: Annotated[
        str | None, typer.Argument(metavar="NAME", help="Print the one of this file.", autocompletion=complete_form)
    ] = None,
) -> None:
    """Print the JSON Schema of a file, or list those there are.

    They are of the files that ctxrel writes, and of those that people write for it. Logs of other tools have no schema
    here; ctxrel schemas lists the fields that are looked for in them.
    """
    root: Any = context.find_root().command
    parameters = root.commands[TABLE].params
    if name is None:
        rows = [[each, make(parameters)["title"]] for each, make in FORMS.items()]
        show_table("", ["schema", "of"], rows, to_stderr=False)
    elif name in FORMS:
        write_json(FORMS[name](parameters))
    else:
        hint = f"the fields of such logs: ctxrel schemas {name}" if name in all_schemas() else closest(name, FORMS)
        raise UsageError(f"no file of ctxrel's is called {name!r}; {hint}")
