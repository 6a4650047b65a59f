"""The phase before the usual pass of a run: what the store lacks is fetched through batches."""

import asyncio
import datetime as dt
import signal
from collections.abc import Callable, Coroutine
from pathlib import Path
from typing import Any

from ....evaluators.costs.bounds import Bounds
from ....evaluators.deferring import Deferring
from ....evaluators.errors import NotFinished, RunError
from ....evaluators.judges.asking import Asker, Patience
from ....evaluators.judges.batches.client import BatchClient, Persistence
from ....evaluators.judges.openai_chat import ChatJudge
from ....evaluators.prompt import Request
from ....evaluators.replies import Usage
from ....evaluators.wording import counted
from ..plan import Plan, Reporter
from ..runner import SIGNALS, Interrupted
from ..store import Store
from . import limits
from .collecting import Collector
from .desk import Desk
from .ledger import Ledger, Sender
from .parts import Part, State
from .purse import Purse
from .spool import Spool, forget_files
from .surveying import Survey

_STOPPED = (
    "; the batches go on at the endpoint: run the same command again to collect them, "
    "or end them with: ctxrel batch cancel {}"
)
_PENDING = "{} under way at the endpoint: run the same command again to collect {}"


class Fetching:
    """Fetches replies through the Batch API of the plan's endpoint."""

    def __init__(self, plan: Plan, asker: Asker, judge: ChatJudge, store: Store, reporter: Reporter) -> None:
        assert plan.endpoint  # noqa: S101  # the plan was checked
        assert plan.folder  # noqa: S101  # the same
        options, endpoint, self._folder = plan.options, plan.endpoint, plan.folder
        self._plan = plan
        self._judge = judge
        self._store = store
        self._reporter = reporter
        persistence = Persistence(tries=limits.TRIES, first_wait=limits.FIRST_WAIT_SECONDS)
        self._client = BatchClient(endpoint, persistence)
        sender = Sender(endpoint.base_url, endpoint.model, options.api_key_env, options.insecure)
        self._ledger = Ledger(store, str(self._folder.resolve()), sender)
        self.judging = Deferring(asker, store, store.last_failure, max_input_tokens=options.max_input_tokens)
        """What judges the records of the final pass, and asks nobody."""
        prompts = {judge.fingerprint(evaluator.static): evaluator.static for evaluator in plan.evaluators}
        self._collector = Collector(
            self._client, endpoint, judge, prompts, store, self._ledger, self._folder, on_reply=asker.budget.pay
        )
        most = max(Bounds(judge).most(Request(prompt, "")).output_tokens for prompt in prompts.values())
        self._desk = Desk(
            self._client,
            self._ledger,
            self._folder,
            self._collector,
            open_judge=judge.open,
            place=Path(plan.store or self._folder),
            prompts=prompts.keys(),
            warn=reporter.warn,
            purse=Purse(asker.budget, most, self._ledger.rooms),
        )

    @property
    def usage(self) -> Usage:
        """Tokens of the replies that this command has collected."""
        return self._collector.usage

    async def run(self) -> RunError | None:
        """Fetch what is wanted; why not all of it is there, None where it is."""
        try:
            await _until_signal(self._fetch_all(), _STOPPED.format(self._folder))
        except RunError as error:
            return await self._judge.explain(error)
        return None

    def end(self) -> None:
        """The rows are written: the next run at this output begins anew. Raises OutputError."""
        self._ledger.end()
        forget_files(self._folder, self._ledger)

    def summary(self) -> dict[str, object]:
        """The block `batch` of the run's summary."""
        parts = [part for part in self._ledger.parts() if part.state is not State.RETURNED]
        return {
            "rounds": self._ledger.rounds,
            "requests": sum(part.requests for part in parts),
            "parts": [
                {
                    "id": part.batch,
                    "state": part.status or part.state.value,
                    "collected": part.state is State.COLLECTED,
                    "requests": part.requests,
                    "completed": part.completed,
                    "failed": part.failed,
                }
                for part in parts
            ],
            "tokens": self._ledger.usage()._asdict(),
        }

    def timings(self) -> list[dict[str, object]]:
        """When the batches were created and over."""
        return [
            {"id": part.batch, "created": _moment(part.created), "ended": _moment(part.ended)}
            for part in self._ledger.parts()
            if part.batch
        ]

    async def _fetch_all(self) -> None:
        try:
            await self._desk.look()
            while not self._enough and await self._fetch():
                pass
        finally:
            await asyncio.gather(self._judge.close(), self._client.close())

    @property
    def _enough(self) -> bool:
        """Whether the rest is to be asked for live."""
        return self._plan.options.finish_live and self._ledger.rounds > 0 and not self._desk.under_way

    async def _fetch(self) -> bool:
        """Send what is wanted and collect it; whether there was anything."""
        if not self._ledger.surveyed and not await self._send_wanted():
            return False
        self._ledger.keep_surveyed(surveyed=True)
        await self._wait_while(lambda: bool(self._desk.under_way))
        self._ledger.keep_surveyed(surveyed=False)
        return True

    async def _send_wanted(self) -> bool:
        """Whether anything is under way after a survey, or was."""
        capped = self._plan.options.caps.any
        most = limits.MOST_CAPPED_REQUESTS if capped else limits.MOST_REQUESTS
        spool = Spool(self._folder, self._ledger, most_requests=most)
        survey = Survey(
            self.judging,
            self._judge,
            self._store,
            self._ledger,
            self._desk,
            spool,
            patience=Patience(attempts=self._plan.options.attempts),
            requests_url=self._client.requests_url,
            wait_for_room=lambda: self._wait_while(lambda: self._desk.held),
        )
        try:
            await survey.read(self._plan.log, self._plan.evaluators)
        finally:
            spool.close()
        return survey.parts > 0 or bool(self._desk.under_way)

    async def _wait_while(self, condition: Callable[[], bool]) -> None:
        """Watch the batches until a condition holds no more. Raises NotFinished where nobody is to wait."""
        wait = limits.FIRST_POLL_SECONDS
        counts = await self._desk.look()
        try:
            while condition():
                self._reporter.batches(counts, ended=False)
                if not self._plan.options.wait:
                    raise NotFinished(_pending(self._desk.under_way))
                await asyncio.sleep(wait)
                wait = min(limits.LONGEST_POLL_SECONDS, wait * limits.POLL_GROWTH)
                counts = await self._desk.look()
        finally:
            self._reporter.batches(counts, ended=True)


async def _until_signal(work: Coroutine[Any, Any, None], advice: str) -> None:
    """Do the work. Raises Interrupted once a signal has ended it: each of its steps was written down."""
    loop = asyncio.get_running_loop()
    task = loop.create_task(work)
    stopped: list[signal.Signals] = []

    def stop(number: signal.Signals) -> None:
        stopped.append(number)
        task.cancel()

    numbers = [number for number in SIGNALS if signal.getsignal(number) is not signal.SIG_IGN]
    for number in numbers:
        loop.add_signal_handler(number, stop, number)
    try:
        await task
    except asyncio.CancelledError:
        if not stopped:
            raise
        raise Interrupted(stopped[0], advice) from None
    finally:
        for number in numbers:
            loop.remove_signal_handler(number)


def _pending(parts: list[Part]) -> str:
    requests = sum(part.requests for part in parts)
    batches = "a batch is" if len(parts) == 1 else f"{len(parts):,} batches are"
    return _PENDING.format(f"{batches} ({counted(requests, 'request')})", "it" if len(parts) == 1 else "them")


def _moment(seconds: float | None) -> str | None:
    return dt.datetime.fromtimestamp(seconds, dt.UTC).isoformat(timespec="seconds") if seconds else None
