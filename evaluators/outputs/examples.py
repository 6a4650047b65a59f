"""Worked examples hold sentences verbatim; the judge is shown their numbers."""

import difflib

from ..case import Case
from ..locating import Haystack
from .output import Reply, UnfitExample

Place = tuple[str | int, ...]


def numbers_of(outputs: Reply, place: Place, case: Case) -> set[int]:
    """Numbers of the sentences that stand in the list at `place`. Raises UnfitExample."""
    value: object = outputs
    for step in place:
        value = value[step]  # type: ignore[index]  # the place was made by walking the same value
    numbers: set[int] = set()
    for index, text in enumerate(text_list(value, place)):
        found = locate_sentences(case, text) or _sentences_around(case, text)
        if not found:
            raise UnfitExample(
                (*place, index),
                f"the statement {text!r} is no sentence of the example's contexts; copy it verbatim"
                f"{_nearest(text, case)}",
            )
        numbers.update(found)
    return numbers


def text_list(value: object, place: Place) -> list[str]:
    """A list of texts. Raises UnfitExample."""
    if not isinstance(value, list):
        raise UnfitExample(place, "expected a list of texts")
    for index, item in enumerate(value):
        if not isinstance(item, str):
            raise UnfitExample((*place, index), f"expected a text, found {item!r}; put the text in quotes")
    return value


def locate_sentences(case: Case, text: str) -> list[int]:
    """Numbers of the sentences that `text`, verbatim but for white space, covers; empty where it is in no context."""
    wanted = _squeeze(text)
    for context in case.contexts:
        for first in range(len(context)):
            joined = ""
            for statement in context[first:]:
                joined += _squeeze(statement.text)
                if joined == wanted:
                    return [covered.number for covered in context[first:] if covered.number <= statement.number]
    return []


def _sentences_around(case: Case, text: str) -> list[int]:
    """Numbers of the sentences that hold the text, as nearly as examples for verbatim statements hold it."""
    place = Haystack(case.texts).find(text)
    return [
        statement.number
        for statement in case.statements
        if place and statement.context == place.context and statement.start < place.end and place.start < statement.end
    ]


def _squeeze(text: str) -> str:
    return "".join(text.split())


def _nearest(text: str, case: Case) -> str:
    near = difflib.get_close_matches(text, [statement.text for statement in case.statements], n=1)
    return f", the nearest is {near[0]!r}" if near else ""
