"""A run from its plan to its summary."""

import asyncio
import datetime as dt
from collections.abc import AsyncIterator, Callable
from contextlib import ExitStack, asynccontextmanager, suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any, NamedTuple

from ...evaluators.errors import OutputError, RunError, UsageError
from ...evaluators.judges.asking import Asker
from ...evaluators.judges.judge import Judge
from ...evaluators.judges.openai_chat import ChatJudge
from ...evaluators.judging import Judging
from .configuration import configuration
from .engine import Engine, prepare_ray
from .experience import experience_of, keep_experience
from .finished import finished_before, setting_hash
from .folder import SUMMARY, make_folder, remove_other_results, remove_summary
from .gates import judge_gates
from .lock import hold_lock
from .making import make_asker, make_judging, make_opinions, make_results
from .opinions.opinions import Opinions
from .plan import Plan, Reporter
from .pricing import tell_of_batches
from .results import Results, write_atomically
from .runner import Course, Interrupted, Runner, nothing_but_failures, population_of, strata_of
from .store import Store
from .summary import Setting, add_batches, build_summary, summary_again, summary_bytes
from .worker_store import STORES, merge_stores

if TYPE_CHECKING:
    from .batching.fetching import Fetching


class Ending(NamedTuple):
    """How a run ended."""

    summary: dict[str, Any]
    folder: Path | None
    """None where the rows went to standard output."""
    error: RunError | None


class Account(NamedTuple):
    """What is to be told of a run, and why it ended early."""

    summary: dict[str, Any]
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
    asker = make_asker(plan, store, reporter)
    store.begin_run(started.timestamp(), plan.output)
    same = _setting_hash(plan, asker.judge)
    make_setting = partial(
        Setting,
        files=plan.log.names,
        fields=list(plan.log.layouts()),
        size=plan.log.size,
        selection=plan.log.selection,
        sample=plan.log.sample,
        hash=same,
        configuration=configuration(plan, asker.judge),
        started=started,
    )
    live = make_judging(plan, asker, store)
    opinions = make_opinions(plan, live, store, reporter)
    error: RunError | None = None
    if before := await _finished_before(plan, store, same):
        reporter.note("nothing has changed since the run that is here: its results stand")
        setting = make_setting(results=before["results"], results_hash=before["results_hash"])
        summary = summary_again(before, asker, setting)
    elif plan.options.engine is Engine.RAY:
        summary, error = await _run_on_ray(plan, asker, store, reporter, started, make_setting)
    else:
        summary, error = await _run_here(plan, live, store, reporter, opinions, make_setting)
        keep_experience(plan, experience_of(asker), store)
    if opinions:
        opinions.add_to(summary)
    summary["gates"] = [gate._asdict() for gate in judge_gates(plan.options.gates, summary)]
    failed = _keep_summary(plan, store, started, summary)
    return Ending(summary, plan.folder, error or failed)  # the first error is the one to tell


async def _finished_before(plan: Plan, store: Store, same: str) -> dict[str, Any] | None:
    """The summary of a run whose results stand, None where there is none."""
    if plan.folder is None:
        return None
    allowed = not plan.options.raise_on_failure
    return await finished_before(plan.folder, store, plan.log, same, plan.results, failures_allowed=allowed)


async def _run_on_ray(
    plan: Plan,
    asker: Asker,
    store: Store,
    reporter: Reporter,
    started: dt.datetime,
    make_setting: "partial[Setting]",
) -> Account:
    prepare_ray(plan.options.ray_address)
    from .ray_engine import judge_on_ray  # noqa: PLC0415  # an extra, of which nothing else knows

    finished = await judge_on_ray(plan, asker, store, reporter, started.timestamp())
    error = _advised(finished.error, plan)
    setting = make_setting(results=finished.results, results_hash=finished.results_hash)
    summary = build_summary(finished.course, asker, setting, error=error)
    keep_experience(plan, finished.progress.experience, store)
    return Account(summary | finished.account(summary["judge"]), error)


async def _run_here(
    plan: Plan,
    live: Judging,
    store: Store,
    reporter: Reporter,
    opinions: Opinions | None,
    make_setting: "partial[Setting]",
) -> Account:
    fetching = _make_fetching(plan, live.asker, store, reporter)
    error = await fetching.run() if fetching else None
    course, name, rows_hash = Course(tallies={}), None, None
    if error is None:
        results = make_results(plan)
        judging = fetching.judging if fetching and not plan.options.finish_live else live
        judging.saves = not fetching  # what the run's batches have brought is in the store, and paid by it
        course, error = await _judge_all(plan, judging, results, reporter, opinions)
        name, rows_hash = results.name, results.hash
        if fetching and not isinstance(error, (Interrupted, OutputError)):
            fetching.end()
    setting = make_setting(results=name, results_hash=rows_hash)
    summary = build_summary(course, live.asker, setting, error=error)
    if fetching:
        add_batches(summary, fetching.summary(), fetching.timings(), fetching.usage)
    return Account(summary, error)


def _make_fetching(plan: Plan, asker: Asker, store: Store, reporter: Reporter) -> "Fetching | None":
    """What fetches replies before they are judged, None where they are asked for live."""
    judge = asker.judge
    if not plan.options.batch:
        return None
    if not isinstance(judge, ChatJudge):
        raise UsageError(f"the judge {judge.description} cannot be asked in batches; leave out --batch")
    from .batching.fetching import Fetching  # noqa: PLC0415  # other runs start without

    return Fetching(plan, asker, judge, store, reporter)


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
