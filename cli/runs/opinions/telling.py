"""What further opinions come to, in lines for people."""

from collections.abc import Iterator, Mapping
from typing import Any

NOT_COUNTED = "the estimate is of one answer for each record: --repeat, --judge-also and --shuffle-contexts add to it"


def stability_lines(summary: Mapping[str, Any]) -> Iterator[str]:
    """A line for each evaluator that has figures of stability."""
    for name, block in summary["evaluators"].items():
        if stability := block.get("stability"):
            parts = [
                *_of_repeats(stability["repeats"]),
                *_of_judges(stability["judges"]),
                *_of_order(stability["order"]),
            ]
            if errors := sum(stability["errors"].values()):
                parts.append(f"{errors:,} of {stability['opinions']:,} further answers are errors")
            yield f"stability of {name}: {'; '.join(parts)}"


def _of_repeats(repeats: Mapping[str, Any] | None) -> Iterator[str]:
    if repeats:
        unanimous = repeats["unanimous"]
        yield (
            f"self-agreement {_share(repeats['agreement'])} over {repeats['repeat']} answers, all alike for "
            f"{_share(unanimous['share'])} of {unanimous['n']:,} records"
        )


def _of_judges(judges: Mapping[str, Any] | None) -> Iterator[str]:
    if judges:
        kappa = "-" if judges["kappa"] is None else f"{judges['kappa']:.2f}"
        yield (
            f"agreement with {judges['model']} {_share(judges['agreement']['share'])}, kappa {kappa} "
            f"on {judges['n']:,} records"
        )


def _of_order(order: Mapping[str, Any] | None) -> Iterator[str]:
    if order:
        positions = order["relevant_by_position"]
        if any(share["n"] for share in positions.values()):
            told = ", ".join(f"{_share(share['share'])} {third}" for third, share in positions.items())
            yield f"relevant by shown position {told}; in another order {_share(order['flipped']['share'])} flipped"
        else:
            yield f"same score in another order {_share(order['score_agreement']['share'])}"


def _share(value: float | None) -> str:
    return "-" if value is None else f"{value:.1%}"
