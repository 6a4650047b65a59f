"""What a run would send, take and cost: read and rendered as it would be, and nothing is sent or written."""

from collections.abc import Mapping, Sequence
from contextlib import closing
from dataclasses import dataclass, field
from typing import Any

import orjson

from ...evaluators.costs import forecast
from ...evaluators.costs.bounds import Bounds
from ...evaluators.costs.experience import Experience, recall_experience
from ...evaluators.costs.forecast import Range, Workload
from ...evaluators.costs.tokens import frame_tokens, likely_tokens
from ...evaluators.evaluator import Evaluator
from ...evaluators.judges.asking import Asker
from ...evaluators.judges.endpoint import Api
from ...evaluators.judges.judge import Judge
from ...evaluators.judges.openai_chat import ChatJudge, reasons
from ...evaluators.judges.openai_decisions import DecisionsJudge
from ...evaluators.judging import Judging
from ...evaluators.prompt import Request
from .making import make_judge
from .plan import Plan, Reporter
from .store import Store
from .worker_store import StoresLeft

_MOST_KEYS = 1 << 20
"""Requests that are told apart, in some 100 MB; of a log with more, later ones are compared with these."""


@dataclass(kw_only=True)
class Counts:
    """What became of the records."""

    records: int = 0
    unusable: int = 0
    """Rows that would be errors for what stands in the log."""
    not_needed: int = 0
    """Rows that need no request: there is nothing to judge."""
    stored: int = 0
    """Rows whose replies are in the store."""
    identical: int = 0
    """Requests that are the same as an earlier one."""
    workloads: dict[str, Workload] = field(default_factory=dict)
    """By evaluator."""
    first: Request | None = None
    """The first request that would be sent."""

    @property
    def requests(self) -> int:
        """Requests that would be sent."""
        return sum(work.requests for work in self.workloads.values())


async def estimate(plan: Plan, reporter: Reporter, *, show: bool = False) -> dict[str, Any]:
    """The estimate as one JSON object; with `show` the first request is in it."""
    there = plan.store if plan.store and plan.store.is_file() and plan.store.stat().st_size else None
    store = Store(there, reading=there is not None)
    try:
        judge = make_judge(plan, store, reporter)
        counts = _count(plan, judge, store)
    finally:
        store.close()
    return _summary(plan, judge, counts) | ({"request": _shown(judge, counts.first)} if show else {})


def _count(plan: Plan, judge: Judge, store: Store) -> Counts:
    counts = Counts(workloads=_workloads(plan, judge, store))
    with closing(StoresLeft(store, plan.folder)) as memory:
        _count_records(plan, Judging(Asker(judge), memory, max_input_tokens=plan.options.max_input_tokens), counts)
    return counts


def _count_records(plan: Plan, judging: Judging, counts: Counts) -> None:
    keys: set[bytes] = set()
    for position in plan.log.records():
        counts.records += 1
        for evaluator in plan.evaluators:
            begun = judging.begin(position.record, evaluator)
            if begun.ended:
                counts.unusable += begun.outcome.failure is not None
                counts.stored += begun.outcome.reused
                counts.not_needed += begun.outcome.failure is None and not begun.outcome.requests
                continue
            work = counts.workloads[evaluator.name]
            for key, request in judging.needed(begun):
                if key in keys:
                    counts.identical += 1
                    continue
                if len(keys) < _MOST_KEYS:
                    keys.add(key)
                counts.first = counts.first or request
                work.requests += 1
                work.records += likely_tokens(request.user) if plan.endpoint else 0.0


def _workloads(plan: Plan, judge: Judge, store: Store) -> dict[str, Workload]:
    known: Mapping[bytes, Experience] = {}
    if plan.endpoint:
        kept = store.experience(plan.endpoint.address, plan.endpoint.model)
        known = {fingerprint: recall_experience(sums) for fingerprint, sums in kept.items()}
    of_model = Experience()
    for experience in known.values():
        of_model = of_model.plus(experience)
    return {e.name: _workload(plan, judge, e, known, of_model) for e in plan.evaluators}


