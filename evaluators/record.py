"""The unit of evaluation: one question with what was retrieved for it."""

from dataclasses import dataclass


@dataclass(frozen=True, kw_only=True, slots=True)
class Record:
    """One line of a log."""

    index: int
    """Position in the whole input, from 0."""
    id: str
    """The log's own id, or the index where it has none."""
    where: str
    """`file:line` (or `file:row`), for messages."""
    question: str = ""
    contexts: tuple[str, ...] = ()
    """Retrieved texts in retrieval order; blank ones keep their place."""
    answer: str | None = None
    problem: str | None = None
    """Why the line is no usable record; None where it is one."""
