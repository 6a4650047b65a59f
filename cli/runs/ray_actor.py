"""The actors of a run: those that Ray Data hands batches to, and the one that coordinates them."""

from typing import Any, cast

import pyarrow as pa
import ray
from ray.util.scheduling_strategies import NodeAffinitySchedulingStrategy

from ...evaluators.costs.budget import Budget
from .coordinator import Coordinator
from .ray_files import records_of, table_of
from .shares import Amounts
from .worker import Assignment, Meeting, Worker


class Judge:
    """A worker, as Ray Data wants one."""

    def __init__(self, assignment: Assignment, coordinator: Any) -> None:  # noqa: ANN401  # Ray's handle
        name = ray.get_runtime_context().get_actor_id()
        self._ranks = {evaluator.name: rank for rank, evaluator in enumerate(assignment.evaluators)}
        self._worker = Worker(str(name), assignment, cast("Meeting", _Remote(coordinator)))

    async def __call__(self, table: pa.Table) -> pa.Table:
        """The rows of a batch of records."""
        return table_of(await self._worker.judge(records_of(table)), self._ranks)


class _Remote:
    """Calls an actor's methods as if they were coroutines of our own."""

    def __init__(self, handle: Any) -> None:  # noqa: ANN401  # Ray's
        self._handle = handle

    def __getattr__(self, name: str) -> Any:  # noqa: ANN401  # as above
        return getattr(self._handle, name).remote


def start_coordinator(total: Amounts, budget: Budget) -> Any:  # noqa: ANN401  # Ray's handle
    """The coordinator, on the driver's node: without that there is no run, and any other may die on the way."""
    here = NodeAffinitySchedulingStrategy(ray.get_runtime_context().get_node_id(), soft=False)
    actor = ray.remote(num_cpus=0, max_concurrency=10_000, scheduling_strategy=here)(Coordinator)
    return actor.remote(total, budget)
