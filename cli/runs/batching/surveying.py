"""Reading the log for what is still wanted, and sending it part by part."""

import asyncio
import time
from collections.abc import Awaitable, Callable, Sequence

import orjson

from ....evaluators.deferring import Deferring, Wanted
from ....evaluators.errors import Failure, InputError, RunError
from ....evaluators.evaluator import Evaluator
from ....evaluators.judges.asking import Patience
from ....evaluators.judges.batches.lines import request_line
from ....evaluators.judges.openai_chat import ChatJudge
from ....evaluators.tokens import most_tokens
from ...records.log import Log
from ..feed import Feed
from ..store import Store
from .deciding import next_try
from .desk import Desk
from .ledger import Ledger
from .parts import Part, Planned
from .spool import Spool

_AHEAD = 64
_TURN_SECONDS = 0.05


class Survey:
    """One reading of the log: each wanted request goes into a part, unless it is under way or given up."""

    def __init__(
        self,
        judging: Deferring,
        judge: ChatJudge,
        store: Store,
        ledger: Ledger,
        desk: Desk,
        spool: Spool,
        *,
        patience: Patience,
        requests_url: str,
        wait_for_room: Callable[[], Awaitable[None]],
    ) -> None:
        """`wait_for_room` returns once no part is held any more."""
        self._judging = judging
        self._judge = judge
        self._store = store
        self._ledger = ledger
        self._desk = desk
        self._spool = spool
        self._patience = patience
        self._url = requests_url
        self._wait_for_room = wait_for_room
        self._sent: Part | None = None
        self.parts = 0
        """Parts that were made."""

    async def read(self, log: Log, evaluators: Sequence[Evaluator]) -> None:
        """Read the log and send what is wanted. Raises RunError."""
        feed = Feed(log.records(), ahead=_AHEAD)
        turn = time.monotonic()
        try:
            async for position in feed:
                for evaluator in evaluators:
                    for wanted in self._judging.wanted(position.record, evaluator):
                        await self._consider(wanted)
                if time.monotonic() - turn > _TURN_SECONDS:
                    await asyncio.sleep(0)
                    turn = time.monotonic()
        except InputError as error:
            raise RunError(str(error)) from error
        finally:
            feed.stop()
        await self._send()

    async def _consider(self, wanted: Wanted) -> None:
        if wanted.key in self._spool:
            return
        tries = self._ledger.tries(wanted.key)
        if any(one.outcome is None for one in tries):
            return
        if elsewhere := self._ledger.elsewhere(wanted.key):
            self._desk.wait_for(elsewhere)
            return
        decided = next_try(tries, self._judging.failures(wanted), self._store.last_failure(wanted.key), self._patience)
        try:
            if isinstance(decided, Failure):
                raise decided
            line = request_line(wanted.key, self._url, self._judge.body(wanted.request, decided))
        except Failure as failure:
            self._store.keep_failure(wanted.key, failure)
            return
        tokens = most_tokens(wanted.request.prompt.system) + most_tokens(wanted.request.user)
        if not self._spool.has_room(len(line), tokens):
            await self._send()
        prompt = self._judge.fingerprint(wanted.request.prompt)
        self._spool.add(Planned(wanted.key, prompt, decided), line, tokens)

    async def _send(self) -> None:
        dialect = self._judge.dialect
        facts = {"response_format": dialect.response_format, "renamed": dict(dialect.renamed)}
        part = self._spool.take(orjson.dumps(facts).decode())
        if part is None:
            return
        self.parts += 1
        if self._sent:  # what became of the last one tells whether there is room for this one
            before = self._ledger.part(self._sent.number)
            if before.status == "validating":
                await self._desk.look_at(before)
        if self._desk.held:
            await self._wait_for_room()
        await self._desk.submit(part)
        self._sent = part
