"""Which field of a log is the question, which the contexts: by flag, else by the names tools use."""

import difflib
import re
from collections.abc import Callable, Iterable, Sequence
from typing import NoReturn

from ...evaluators.errors import InputError
from .fields import Fields, Layout, Needs, optional, reading_of
from .paths import FieldPath
from .schemas import ROLES, Schema, all_schemas
from .source import Row
from .texts import Unfit, contexts_of, question_of, text_of

# Names of Haystack, Ragas, DeepEval, TruLens, Azure AI, promptflow, Phoenix, LangChain and LlamaIndex logs.
# A name of an earlier group says more: DeepEval's `context` is the ideal one, `retrieval_context` the retrieved.
_QUESTION = (
    (
        "question",
        "query",
        "questions",
        "queries",
        "user_input",
        "user_question",
        "user_query",
        "question_text",
        "query_text",
    ),
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
        "retrieved_contents",
        "retrieved_contents_semantic",
        "retrieved_contents_lexical",
        "source_documents",
        "source_nodes",
        "attributes.retrieval.documents",
        "ai.observability.retrieval.retrieved_contexts",
        "record_attributes.ai.observability.retrieval.retrieved_contexts",
    ),
    ("contexts", "context", "documents", "passages", "chunks", "docs"),
)
_IDEAL, _IDEAL_BESIDE = "context", ("actual_output", "expected_output")
"""A name that means the ideal contexts beside DeepEval's others, where none were retrieved."""
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
_FILE = re.compile(r"[^\n]{1,200}\.(?:pdf|docx?|pptx?|xlsx?|html?|md|txt|csv|jsonl?|xml)", re.IGNORECASE)
_KEY = re.compile(r"[\d_/\\:]")
_Reading = Callable[[object], object]
_SHOWN = 30
_OWN_ROW = frozenset({"index", "evaluator", "status", "score", "usage"})
"""What each row of ctxrel's own results has."""


class EmptyLog(InputError):
    """A log without records."""


def names_a_question(name: str) -> bool:
    """Whether a field of that name is a question, and hardly anything else."""
    return _snake(name) in _QUESTION[0]


def find_layout(rows: Sequence[Row], fields: Fields, needs: Needs, name: str) -> Layout:
    """The layout of a log by its first rows. Raises EmptyLog, and InputError that shows the flag to use."""
    values = [row.value for row in rows if row.value is not None]
    if not rows:
        raise EmptyLog(f"{name!r} is empty: it holds no records")
    if not values:
        raise InputError(f"{rows[0].problem}; no record at the beginning can be read")
    if all(value.keys() >= _OWN_ROW for value in values) and fields == Fields(id=fields.id):
        raise InputError(
            f"{name!r} holds the rows of a run and is no log; give the log they were made of, or name the fields that "
            "are meant, as --contexts-field"
        )
    finder = _Finder(values, name, fields.schema)
    try:
        return _find_layout(finder, fields, needs)
    except _NotFound as error:
        fitting = [] if fields.schema else [name for name in all_schemas() if _fits(values, fields, needs, name)]
        hint = f"; or give --schema {' or '.join(fitting)}" if fitting else ""
        raise InputError(f"{error}{hint}") from None


def _fits(values: Sequence[dict[str, object]], fields: Fields, needs: Needs, schema: str) -> bool:
    """Whether a schema finds everything that is needed of a log, by a name that is not looked for without."""
    try:
        layout = _find_layout(_Finder(values, "", all_schemas()[schema]), fields, needs)
    except InputError:
        return False
    usual = {name for groups in (_QUESTION, _CONTEXTS, _ANSWER) for group in groups for name in group}
    return any(_snake(layout.inputs[role].text) not in usual for role in needs)


def _find_layout(finder: "_Finder", fields: Fields, needs: Needs) -> Layout:
    found = {
        "question": _question(finder, fields, needs),
        "contexts": _contexts(finder, fields) if "contexts" in needs else None,
        "answer": _answer(finder, fields, needs),
    }
    for role in needs:
        if role not in found:
            read = reading_of(role, needs)
            found[role] = finder.required(role, fields.others.get(role), [[role]], [read], read, may_be_null=True)
    return Layout(
        inputs={role: path for role, path in found.items() if path},
        id=finder.optional("id", fields.id, _ID),
        needs=needs,
    )


