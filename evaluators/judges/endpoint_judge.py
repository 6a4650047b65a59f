"""What the judges behind an endpoint have in common: connections, the look for the model, counts and notices."""

import asyncio
from collections.abc import Callable
from weakref import WeakKeyDictionary

from ..errors import ModelUnknown, RunError
from .endpoint import Endpoint
from .preflight import check_model, with_successors
from .transport import Transport


class EndpointJudge:
    """A model at an endpoint, whichever of the endpoint's services answers."""

    def __init__(
        self, endpoint: Endpoint, *, concurrency: int, known: bool, on_notice: Callable[[str], None] = lambda _: None
    ) -> None:
        """`known` tells whether it has answered in an earlier run."""
        self.model = endpoint.model
        self.description = f"{endpoint.model} at {endpoint.host}"
        self.concurrency = concurrency
        self.sent = 0
        self.known = known
        self.reached = False
        self._endpoint = endpoint
        self._on_notice = on_notice
        self._told: list[str] = []
        self._transport = Transport(endpoint)
        self._wait = 0.0
        self._runs: WeakKeyDictionary[asyncio.AbstractEventLoop, int] = WeakKeyDictionary()

    def notices(self) -> list[str]:
        """What a reader of the results should know of the judge."""
        return list(self._told)

    def wanted_wait(self) -> float:
        """Seconds for which nobody should send, by the rate limit headers of the last answer; 0 else."""
        return self._wait

    async def open(self) -> None:
        """Ask the endpoint for the model. Raises EndpointError where no request can succeed."""
        loop = asyncio.get_running_loop()
        self._runs[loop] = self._runs.get(loop, 0) + 1
        await check_model(self._transport, self._endpoint, self._tell)
        self.reached = True

    async def close(self) -> None:
        """Close the connections with the last of the runs that share the judge and an event loop."""
        loop = asyncio.get_running_loop()
        self._runs[loop] = self._runs.get(loop, 1) - 1
        if not self._runs[loop]:
            await self._transport.close()

    async def explain(self, error: RunError) -> RunError:
        """The error that ended the run, with the endpoint's other models where its own was unknown."""
        if not isinstance(error, ModelUnknown):
            return error
        return await with_successors(self._endpoint)

    def _tell(self, notice: str) -> None:
        self._told.append(notice)
        self._on_notice(notice)
