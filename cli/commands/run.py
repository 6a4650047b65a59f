"""`ctxrel run`: judge a log."""

import asyncio
from pathlib import Path
from typing import Annotated, Any

import typer

from ...evaluators.definition import check_parameters
from ...evaluators.errors import DefinitionError, UsageError
from ...evaluators.jsontext import NotJSON, loads
from ...evaluators.judges.endpoint import DEFAULT_MODEL
from ..console import ProgressKind, Reporter, duration, show_table, write_error
from ..records.carrying import Carrying
from ..records.fields import Fields
from ..records.paths import FieldPath
from ..records.sampling import Selection
from ..records.where import parse_condition
from ..runs.job import Ending, carry_out
from ..runs.plan import RunOptions, plan_run
from .config import CONFIG, load_config

EPILOG = "Example: ctxrel run sample_data/support_en.jsonl --model offline"


def run(
    inputs: Annotated[
        list[str],
        typer.Argument(
            metavar="INPUT",
            help="Logs (JSON Lines, JSON, CSV, Parquet, Arrow; also .gz, .zst), folders or globs; - is standard input.",
        ),
    ],
    *,
    output: Annotated[
        str | None,
        typer.Option(
            "-o",
            "--output",
            metavar="DIR",
            help="Folder of the run, <input stem>.ctxrel by default; - streams rows to standard output.",
        ),
    ] = None,
    evaluator: Annotated[
        list[str], typer.Option("-e", "--evaluator", metavar="NAME|FILE.yaml", help="What is judged; repeatable.")
    ] = ["context_relevance"],  # noqa: B006  # typer copies it
    model: Annotated[
        str,
        typer.Option("-m", "--model", help="The judge; offline needs no key and no network, nor does a ./FILE.gguf."),
    ] = DEFAULT_MODEL,
    base_url: Annotated[
        str | None,
        typer.Option(metavar="URL", help="An OpenAI-compatible endpoint; OPENAI_BASE_URL by default."),
    ] = None,
    api_key_env: Annotated[
        str, typer.Option(metavar="NAME", help="Variable that holds the key; a loopback endpoint needs none.")
    ] = "OPENAI_API_KEY",
    param: Annotated[
        list[str] | None,
        typer.Option(metavar="KEY=VALUE", help="A request parameter, as reasoning_effort=low; null omits; repeatable."),
    ] = None,
    concurrency: Annotated[
        int | None,
        typer.Option(
            "-c", "--concurrency", min=1, max=1000, metavar="N", help="Requests in flight; found out by default."
        ),
    ] = None,
    rpm: Annotated[float | None, typer.Option(metavar="N", help="Requests per minute at most.")] = None,
    tpm: Annotated[float | None, typer.Option(metavar="N", help="Tokens per minute at most, in and out.")] = None,
    question_field: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the question stands, as meta.query.")
    ] = None,
    contexts_field: Annotated[
        str | None, typer.Option(metavar="PATH", help="Where the contexts stand, as results[].text.")
    ] = None,
    answer_field: Annotated[str | None, typer.Option(metavar="PATH", help="Where the answer stands.")] = None,
    id_field: Annotated[str | None, typer.Option(metavar="PATH", help="Where the record's id stands.")] = None,
    field: Annotated[
        list[str] | None,
        typer.Option(metavar="NAME=PATH", help="Where another input of an evaluator stands; by its name else."),
    ] = None,
    limit: Annotated[int | None, typer.Option(min=1, metavar="N", help="Judge the first N records only.")] = None,
    where: Annotated[
        list[str] | None,
        typer.Option(
            metavar="CONDITION", help="Judge records that meet it only, as lang=ko or 'score<0.5'; repeatable."
        ),
    ] = None,
    sample: Annotated[int | None, typer.Option(min=1, metavar="N", help="Judge N records drawn by chance.")] = None,
    seed: Annotated[
        int, typer.Option(min=0, max=2**63 - 1, metavar="S", help="Another seed draws another sample.")
    ] = 0,
    sample_by: Annotated[
        str | None, typer.Option(metavar="PATH", help="Draw N records of each value of this field.")
    ] = None,
    keep: Annotated[
        list[str] | None,
        typer.Option(metavar="PATH", help="Carry a field of the record into its rows, under kept; repeatable."),
    ] = None,
    with_input: Annotated[
        bool, typer.Option("--with-input", help="Carry the whole record into its rows, under input.")
    ] = False,
    store: Annotated[
        Path | None,
        typer.Option(metavar="FILE", help="Where replies are kept, <output>/store.sqlite by default; may be shared."),
    ] = None,
    timeout: Annotated[
        float | None,
        typer.Option(
            min=0.1, max=3600, metavar="SECONDS", help="Time for one attempt; 60 by default, 600 for a model file."
        ),
    ] = None,
    attempts: Annotated[
        int, typer.Option(min=1, max=100, metavar="N", help="Attempts at a record before it is an error row.")
    ] = 5,
    grace: Annotated[
        float,
        typer.Option(min=0, max=3600, metavar="SECONDS", help="Time for what is in flight when the run is stopped."),
    ] = 30.0,
    insecure: Annotated[
        bool, typer.Option("--insecure", help="Allow plain http, and no key, to a host that is not this machine.")
    ] = False,
    max_input_tokens: Annotated[
        int | None,
        typer.Option(min=100, metavar="N", help="Divide longer records over several requests; 3 bytes are a token."),
    ] = None,
    explain: Annotated[
        bool, typer.Option("--explain", help="Ask for a short reason beside each verdict; it costs tokens.")
    ] = False,
    raise_on_failure: Annotated[
        bool, typer.Option("--raise-on-failure", help="Stop at the first failed record; what was judged stays.")
    ] = False,
    progress: Annotated[
        ProgressKind, typer.Option(help="How progress is shown; auto is a bar where stderr is a terminal.")
    ] = ProgressKind.AUTO,
    config: Annotated[
        str | None,
        typer.Option(
            metavar="FILE",
            help=f"Options in a file, {CONFIG} by default where it is there; the command line wins.",
            callback=load_config,
            is_eager=True,
        ),
    ] = None,
) -> None:
    """Judge a log: are its contexts relevant (by default), its answers faithful, and whatever else evaluators ask.

    Replies are kept as they arrive: stop the run however you like, run the same command again, and it goes on.
    """
    options = RunOptions(
        inputs=inputs,
        evaluators=evaluator,
        model=model,
        base_url=base_url,
        api_key_env=api_key_env,
        parameters=parse_parameters(param or []),
        concurrency=concurrency,
        fields=parse_fields(
            {"question": question_field, "contexts": contexts_field, "answer": answer_field, "id": id_field},
            field or [],
        ),
        output=output,
        store=store,
        raise_on_failure=raise_on_failure,
        timeout=timeout,
        attempts=attempts,
        explain=explain,
        max_input_tokens=max_input_tokens,
        rpm=_per_minute("--rpm", rpm),
        tpm=_per_minute("--tpm", tpm),
        grace=grace,
        insecure=insecure,
        selection=Selection(
            limit=limit,
            where=[parse_condition(text) for text in where or []],
            sample=sample,
            seed=seed,
            by=FieldPath(sample_by) if sample_by is not None else None,
        ),
        config=config,
        carrying=Carrying(keep=[FieldPath(path) for path in keep or []], whole=with_input),
    )
    reporter = Reporter(progress)
    if config:
        reporter.note(f"options: {config}")
    # Planned outside of the event loop, where Ctrl-C ends the wait for a pipe.
    plan = plan_run(options, reporter)
    _finish(asyncio.run(carry_out(plan, reporter)), quiet=progress in (ProgressKind.NONE, ProgressKind.JSON))


