"""From verdicts to a score: pure functions, so that a changed rule costs no call."""


def score_any(relevant: int, total: int) -> float:  # noqa: ARG001  # one signature for all rules
    """1 if anything is relevant, else 0: the binary reading of context relevance."""
    return 1 if relevant else 0


def score_share(relevant: int, total: int) -> float:
    """Share of the statements that are relevant, 0 to 1; 0 without statements."""
    return relevant / total if total else 0


SCORERS = {"any": score_any, "share": score_share}
"""By the name that stands under `scoring` in an evaluator's YAML."""