def _workload(
    plan: Plan, judge: Judge, evaluator: Evaluator, known: Mapping[bytes, Experience], of_model: Experience
) -> Workload:
    parameters = judge.parameters(evaluator.static)
    shown = [f"Input: {given}\nOutput: {reply}" for given, reply in evaluator.examples]
    live = plan.endpoint is not None
    return Workload(
        frame=frame_tokens(evaluator.static) if live else 0.0,
        examples=sum(map(likely_tokens, shown)) if live else 0.0,
        replies=[likely_tokens(reply) for _, reply in evaluator.examples],
        limit=Bounds(judge).most(Request(evaluator.static, "")).output_tokens if live else 0,
        reasons=reasons(judge.model),
        effort=str(parameters.get("reasoning_effort", "")),
        experience=known.get(judge.fingerprint(evaluator.static), Experience()),
        ratio=of_model.ratio,
    )


def _summary(plan: Plan, judge: Judge, counts: Counts) -> dict[str, Any]:
    options, price = plan.options, plan.tariff.price
    works = list(counts.workloads.values())
    sent, received = _total([work.input for work in works]), _total([work.output for work in works])
    money = forecast.cost(works, price) if price else None
    examples = sum(work.requests * work.examples * (work.ratio or 1.0) for work in works)
    return {
        "judge": judge.description,
        "records": counts.records,
        "requests": {
            "to_send": counts.requests,
            "stored": counts.stored,
            "identical": counts.identical,
            "not_needed": counts.not_needed,
            "unusable": counts.unusable,
        },
        "tokens": {"input": _rounded(sent), "output": _rounded(received)},
        "assumed": [name for name, work in counts.workloads.items() if not work.measured],
        "cost": money and _dollars(money),
        "cost_in_batches": _in_batches(plan, money),
        "price": price and {"model": plan.tariff.model, **price.describe()},
        "shares": {
            "examples": _share(examples, sent.likely),
            "examples_of_cost": _share(examples * price.input / 1e6, money.likely) if price and money else None,
            "cacheable": _share(sum(work.cacheable * work.input.likely for work in works), sent.likely),
        },
        "seconds": _seconds(plan, counts, sent.likely + received.likely),
        "in_flight": options.concurrency or forecast.IN_FLIGHT,
    }


def _in_batches(plan: Plan, money: Range | None) -> dict[str, float] | None:
    """The cost through the Batch API, None where there is none or its price is not known."""
    share = plan.tariff.price.batch if plan.tariff.price else None
    return _dollars(money.times(share)) if money and share is not None and plan.options.api is Api.CHAT else None


def _seconds(plan: Plan, counts: Counts, tokens: float) -> float:
    if plan.endpoint is None:
        return 0.0
    options = plan.options
    took = forecast.seconds(counts.requests, tokens, in_flight=options.concurrency, rpm=options.rpm, tpm=options.tpm)
    return round(took, 1)


def _total(ranges: Sequence[Range]) -> Range:
    total = forecast.NONE
    for part in ranges:
        total = total.plus(part)
    return total


def _rounded(tokens: Range) -> dict[str, int]:
    return {name: round(value) for name, value in tokens._asdict().items()}


def _dollars(amount: Range) -> dict[str, float]:
    return {name: round(value, 6) for name, value in amount._asdict().items()}


def _share(part: float, whole: float) -> float:
    return round(part / whole, 4) if whole else 0.0


def _shown(judge: Judge, request: Request | None) -> object:
    """The request as it would be sent; none where none would be. Headers, and so the key, are no part of it."""
    if request is None:
        return None
    if isinstance(judge, (ChatJudge, DecisionsJudge)):
        return orjson.loads(judge.body(request))
    return {"messages": [request.prompt.system, request.user]}
