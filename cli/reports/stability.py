"""What a summary says of further opinions, as figures."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any, NamedTuple


class Figure(NamedTuple):
    """A figure of stability."""

    name: str
    """Where it stands under `stability` in the summary."""
    meaning: str
    value: float | None
    interval: Sequence[float] | None = None
    n: int | None = None
    """Of how many records, answers or contexts it is, where that is told."""


def stability_figures(stability: Mapping[str, Any]) -> Iterator[Figure]:
    """The figures of an evaluator's block, those of what was not asked for left out."""
    if repeats := stability["repeats"]:
        yield from _of_repeats(repeats)
    if judges := stability["judges"]:
        yield from _of_judges(judges)
    if order := stability["order"]:
        yield from _of_order(order)


def _of_repeats(repeats: Mapping[str, Any]) -> Iterator[Figure]:
    answers = f"{repeats['repeat']} answers"
    yield Figure("repeats.agreement", f"pairs among {answers} that have the same score", repeats["agreement"])
    yield _share("repeats.unanimous", f"records whose {answers} all have the same score", repeats["unanimous"])
    yield Figure("repeats.score_by_majority", "mean score by majority", repeats["score_by_majority"])


def _of_judges(judges: Mapping[str, Any]) -> Iterator[Figure]:
    model, n = judges["model"], judges["n"]
    contested = " (asked on disagreement)" if judges["asked"] == "on disagreement" else ""
    yield _share("judges.agreement", f"records that {model} gives the same score{contested}", judges["agreement"])
    yield Figure("judges.kappa", f"Cohen's kappa with {model}", judges["kappa"], n=n)
    yield Figure("judges.score", f"mean score by {model}", judges["score"], n=n)


def _of_order(order: Mapping[str, Any]) -> Iterator[Figure]:
    yield _share("order.score_agreement", "records with the same score in another order", order["score_agreement"])
    yield _share("order.flipped", "contexts whose verdict flips in another order", order["flipped"])
    for third, share in order["relevant_by_position"].items():
        yield _share(f"order.relevant_{third}", f"relevant contexts in the {third} third, as shown", share)


def _share(name: str, meaning: str, share: Mapping[str, Any]) -> Figure:
    return Figure(name, meaning, share["share"], share["interval_95"], share["n"])
