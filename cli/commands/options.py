"""The options that commands over logs share, and what a run makes of them."""

from pathlib import Path
from typing import Annotated

import typer

from ...evaluators.definition import check_parameters
from ...evaluators.errors import DefinitionError, UsageError
from ...evaluators.jsontext import NotJSON, loads
from ...evaluators.judges.endpoint import Api
from ..console import ProgressKind
from ..runs.engine import Engine
from ..runs.folder import Format as ResultsFormat
from ..runs.gates import GateOn
from .completing import complete_evaluator, complete_model
from .config import CONFIG, load_config

Inputs = Annotated[
    list[str],
    typer.Argument(
        metavar="INPUT",
        help="Logs (JSON Lines, JSON, CSV, Parquet, Arrow; also .gz, .zst), folders, globs, addresses; - is stdin.",
        is_eager=True,  # the config file may stand beside them
    ),
]
Output = Annotated[
    str | None,
    typer.Option(
        "-o",
        "--output",
        metavar="DIR",
        help="Folder of the run, <input stem>.ctxrel by default; - streams rows to standard output.",
    ),
]
Format = Annotated[
    ResultsFormat | None,
    typer.Option(
        "--format",
        help="Format of the results in the folder; jsonl by default, with --engine ray always parquet.",
    ),
]
Evaluators = Annotated[
    list[str],
    typer.Option(
        "-e",
        "--evaluator",
        metavar="NAME|FILE.yaml",
        help="What is judged; repeatable.",
        autocompletion=complete_evaluator,
    ),
]
Model = Annotated[
    str,
    typer.Option(
        "-m",
        "--model",
        help="The judge; offline needs no key and no network, nor does a ./FILE.gguf.",
        autocompletion=complete_model,
    ),
]
Service = Annotated[
    Api,
    typer.Option("--api", help="What is asked: chat, or decisions (beta), probabilities by gpt-6-luna and no text."),
]
BaseUrl = Annotated[
    str | None,
    typer.Option(metavar="URL", help="An OpenAI-compatible endpoint; OPENAI_BASE_URL by default."),
]
ApiKeyEnv = Annotated[
    str, typer.Option(metavar="NAME", help="Variable that holds the key; a loopback endpoint needs none.")
]
Parameters = Annotated[
    list[str] | None,
    typer.Option(metavar="KEY=VALUE", help="A request parameter, as reasoning_effort=low; null omits; repeatable."),
]
Concurrency = Annotated[
    int | None,
    typer.Option("-c", "--concurrency", min=1, max=1000, metavar="N", help="Requests in flight; found out by default."),
]
RequestsPerMinute = Annotated[float | None, typer.Option(metavar="N", help="Requests per minute at most.")]
TokensPerMinute = Annotated[float | None, typer.Option(metavar="N", help="Tokens per minute at most, in and out.")]
MaxCost = Annotated[
    float | None,
    typer.Option(metavar="USD", help="Send nothing more once so much is spent at this output, earlier runs included."),
]
MaxTokensTotal = Annotated[int | None, typer.Option(min=1, metavar="N", help="The same for tokens, in and out.")]
Prices = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Prices by host and model (YAML), which come before those that are built in."),
]
DryRun = Annotated[bool, typer.Option("--dry-run", help="Tell what the run would send and cost, and send nothing.")]
QuestionField = Annotated[str | None, typer.Option(metavar="PATH", help="Where the question stands, as meta.query.")]
ContextsField = Annotated[str | None, typer.Option(metavar="PATH", help="Where the contexts stand, as results[].text.")]
AnswerField = Annotated[str | None, typer.Option(metavar="PATH", help="Where the answer stands.")]
IdField = Annotated[str | None, typer.Option(metavar="PATH", help="Where the record's id stands.")]
OtherFields = Annotated[
    list[str] | None,
    typer.Option(metavar="NAME=PATH", help="Where another input of an evaluator stands; by its name else; repeatable."),
]
Schema = Annotated[
    str | None,
    typer.Option(metavar="NAME", help="Fields as another tool writes them, as ragas; ctxrel schemas lists all."),
]
Records = Annotated[
    str | None,
    typer.Option(metavar="PATH", help="The list in a JSON object that holds the records; found by default."),
]
Limit = Annotated[int | None, typer.Option(min=1, metavar="N", help="Judge the first N records only.")]
Where = Annotated[
    list[str] | None,
    typer.Option(metavar="CONDITION", help="Judge records that meet it only, as lang=ko or 'score<0.5'; repeatable."),
]
Sample = Annotated[int | None, typer.Option(min=1, metavar="N", help="Judge N records drawn by chance.")]
Seed = Annotated[int, typer.Option(min=0, max=2**63 - 1, metavar="S", help="Another seed draws another sample.")]
SampleBy = Annotated[str | None, typer.Option(metavar="PATH", help="Draw N records of each value of this field.")]
Kept = Annotated[
    list[str] | None,
    typer.Option(metavar="PATH", help="Carry a field of the record into its rows, under kept; repeatable."),
]
WithInput = Annotated[bool, typer.Option("--with-input", help="Carry the whole record into its rows, under input.")]
Store = Annotated[
    Path | None,
    typer.Option(metavar="FILE", help="Where replies are kept, <output>/store.sqlite by default; may be shared."),
]
Timeout = Annotated[
    float | None,
    typer.Option(
        min=0.1, max=3600, metavar="SECONDS", help="Time for one attempt; 60 by default, 600 for a model file."
    ),
]
Attempts = Annotated[
    int, typer.Option(min=1, max=100, metavar="N", help="Attempts at a record before it is an error row.")
]
Grace = Annotated[
    float,
    typer.Option(min=0, max=3600, metavar="SECONDS", help="Time for what is in flight when the run is stopped."),
]
Insecure = Annotated[
    bool, typer.Option("--insecure", help="Allow plain http, and no key, to a host that is not this machine.")
]
MaxInputTokens = Annotated[
    int | None,
    typer.Option(min=100, metavar="N", help="Divide longer records over several requests; 3 bytes are a token."),
]
Explain = Annotated[
    bool, typer.Option("--explain", help="Ask for a short reason beside each verdict; it costs tokens.")
]
RaiseOnFailure = Annotated[
    bool, typer.Option("--raise-on-failure", help="Stop at the first failed record; what was judged stays.")
]
FailUnder = Annotated[
    list[str] | None,
    typer.Option(
        metavar="[NAME[.FIGURE]=]N",
        help="Exit 3 where a score, or another figure of the summary, is below N; repeatable.",
    ),
]
GateOnWhat = Annotated[
    GateOn, typer.Option(help="What of a score --fail-under looks at: itself, or the low end of its interval.")
]
MaxErrors = Annotated[
    str, typer.Option(metavar="N|N%", help="Exit 3 where more rows of an evaluator are errors, a count or a share.")
]
Junit = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the gates as JUnit XML.")]
Markdown = Annotated[Path | None, typer.Option(metavar="FILE", help="Write the summary as Markdown.")]
MetricsFile = Annotated[
    Path | None,
    typer.Option(metavar="FILE.prom", help="Write the summary as a Prometheus text file for node_exporter."),
]
AsJson = Annotated[bool, typer.Option("--json", help="Print one JSON object, and nothing else, on standard output.")]
Batch = Annotated[
    bool, typer.Option("--batch", help="Ask through the endpoint's Batch API: within a day, at half the price.")
]
NoWait = Annotated[
    bool, typer.Option("--no-wait", help="With --batch: send and end with exit 75; the same command collects later.")
]
FinishLive = Annotated[
    bool, typer.Option("--finish-live", help="With --batch: ask live for what the first batches leave.")
]
Repeat = Annotated[
    int,
    typer.Option(min=1, max=20, metavar="N", help="Ask N times, and tell how far the judge agrees with itself."),
]
JudgeAlso = Annotated[
    str | None,
    typer.Option(
        metavar="MODEL",
        help="Ask a second judge as well, and tell how far the two agree.",
        autocompletion=complete_model,
    ),
]
JudgeAlsoBaseUrl = Annotated[
    str | None, typer.Option(metavar="URL", help="The second judge's endpoint; that of the first by default.")
]
JudgeAlsoKeyEnv = Annotated[
    str | None,
    typer.Option(
        metavar="NAME", help="Variable with the second judge's key; JUDGE_ALSO_API_KEY for an endpoint of its own."
    ),
]
OnDisagreement = Annotated[
    bool, typer.Option("--on-disagreement", help="Ask the second judge only where the scores of the repeats differ.")
]
ShuffleContexts = Annotated[
    bool,
    typer.Option("--shuffle-contexts", help="Ask once more with the contexts in another order, and tell the bias."),
]
Progress = Annotated[
    ProgressKind, typer.Option(help="How progress is shown; auto is a bar where stderr is a terminal.")
]
EngineName = Annotated[
    Engine, typer.Option("--engine", help="What carries the run out; ray needs the extra ray and writes Parquet.")
]
RayAddress = Annotated[
    str | None, typer.Option(metavar="ADDRESS", help="A Ray cluster, as auto; one on this machine by default.")
]
RayWorkers = Annotated[
    int | None, typer.Option(min=1, metavar="N", help="Processes that judge; one for each processor by default.")
]
Config = Annotated[
    str | None,
    typer.Option(
        metavar="FILE",
        help=f"Options in a file, by default {CONFIG} here or beside the log; the command line wins.",
        callback=load_config,
        is_eager=True,
    ),
]


def parse_rate(option: str, value: float | None) -> float | None:
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
