"""The batches of a store, looked at and cancelled beside any run."""

from contextlib import closing
from pathlib import Path

from ....evaluators.judges.batches.client import BatchClient
from ....evaluators.judges.endpoint import find_endpoint
from ..store import Store
from .ledger import Sent, ask_to_cancel, forget_part, keep_status, sent_parts
from .parts import OPEN, Part, State

_SECONDS = 60.0


def read_parts(path: Path) -> list[Sent]:
    """All parts that a store knows of. Raises OutputError."""
    with closing(Store(path)) as store:
        return sent_parts(store)


async def cancel_parts(path: Path) -> list[Sent]:
    """Cancel what is under way; the parts that were, as they are now. Raises RunError and UsageError."""
    with closing(Store(path)) as store:
        under_way = [sent for sent in sent_parts(store) if sent.part.state in OPEN]
        for sent in under_way:
            await _cancel(store, sent)
        numbers = {sent.part.number for sent in under_way}
        return [sent for sent in sent_parts(store) if sent.part.number in numbers]


async def _cancel(store: Store, sent: Sent) -> None:
    """Ask for the end of a part's batch; forget a part that has none."""
    part, sender = sent.part, sent.sender
    client = BatchClient(
        find_endpoint(
            model=sender.model,
            base_url=sender.base_url,
            api_key_env=sender.api_key_env,
            parameters={},
            timeout=_SECONDS,
            insecure=sender.insecure,
        )
    )
    try:
        batch_id = part.batch or await _made_of(client, part)
        if batch_id is None:
            if part.file:
                await client.delete_file(part.file)
            forget_part(store, part)
            return
        ask_to_cancel(store, part)
        batch = await client.cancel(batch_id) or await client.batch(batch_id)
        if batch is None:
            forget_part(store, part)
        else:
            keep_status(store, part, batch)
    finally:
        await client.close()


async def _made_of(client: BatchClient, part: Part) -> str | None:
    """The batch of a part whose answer was lost."""
    if part.state is not State.CREATING:
        return None
    async for batch in client.batches(part.planned):
        if batch.input_file == part.file:
            return batch.id
    return None