def _per_minute(option: str, value: float | None) -> float | None:
    """A number per minute. Raises UsageError for one that is no amount."""
    if value is not None and not 0 < value < float("inf"):
        raise UsageError(f"{option} {value:g}: give a number above 0")
    return value


def parse_parameters(given: list[str]) -> dict[str, object]:
    """Request parameters from KEY=VALUE; a value is JSON where it reads as JSON, else text. Raises UsageError."""
    parameters: dict[str, object] = {}
    for text in given:
        name, equals, value = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"{text!r} is no request parameter; write --param reasoning_effort=low")
        if value.strip().lstrip("-") in ("NaN", "Infinity"):
            raise UsageError(f"{text!r}: JSON knows no {value}; write a number, or null to leave the parameter out")
        try:
            parameters[name] = loads(value)
        except NotJSON:
            parameters[name] = value
    try:
        check_parameters(parameters)
    except DefinitionError as error:
        raise UsageError(str(error)) from None
    return parameters


def parse_fields(named: dict[str, str | None], given: list[str]) -> Fields:
    """Fields from the options for single ones and from NAME=PATH. Raises UsageError."""
    paths = {name: FieldPath(path) for name, path in named.items() if path is not None}
    for text in given:
        name, equals, path = text.partition("=")
        if not equals or not name.isidentifier():
            raise UsageError(f"{text!r} names no field; write --field NAME=PATH, as tone=meta.tone")
        if name in paths:
            raise UsageError(f"the field of {name!r} is named twice")
        paths[name] = FieldPath(path)
    own = {name: paths.pop(name, None) for name in named}
    return Fields(**own, others=paths)


def _finish(ending: Ending, *, quiet: bool) -> None:
    if not quiet:
        show_ending(ending)
    if ending.error:
        raise ending.error


def show_ending(ending: Ending) -> None:
    """The final table, and where the results are."""
    rows = [
        [name, _number(block["score"]), _interval(block["interval_95"]), f"{block['evaluated']:,}", _errors(block)]
        for name, block in ending.summary["evaluators"].items()
    ]
    columns = ["evaluator", "score", "95 % interval", "evaluated", "errors"]
    show_table(f"judge: {ending.summary['judge']['description']}", columns, rows, to_stderr=True)
    requests, seconds = ending.summary["requests"], ending.summary["timings"]["seconds"]
    write_error(
        f"requests: {requests['sent']:,} sent, {requests['reused']:,} answered from the store, "
        f"{requests['not_needed']:,} not needed; {duration(seconds)}"
    )
    if ending.folder:
        write_error(f"results: {ending.folder / ending.summary['results']}")


def _number(value: float | None) -> str:
    return "-" if value is None else f"{value:.3f}"


def _interval(value: tuple[float, float] | None) -> str:
    return "-" if value is None else f"{value[0]:.3f} to {value[1]:.3f}"


def _errors(block: dict[str, Any]) -> str:
    return ", ".join(f"{count:,} {kind}" for kind, count in block["errors"].items()) or "none"
