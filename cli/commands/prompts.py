"""`ctxrel prompts`: see, copy and check evaluators."""

import shlex
from pathlib import Path
from typing import Annotated

import typer

from ...evaluators.definition import Definition, built_in_names, built_in_text, load_definition
from ...evaluators.errors import DefinitionError, UsageError
from ...evaluators.evaluator import Evaluator, load_evaluator
from ..console import show_table, write_error, write_out
from .completing import complete_built_in, complete_evaluator

app = typer.Typer(
    help="See, copy and check the prompts that judge.", no_args_is_help=True, rich_markup_mode=None,
    epilog="Example: ctxrel prompts copy context_relevance mine.yaml",
)  # fmt: skip


@app.command("list", epilog="Example: ctxrel prompts list")
def list_prompts() -> None:
    """List the built-in evaluators."""
    definitions = [load_definition(name) for name in built_in_names()]
    rows = [[definition.name, ", ".join(definition.inputs), definition.description] for definition in definitions]
    show_table("", ["evaluator", "needs", "what it judges"], rows, to_stderr=False)


@app.command("show", epilog="Example: ctxrel prompts show context_relevance --rendered")
def show(
    name: Annotated[
        str,
        typer.Argument(
            metavar="NAME|FILE.yaml", help="A built-in evaluator or a file.", autocompletion=complete_evaluator
        ),
    ],
    *,
    rendered: Annotated[
        bool, typer.Option("--rendered", help="Show the system message as the judge receives it.")
    ] = False,
    explain: Annotated[bool, typer.Option("--explain", help="With --rendered: as it is under --explain.")] = False,
) -> None:
    """Print an evaluator's YAML, or the message it becomes."""
    evaluator = load_evaluator(name, explain=explain)
    write_out(evaluator.static.system if rendered else _text_of(name))


@app.command("copy", epilog="Example: ctxrel prompts copy context_relevance mine.yaml")
def copy(
    name: Annotated[
        str, typer.Argument(metavar="NAME", help="A built-in evaluator.", autocompletion=complete_built_in)
    ],
    target: Annotated[Path | None, typer.Argument(metavar="FILE", help="The new file, NAME.yaml by default.")] = None,
    *,
    force: Annotated[bool, typer.Option("--force", help="Replace a file that is there.")] = False,
) -> None:
    """Copy a built-in evaluator to a file to edit, and run it with -e FILE."""
    text = built_in_text(name)
    path = target or Path(f"{name}.yaml")
    try:
        with path.open("w" if force else "x", encoding="utf-8") as stream:
            stream.write(text)
    except FileExistsError:
        raise UsageError(f"{str(path)!r} is there already; name another file or use --force") from None
    except OSError as error:
        raise UsageError(f"cannot write {str(path)!r}: {error.strerror}") from None
    name = str(path) if path.suffix in (".yaml", ".yml") else str(path) if path.is_absolute() else f"./{path}"
    write_error(f"copied to {path}; run it with: ctxrel run LOG -e {shlex.quote(name)}")


@app.command("check", epilog="Example: ctxrel prompts check mine.yaml")
def check(
    files: Annotated[
        list[str],
        typer.Argument(metavar="FILE.yaml...", help="Evaluators to check.", autocompletion=complete_evaluator),
    ],
) -> None:
    """Say what is wrong with an evaluator, with file and line, before anything is sent."""
    wrong = []
    for name in files:
        try:
            definition = load_definition(name)
            Evaluator(definition)
            write_out(f"{name}: fine; {_facts(definition)}")
        except DefinitionError as error:
            wrong.append(str(error))
    if wrong:
        raise DefinitionError("\nctxrel: ".join(wrong))


def _facts(definition: Definition) -> str:
    scoring = definition.scoring.describe(definition.outputs)
    return f"{definition.version}, {len(definition.examples)} examples, scoring {scoring}"


def _text_of(name: str) -> str:
    return built_in_text(name) if name in built_in_names() else Path(name).read_text(encoding="utf-8-sig")
