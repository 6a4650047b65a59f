"""The second judge of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from pathlib import Path
from typing import Any, Protocol

from ....evaluators.costs.budget import NO_CAPS
from ....evaluators.costs.tariff import Tariff
from ....evaluators.errors import UsageError
from ....evaluators.evaluator import Evaluator
from ....evaluators.judges.asking import Asker
from ....evaluators.judges.endpoint import Endpoint
from ....evaluators.judges.model_file import is_model_file
from ....evaluators.judges.named import NAMED
from ....evaluators.replies import Usage
from ..pricing import tariff_for
from .wanted import Wanted

KEY_ENV = "JUDGE_ALSO_API_KEY"
"""Holds the key of a second judge's own endpoint by default: that of the first is not sent elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Second:
    """The second judge, which was found to make sense."""

    endpoint: Endpoint | None
    """None for a judge of this process."""
    tariff: Tariff
    """What its replies cost."""


class Find(Protocol):
    """Finds an endpoint that is asked as the first judge is, but for what is named."""

    def __call__(self, *, model: str, base_url: str | None, api_key_env: str | None) -> Endpoint:
        """The endpoint. Raises UsageError."""


def find_second(
    wanted: Wanted,
    first: tuple[str, Endpoint | None],
    evaluators: Sequence[Evaluator],
    prices: Path | None,
    find: Find,
) -> Second | None:
    """The second judge, None where none is wanted.

    `first` is the model of the first one, and its endpoint where it is a service's. Raises UsageError.
    """
    if wanted.model is None:
        return None
    if not wanted.model or is_model_file(wanted.model):
        raise UsageError(f"--judge-also {wanted.model!r}: name a model that an endpoint serves, or offline")
    if named := NAMED.get(wanted.model):
        named.check({evaluator.name: evaluator.static for evaluator in evaluators})
    endpoint = None if named else _find_endpoint(wanted, wanted.model, find)
    model, there = first
    if wanted.model == model and (endpoint and endpoint.address) == (there and there.address):
        raise UsageError(f"--judge-also {wanted.model!r} is the judge itself; ask it again with --repeat 2")
    return Second(endpoint=endpoint, tariff=tariff_for(endpoint, prices, NO_CAPS))


def _find_endpoint(wanted: Wanted, model: str, find: Find) -> Endpoint:
    key_env = wanted.key_env or (KEY_ENV if wanted.base_url else None)
    try:
        return find(model=model, base_url=wanted.base_url, api_key_env=key_env)
    except UsageError as error:
        raise UsageError(f"the second judge: {error}".replace("--api-key-env", "--judge-also-key-env")) from None


def add_second(summary: dict[str, Any], asker: Asker) -> None:
    """Tell in a summary of the second judge, and count what it was asked, and what that took."""
    judge = asker.judge
    cost = asker.budget.bill.summary()
    summary["judge"]["also"] = {
        "model": judge.model,
        "description": judge.description,
        "notices": judge.notices(),
        "tokens": asker.usage._asdict(),
        "cost": cost,
    }
    requests = summary["requests"]
    requests["sent"] += asker.sent
    for kind, count in sorted(asker.failed.items()):
        requests["failed"][kind.value] = requests["failed"].get(kind.value, 0) + count
    summary["tokens"] = Usage(**summary["tokens"]).plus(asker.usage)._asdict()
    summary["cost"] = _both(summary["cost"], cost)


def _both(first: dict[str, Any] | None, second: dict[str, Any] | None) -> dict[str, Any] | None:
    """The cost of both judges; None where that of one is not known."""
    if first is None or second is None:
        return None
    return {
        name: round(value + second[name], 12) if isinstance(value, (int, float)) else value
        for name, value in first.items()
    }
