"""Where a log keeps what a record is made of."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import TypeVar, cast

from ...evaluators.record import Record
from .paths import FieldPath, Missing
from .source import Row
from .texts import Unfit, contexts_of, id_of, question_of

_Value = TypeVar("_Value")


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields a user named; None where they are to be found."""

    question: FieldPath | None = None
    contexts: FieldPath | None = None
    answer: FieldPath | None = None
    id: FieldPath | None = None


@dataclass(frozen=True, kw_only=True)
class Mapping:
    """Where a log keeps what a record is made of."""

    question: FieldPath
    contexts: FieldPath
    answer: FieldPath | None
    id: FieldPath | None

    @property
    def columns(self) -> frozenset[str]:
        """The top-level fields that are needed."""
        return frozenset(path.top for path in (self.question, self.contexts, self.answer, self.id) if path)

    def describe(self) -> str:
        """The mapping in a line."""
        pairs = (("question", self.question), ("contexts", self.contexts), ("answer", self.answer), ("id", self.id))
        return ", ".join(f"{role} ← {path.text}" for role, path in pairs if path)

    def record(self, row: Row, index: int) -> Record:
        """The record a row holds; one with a `problem` where it holds none."""
        if row.value is None:
            return Record(index=index, id=str(index), where=row.where, problem=row.problem)
        name = id_of(optional(self.id, row.value), index)
        question, contexts, problem = "", cast(tuple[str, ...], ()), None
        try:
            question = _read(self.question, question_of, row)
            contexts = _read(self.contexts, contexts_of, row)
        except Unfit as unfit:
            problem = str(unfit)
        answer = optional(self.answer, row.value)
        return Record(
            index=index,
            id=name,
            where=row.where,
            question=question,
            contexts=contexts,
            answer=answer if isinstance(answer, str) else None,
            problem=problem,
        )


def _read(path: FieldPath, convert: Callable[[object], _Value], row: Row) -> _Value:
    try:
        value = path.get(row.value or {})
    except Missing:
        raise Unfit(f"{row.where}: the field {path.text!r} is missing") from None
    try:
        return convert(value)
    except Unfit as unfit:
        raise Unfit(f"{row.where}: the field {path.text!r} {unfit}") from None


def optional(path: FieldPath | None, value: dict[str, object]) -> object:
    """The value at a path, None where nothing stands there."""
    try:
        return path.get(value) if path else None
    except Missing:
        return None
