"""The unit of evaluation: one question with what was retrieved for it."""

from collections.abc import Mapping
from dataclasses import dataclass, field


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
    fields: Mapping[str, object] = field(default_factory=dict)
    """Further inputs of evaluators, by name."""
    problem: str | None = None
    """Why the line is no usable record at all; None where it is one."""
    problems: Mapping[str, str] = field(default_factory=dict)
    """Why single inputs cannot be used, by their names."""

    def input(self, name: str) -> object:
        """An evaluator's input."""
        if name == "question":
            return self.question
        if name == "contexts":
            return self.contexts
        return self.answer if name == "answer" else self.fields[name]
