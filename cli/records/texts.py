"""Questions, contexts and ids out of whatever a log holds in their place."""

import ast
import io
import tokenize

import orjson

from ...evaluators.jsontext import dumps_anything, loads, replace_surrogates

_TEXT_KEYS = (
    "text",
    "content",
    "page_content",
    "document.content",
    "passage",
    "chunk",
    "chunk_text",
    "document",
    "body",
    "snippet",
    "context",
    "node",
)
"""Keys under which logs keep the text of a context, the usual ones first."""


class Unfit(ValueError):
    """The value cannot stand for a question or a context; the message goes on from the field's name."""


def question_of(value: object) -> str:
    """The text of a question. Raises Unfit."""
    if not isinstance(value, str):
        raise Unfit(f"is {_kind(value)}, not a text")
    if not value.strip():
        raise Unfit("is empty")
    return replace_surrogates(value)


def text_of(value: object) -> str:
    """A text, as it is or inside of an object; it may be empty. Raises Unfit."""
    return _text_of(value)


def json_of(value: object) -> object:
    """A value as JSON can hold it: dates and decimals of tables become texts. Raises Unfit."""
    if value is None:
        raise Unfit("is null")
    try:
        return orjson.loads(dumps_anything(value))
    except TypeError:
        raise Unfit(f"is {_kind(value)} that is nested too deeply, or that JSON cannot hold") from None


def contexts_of(value: object) -> tuple[str, ...]:
    """The texts of contexts: of a list, of one text or of one object. Raises Unfit.

    A null beside texts is a blank context, so that the others keep their rank; nothing but nulls is no retrieval.
    """
    if isinstance(value, str):
        value = _unpack(value)
    if isinstance(value, (str, dict)):
        return (_text_of(value),)
    if not isinstance(value, list):
        raise Unfit(f"is {_kind(value)}, not a list of texts")
    if value and all(item is None for item in value):
        raise Unfit("holds nothing but null")
    return tuple("" if item is None else _text_of(item, position) for position, item in enumerate(value))


def id_of(value: object, index: int) -> str:
    """The record's own id as a text, its index where it has none."""
    if value is None or value == "":
        return str(index)
    if isinstance(value, str):
        return replace_surrogates(value)
    try:
        return dumps_anything(value).decode().strip('"')
    except TypeError:  # nested beyond what can be written
        return str(index)


def _unpack(text: str) -> object:
    """The list that a text spells out, as JSON or as Python writes it (tables hold lists so); else the text."""
    if not text.startswith("[") or not text.rstrip().endswith("]"):
        return text
    for read in (loads, _literal):
        try:
            value = read(text)
        except (ValueError, SyntaxError, RecursionError, MemoryError):
            continue
        if isinstance(value, list) and all(item is None or isinstance(item, (str, dict)) for item in value):
            return value
    return text


def _literal(text: str) -> object:
    """A Python literal; of a numpy array's items, which have no commas between, each is one of its own."""
    value: object = ast.literal_eval(text)
    if not isinstance(value, list) or not all(isinstance(item, str) for item in value):
        return value
    words = [
        token.string for token in tokenize.generate_tokens(io.StringIO(text).readline) if token.type == tokenize.STRING
    ]
    return value if len(words) == len(value) else [ast.literal_eval(word) for word in words]


def _text_of(value: object, position: int | None = None) -> str:
    place = "" if position is None else f"[{position}]"
    inner = value
    for _ in range(3):  # {"document": {"content": {"text": ...}}}
        if not isinstance(inner, dict):
            break
        found = [inner[key] for key in _TEXT_KEYS if inner.get(key) is not None]
        inner = next((text for text in found if text != ""), found[0] if found else None)
    if isinstance(inner, str):
        return replace_surrogates(inner)
    if isinstance(value, dict):
        raise Unfit(
            f"{place} has no text under {', '.join(_TEXT_KEYS[:4])} …; it has {', '.join(map(str, value))}".strip()
        )
    hint = "; a further [] at the end of its path goes over the lists" if isinstance(value, list) and place else ""
    raise Unfit(f"{place} is {_kind(value)}, not a text{hint}".strip())


def _kind(value: object) -> str:
    names = {
        type(None): "null",
        bool: "a boolean",
        int: "a number",
        float: "a number",
        list: "a list",
        dict: "an object",
    }
    return names.get(type(value), type(value).__name__)
