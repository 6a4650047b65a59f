"""A run from its plan to its summary."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from dataclasses import replace
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...evaluators.costs.budget import NOTHING, Budget
from ...evaluators.costs.price import dollars, show_dollars
from ...evaluators.errors import OutputError, RunError, UsageError
from ...evaluators.judges.asking import Asker, Patience
from ...evaluators.judges.dialect import recall_dialect
from ...evaluators.judges.endpoint import Api
from ...evaluators.judges.growth import MOST
from ...evaluators.judges.judge import Judge
from ...evaluators.judges.limiter import Limits
from ...evaluators.judges.llamacpp import LocalJudge
from ...evaluators.judges.offline import NOTICE, OfflineJudge
from ...evaluators.judges.openai_chat import ChatJudge
from ...evaluators.judges.openai_decisions import DecisionsJudge
from ...evaluators.judging import Judging
from .configuration import configuration
from .engine import Engine, prepare_ray
from .experience import keep_experience
from .finished import finished_before, setting_hash
from .folder import SUMMARY, make_folder, remove_other_results, remove_summary
from .gates import judge_gates
from .lock import hold_lock
from .opinions.opinions import Opinions
from .plan import Plan, Reporter
from .pricing import spent_before, tell_of_batches
from .results import Results, ResultsFile, ResultsStream, write_atomically
from .runner import Course, Interrupted, Runner, nothing_but_failures, population_of, strata_of
from .store import Store
from .summary import Setting, add_batches, build_summary, summary_again, summary_bytes
from .table import ResultsTable
from .worker_store import STORES, merge_stores

if TYPE_CHECKING:
    from .batching.fetching import Fetching


class Ending(NamedTuple):
    """How a run ended."""

    summary: dict[str, Any]
    folder: Path | None
    """None where the rows went to standard output."""
    error: RunError | None


async def carry_out(plan: Plan, reporter: Reporter) -> Ending:
    """Judge a log and write its results; a run that ended early is an Ending with an error.

    Raises OutputLocked and OutputError before anything is sent.
    """
    with ExitStack() as held:
        if plan.folder:
            make_folder(plan.folder)
            held.enter_context(hold_lock(plan.folder))
        store = Store(plan.store)
        held.callback(store.close)
        if store.notice:
            reporter.warn(store.notice)
        if plan.folder and plan.store:  # of a run on Ray that was killed
            merge_stores(plan.folder / STORES, plan.store)
        if plan.folder and not plan.options.batch:
            tell_of_batches(store, plan.folder, plan.options.caps, warn=reporter.warn)
        return await _run(plan, store, reporter)


async def _run(plan: Plan, store: Store, reporter: Reporter) -> Ending:
    started = dt.datetime.now(dt.UTC)
    options, folder = plan.options, plan.folder
    judge = make_judge(plan, store, reporter)
    fixed = options.concurrency is not None or plan.endpoint is None or plan.local is not None
    limits = Limits(most=judge.concurrency, fixed=fixed, rpm=options.rpm, tpm=options.tpm)
    budget = _make_budget(plan, store, reporter)
    asker = Asker(judge, Patience(attempts=options.attempts), limits, budget)
    store.begin_run(started.timestamp(), plan.output)
    same = _setting_hash(plan, judge)
    make_setting = partial(
        Setting,
        files=plan.log.names,
        fields=list(plan.log.layouts()),
        size=plan.log.size,
        selection=plan.log.selection,
        sample=plan.log.sample,
        hash=same,
        configuration=configuration(plan, judge),
        started=started,
    )
    live = _make_judging(plan, asker, store)
    opinions = _make_opinions(plan, live, store, reporter)
    before = folder and await finished_before(
        folder, store, plan.log, same, plan.results, failures_allowed=not options.raise_on_failure
    )
    error = None
    if before:
        reporter.note("nothing has changed since the run that is here: its results stand")
        setting = make_setting(results=before["results"], results_hash=before["results_hash"])
        summary = summary_again(before, asker, setting)
    elif options.engine is Engine.RAY:
        prepare_ray(options.ray_address)
        from .ray_engine import judge_on_ray  # noqa: PLC0415  # an extra, of which nothing else knows

        finished = await judge_on_ray(plan, asker, store, reporter, started.timestamp())
        error = _advised(finished.error, plan)
        setting = make_setting(results=finished.results, results_hash=finished.results_hash)
        summary = build_summary(finished.course, asker, setting, error=error)
        summary |= finished.account(summary["judge"])
    else:
        fetching = _make_fetching(plan, asker, store, reporter)
        error = await fetching.run() if fetching else None
        course, name, rows_hash = Course(tallies={}), None, None
        if error is None:
            results = _make_results(plan)
            judging = fetching.judging if fetching and not options.finish_live else live
            judging.saves = not fetching  # what the run's batches have brought is in the store, and paid by it
            course, error = await _judge_all(plan, judging, results, reporter, opinions)
            name, rows_hash = results.name, results.hash
            if fetching and not isinstance(error, (Interrupted, OutputError)):
                fetching.end()
        setting = make_setting(results=name, results_hash=rows_hash)
        summary = build_summary(course, asker, setting, error=error)
        if fetching:
            add_batches(summary, fetching.summary(), fetching.timings(), fetching.usage)
        keep_experience(plan, asker, store)
    if opinions:
        opinions.add_to(summary)
    summary["gates"] = [gate._asdict() for gate in judge_gates(options.gates, summary)]
    failed = _keep_summary(plan, store, started, summary)
    return Ending(summary, folder, error or failed)  # the first error is the one to tell


def _make_fetching(plan: Plan, asker: Asker, store: Store, reporter: Reporter) -> "Fetching | None":
    """What fetches replies before they are judged, None where they are asked for live."""
    judge = asker.judge
    if not plan.options.batch:
        return None
    if not isinstance(judge, ChatJudge):
        raise UsageError(f"the judge {judge.description} cannot be asked in batches; leave out --batch")
    from .batching.fetching import Fetching  # noqa: PLC0415  # other runs start without

    return Fetching(plan, asker, judge, store, reporter)


def _make_results(plan: Plan) -> Results:
    if plan.folder is None:
        return ResultsStream()
    path = plan.folder / plan.options.format.file
    return ResultsTable(path, plan.columns) if plan.columns else ResultsFile(path)


def _make_judging(plan: Plan, asker: Asker, store: Store, *, salt: bytes = b"") -> Judging:
    return Judging(asker, store, max_input_tokens=plan.options.max_input_tokens, salt=salt)


def _make_opinions(plan: Plan, first: Judging, store: Store, reporter: Reporter) -> Opinions | None:
    """What asks for further opinions, None where none are wanted."""
    options, wanted = plan.options, plan.options.wanted
    if not wanted.any:
        return None
    repeats = [
        _make_judging(plan, first.asker, store, salt=f"repeat {n}".encode()) for n in range(2, wanted.repeat + 1)
    ]
    second = None
    if plan.second:
        judge = make_judge(replace(plan, endpoint=plan.second.endpoint, local=None), store, reporter)
        fixed = options.concurrency is not None or plan.second.endpoint is None
        limits = Limits(most=judge.concurrency, fixed=fixed, rpm=options.rpm, tpm=options.tpm)
        budget = Budget(plan.second.tariff)
        second = _make_judging(plan, Asker(judge, Patience(attempts=options.attempts), limits, budget), store)
    return Opinions(wanted, options.selection.seed, first, repeats, second)


async def _judge_all(
    plan: Plan, judging: Judging, results: Results, reporter: Reporter, opinions: Opinions | None
) -> tuple[Course, RunError | None]:
    """How far the run came, and why it ended early, None where it did not."""
    if plan.folder:
        remove_summary(plan.folder)
    runner = Runner(
        plan.log,
        plan.evaluators,
        judging,
        results,
        raise_on_failure=plan.options.raise_on_failure,
        grace=plan.options.grace,
        population=population_of(plan.log),
        strata=strata_of(plan.log),
        opinions=opinions,
    )
    error = await _run_to_its_end(runner, results, judging.asker, reporter)
    if plan.folder and not error:
        error = _leave_one_file(plan.folder, plan.options.format.file)
    return runner.course, _advised(error, plan)


def _advised(error: RunError | None, plan: Plan) -> RunError | None:
    """The same error; where somebody stopped the run, with what to do next."""
    if isinstance(error, Interrupted) and plan.store:
        return Interrupted(error.number, "; run the same command again to go on")
    return error


def _leave_one_file(folder: Path, name: str) -> OutputError | None:
    try:
        remove_other_results(folder, name)
    except OutputError as error:
        return error
    return None


def _keep_summary(plan: Plan, store: Store, started: dt.datetime, summary: dict[str, object]) -> OutputError | None:
    """Write the summary into store and folder; the error of the first of them that takes none."""
    error: OutputError | None = None
    last: list[Callable[[], None]] = [lambda: store.end_run(started.timestamp(), summary)]
    if folder := plan.folder:
        last.append(lambda: write_atomically(folder / SUMMARY, summary_bytes(summary)))
    for write in last:
        try:
            write()
        except OutputError as failed:
            error = error or failed
    return error


def _setting_hash(plan: Plan, judge: Judge) -> str:
    options = plan.options
    selection = options.selection
    second = plan.second and [plan.second.endpoint and plan.second.endpoint.address, plan.second.tariff.basis]
    wanted = {"wanted": [options.wanted.describe(), selection.seed, second]} if options.wanted.any else {}
    return setting_hash(
        plan.evaluators,
        judge,
        plan.log,
        limit=selection.limit,
        sample=selection.describe(),
        carrying=options.carrying.describe(),
        records=options.fields.records and options.fields.records.text,
        most=options.max_input_tokens,
        prices=plan.tariff.basis,
        **wanted,
    )


async def _run_to_its_end(runner: Runner, results: Results, asker: Asker, reporter: Reporter) -> RunError | None:
    """Why the run ended early, None where it did not."""
    try:
        async with _reporting(runner, asker, reporter):
            await runner.run()
        if failed := nothing_but_failures(runner.course, results.name):
            raise failed
        results.finish(complete=True)
    except RunError as error:
        with suppress(OutputError):  # the first error is the one to tell
            results.finish(complete=False)
        judge = runner.opinions and runner.opinions.to_explain
        return await (judge or asker.judge).explain(error)
    finally:
        for each in runner.askers:
            await each.close()
    return None


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


def _make_budget(plan: Plan, store: Store, reporter: Reporter) -> Budget:
    """The budget of a plan, with what earlier runs have left of it."""
    earlier = NOTHING
    if plan.options.caps.any:  # each reply in the store is looked at
        earlier = spent_before(store, plan.tariff, plan.output, alone=plan.alone)
        if earlier.tokens:
            reporter.note(f"earlier runs have spent {show_dollars(dollars(earlier.pico))}, {earlier.tokens:,} tokens")
    return Budget(plan.tariff, plan.options.caps, earlier=earlier, on_loss=store.keep_unanswered)


def make_judge(plan: Plan, store: Store, reporter: Reporter) -> Judge:
    """The judge of a plan, with what the store knows of its endpoint."""
    endpoint = plan.endpoint
    if endpoint is None:
        reporter.warn(NOTICE)
        return OfflineJudge()
    address, model = endpoint.address, endpoint.model
    dialect = recall_dialect(store.facts(address, model))

    def remember(found: dict[str, object]) -> None:
        store.keep_facts(address, model, found)

    if plan.local:
        return LocalJudge(plan.local, dialect=dialect, on_dialect=remember, on_notice=reporter.warn)
    concurrency = plan.options.concurrency or MOST
    if plan.options.api is Api.DECISIONS:
        service = f"{address}/{Api.DECISIONS}"
        return DecisionsJudge(
            endpoint,
            concurrency=concurrency,
            known=bool(store.facts(service, model)),
            on_answer=lambda: store.keep_facts(service, model, {"answers": True}),
            on_notice=reporter.warn,
        )
    return ChatJudge(
        endpoint,
        concurrency=concurrency,
        dialect=dialect,
        on_dialect=remember,
        on_notice=reporter.warn,
    )
