"""Parts on their way through the endpoint: uploaded, made batches, watched; each step written down."""

import time
from collections.abc import Awaitable, Callable, Collection
from hashlib import blake2b
from pathlib import Path
from typing import Protocol

from ....evaluators.errors import BudgetReached, NotFinished, RunError
from ....evaluators.judges.batches.batch import Batch
from ....evaluators.judges.batches.client import BatchClient
from . import limits
from .ledger import Ledger, part_file
from .parts import OPEN, Part, State
from .progress import Counts
from .purse import Purse

_RUN = "ctxrel_run"
_PART = "ctxrel_part"
_MUCH = 4
"""A part of less than this share of the limit is not what fills it."""


class Collect(Protocol):
    """Who keeps what a batch that is over has brought."""

    async def __call__(self, part: Part, batch: Batch) -> None:
        """Keep it, and write down that the part is collected. Raises RunError."""


class Desk:
    """Carries parts on as far as they go, wherever an earlier command has left them."""

    def __init__(
        self,
        client: BatchClient,
        ledger: Ledger,
        folder: Path,
        collect: Collect,
        *,
        open_judge: Callable[[], Awaitable[None]],
        place: Path,
        prompts: Collection[bytes],
        warn: Callable[[str], None],
        purse: Purse,
    ) -> None:
        """`open_judge` is called once, before anything is sent.

        `place` is the store: its batches are told from others by it. `prompts` are those that are asked now.
        `purse` has to allow each part before a batch is made of it.
        """
        self._open_judge: Callable[[], Awaitable[None]] | None = open_judge
        self._client = client
        self._ledger = ledger
        self._folder = folder
        self._collect = collect
        self._prompts = prompts
        self._warn = warn
        self._purse = purse
        for part in ledger.parts(under_way=True):
            if part.state in (State.CREATING, State.SENT):
                purse.hold(part)
        self._began = time.time()
        # The same for the same place, also where the store was lost.
        self._run = blake2b(str(place.resolve()).encode(), digest_size=8).hexdigest()
        self._strays: dict[str, Batch] = {}
        self._foreign: set[int] = set()
        self._freed = True
        self._cancelled_before = {part.number for part in ledger.parts(under_way=True) if part.cancelled}
        self._ended_by_user = False

    @property
    def under_way(self) -> list[Part]:
        """The parts that something is still to come of, also those of other runs that are waited for."""
        foreign = [part for number in self._foreign if (part := self._ledger.part(number)).state in OPEN]
        return self._ledger.parts(under_way=True) + foreign

    @property
    def held(self) -> bool:
        """Whether a part waits for room."""
        return any(part.state is State.HELD for part in self.under_way)

    def counts(self) -> Counts:
        """How far the batches are."""
        parts = self.under_way
        sent = [part for part in parts if part.state is State.SENT]
        return Counts(
            completed=sum(part.completed for part in sent),
            failed=sum(part.failed for part in sent),
            total=sum(part.requests for part in parts),
            parts=len(sent),
            held=len(parts) - len(sent),
        )

    def wait_for(self, part: Part) -> None:
        """Wait for another run's part as well: it holds what is wanted here."""
        self._foreign.add(part.number)

    async def _open(self) -> None:
        """Once: see that the endpoint serves the model and has a Batch API. Raises EndpointError."""
        if self._open_judge:
            open_judge, self._open_judge = self._open_judge, None
            await open_judge()
            await self._find_strays()

    async def _find_strays(self) -> None:
        """Look for batches of this place that are not written down: their answer was lost, or the store."""
        async for batch in self._client.batches(time.time() - limits.HORIZON_SECONDS):
            part_hash = batch.metadata.get(_PART)
            ours = batch.metadata.get(_RUN) == self._run and isinstance(part_hash, str)
            if ours and batch.status != "failed" and not self._ledger.knows(batch.id):
                self._strays[str(part_hash)] = batch

    async def submit(self, part: Part) -> None:
        """Take a part to where it has a batch, or is held. What was sent already is found and not sent again."""
        await self._open()
        part = self._ledger.part(part.number)
        if part.state not in OPEN or part.state is State.SENT or await self._adopt(part):
            return
        if part.planned < self._began and self._outdated(part):
            await self._drop(part)
            return
        if part.state is State.PLANNED:
            uploaded = await self._upload(part)
            if uploaded is None:
                await self._drop(part)
                return
            part = uploaded
        await self._create(part)

    def _outdated(self, part: Part) -> bool:
        """Whether nobody asks any more for all of a part: prompts have changed, or a live run has asked since."""
        return not self._ledger.prompts(part) <= set(self._prompts) or self._ledger.answered_meanwhile(part)

    async def look(self) -> Counts:
        """Ask how all batches are, collect those that are over, and send what waits for its turn."""
        for part in self.under_way:
            await self._open()
            if part.state is State.SENT:
                await self.look_at(part)
        if self._ended_by_user:
            raise NotFinished("its batches were cancelled; run the same command again to send what is left")
        await self._send_waiting()
        return self.counts()

    async def look_at(self, part: Part) -> None:
        """Ask how a batch is, and collect it if it is over."""
        batch = await self._client.batch(str(part.batch))
        if batch is None:
            raise RunError(
                f"the endpoint knows no batch {part.batch!r}: is the key another account's? if it is gone for good, "
                "ctxrel batch cancel forgets it"
            )
        part = self._ledger.keep_batch(part, batch)
        if batch.no_room:
            await self._hold(part, batch.room)
        elif batch.over:
            self._freed = True
            await self._collect(part, batch)
            self._purse.release(part)
            if part.file:
                await self._client.delete_file(part.file)
            self._ended_by_user |= part.cancelled and part.number not in self._cancelled_before

    async def _adopt(self, part: Part) -> bool:
        batch = self._strays.pop(part.hash, None)
        if batch is None:
            return False
        self._warn(f"the batch {batch.id} with {part.requests:,} of these requests is there already; it is waited for")
        self._purse.hold(part)
        if part.file and part.file != batch.input_file:
            await self._client.delete_file(part.file)
        self._forget_file(self._ledger.keep_batch(part, batch))
        return True

    async def _upload(self, part: Part) -> Part | None:
        """The part with its file's id, None where its file is neither here nor there."""
        name, since = f"ctxrel-{self._run}-{part.hash}.jsonl", part.planned - limits.SLACK_SECONDS
        path = part_file(self._folder, part)
        file = None
        if part.planned < self._began:  # an earlier command may have come as far as this
            file = await self._client.find_file(name, since)
        if file is None:
            if not path.is_file() or path.stat().st_size != part.bytes:
                return None
            file = await self._client.upload(path, name, since)
        return self._ledger.keep_file(part, file)

    async def _create(self, part: Part) -> None:
        try:
            self._purse.take(part)
        except BudgetReached:
            if all(other.state is not State.SENT for other in self._ledger.parts(under_way=True)):
                raise
            self._ledger.put_off(part)  # batches mostly cost less than is reserved for them
            self._freed = False
            return
        file = str(part.file)

        async def made() -> Batch | None:
            async for batch in self._client.batches(part.planned - limits.SLACK_SECONDS):
                if batch.input_file == file and batch.status != "failed" and not self._ledger.knows(batch.id):
                    return batch
            return None

        batch = await made() if part.state is State.CREATING else None  # by a command that did not get the answer
        company = sum(other.state is State.SENT for other in self.under_way)
        part = self._ledger.keep_creating(part, company)
        batch = batch or await self._client.create(file, {_RUN: self._run, _PART: part.hash}, made)
        if batch:
            self._forget_file(self._ledger.keep_batch(part, batch))
        else:
            await self._hold(part, None)

    async def _hold(self, part: Part, room: int | None) -> None:
        """The account has no room for a part; `room` is what the endpoint says that there is for everybody."""
        part = self._ledger.hold(part)
        self._freed = False
        if not part.refused or part.company:
            return
        if part.requests == 1 or (room is not None and part.tokens * _MUCH <= room):  # others fill it
            if part.refused > limits.ALONE_TRIES:
                raise NotFinished(
                    f"the account has no room for a batch of {part.requests:,} requests (about {part.tokens:,} tokens)"
                    "; run the same command again when its other batches are done"
                )
            return
        most = part.tokens // 2 if room is None else min(part.tokens // 2, room)
        self._warn(f"the account has no room for a batch of about {part.tokens:,} tokens; smaller ones are made")
        self._ledger.keep_most_tokens(most)
        for other in self._ledger.parts(under_way=True):
            if other.state is not State.SENT and other.tokens > most and other.requests > 1:
                await self._drop(other)

    async def _send_waiting(self) -> None:
        """Carry on what has no batch yet: all of it, or one part at a time once the account was full."""
        parts = self.under_way
        sent = [part for part in parts if part.state is State.SENT]
        waiting = [part for part in parts if part.state is not State.SENT]
        if not self.held:
            for part in waiting:
                await self.submit(part)
        elif not any(part.status == "validating" for part in sent) and (self._freed or not sent):
            await self.submit(waiting[0])

    async def _drop(self, part: Part) -> None:
        """Nothing of a part is paid for, and it is not sent."""
        name, since = f"ctxrel-{self._run}-{part.hash}.jsonl", part.planned - limits.SLACK_SECONDS
        if file := part.file or await self._client.find_file(name, since):
            await self._client.delete_file(file)
        self._ledger.give_back(part)
        self._purse.release(part)
        self._forget_file(part)

    def _forget_file(self, part: Part) -> None:
        part_file(self._folder, part).unlink(missing_ok=True)
