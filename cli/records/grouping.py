"""Tables with one row per passage: consecutive rows of a query become one record."""

from collections.abc import Iterable, Iterator, Sequence
from typing import NamedTuple

from .source import Row

GROUPED = "passages"
"""Where the texts of a record's rows stand."""
_QUERY_IDS = ("query_id", "qid", "question_id")
_RUNS = ("query_run", "run", "run_id", "question", "query")
_PASSAGES = ("passage", "passage_text", "chunk", "chunk_text")
_RANKS = ("passage_id", "passage_rank", "chunk_id", "document_id", "doc_id", "rank")


class LongForm(NamedTuple):
    """How a table with one row per passage is laid out."""

    passage: str
    keys: tuple[str, ...]
    """Columns that are the same in all rows of a record."""


def long_form(header: Sequence[str]) -> LongForm | None:
    """The layout of a header that names a query's id, a passage and the passage's id or rank; else None."""
    passages = [name for name in _PASSAGES if name in header]
    ids = [name for name in _QUERY_IDS if name in header]
    if len(passages) != 1 or not ids or GROUPED in header or not any(name in header for name in _RANKS):
        return None
    return LongForm(passages[0], (*ids, *(name for name in _RUNS if name in header)))


def grouped(rows: Iterable[Row], form: LongForm) -> Iterator[Row]:
    """A row for each run of rows with the same keys.

    A broken row may be of the record before it or after it: whichever it can be of has its problem.
    """
    group: Row | None = None
    loose: str | None = None
    for row in rows:
        if row.value is None:
            loose = loose or row.problem
            group = group._replace(problem=group.problem or row.problem) if group else row
        elif group and group.value and _same(group.value, row.value, form):
            _add(group.value, row.value, form)
            loose = None
        else:
            if group:
                yield _closed(group)
            group = _opened(row, row.value, form)._replace(problem=loose)
            loose = None
    if group:
        yield _closed(group)


def _same(first: dict[str, object], other: dict[str, object], form: LongForm) -> bool:
    return all(first[key] == other[key] for key in form.keys)


def _opened(row: Row, value: dict[str, object], form: LongForm) -> Row:
    others = {key: item for key, item in value.items() if key != form.passage}
    return row._replace(value=others | {GROUPED: [value[form.passage]]})


def _add(first: dict[str, object], other: dict[str, object], form: LongForm) -> None:
    """One passage more; what the first row left empty is filled from this one."""
    texts = first[GROUPED]
    if isinstance(texts, list):
        texts.append(other[form.passage])
    for key, value in other.items():
        if key != form.passage and first[key] == "":
            first[key] = value


def _closed(group: Row) -> Row:
    return group._replace(value=None) if group.problem else group
