"""Figures of runs and comparisons as people read them, in a terminal and in Markdown."""

from collections.abc import Mapping, Sequence
from typing import Any

COMPARED = ("evaluator", "joined", "before", "after", "difference", "95 % interval", "up", "down", "p", "")
"""The columns of a comparison."""


def number(value: float | None) -> str:
    """Three decimals."""
    return "-" if value is None else f"{value:.3f}"


def interval(value: Sequence[float] | None) -> str:
    """Its two ends."""
    return "-" if value is None else f"{value[0]:.3f} to {value[1]:.3f}"


def errors(block: Mapping[str, Any]) -> str:
    """An evaluator's errors by kind."""
    return ", ".join(f"{count:,} {kind}" for kind, count in block["errors"].items()) or "none"


def p_value(value: float | None) -> str:
    """Three decimals, and no 0.000."""
    return "<0.001" if value is not None and value < 0.001 else number(value)  # noqa: PLR2004  # three decimals


def signed(value: float | None) -> str:
    """Three decimals of a difference."""
    return "-" if value is None else f"{value:+.3f}"


def signed_interval(value: Sequence[float] | None) -> str:
    """The two ends of a difference's interval."""
    return "-" if value is None else f"{signed(value[0])} to {signed(value[1])}"


def comparison_row(name: str, block: Mapping[str, Any]) -> list[str]:
    """The cells of an evaluator that was compared, under `COMPARED`."""
    score = block["score"]
    return [
        name, f"{block['joined']:,}", number(score["before"]), number(score["after"]), signed(block["difference"]),
        signed_interval(block["interval_95"]), f"{block['up']:,}", f"{block['down']:,}", p_value(block["mcnemar_p"]),
        block["verdict"],
    ]  # fmt: skip