def _question(finder: "_Finder", fields: Fields, needs: Needs) -> FieldPath | None:
    if "question" in needs:
        return finder.required("question", fields.question, _QUESTION, [question_of], question_of)
    return finder.optional("question", fields.question, _QUESTION)


def _contexts(finder: "_Finder", fields: Fields) -> FieldPath:
    groups = [[name for name in group if name != _IDEAL or not finder.has_any(_IDEAL_BESIDE)] for group in _CONTEXTS]
    return finder.required("contexts", fields.contexts, groups, [_prose, _words], contexts_of)


def _answer(finder: "_Finder", fields: Fields, needs: Needs) -> FieldPath | None:
    if "answer" in needs:
        return finder.required("answer", fields.answer, _ANSWER, [text_of], text_of, may_be_null=True)
    return finder.optional("answer", fields.answer, _ANSWER)


class _NotFound(InputError):
    """A log has no field of a usual name that could be what is needed: it may be another tool's."""


class _Finder:
    """Looks for fields in the first values of a log."""

    def __init__(self, values: Sequence[dict[str, object]], name: str, schema: Schema | None) -> None:
        self._values = values
        self._name = name
        self._schema = schema
        self._names = list(dict.fromkeys(key for value in values for key in value))

    def required(
        self,
        role: str,
        named: FieldPath | None,
        groups: Iterable[Sequence[str]],
        readings: Sequence[_Reading],
        any_reading: _Reading,
        *,
        may_be_null: bool = False,
    ) -> FieldPath:
        """The field, by the first group of names that the log has any of.

        `readings` start with what looks most like it; `any_reading` is enough for a field that somebody named.
        `may_be_null` takes a field that has been null so far: other evaluators of the run may do without it.
        """
        if named:
            return self._named(role, named, any_reading)
        if self._schema and role in ROLES:
            return self._by_schema(self._schema, role, readings[-1], may_be_null=may_be_null)
        for group in groups:
            present = self._having(self._spelled(group))
            for reading in readings:
                unfit = {path: self._why_unfit(path, reading) for path in present}
                if found := [path for path in present if unfit[path] is None]:
                    return self._only(role, found)
            if present and may_be_null and not any(self._samples(path) for path in present):
                return self._only(role, present)
            if present:  # a name that says so much is not passed over in silence
                error = _NotFound if role == "question" else InputError
                self._fail(role, f"the field {present[0].text!r} {unfit[present[0]]}", error)
        return self._fail(role, f"no field looks like the {role}", _NotFound)

    def _only(self, role: str, found: list[FieldPath]) -> FieldPath:
        if len(found) > 1:
            names = " or ".join(repr(path.text) for path in found)
            raise InputError(f"{self._name}: the {role} may be {names}; choose with {_flag(role, found[0].text)}")
        return found[0]

    def optional(self, role: str, named: FieldPath | None, groups: Iterable[Sequence[str]]) -> FieldPath | None:
        """The field if there is one, by the first group that has any; None where a group has several answers."""
        if named:
            return self._named(role, named, lambda _: None)
        for group in self._schema.fields.get(role, ()) if self._schema else map(self._spelled, groups):
            if found := [path for path in group if self._samples(path)]:
                return found[0] if role == "id" or len(found) == 1 else None
        return None

    def _named(self, role: str, path: FieldPath, read: _Reading) -> FieldPath:
        if any(path.stands_in(value) for value in self._values) and not self._samples(path):
            return path  # null so far
        if not self._samples(path):
            close = difflib.get_close_matches(path.text, self._names, n=1)
            self._fail(
                role, f"no record has the field {path.text!r}" + (f", did you mean {close[0]!r}" if close else "")
            )
        if self._proves_nothing(path):
            self._fail(role, f"no item has the field {path.text!r}")
        if unfit := self._why_unfit(path, read):
            self._fail(role, f"the field {path.text!r} {unfit}")
        return path

    def _proves_nothing(self, path: FieldPath) -> bool:
        """Whether nothing but empty lists, which have whatever their items are asked for, has the field."""
        empty = all(sample == [] for sample in self._samples(path))
        return empty and not all(path.stands_in(value) for value in self._values)

    def has_any(self, names: Iterable[str]) -> bool:
        """Whether the log has a field of one of the names, however it spells them."""
        return not {_snake(name) for name in self._names}.isdisjoint(names)

    def _by_schema(self, schema: Schema, role: str, read: _Reading, *, may_be_null: bool) -> FieldPath:
        """The first of a schema's fields that the log has and that can be what is looked for."""
        unfit: list[FieldPath] = []
        for group in schema.fields.get(role, ()):
            present = self._having(group)
            if fitting := [path for path in present if self._why_unfit(path, read) is None]:
                return self._only(role, fitting)
            unfit += present
        if unfit and may_be_null and not any(map(self._samples, unfit)):
            return unfit[0]
        if unfit:
            why = f"the field {unfit[0].text!r} {self._why_unfit(unfit[0], read)}"
        elif role in schema.fields:
            why = f"no record at the beginning has a field {schema.told(role)}"
        else:
            why = f"it names no field for the {role}"
        hint = f"; such a log mostly needs {schema.goes_with}" if schema.goes_with else ""
        return self._fail(role, f"the schema {schema.name!r} does not fit: {why}{hint}")

    def _fail(self, role: str, what: str, error: type[InputError] = InputError) -> NoReturn:
        shown = (", ".join(self._names[:_SHOWN]) or "no fields") + (" …" if len(self._names) > _SHOWN else "")
        raise error(f"{self._name}: {what}; name the {role} with {_flag(role, '')} (there are: {shown})")

    def _spelled(self, group: Sequence[str]) -> list[FieldPath]:
        """Paths of the group as the log spells them."""
        spelled = {_snake(name): name for name in reversed(self._names)}
        return [FieldPath(spelled.get(name, name)) for name in group]

    def _having(self, paths: Iterable[FieldPath]) -> list[FieldPath]:
        """Those of the paths that the log has, whatever they hold."""
        return [path for path in paths if any(path.stands_in(value) for value in self._values)]

    def _samples(self, path: FieldPath) -> list[object]:
        samples = (optional(path, value) for value in self._values)
        return [sample for sample in samples if sample is not None]

    def _why_unfit(self, path: FieldPath, read: _Reading) -> str | None:
        """Why no sample can be what is looked for, None where one can."""
        reason = None
        for sample in self._samples(path):
            try:
                read(sample)
            except Unfit as unfit:
                reason = reason or str(unfit)
            else:
                return None
        return reason or "is null in every record at the beginning"


