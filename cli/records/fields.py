"""Which field of a log is the question, which the contexts: by flag, else by the names tools use."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass
from typing import NoReturn, TypeVar, cast

from ...evaluators.errors import InputError
from ...evaluators.record import Record
from .paths import FieldPath, Missing
from .source import Row
from .texts import Unfit, contexts_of, id_of, question_of

# Names of Haystack, Ragas, DeepEval, TruLens, Azure AI, promptflow, Phoenix, LangChain and LlamaIndex logs.
# A name of an earlier group says more: DeepEval's `context` is the ideal one, `retrieval_context` the retrieved.
_QUESTION = (
    ("question", "query", "user_input", "user_question", "user_query", "question_text", "query_text"),
    ("ai.observability.retrieval.query_text", "record_attributes.ai.observability.retrieval.query_text"),
    ("input", "prompt", "attributes.input.value"),
)
_CONTEXTS = (
    (
        "retrieved_contexts",
        "retrieved_context",
        "retrieval_context",
        "retrieval_contexts",
        "retrieved_documents",
        "retrieved_passages",
        "retrieved_chunks",
        "source_documents",
        "source_nodes",
        "attributes.retrieval.documents",
        "ai.observability.retrieval.retrieved_contexts",
        "record_attributes.ai.observability.retrieval.retrieved_contexts",
    ),
    ("contexts", "context", "documents", "passages", "chunks", "docs"),
)
_ANSWER = (
    (
        "answer",
        "response",
        "actual_output",
        "generated_answer",
        "predicted_answer",
        "output",
        "completion",
        "prediction",
    ),
)
_ID = (
    (
        "id",
        "question_id",
        "query_id",
        "qid",
        "record_id",
        "_id",
        "uid",
        "uuid",
        "task_id",
        "context.span_id",
        "span_id",
    ),
    ("trace_id", "conversation_id", "session_id"),
)
_SHOWN = 12
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
        name = id_of(_optional(self.id, row.value), index)
        question, contexts, problem = "", cast(tuple[str, ...], ()), None
        try:
            question = _read(self.question, question_of, row)
            contexts = _read(self.contexts, contexts_of, row)
        except Unfit as unfit:
            problem = str(unfit)
        answer = _optional(self.answer, row.value)
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


def _optional(path: FieldPath | None, value: dict[str, object]) -> object:
    try:
        return path.get(value) if path else None
    except Missing:
        return None


def find_mapping(rows: Sequence[Row], fields: Fields, name: str) -> Mapping:
    """The mapping of a log by its first rows. Raises InputError that shows the flag to use."""
    values = [row.value for row in rows if row.value is not None]
    if not values:
        raise InputError(rows[0].problem if rows and rows[0].problem else f"{name!r} is empty: it holds no records")
    finder = _Finder(values, name)
    return Mapping(
        question=finder.required("question", fields.question, _QUESTION, _is_question),
        contexts=finder.required("contexts", fields.contexts, _CONTEXTS, _are_contexts),
        answer=finder.optional("answer", fields.answer, _ANSWER),
        id=finder.optional("id", fields.id, _ID),
    )


class _Finder:
    """Looks for fields in the first values of a log."""

    def __init__(self, values: Sequence[dict[str, object]], name: str) -> None:
        self._values = values
        self._name = name
        self._names = list(dict.fromkeys(key for value in values for key in value))

    def required(
        self, role: str, named: FieldPath | None, groups: Iterable[Sequence[str]], fits: Callable[[object], bool]
    ) -> FieldPath:
        if named:
            self._check(role, named)
            return named
        for group in groups:
            found = [path for path in self._present(group) if any(map(fits, self._samples(path)))]
            if len(found) == 1:
                return found[0]
            if found:
                names = " or ".join(repr(path.text) for path in found)
                raise InputError(f"{self._name}: the {role} may be {names}; choose with --{role}-field {found[0].text}")
        return self._fail(role, f"no field looks like the {role}")

    def optional(self, role: str, named: FieldPath | None, groups: Iterable[Sequence[str]]) -> FieldPath | None:
        if named:
            self._check(role, named)
            return named
        return next((path for group in groups for path in self._present(group)), None)

    def _check(self, role: str, path: FieldPath) -> None:
        if not self._samples(path):
            self._fail(role, f"no record has the field {path.text!r}")

    def _fail(self, role: str, what: str) -> NoReturn:
        close = difflib.get_close_matches(what.rsplit("'", 2)[-2], self._names, n=1) if "'" in what else []
        hint = f"did you mean {close[0]!r}? " if close else ""
        shown = ", ".join(self._names[:_SHOWN]) + (" …" if len(self._names) > _SHOWN else "")
        raise InputError(f"{self._name}: {what}; {hint}name it with --{role}-field (there are: {shown})")

    def _present(self, group: Sequence[str]) -> list[FieldPath]:
        """Paths of the group that hold anything, as the log spells them."""
        spelled = {_snake(name): name for name in reversed(self._names)}
        paths = [FieldPath(spelled.get(name, name)) for name in group]
        return [path for path in paths if self._samples(path)]

    def _samples(self, path: FieldPath) -> list[object]:
        samples = (_optional(path, value) for value in self._values)
        return [sample for sample in samples if sample is not None]


def _snake(name: str) -> str:
    """`retrievalContext` and `Retrieval Context` as retrieval_context."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+", "_", name.strip()).lower()


def _is_question(sample: object) -> bool:
    return isinstance(sample, str)


def _are_contexts(sample: object) -> bool:
    """Whether a sample may be contexts: text, and not merely names or addresses of documents."""
    try:
        texts = contexts_of(sample)
    except Unfit:
        return False
    filled = [text for text in texts if text.strip()]
    return not filled or any(_is_prose(text) for text in filled)


def _is_prose(text: str) -> bool:
    return not re.match(r"\w+://\S*$", text) and (len(text.split()) > 1 or not text.isascii())
