"""A run on Ray: Ray Data reads, hands batches to actors of ours, and writes; limits, stores and account are ours."""

import asyncio
import signal
import warnings
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from dataclasses import dataclass, field
from functools import partial
from pathlib import Path
from typing import Any

import ray
from ray.data import ActorPoolStrategy, DataContext

from ...evaluators.costs.budget import Budget
from ...evaluators.errors import CtxrelError, InputError, RunError
from ...evaluators.judges.asking import Asker
from ...evaluators.judges.endpoint import Api
from .coordinator import Progress
from .finished import hash_of
from .folder import PARTS, publish, remove, remove_summary
from .plan import DEFAULT_TIMEOUT, Plan, Reporter
from .pricing import settle
from .ray_actor import Judge, start_coordinator
from .ray_cluster import cluster
from .ray_files import LogSource, RowsSink, counted, name_files
from .runner import SIGNALS, Course, Interrupted, nothing_but_failures, population_of, strata_of
from .shares import Amounts
from .sizing import Sizes, sizes_for
from .store import Store
from .survey import Survey, survey
from .tally import Tally
from .worker import Assignment
from .worker_store import STORES, Run, merge_stores

_PART = f"{PARTS}.part"
_WORKER_CPUS = 0.5
_TASK_CPUS = 0.25
"""Readers and writers; another number than the workers' keeps Ray from reading inside of them."""
_RESTARTS = 100
_RETRIES = 40
"""Of a worker, and of a batch; Ray's own default is without end."""
_NO_MORE_THAN_A_ROW = 1
"""Bytes of a block: each row, which is a batch, is a block of its own."""
_POLL_SECONDS = 1.0


@dataclass(kw_only=True)
class _Live(Course):
    """A course while the rows are with the workers."""

    failures: int = 0

    @property
    def failed(self) -> int:
        """Rows that are errors."""
        return self.failures


@dataclass(kw_only=True)
class Finished:
    """How far a run came on Ray."""

    course: Course
    error: RunError | None
    results: str
    """The folder of the rows, in the run's."""
    results_hash: str | None = None
    """Of all rows, where they are complete and no record was given up that killed its workers."""
    progress: Progress = field(default_factory=Progress)
    workers: int = 0
    fixed: bool = False
    """Whether the number of requests in flight is a given one."""

    def account(self, judge: Any) -> dict[str, object]:  # noqa: ANN401  # a block of JSON
        """What the summary says of it, in place of what it says of one process."""
        notices = dict.fromkeys([*judge["notices"], *self.progress.notices])
        return {
            "judge": {**judge, "notices": list(notices)},
            "concurrency": {"fixed": self.fixed, "workers": list(self.progress.courses.values())},
            "engine": {
                "name": "ray",
                "version": ray.__version__,
                "workers": self.workers,
                "starts": self.progress.starts,
            },
        }


async def judge_on_ray(plan: Plan, asker: Asker, store: Store, reporter: Reporter, started: float) -> Finished:
    """Judge a log on Ray; a run that ended early is Finished with an error.

    Raises OutputError and OutputLocked before anything is sent.
    """
    folder, run_store = plan.folder, plan.store
    assert folder is not None  # noqa: S101  # the plan was checked for it
    assert run_store is not None  # noqa: S101
    remove_summary(folder)
    remove(folder / _PART)
    store.settle()
    (folder / _PART).mkdir(mode=0o700)
    try:
        with cluster(plan.options.ray_address):  # before the log is read: that may take its time
            found = await asyncio.to_thread(survey, plan.log)
            finished = await _Engine(plan, found, asker, store, reporter, Run(started, plan.output)).run()
    except (InputError, RunError) as error:
        told = error if isinstance(error, RunError) else RunError(str(error))
        return Finished(course=Course(tallies=_tallies(plan)), error=told, results=_PART)
    finally:
        merge_stores(folder / STORES, run_store)
    settle(asker, store, started)
    return finished


