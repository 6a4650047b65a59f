"""Records whose sentences are numbered, so that the judge can cite instead of copy."""

import re
from collections.abc import Iterable, Sequence
from dataclasses import dataclass
from typing import NamedTuple

import orjson

from .errors import Failure, FailureKind
from .sentences import split_sentences

# Marks by which chat templates tell roles apart. As JSON escapes they mean the same to a reader
# and nothing to a tokenizer, so that no record can open or close a turn.
_TEMPLATE_MARKS = re.compile(r"<(?=[|｜]|/?s>|/?think>|(?:start|end)_of_turn>)|\[(?=/?INST\])")


class Statement(NamedTuple):
    """A sentence of a context; `text == contexts[context][start:end]`."""

    number: int
    """From 1, through the whole record."""
    context: int
    """Index of the context it stands in."""
    start: int
    end: int
    text: str


@dataclass(frozen=True, slots=True)
class NumberedRecord:
    """A question and numbered statements: a whole record, or the part of one that fits into a request."""

    question: str
    contexts: tuple[tuple[Statement, ...], ...]
    """Statements of each context, in retrieval order; blank contexts have none."""

    @property
    def statements(self) -> list[Statement]:
        """All statements in the order of their numbers."""
        return [statement for context in self.contexts for statement in context]

    def halves(self) -> "tuple[NumberedRecord, NumberedRecord] | None":
        """Two parts with half of the contexts each, numbers kept; None for a single context."""
        filled = [context for context in self.contexts if context]
        if len(filled) < 2:  # noqa: PLR2004
            return None
        middle = len(filled) // 2
        return (
            NumberedRecord(self.question, tuple(filled[:middle])),
            NumberedRecord(self.question, tuple(filled[middle:])),
        )


def number_statements(question: str, contexts: Sequence[str]) -> NumberedRecord:
    """The record with its contexts' sentences numbered from 1 through all contexts."""
    numbered: list[tuple[Statement, ...]] = []
    number = 1
    for index, text in enumerate(contexts):
        spans = split_sentences(text)
        numbered.append(
            tuple(
                Statement(number + offset, index, start, end, text[start:end])
                for offset, (start, end) in enumerate(spans)
            )
        )
        number += len(spans)
    return NumberedRecord(question, tuple(numbered))


def render_record(record: NumberedRecord) -> str:
    """The record as the judge sees it: one JSON object, contexts as objects from number to sentence."""
    contexts = [{str(statement.number): statement.text for statement in context} for context in record.contexts]
    text = orjson.dumps({"question": record.question, "contexts": contexts}).decode()
    return _TEMPLATE_MARKS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", text)


def render_citations(output: str, numbers: Iterable[int]) -> str:
    """The reply that cites `numbers`."""
    return orjson.dumps({output: list(numbers)}).decode()


def citation_schema(output: str) -> dict[str, object]:
    """JSON schema (strict) of a reply that cites statements by number."""
    return {
        "type": "object",
        "properties": {output: {"type": "array", "items": {"type": "integer"}}},
        "required": [output],
        "additionalProperties": False,
    }


def read_citations(record: NumberedRecord, reply: dict[str, object], output: str) -> set[int]:
    """The cited numbers. Raises Failure (`invalid_reply`) unless each is a statement of the record."""
    if output not in reply:
        raise Failure(FailureKind.INVALID_REPLY, f"the reply has no key {output!r}")
    numbers = reply[output]
    if not isinstance(numbers, list):
        raise Failure(FailureKind.INVALID_REPLY, f"{output!r} is no list")
    known = {statement.number for statement in record.statements}
    for number in numbers:
        if type(number) is not int:  # True is an int, and no number of a statement
            raise Failure(FailureKind.INVALID_REPLY, f"{output!r} holds something that is no whole number")
        if number not in known:
            raise Failure(FailureKind.INVALID_REPLY, f"there is no statement {number}")
    return set(numbers)


def locate_statement(record: NumberedRecord, text: str) -> list[int]:
    """Numbers of the statements that `text`, verbatim but for white space, covers; empty where it is in no context."""
    wanted = _squeeze(text)
    for context in record.contexts:
        for first in range(len(context)):
            joined = ""
            for statement in context[first:]:
                joined += _squeeze(statement.text)
                if joined == wanted:
                    return [covered.number for covered in context[first:] if covered.number <= statement.number]
    return []


def _squeeze(text: str) -> str:
    return "".join(text.split())
