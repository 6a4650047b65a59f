"""What a run is asked to do, checked before anything is written or sent."""

import datetime as dt
import os
import sys
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from functools import partial
from pathlib import Path
from typing import Protocol

from ...evaluators.checks import closest
from ...evaluators.costs.budget import NO_CAPS, Caps
from ...evaluators.costs.tariff import Tariff
from ...evaluators.decisions.evaluator import load_deciding_evaluator
from ...evaluators.errors import UsageError
from ...evaluators.evaluator import Evaluator, load_evaluator
from ...evaluators.judges.asking import Asker
from ...evaluators.judges.endpoint import Api, Endpoint, find_endpoint
from ...evaluators.judges.llamacpp import LocalModel, find_local_model
from ...evaluators.judges.model_file import is_model_file
from ...evaluators.judges.named import NAMED
from ...evaluators.judges.openai_decisions import check_decisions
from ...evaluators.outputs.columns import ColumnTypes
from ...evaluators.tokens import most_tokens
from ...evaluators.wording import counted
from ..records import Fields, Log, open_log
from ..records.addresses import shown
from ..records.carrying import Carrying
from ..records.inputs import STDIN
from ..records.log import EVERYTHING, NOTHING
from ..records.sampling import Selection
from .batching.progress import Counts
from .columns import column_types
from .engine import Engine, check_engine
from .folder import DEFAULT_STORE, PARTS, STDOUT, Format, check_folder, expanded, output_folder
from .gates import USUAL_GATES, Gates
from .opinions.second import Second, find_second
from .opinions.wanted import NONE_WANTED, Wanted, check_wanted
from .pricing import shutdown_warning, tariff_for
from .runner import GRACE_SECONDS, Course

DEFAULT_TIMEOUT = 60.0


@dataclass(frozen=True, kw_only=True)
class RunOptions:
    """Everything `ctxrel run` can be told."""

    inputs: Sequence[str]
    evaluators: Sequence[str]
    model: str
    base_url: str | None
    api_key_env: str
    parameters: Mapping[str, object]
    concurrency: int | None
    fields: Fields
    output: str | None
    store: Path | None
    raise_on_failure: bool
    timeout: float | None
    attempts: int
    explain: bool
    max_input_tokens: int | None
    api: Api = Api.CHAT
    """Which of the endpoint's services is asked."""
    rpm: float | None = None
    tpm: float | None = None
    caps: Caps = NO_CAPS
    prices: Path | None = None
    grace: float = GRACE_SECONDS
    insecure: bool = False
    batch: bool = False
    """Whether requests go through the Batch API."""
    wait: bool = True
    """Whether to wait for its batches."""
    finish_live: bool = False
    """Whether what one round of batches leaves is asked for live."""
    selection: Selection = EVERYTHING
    carrying: Carrying = NOTHING
    engine: Engine = Engine.LOCAL
    ray_address: str | None = None
    """Of a Ray cluster; None for one that lasts as long as the run."""
    ray_workers: int | None = None
    format: Format = Format.JSONL
    gates: Gates = USUAL_GATES
    wanted: Wanted = NONE_WANTED
    """Further opinions on each record."""
    config: str | None = None
    """The file that some of them came from."""


class Reporter(Protocol):
    """Who is told how the run goes."""

    interval: float
    """Seconds between two reports of progress."""

    def note(self, message: str) -> None:
        """Something worth knowing."""

    def warn(self, message: str) -> None:
        """Something that may need action."""

    def progress(self, course: Course, asker: Asker, *, ended: bool) -> None:
        """How far the run is."""

    def batches(self, counts: Counts, *, ended: bool) -> None:
        """How far the batches are that a run waits for."""


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run whose options were found to make sense."""

    options: RunOptions
    endpoint: Endpoint | None
    """None for a judge of this process."""
    evaluators: Sequence[Evaluator]
    log: Log
    folder: Path | None
    """None where the rows go to standard output."""
    tariff: Tariff
    """What the judge's replies cost."""
    local: LocalModel | None = None
    """The model file behind the endpoint, if there is one."""
    columns: ColumnTypes | None = None
    """The columns of its rows, where they are written as a table."""
    second: Second | None = None
    """The second judge, if one is asked."""

    @property
    def store(self) -> Path | None:
        """Where replies are kept; None where they are not."""
        if self.options.store:
            return expanded(self.options.store)
        return self.folder / DEFAULT_STORE if self.folder else None

    @property
    def results(self) -> str:
        """The name of the file, or of the folder of files, that holds the rows of a complete run."""
        return PARTS if self.options.engine is Engine.RAY else self.options.format.file

    @property
    def alone(self) -> bool:
        """Whether the store stands in the run's own folder, so that no other output is meant to use it."""
        return self.folder is not None and self.store == self.folder / DEFAULT_STORE

    @property
    def output(self) -> str:
        """What tells this output from others that share its store; the same where both are moved together."""
        if self.folder is None or self.store is None:
            return " ".join(("-", *self.options.inputs))
        return os.path.relpath(os.path.realpath(self.folder), os.path.realpath(self.store.parent))


