"""A run from its options to its summary."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Mapping, Sequence
from contextlib import ExitStack, asynccontextmanager
from dataclasses import asdict, dataclass
from pathlib import Path
from typing import Any, NamedTuple, Protocol

from ...evaluators.errors import OutputError, RunError, UsageError
from ...evaluators.evaluator import CitationEvaluator, load_evaluator
from ...evaluators.judges.asking import Asker, Patience
from ...evaluators.judges.dialect import Dialect
from ...evaluators.judges.endpoint import Endpoint, find_endpoint, show_url
from ...evaluators.judges.judge import Judge
from ...evaluators.judges.offline import OFFLINE, OfflineJudge
from ...evaluators.judges.openai_chat import ChatJudge
from ...evaluators.judging import Judging
from ..records import Fields, Log, open_log
from ..records.log import STDIN
from .lock import hold_lock
from .results import Results, ResultsFile, ResultsStream, write_atomically
from .runner import Course, Runner
from .store import Store
from .summary import Setting, build_summary, summary_bytes

DEFAULT_CONCURRENCY = 16
STDOUT = "-"
OFFLINE_NOTICE = "the offline judge is a lexical baseline and no LLM: it compares words and knows no meaning"


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
    limit: int | None
    output: str | None
    store: Path | None
    raise_on_failure: bool
    timeout: float
    attempts: int

    def configuration(self) -> dict[str, object]:
        """The effective options for the summary; it holds the name of the key's variable, never the key."""
        fields = {
            name: path.text for name in ("question", "contexts", "answer", "id") if (path := getattr(self.fields, name))
        }
        plain = {name: value for name, value in asdict(self).items() if name != "fields"}
        base_url = show_url(self.base_url) if self.base_url else None
        return {**plain, "base_url": base_url, "store": str(self.store) if self.store else None, "fields": fields}


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


class Ending(NamedTuple):
    """How a run ended."""

    summary: dict[str, Any]
    folder: Path | None
    """None where the rows went to standard output."""
    error: RunError | None


def output_folder(options: RunOptions) -> Path | None:
    """Where the run lives, None for standard output. Raises UsageError where several inputs name no folder."""
    if options.output == STDOUT:
        return None
    if options.output is not None:
        return Path(options.output)
    if len(options.inputs) != 1:
        raise UsageError("several inputs have no common name; name the output folder with --output")
    given = options.inputs[0]
    stem = "stdin" if given == STDIN else Path(given).stem.replace("*", "all") or Path.cwd().name
    return Path(f"{stem}.ctxrel")


@dataclass(frozen=True, kw_only=True)
class Plan:
    """A run whose options were found to make sense."""

    options: RunOptions
    endpoint: Endpoint | None
    """None for the offline judge."""
    evaluators: Sequence[CitationEvaluator]
    log: Log
    folder: Path | None
    """None where the rows go to standard output."""


def plan_run(options: RunOptions, reporter: Reporter) -> Plan:
    """Check everything that can be checked before anything is written or sent; waits for the first line of a pipe.

    Raises UsageError.
    """
    evaluators = _load_evaluators(options.evaluators)
    endpoint = None if options.model == OFFLINE else _find_endpoint(options)
    folder = output_folder(options)
    log = open_log(options.inputs, options.fields, limit=options.limit)
    for mapping, names in log.mappings().items():
        more = f" and {len(names) - 1} more" if len(names) > 1 else ""
        reporter.note(f"{names[0]}{more}: {mapping}")
    return Plan(options=options, endpoint=endpoint, evaluators=evaluators, log=log, folder=folder)


async def carry_out(plan: Plan, reporter: Reporter) -> Ending:
    """Judge a log and write its results; a run that ended early is an Ending with an error.

    Raises OutputLocked and OutputError before anything is sent.
    """
    with ExitStack() as held:
        if plan.folder:
            _make_folder(plan.folder)
            held.enter_context(hold_lock(plan.folder))
        store = Store(plan.options.store or (plan.folder / "store.sqlite" if plan.folder else None))
        held.callback(store.close)
        return await _run(plan, store, reporter)


