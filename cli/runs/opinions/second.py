"""The second judge of a run."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from ....evaluators.costs.budget import NO_CAPS
from ....evaluators.costs.tariff import Tariff
from ....evaluators.errors import UsageError
from ....evaluators.evaluator import Evaluator
from ....evaluators.judges.asking import Asker
from ....evaluators.judges.endpoint import Endpoint, find_endpoint
from ....evaluators.judges.model_file import is_model_file
from ....evaluators.judges.offline import OFFLINE, check_offline
from ....evaluators.replies import Usage
from ..pricing import tariff_for

if TYPE_CHECKING:
    from ..plan import RunOptions

KEY_ENV = "JUDGE_ALSO_API_KEY"
"""Holds the key of a second judge's own endpoint by default: that of the first is not sent elsewhere."""


@dataclass(frozen=True, kw_only=True)
class Second:
    """The second judge, which was found to make sense."""

    endpoint: Endpoint | None
    """None for the offline judge."""
    tariff: Tariff
    """What its replies cost."""


def find_second(
    options: "RunOptions", first: Endpoint | None, evaluators: Sequence[Evaluator], *, timeout: float, sending: bool
) -> Second | None:
    """The second judge, None where none is wanted; it is asked as `first` is, but for what is said of it.

    `first` is None where that one is no endpoint's. Raises UsageError.
    """
    wanted = options.wanted
    if wanted.model is None:
        return None
    if not wanted.model or is_model_file(wanted.model):
        raise UsageError(f"--judge-also {wanted.model!r}: name a model that an endpoint serves, or offline")
    if wanted.model == OFFLINE:
        check_offline({evaluator.name: evaluator.static for evaluator in evaluators})
    endpoint = None if wanted.model == OFFLINE else _find_endpoint(options, wanted.model, timeout, sending=sending)
    if wanted.model == options.model and (endpoint and endpoint.address) == (first and first.address):
        raise UsageError(f"--judge-also {wanted.model!r} is the judge itself; ask it again with --repeat 2")
    return Second(endpoint=endpoint, tariff=tariff_for(endpoint, options.prices, NO_CAPS))


def _find_endpoint(options: "RunOptions", model: str, timeout: float, *, sending: bool) -> Endpoint:
    wanted = options.wanted
    try:
        return find_endpoint(
            model=model,
            base_url=wanted.base_url or options.base_url,
            api_key_env=wanted.key_env or (KEY_ENV if wanted.base_url else options.api_key_env),
            parameters=options.parameters,
            timeout=timeout,
            insecure=options.insecure,
            sending=sending,
        )
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
