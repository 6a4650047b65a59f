"""The `ctxrel` command: its parts, its errors and its exit codes."""

import io
import os
import shlex
import sys
from pathlib import Path
from typing import Annotated, Any

import typer
from typer.core import TyperGroup

from ..evaluators.errors import CtxrelError, GateNotMet, NotFinished, OutputLocked, UsageError
from .commands import (
    batch,
    calibrate,
    check,
    compare,
    doctor,
    estimate,
    init,
    inspect,
    label,
    prompts,
    report,
    run,
    schema,
    schemas,
    trend,
)
from .console import write_error, write_out
from .runs.runner import Interrupted

EXIT_FAILED = 1
EXIT_USAGE = 2
EXIT_GATE = 3
EXIT_NOT_FINISHED = 75


class _Commands(TyperGroup):
    """The commands; who gives a log in the place of one is told the command."""

    def resolve_command(self, ctx: Any, args: list[str]) -> Any:  # noqa: ANN401  # Typer's Click is vendored and has no public types
        """The command that the arguments begin with."""
        if args[0] not in self.commands and Path(args[0]).exists():
            ctx.fail(f"{args[0]!r} is no command; to judge a log: ctxrel run {shlex.quote(args[0])}")
        return super().resolve_command(ctx, args)


app = typer.Typer(
    name="ctxrel",
    cls=_Commands,
    no_args_is_help=True,
    pretty_exceptions_enable=False,
    rich_markup_mode=None,
    context_settings={"help_option_names": ["-h", "--help"], "max_content_width": 100},
)
app.command("run", epilog=run.EPILOG)(run.run)
app.command("inspect", epilog=inspect.EPILOG)(inspect.inspect)
app.command("schemas", epilog=schemas.EPILOG)(schemas.schemas)
app.command("schema", epilog=schema.EPILOG)(schema.schema)
app.command("report", epilog=report.EPILOG)(report.report)
app.command("estimate", epilog=estimate.EPILOG)(estimate.estimate)
app.command("check", epilog=check.EPILOG)(check.check)
app.command("compare", epilog=compare.EPILOG)(compare.compare)
app.command("calibrate", epilog=calibrate.EPILOG)(calibrate.calibrate)
app.command("label", epilog=label.EPILOG)(label.label)
app.command("trend", epilog=trend.EPILOG)(trend.trend)
app.command("init", epilog=init.EPILOG)(init.init)
app.add_typer(batch.app, name="batch")
app.command("doctor", epilog=doctor.EPILOG)(doctor.doctor)
app.add_typer(prompts.app, name="prompts")


def _version(wanted: bool) -> None:  # noqa: FBT001  # typer passes it so
    if wanted:
        from importlib.metadata import version  # noqa: PLC0415

        write_out(f"ctxrel {version('ctxrel')}")
        raise typer.Exit


@app.callback(epilog="Example: ctxrel run sample_data/support_en.jsonl --model offline")
def _options(
    *,
    _version: Annotated[
        bool, typer.Option("--version", callback=_version, is_eager=True, help="Show the version and exit.")
    ] = False,
) -> None:
    """Judge whether the contexts that a RAG system retrieved are relevant to the question."""


def exit_code(error: CtxrelError) -> int:
    """The code of an error: 2 usage and input, 3 a gate, 75 try again later, 128 and its number a signal, else 1."""
    if isinstance(error, Interrupted):
        return 128 + error.number
    if isinstance(error, (OutputLocked, NotFinished)):
        return EXIT_NOT_FINISHED
    if isinstance(error, GateNotMet):
        return EXIT_GATE
    return EXIT_USAGE if isinstance(error, UsageError) else EXIT_FAILED


def main() -> None:
    """Run the command; the user's mistakes print one sentence, our bugs keep their traceback."""
    _open_standard_streams()
    try:
        app()
    except CtxrelError as error:
        write_error(f"ctxrel: {error}")
        sys.exit(exit_code(error))
    except BrokenPipeError:
        # The reader of our output has gone; nothing may be flushed to it at exit.
        sys.stdout = None
        sys.exit(EXIT_FAILED)


def _open_standard_streams() -> None:
    """Who starts us with a stream closed gets one that leads nowhere, and no file of ours in its place."""
    for descriptor, name in enumerate(("stdin", "stdout", "stderr")):
        try:
            os.fstat(descriptor)
        except OSError:
            os.open(os.devnull, os.O_RDWR)  # the lowest free number: this one
        if getattr(sys, name) is None:
            setattr(sys, name, os.fdopen(descriptor, "r" if name == "stdin" else "w", closefd=False))
    if isinstance(sys.stdout, io.TextIOWrapper):
        sys.stdout.reconfigure(errors="backslashreplace")