async def _run(plan: Plan, store: Store, reporter: Reporter) -> Ending:
    started = dt.datetime.now(dt.UTC)
    notices: list[str] = []
    options, folder, log = plan.options, plan.folder, plan.log
    judge = _make_judge(plan, store, notices, reporter)
    asker = Asker(judge, Patience(attempts=options.attempts))
    results: Results = ResultsFile(folder / "results.jsonl") if folder else ResultsStream()
    if folder:
        (folder / "summary.json").unlink(missing_ok=True)
    store.begin_run(started.timestamp())
    judging = Judging(asker, store)
    runner = Runner(log, plan.evaluators, judging, results, raise_on_failure=options.raise_on_failure)
    error = await _run_to_its_end(runner, results, asker, reporter)
    setting = Setting(
        files=log.names, fields=list(log.mappings()), configuration=options.configuration(), started=started
    )
    summary = build_summary(runner.course, asker, setting, notices=notices, error=error)
    if folder:
        write_atomically(folder / "summary.json", summary_bytes(summary))
    store.end_run(started.timestamp(), summary)
    return Ending(summary, folder, error)


async def _run_to_its_end(runner: Runner, results: Results, asker: Asker, reporter: Reporter) -> RunError | None:
    """Why the run ended early, None where it did not."""
    try:
        async with _reporting(runner, asker, reporter):
            await runner.run()
        _refuse_nothing_but_failures(runner.course)
        results.finish(complete=True)
    except RunError as error:
        try:
            results.finish(complete=False)
        except OutputError:
            return error
        return error
    finally:
        await asker.close()
    return None


def _refuse_nothing_but_failures(course: Course) -> None:
    """A run in which nothing at all could be judged did not succeed."""
    kinds = {kind for tally in course.tallies.values() for kind in tally.errors}
    if course.rows and course.failed == course.rows:
        raise RunError(
            f"none of {course.records} records could be judged ({', '.join(sorted(kinds))}); see results.jsonl"
        )


@asynccontextmanager
async def _reporting(runner: Runner, asker: Asker, reporter: Reporter) -> AsyncIterator[None]:
    async def report() -> None:
        while True:
            await asyncio.sleep(reporter.interval)
            reporter.progress(runner.course, asker, ended=False)

    task = asyncio.create_task(report())
    try:
        yield
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)
        reporter.progress(runner.course, asker, ended=True)


def _load_evaluators(names: Sequence[str]) -> list[CitationEvaluator]:
    evaluators = [load_evaluator(name) for name in names]
    seen = [evaluator.name for evaluator in evaluators]
    if twice := next((name for name in seen if seen.count(name) > 1), None):
        raise UsageError(f"two evaluators are called {twice!r}; give one another name in its YAML")
    return evaluators


def _find_endpoint(options: RunOptions) -> Endpoint:
    return find_endpoint(
        model=options.model,
        base_url=options.base_url,
        api_key_env=options.api_key_env,
        parameters=options.parameters,
        timeout=options.timeout,
    )


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except FileExistsError:
        raise UsageError(f"{str(folder)!r} is no folder; name another with --output") from None
    except OSError as error:
        raise OutputError(f"cannot make the folder {str(folder)!r}: {error.strerror}") from None


def _make_judge(plan: Plan, store: Store, notices: list[str], reporter: Reporter) -> Judge:
    def notice(message: str) -> None:
        notices.append(message)
        reporter.warn(message)

    endpoint = plan.endpoint
    if endpoint is None:
        notice(OFFLINE_NOTICE)
        return OfflineJudge()
    host, model = endpoint.host, endpoint.model
    facts = store.facts(host, model)
    dialect = Dialect(**facts) if facts else Dialect()  # type: ignore[arg-type]  # written by on_dialect below
    notices += dialect.changes()
    return ChatJudge(
        endpoint,
        concurrency=plan.options.concurrency or DEFAULT_CONCURRENCY,
        dialect=dialect,
        on_dialect=lambda found: store.keep_facts(host, model, asdict(found)),
        on_notice=notice,
    )