def plan_run(options: RunOptions, reporter: Reporter, *, sending: bool = True) -> Plan:
    """Check everything that can be checked before anything is written or sent; waits for the first line of a pipe.

    Without `sending` no key is needed. Raises UsageError.
    """
    if options.api is Api.DECISIONS:
        check_decisions(options.model)
    evaluators = load_evaluators(options.evaluators, explain=options.explain, api=options.api)
    options.gates.check(evaluators)
    local = _find_local_model(options) if is_model_file(options.model) else None
    named = NAMED.get(options.model)
    endpoint = None if named else local.endpoint if local else _find_endpoint(options, sending=sending)
    tariff = tariff_for(endpoint, options.prices, options.caps)
    _check_batch(options, endpoint, local)
    elsewhere = "--batch" if options.batch else "--engine ray" if options.engine is Engine.RAY else None
    check_wanted(options.wanted, evaluators, options.caps, options.api, elsewhere=elsewhere)
    _check_input_tokens(options, evaluators)
    if named:
        named.check({evaluator.name: evaluator.static for evaluator in evaluators})
    first = (options.model, None if local else endpoint)
    find = partial(_find_other_endpoint, options, sending=sending)
    second = find_second(options.wanted, first, evaluators, options.prices, find)
    folder = output_folder(options.inputs, options.output)
    if STDIN in options.inputs and sys.stdin.isatty():
        reporter.note("reading JSON Lines from the terminal; end with Ctrl-D")
    needs = needs_of(evaluators, options.fields)
    log = open_log(options.inputs, options.fields, needs, selection=options.selection, carrying=options.carrying)
    if options.batch and log.size is None:
        raise UsageError("--batch reads the log several times, and a pipe can be read once; write it to a file")
    if sending:
        check_folder(
            folder,
            [shown(name) for name in options.inputs],
            log.names,
            chosen=options.output is not None,
            note=reporter.note,
        )
    _tell_of(log, reporter)
    check_engine(options.engine, folder=folder, log=log, local=local)
    _draw(log, reporter)
    if local:
        reporter.note(local.serving)
    if warning := shutdown_warning(tariff, dt.datetime.now(dt.UTC).date()):
        reporter.warn(warning)
    plan = Plan(
        options=options,
        endpoint=endpoint,
        evaluators=evaluators,
        log=log,
        folder=folder,
        tariff=tariff,
        local=local,
        columns=_column_types(options, evaluators, log, folder),
        second=second,
    )
    if endpoint is None and (options.parameters or options.base_url):
        reporter.note(f"the {options.model} judge takes no --param and no --base-url")
    if plan.store is None and endpoint and sending:
        reporter.warn("without --store no reply is kept: a run that is stopped starts anew")
    return plan


def _column_types(
    options: RunOptions, evaluators: Sequence[Evaluator], log: Log, folder: Path | None
) -> ColumnTypes | None:
    """The columns of a table's rows, None for JSON Lines. Raises UsageError."""
    if options.format is Format.JSONL:
        return None
    if folder is None:
        raise UsageError("Parquet cannot be streamed; name a folder with --output, or write --format jsonl")
    return column_types(evaluators, [*options.wanted.columns, *log.carried])


def _tell_of(log: Log, reporter: Reporter) -> None:
    """Tell where its fields stand, and which of its files are not read."""
    for layout, names in log.layouts().items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        reporter.note(f"{names[0]}{more}: {layout}")
    for warning in log.doubts():
        reporter.warn(warning)
    if log.left_out:
        given = " and ".join(map(str, log.selection.where))
        reporter.note(f"{counted(log.left_out, 'file')} in folders that do not meet --where {given}: left out")