class _Engine:
    """One pass over a log."""

    def __init__(self, plan: Plan, found: Survey, asker: Asker, store: Store, reporter: Reporter, run: Run) -> None:
        self._run = run
        self._plan = plan
        self._found = found
        self._asker = asker
        self._store = store
        self._reporter = reporter
        self._expected = found.records * len(plan.evaluators)
        self._told: set[str] = set()
        self._told_at = asyncio.get_running_loop().time()
        self._signalled: signal.Signals | None = None
        self._hurry = asyncio.Event()

    async def run(self) -> Finished:
        assert self._plan.folder is not None  # noqa: S101  # as above
        part = self._plan.folder / _PART
        options = self._plan.options
        total = Amounts(options.concurrency, options.rpm, options.tpm)
        budget = Budget(self._plan.tariff, options.caps, earlier=self._asker.budget.spent)
        self._coordinator = start_coordinator(total, budget)
        workers = self._workers()
        sizes = sizes_for(self._found.records, self._plan.log.size or 0, workers, options.concurrency)
        sink = RowsSink(part.resolve(), self._plan.columns or {}, sizes.batch)
        error: RunError | None = None
        async with self._signals():
            job = asyncio.create_task(asyncio.to_thread(self._carry_out, self._assignment(), sink, workers, sizes))
            job.add_done_callback(_looked_at)
            try:
                await self._watch(job)
                await job
            except Exception as failed:  # noqa: BLE001  # Ray's; its text may hold anything
                error = _error_of(failed)
            try:
                progress = await self._look(ended=True)
            except Exception as failed:  # noqa: BLE001  # the same
                error, progress = error or _error_of(failed), Progress()
        error = progress.error or error
        course = await asyncio.to_thread(self._count, part, sink)
        name_files(part, sink.written)
        if not error and course.rows != self._expected:
            error = RunError(
                f"{self._expected - course.rows:,} of {self._expected:,} rows are missing; run the same command again"
            )
        if self._signalled:
            error = Interrupted(self._signalled)
        results, results_hash = _PART, None
        error = error or nothing_but_failures(course, _PART)
        if not error:
            course.hashes = self._found.hashes
            publish(part.parent, results := PARTS)
            if not (progress.starts > workers and course.failed):
                results_hash = await asyncio.to_thread(hash_of, part.parent / results)
        return Finished(
            course=course,
            error=error,
            results=results,
            results_hash=results_hash,
            progress=progress,
            workers=workers,
            fixed=options.concurrency is not None,
        )

    def _workers(self) -> int:
        """How many processes judge: no more than requests may be in flight."""
        cpus = int(ray.cluster_resources().get("CPU", 1))
        wanted = self._plan.options.ray_workers or max(1, cpus)
        return min(wanted, self._plan.options.concurrency or wanted)

    def _carry_out(self, assignment: Assignment, sink: RowsSink, workers: int, sizes: Sizes) -> None:
        """Read, judge and write; returns when all is written."""
        context = DataContext.get_current()
        context.enable_progress_bars = False
        context.print_on_execution_start = False
        context.max_errored_blocks = 0
        context.target_max_block_size = _NO_MORE_THAN_A_ROW
        coordinator = self._coordinator
        source = LogSource(self._found.pieces, sizes.batch, partial(_has_ended, coordinator))
        data = ray.data.read_datasource(
            source, override_num_blocks=max(1, len(self._found.pieces)), num_cpus=_TASK_CPUS
        )
        with warnings.catch_warnings():
            # Of few blocks for many workers, and of the bounds of retries, for which there are no newer names yet.
            warnings.simplefilter("ignore")
            data.map_batches(
                Judge,
                fn_constructor_args=(assignment, coordinator),
                batch_size=None,
                batch_format="pyarrow",
                zero_copy_batch=True,
                compute=ActorPoolStrategy(
                    size=workers,
                    max_concurrent_calls_per_actor=sizes.at_once,
                    max_tasks_in_flight_per_actor=sizes.at_once + 1,
                ),
                num_cpus=_WORKER_CPUS,
                max_restarts=_RESTARTS,
                max_task_retries=_RETRIES,
            ).write_datasink(sink, ray_remote_args={"num_cpus": _TASK_CPUS})

    def _assignment(self) -> Assignment:
        plan, options = self._plan, self._plan.options
        assert plan.folder is not None  # noqa: S101  # as above
        assert plan.store is not None  # noqa: S101
        given = plan.endpoint
        service = f"/{options.api}" if options.api is Api.DECISIONS else ""
        endpoint = (
            None
            if given is None
            else {
                "model": given.model,
                "base_url": given.base_url,
                "api_key_env": options.api_key_env,
                "parameters": dict(given.parameters),
                "timeout": options.timeout or DEFAULT_TIMEOUT,
                "insecure": options.insecure,
            }
        )
        return Assignment(
            evaluators=plan.evaluators,
            endpoint=endpoint,
            model=options.model,
            api=options.api,
            facts=None if given is None else self._store.facts(f"{given.address}{service}", given.model),
            stores=(plan.folder / STORES).resolve(),
            run_store=plan.store.resolve(),
            run=self._run,
            tariff=plan.tariff,
            caps=options.caps,
            alone=plan.alone,
            concurrency=options.concurrency,
            attempts=options.attempts,
            grace=options.grace,
            raise_on_failure=options.raise_on_failure,
            max_input_tokens=options.max_input_tokens,
        )

    async def _watch(self, job: "asyncio.Task[None]") -> None:
        """Report until the job is done, or until it is stopped and has had its time."""
        hurry = asyncio.create_task(self._hurry.wait())
        try:
            while not job.done() and not hurry.done():
                await asyncio.wait({job, hurry}, timeout=_POLL_SECONDS, return_when=asyncio.FIRST_COMPLETED)
                await self._look(ended=False)
        finally:
            hurry.cancel()
        if not job.done():
            raise RunError("stopped at once")

    async def _look(self, *, ended: bool) -> Progress:
        """What the workers have done; told to the user, and to the account that the summary is made of."""
        progress: Progress = await self._coordinator.progress.remote()
        for notice in progress.notices:
            if notice not in self._told:
                self._told.add(notice)
                self._reporter.warn(notice)
        asker = self._asker
        asker.judge.sent, asker.usage, asker.failed = progress.sent, progress.usage, progress.failed
        course = _Live(tallies={}, rows=progress.rows, reused=progress.reused, failures=progress.failed_rows)
        course.fraction = min(1.0, progress.rows / self._expected) if self._expected else None
        loop = asyncio.get_running_loop()
        if ended or loop.time() - self._told_at >= self._reporter.interval:
            self._told_at = loop.time()
            self._reporter.progress(course, asker, ended=ended)
        return progress

    def _count(self, part: Path, sink: RowsSink) -> Course:
        """The course of the run by its rows, in the order in which one process counts them."""
        plan = self._plan
        course = Course(tallies=_tallies(plan), records=self._found.records)
        for rank, row in counted(part, sink.written, plan.tariff):
            course.add(plan.evaluators[rank].name, row.outcome, cluster=row.cluster, stratum=row.stratum)
            self._asker.budget.bill.saved_by_store += row.outcome.saved
        return course

    @asynccontextmanager
    async def _signals(self) -> AsyncIterator[None]:
        """Signals end the run as they do in one process; Ray has set handlers of its own."""
        loop = asyncio.get_running_loop()
        numbers = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
        for number in numbers:
            loop.add_signal_handler(number, self._signal, number)
        try:
            yield
        finally:
            for number in numbers:
                loop.remove_signal_handler(number)

    def _signal(self, number: signal.Signals) -> None:
        if self._signalled:
            self._hurry.set()
        else:
            self._signalled = number
            self._coordinator.end.remote(RunError(f"stopped by {number.name}"))


def _tallies(plan: Plan) -> dict[str, Tally]:
    population, strata = population_of(plan.log), strata_of(plan.log)
    return {each.name: Tally(each, population=population, strata=strata) for each in plan.evaluators}


def _looked_at(job: "asyncio.Task[None]") -> None:
    """A job that was left behind has an error that is nobody's."""
    if not job.cancelled():
        job.exception()


def _has_ended(coordinator: Any) -> bool:  # noqa: ANN401  # Ray's handle
    return bool(ray.get(coordinator.ended.remote()))


def _error_of(error: BaseException) -> RunError:
    """What went wrong in Ray, in a sentence of ours: its own texts may hold records."""
    seen: BaseException | None = error
    while seen is not None:
        if isinstance(seen, CtxrelError):
            return seen if isinstance(seen, RunError) else RunError(str(seen))
        seen = getattr(seen, "cause", None) or seen.__cause__
    if isinstance(error, (ray.exceptions.ActorDiedError, ray.exceptions.ActorUnavailableError)):
        return RunError("the workers' processes ended too often; look into Ray's logs, then run the same command again")
    return RunError(
        f"Ray could not go on ({type(error).__name__}); look into its logs, then run the same command again to go on"
    )
