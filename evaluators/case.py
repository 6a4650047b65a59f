"""A record as the judge is shown it: whole, or the part of it that fits into one request."""

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field, replace
from typing import NamedTuple

import orjson

from .sentences import split_sentences

CONTEXTS = "contexts"
"""The input whose sentences can be cited."""
# Marks by which chat templates tell roles apart. As JSON escapes they mean the same to a reader
# and nothing to a tokenizer, so that no record can open or close a turn.
_TEMPLATE_MARKS = re.compile(
    r"<(?=[|｜]|/?s>|/?think>|(?:start|end)_of_(?:turn|image)>|[be]os>|/?tool_(?:call|response)>|</?SYS>>)"
    r"|\[(?=/?(?:INST|SYSTEM_PROMPT|TOOL_CALLS|TOOL_RESULTS|AVAILABLE_TOOLS)\])"
)


class Statement(NamedTuple):
    """A sentence of a context; `text == contexts[context][start:end]`."""

    number: int
    """From 1, through the whole record."""
    context: int
    """Index of the context it stands in."""
    start: int
    end: int
    text: str


Context = tuple[Statement, ...]


@dataclass(frozen=True, slots=True)
class Case:
    """The inputs of one request."""

    inputs: Mapping[str, object]
    """By name, in the order in which they are shown; under `contexts` the whole texts."""
    contexts: tuple[Context, ...] = ()
    """Statements of each context, in retrieval order; blank contexts have none. Empty where nothing is cited."""
    numbered: bool = False
    """Whether the judge sees the contexts as numbered sentences; else it sees their texts."""
    whole: bool = True
    """Whether this is the whole record."""
    found: Mapping[str, object] = field(default_factory=dict)
    """What the request for an earlier part of the record has found, shown beside the inputs."""

    @property
    def texts(self) -> Sequence[str]:
        """The contexts' whole texts, also where the case is a part."""
        texts = self.inputs.get(CONTEXTS, ())
        assert isinstance(texts, (list, tuple))  # noqa: S101  # number_statements() was given them
        return texts

    @property
    def statements(self) -> list[Statement]:
        """All statements in the order of their numbers."""
        return [statement for context in self.contexts for statement in context]

    def render(self) -> str:
        """The case as the judge sees it: one JSON object."""
        shown = {**self.inputs, **self.found}
        if self.numbered:
            shown[CONTEXTS] = [{str(statement.number): statement.text for statement in c} for c in self.contexts]
        elif not self.whole:
            shown[CONTEXTS] = [self.texts[c[0].context][c[0].start : c[-1].end] for c in self.contexts]
        return _TEMPLATE_MARKS.sub(lambda mark: f"\\u{ord(mark[0]):04x}", orjson.dumps(shown).decode())

    def with_input(self, name: str, value: object) -> "Case":
        """The case with another value for an input, shown where that one was."""
        return replace(self, inputs={**self.inputs, name: value})

    def halves(self) -> "tuple[Case, Case] | None":
        """Two parts of about the same length, numbers kept: by contexts, a single one by sentences.

        None where a single sentence is left.
        """
        filled = [context for context in self.contexts if context]
        if len(filled) > 1:
            place = _middle([sum(len(statement.text) for statement in context) for context in filled])
            first, second = filled[:place], filled[place:]
        elif filled and len(filled[0]) > 1:
            place = _middle([len(statement.text) for statement in filled[0]])
            first, second = [filled[0][:place]], [filled[0][place:]]
        else:
            return None
        return self._part(first), self._part(second)

    def _part(self, contexts: Sequence[Context]) -> "Case":
        return replace(self, contexts=tuple(contexts), whole=False)


def _middle(lengths: Sequence[int]) -> int:
    """Where to cut a list of two items or more, so that both sides are as equal as can be."""
    total, before, best = sum(lengths), 0, (float("inf"), 1)
    for place, length in enumerate(lengths[:-1], start=1):
        before += length
        best = min(best, (abs(total - 2 * before), place))
    return best[1]


def number_statements(contexts: Sequence[str]) -> tuple[Context, ...]:
    """The sentences of the contexts, numbered from 1 through all of them."""
    numbered: list[Context] = []
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
    return tuple(numbered)