def _draw(log: Log, reporter: Reporter) -> None:
    """Draw the sample, if one is wanted, and tell of it. Raises InputError."""
    log.draw()
    if sample := log.sample:
        by = f" by {len(sample.strata):,} values of {log.selection.by.text}" if log.selection.by else ""
        reporter.note(f"sample: {len(sample.keys):,} of {sample.population:,} records{by}, seed {sample.seed}")
        if sample.sharing:
            reporter.note(
                f"{sample.sharing:,} drawn records share their id with another: records of one id are drawn together; "
                "name a field that tells them apart with --id-field"
            )


def needs_of(evaluators: Sequence[Evaluator], fields: Fields) -> dict[str, str]:
    """Kinds of all inputs of some evaluators, by name. Raises UsageError where a field is named that none needs."""
    needs = {name: kind for evaluator in evaluators for name, kind in evaluator.inputs.items()}
    for name in fields.others:
        if name not in needs:
            raise UsageError(f"no evaluator of this run has an input {name!r}; {closest(name, needs)}")
    return needs


def load_evaluators(names: Sequence[str], *, explain: bool, api: Api = Api.CHAT) -> list[Evaluator]:
    """The evaluators of names and files, which go together. Raises UsageError."""
    for name in names:
        if "," in name and not Path(name).exists():
            several = " ".join(f"-e {part.strip()}" for part in name.split(","))
            raise UsageError(f"{name!r} is no evaluator; for several repeat the option: {several}")
    load = load_deciding_evaluator if api is Api.DECISIONS else load_evaluator
    evaluators: list[Evaluator] = [load(name, explain=explain) for name in names]
    seen = [evaluator.name for evaluator in evaluators]
    if twice := next((name for name in seen if seen.count(name) > 1), None):
        raise UsageError(f"two evaluators are called {twice!r}; give one another name in its YAML")
    kinds: dict[str, tuple[str, str]] = {}
    for evaluator in evaluators:
        for name, kind in evaluator.inputs.items():
            known, other = kinds.setdefault(name, (kind, evaluator.name))
            if known != kind:
                raise UsageError(
                    f"{evaluator.name!r} reads the input {name!r} as {kind}, {other!r} as {known}; "
                    "give one another name, and say where it stands with --field"
                )
    return evaluators


def _check_input_tokens(options: RunOptions, evaluators: Sequence[Evaluator]) -> None:
    most = options.max_input_tokens
    for evaluator in evaluators:
        tokens = most_tokens(evaluator.static.system)
        if most is not None and tokens >= most:
            raise UsageError(
                f"the instructions of {evaluator.name} alone are about {tokens:,} tokens; --max-input-tokens {most} "
                "leaves no room for a record"
            )


def _check_batch(options: RunOptions, endpoint: Endpoint | None, local: LocalModel | None) -> None:
    if not options.batch:
        for given, option in ((not options.wait, "--no-wait"), (options.finish_live, "--finish-live")):
            if given:
                raise UsageError(f"{option} says how to deal with batches; add --batch, or leave it out")
        return
    if endpoint is None:
        raise UsageError(f"the {options.model} judge answers at once and costs nothing; leave out --batch")
    if local:
        raise UsageError("a model file answers on this machine; leave out --batch")
    if options.api is Api.DECISIONS:
        raise UsageError("the Decisions API is not asked in batches; leave out --batch or --api decisions")
    if options.engine is Engine.RAY:
        raise UsageError("one process sends and collects batches; leave out --batch or --engine ray")
    if options.output == STDOUT:
        raise UsageError("--batch keeps what it has sent in the folder of the run; name one with --output")


def _find_endpoint(options: RunOptions, *, sending: bool) -> Endpoint:
    if not options.model:
        raise UsageError("--model is empty; name a model, or offline")
    return find_endpoint(
        model=options.model,
        base_url=options.base_url,
        api_key_env=options.api_key_env,
        parameters=options.parameters,
        timeout=options.timeout or DEFAULT_TIMEOUT,
        insecure=options.insecure,
        sending=sending,
    )


def _find_other_endpoint(
    options: RunOptions, *, model: str, base_url: str | None, api_key_env: str | None, sending: bool
) -> Endpoint:
    other = replace(
        options,
        model=model,
        base_url=base_url or options.base_url,
        api_key_env=api_key_env or options.api_key_env,
    )
    return _find_endpoint(other, sending=sending)


def _find_local_model(options: RunOptions) -> LocalModel:
    return find_local_model(
        model=options.model,
        base_url=options.base_url,
        parameters=options.parameters,
        concurrency=options.concurrency,
        timeout=options.timeout,
    )