def _flag(role: str, path: str) -> str:
    """The option that names a field."""
    if role in ("question", "contexts", "answer", "id"):
        return f"--{role}-field {path}".strip()
    return f"--field {role}={path or 'PATH'}"


def _snake(name: str) -> str:
    """`retrievalContext` and `Retrieval Context` as retrieval_context."""
    return re.sub(r"(?<=[a-z0-9])(?=[A-Z])|[\s-]+", "_", name.strip()).lower()


def _prose(sample: object) -> tuple[str, ...]:
    """Contexts that hold more than single words. Raises Unfit."""
    texts = _words(sample)
    if any(texts) and not any(len(text.split(maxsplit=1)) > 1 or not text.isascii() for text in texts):
        raise Unfit("holds nothing but single words")
    return texts


def _words(sample: object) -> tuple[str, ...]:
    """Contexts that are text, not merely names, ids or addresses of documents. Raises Unfit."""
    texts = contexts_of(sample)
    filled = [text.strip() for text in texts if text.strip()]
    if filled and all(map(_names_a_document, filled)):
        raise Unfit("seems to hold names of documents, not their text")
    return texts


def _names_a_document(text: str) -> bool:
    """Whether a text is a file's name, or a single ASCII word with a sign of addresses, paths or ids in it."""
    is_word = text.isascii() and len(text.split(maxsplit=1)) == 1
    return bool(_FILE.fullmatch(text)) or (is_word and bool(_KEY.search(text)))
