"""Checks on values of a YAML source; each raises a DefinitionError that names file, line, value and next step."""

import difflib
from collections.abc import Iterable, Sequence

from .yaml_source import Place, Source


def mapping(
    source: Source, place: Place, value: object, *, required: Sequence[str], optional: Sequence[str] = ()
) -> dict[str, object]:
    """The value, which has to have the required keys and none that is not known."""
    if not isinstance(value, dict):
        start = "; start from: ctxrel prompts copy context_relevance" if value is None and not place else ""
        source.fail(place, f"expected keys ({', '.join((*required, *optional))}), found {kind_of(value)}{start}")
    known = (*required, *optional)
    for key in value:
        if key not in known:
            source.fail((*place, key), f"unknown key {key!r}; {closest(key, known)}")
    for key in required:
        if key not in value:
            source.fail(place, f"the key {key!r} is missing")
    return value


def closest(given: str, known: Iterable[str]) -> str:
    """A hint at what may have been meant."""
    known = list(known)
    near = difflib.get_close_matches(given, known, n=1)
    return f"did you mean {near[0]!r}?" if near else f"known are {', '.join(known)}"


def kind_of(value: object) -> str:
    """What a value is, in words."""
    if value in ([], {}):
        return "nothing in it"
    return {dict: "keys", list: "a list", str: "a text", type(None): "nothing"}.get(type(value), repr(value))


def text(source: Source, place: Place, value: object) -> str:
    """The value, which has to be a text."""
    if isinstance(value, bool):
        source.fail(place, f"expected a text, found {value} (YAML reads yes, no, on and off so); put it in quotes")
    if not isinstance(value, str):
        source.fail(place, f"expected a text, found {kind_of(value)}; put the text in quotes")
    return value


def texts(source: Source, place: Place, value: object) -> tuple[str, ...]:
    """The value, which has to be a list of texts."""
    if not isinstance(value, (list, tuple)):
        source.fail(place, f"expected a list of texts, found {kind_of(value)}")
    return tuple(text(source, (*place, number), item) for number, item in enumerate(value))


def choice(source: Source, place: Place, value: object, choices: Sequence[str]) -> str:
    """The value, which has to be one of the choices."""
    if not isinstance(value, str) or value not in choices:
        source.fail(place, f"{value!r} is none of: {', '.join(choices)}")
    return value


def number(source: Source, place: Place, value: object) -> float:
    """The value, which has to be a number."""
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        source.fail(place, f"expected a number, found {value!r}")
    return value
