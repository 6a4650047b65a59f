"""Workers of one run in one process, as Ray would have them in several."""

import asyncio
from collections.abc import Mapping
from pathlib import Path

from conftest import Record
from servers.loopback import MODEL, LoopbackServer

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.runs.batch import Line
from ctxrel.cli.runs.coordinator import Coordinator
from ctxrel.cli.runs.shares import Amounts
from ctxrel.cli.runs.store import Store
from ctxrel.cli.runs.worker import Assignment, Worker
from ctxrel.cli.runs.worker_store import Run
from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.costs.budget import NO_CAPS, Budget, Caps
from ctxrel.evaluators.costs.tariff import UNKNOWN_TARIFF
from ctxrel.evaluators.judges.endpoint import Api

NEEDS = {"question": "text", "contexts": "contexts"}
RUN = Run(1.0, ".")


def records(count: int) -> list[Record]:
    return [
        {
            "id": f"r-{n}",
            "question": f"Item {n}?",
            "contexts": [f"Item {n} is a thing."],
            "lang": "ko" if n % 3 else "en",
        }
        for n in range(count)
    ]


class Crew:
    """Workers with one coordinator, all in this process."""

    def __init__(
        self,
        server: LoopbackServer,
        folder: Path,
        total: Amounts,
        *,
        caps: Caps = NO_CAPS,
        parameters: Mapping[str, object] | None = None,
        raise_on_failure: bool = False,
    ) -> None:
        store = Store(folder / "store.sqlite")
        store.settle()
        store.close()
        self.coordinator = Coordinator(total, Budget(caps=caps))
        endpoint = {
            "model": MODEL, "base_url": server.url, "api_key_env": "NO_KEY", "parameters": parameters or {}, "timeout": 10.0,
            "insecure": False,
        }  # fmt: skip
        assignment = Assignment(
            evaluators=[load_evaluator("context_relevance")], endpoint=endpoint, model="judge-1", api=Api.CHAT, facts=None, stores=folder / "stores",
            run=RUN, tariff=UNKNOWN_TARIFF, caps=caps, run_store=folder / "store.sqlite", alone=True,
            concurrency=total.slots, attempts=3, grace=5.0, raise_on_failure=raise_on_failure, max_input_tokens=None,
        )  # fmt: skip
        self.workers = [Worker(name, assignment, self.coordinator) for name in "ab"]

    async def judge(self, log: Path, *, size: int = 10) -> list[Line]:
        """The rows of a log, whose batches the workers take in turn."""
        positions = list(open_log([str(log)], Fields(), NEEDS).records())
        batches = [positions[at : at + size] for at in range(0, len(positions), size)]
        work = [self.workers[number % 2].judge(batch) for number, batch in enumerate(batches)]
        lines = [line for lines in await asyncio.gather(*work) for line in lines]
        for worker in self.workers:
            await worker.close()
        return lines
