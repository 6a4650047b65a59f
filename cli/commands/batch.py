"""`ctxrel batch`: what a run has sent through the Batch API, and how to end it."""

import asyncio
from pathlib import Path
from typing import TYPE_CHECKING, Annotated

import orjson
import typer

from ...evaluators.errors import UsageError
from ..console import show_table, write_error, write_out
from ..runs.folder import DEFAULT_STORE

if TYPE_CHECKING:
    from ..runs.batching.ledger import Sent

app = typer.Typer(
    help="See and cancel the batches of a run.", no_args_is_help=True, rich_markup_mode=None,
    epilog="Example: ctxrel batch list support_en.ctxrel",
)  # fmt: skip
Place = Annotated[Path, typer.Argument(metavar="FOLDER|STORE", help="The output folder of a run, or a store.")]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object.")]


@app.command("list", epilog="Example: ctxrel batch list support_en.ctxrel")
def list_batches(place: Place, *, json: AsJson = False) -> None:
    """List the batches that were sent, as they were when a run last asked for them."""
    from ..runs.batching.managing import read_parts  # noqa: PLC0415  # other commands start without

    _show(read_parts(_store_of(place)), json=json)


@app.command("cancel", epilog="Example: ctxrel batch cancel support_en.ctxrel")
def cancel(place: Place, *, json: AsJson = False) -> None:
    """Cancel the batches that are under way. What they have brought so far is paid, and the next run collects it."""
    from ..runs.batching.managing import cancel_parts  # noqa: PLC0415  # other commands start without

    parts = asyncio.run(cancel_parts(_store_of(place)))
    _show(parts, json=json)
    if parts and not json:
        write_error("run the same ctxrel run command again to collect what was answered, without --batch to go on live")


def _store_of(place: Path) -> Path:
    path = place / DEFAULT_STORE if place.is_dir() else place
    if not path.is_file():
        raise UsageError(f"{str(place)!r} is no folder of a run and no store; name one that ctxrel run has written to")
    return path


def _show(parts: "list[Sent]", *, json: bool) -> None:
    rows = [
        {
            "batch": sent.part.batch,
            "state": sent.part.described,
            "requests": sent.part.requests,
            "completed": sent.part.completed,
            "failed": sent.part.failed,
            "model": sent.sender.model,
            "endpoint": sent.sender.base_url,
            "output": sent.output,
        }
        for sent in parts
    ]
    if json:
        write_out(orjson.dumps({"batches": rows}, option=orjson.OPT_INDENT_2).decode())
    elif rows:
        columns = ["batch", "state", "requests", "completed", "failed", "model"]
        show_table("", columns, [[str(row[name] or "-") for name in columns] for row in rows], to_stderr=False)
    else:
        write_error("no batches")
