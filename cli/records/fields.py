"""Where a log keeps what a record is made of."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, field

from ...evaluators.record import Record
from .paths import FieldPath, Missing
from .schemas import Schema
from .source import Row
from .texts import Unfit, contexts_of, id_of, json_of, question_of, text_of

READINGS: dict[str, Callable[[object], object]] = {
    "text": text_of,
    "texts": contexts_of,
    "contexts": contexts_of,
    "json": json_of,
}
"""How an input is read, by its kind."""
Needs = Mapping[str, str]
"""Kinds of the inputs that the evaluators of a run need, by name."""


@dataclass(frozen=True, kw_only=True)
class Fields:
    """The fields a user named; None where they are to be found."""

    question: FieldPath | None = None
    contexts: FieldPath | None = None
    answer: FieldPath | None = None
    id: FieldPath | None = None
    others: Mapping[str, FieldPath] = field(default_factory=dict)
    """Those of further inputs, by the inputs' names."""
    schema: Schema | None = None
    """Where those stand that nobody named."""
    records: FieldPath | None = None
    """The list of a JSON document that holds the records."""


@dataclass(frozen=True, kw_only=True)
class Layout:
    """Where a log keeps what a record is made of."""

    inputs: Mapping[str, FieldPath]
    """By the inputs' names; some of them may be there without anybody needing them."""
    id: FieldPath | None
    needs: Needs

    @property
    def columns(self) -> frozenset[str]:
        """The top-level fields that are read."""
        return frozenset(path.top for _, path in self._paths())

    def describe(self) -> str:
        """The layout in a line."""
        return ", ".join(f"{role} ← {path.text}" for role, path in self._paths())

    def record(self, row: Row, index: int) -> Record:
        """The record a row holds; one with problems where it does not hold what is needed."""
        if row.value is None:
            return Record(index=index, id=str(index), where=row.where, problem=row.problem)
        values: dict[str, object] = {}
        problems: dict[str, str] = {}
        for name, path in self.inputs.items():
            try:
                values[name] = _read(path, reading_of(name, self.needs), row.where, row.value)
            except Unfit as unfit:
                if name in self.needs:
                    problems[name] = str(unfit)
        return Record(
            index=index,
            id=id_of(optional(self.id, row.value), index),
            where=row.where,
            question=values.pop("question", ""),  # type: ignore[arg-type]  # its reading gives texts
            contexts=values.pop("contexts", ()),  # type: ignore[arg-type]  # its reading gives tuples of texts
            answer=values.pop("answer", None),  # type: ignore[arg-type]  # its reading gives texts
            fields=values,
            problems=problems,
        )

    def _paths(self) -> Iterator[tuple[str, FieldPath]]:
        yield from self.inputs.items()
        if self.id:
            yield "id", self.id


def reading_of(name: str, needs: Needs) -> Callable[[object], object]:
    """What makes an input of the value that stands for it. It raises Unfit."""
    return question_of if name == "question" else READINGS[needs.get(name, "text")]


def _read(path: FieldPath, read: Callable[[object], object], where: str, record: dict[str, object]) -> object:
    try:
        value = path.get(record)
    except Missing:
        raise Unfit(f"{where}: the field {path.text!r} is missing") from None
    try:
        return read(value)
    except Unfit as unfit:
        raise Unfit(f"{where}: the field {path.text!r} {unfit}") from None


def optional(path: FieldPath | None, value: dict[str, object]) -> object:
    """The value at a path, None where nothing stands there."""
    try:
        return path.get(value) if path else None
    except Missing:
        return None
