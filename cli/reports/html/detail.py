"""What the page shows of a record once it is opened."""

from bisect import bisect_left
from collections.abc import Callable, Collection, Mapping, Sequence
from itertools import islice
from typing import Any

from ....evaluators.record import Record
from ....evaluators.sentences import language_of
from .records import Row

COLUMNS = frozenset(
    (
        *("index", "id", "evaluator", "status", "score", "question", "model", "prompt", "repaired", "usage"),
        *("error", "requests", "cost", "file", "kept", "input", "opinions", "majority"),
    )
)
"""What every row has, or may have; the rest are outputs of its evaluator."""
_FACTS = ("model", "usage", "cost", "requests", "repaired")
_CONTEXTS = "contexts"
_PROBABILITIES = "statement_probabilities"
_OPINION = ("judge", "repeat", "shuffled", "status", "score", "contexts_relevant", "error")
_ASTRAL = "\uffff"


def detail_of(
    rows: Sequence[Row], record: Record | None, *, with_contexts: bool = True, shown: Collection[str] = ()
) -> dict[str, Any]:
    """A record with all its verdicts; without its contexts' texts where they are not known.

    `with_contexts` tells whether the record's contexts were read at all, `shown` which fields of a record that a row
    carries are on the page in another form. Spans count UTF-16 units, as browsers do.
    """
    first = rows[0]
    hidden = shown if record else ()
    readable = record and record.problem is None and _CONTEXTS not in record.problems
    texts = record.contexts if record and readable and with_contexts else None
    detail: dict[str, Any] = {name: first[name] for name in ("index", "id", "question")}
    detail["language"] = language_of(first["question"])
    if "file" in first:
        detail["file"] = first["file"]
    if record:
        detail["answer"] = record.answer
        detail["inputs"] = dict(record.fields)
    if texts is not None:
        detail["contexts"] = [{"text": text, "language": language_of(text)} for text in texts]
    if isinstance(first.get("kept"), dict):
        detail["kept"] = {name: value for name, value in first["kept"].items() if name not in hidden}
    if isinstance(first.get("input"), dict):
        detail["input"] = {name: value for name, value in first["input"].items() if name not in hidden}
    detail["verdicts"] = [_verdict(row, texts) for row in rows]
    return detail


def fits(rows: Sequence[Row], record: Record) -> bool:
    """Whether a record is the one that was judged: the id, the question, and statements where the rows say they are."""
    if record.id != rows[0]["id"] or record.question != rows[0]["question"]:
        return False
    return all(_spans_fit(row, record.contexts) for row in rows)


def _spans_fit(row: Row, texts: Sequence[str]) -> bool:
    verdicts = context_verdicts(row)
    if verdicts is None or row["status"] != "evaluated":
        return True
    if len(verdicts) != len(texts):
        return False
    cited = [text[start:end] for verdict, text in zip(verdicts, texts, strict=True) for start, end in verdict["spans"]]
    stated = _cited_statements(row, verdicts)
    return all(cited) and (stated is None or stated == cited)


def context_verdicts(row: Row) -> list[dict[str, Any]] | None:
    """The verdicts on each context, None where the evaluator gives none."""
    found = row.get(_CONTEXTS)
    if isinstance(found, list) and all(isinstance(entry, dict) and "spans" in entry for entry in found):
        return found
    return None


def _cited_statements(row: Row, verdicts: Sequence[Mapping[str, Any]]) -> list[str] | None:
    """The relevant statements in their order, None where the row does not hold them as they stand in the contexts."""
    outputs = _outputs(row)
    names = _statement_columns(outputs, verdicts)
    if len(names) < 2:  # noqa: PLR2004
        return outputs[names[0]] if names else None
    return [text for text, score in zip(*(outputs[name] for name in names), strict=True) if score]


def _statement_columns(outputs: Mapping[str, Any], verdicts: Sequence[Mapping[str, Any]]) -> list[str]:
    """The columns that hold what is cited: the relevant statements, or all and their scores; none for quotes."""
    if "locations" in outputs:
        return []
    if {"statements", "statement_scores"} <= outputs.keys():
        return ["statements", "statement_scores"]
    count = sum(verdict["relevant_statements"] for verdict in verdicts)
    names = [name for name, value in outputs.items() if _is_texts(value) and len(value) == count]
    return names if len(names) == 1 else []


def _outputs(row: Row) -> dict[str, Any]:
    named = {name: value for name, value in row.items() if name not in COLUMNS}
    if context_verdicts(row) is not None:
        del named[_CONTEXTS]
    return named


def _verdict(row: Row, texts: Sequence[str] | None) -> dict[str, Any]:
    outputs = _outputs(row)
    verdict: dict[str, Any] = {name: row[name] for name in ("evaluator", "status", "score", "error")}
    verdict["facts"] = {name: row[name] for name in _FACTS if row.get(name)}
    if row.get("opinions"):
        verdict["opinions"] = [{name: opinion[name] for name in _OPINION} for opinion in row["opinions"]]
        verdict["majority"] = row["majority"]
    units = [_utf16_units(text) for text in texts] if texts is not None else []
    if (contexts := context_verdicts(row)) is not None and row["status"] == "evaluated":
        verdict["contexts"] = _contexts(row, contexts, units)
        for name in _statement_columns(outputs, contexts):
            del outputs[name]
        _hand_out(outputs, verdict["contexts"], [context["statements"] for context in contexts])
    if (claims := _claims(outputs)) is not None:
        name, scores, evidence = claims
        verdict["claims"] = [
            {"text": text, "supported": bool(score), "evidence": [_place(place, units) for place in places]}
            for text, score, places in zip(outputs.pop(name), scores, evidence, strict=True)
        ]
        del outputs["statement_scores"], outputs["evidence"]
        _hand_out(outputs, verdict["claims"], [1] * len(scores))
    elif (quotes := _list_beside(outputs, "locations")) is not None:
        located = zip(outputs.pop(quotes), outputs.pop("locations"), strict=True)
        verdict["quotes"] = [{"text": text, **_place(place, units)} for text, place in located]
    verdict["values"] = outputs
    return verdict


def _hand_out(outputs: dict[str, Any], entries: Sequence[dict[str, Any]], counts: Sequence[int]) -> None:
    """Give each context or statement the probabilities of its sentences, if the judge gave one for every sentence."""
    found = outputs.get(_PROBABILITIES)
    if not isinstance(found, list) or not found or len(found) != sum(counts):
        return
    left = iter(outputs.pop(_PROBABILITIES))
    for entry, count in zip(entries, counts, strict=True):
        entry["probabilities"] = list(islice(left, count))


def _contexts(
    row: Row, verdicts: Sequence[Mapping[str, Any]], units: Sequence[Callable[[int], int]]
) -> list[dict[str, Any]]:
    """The verdicts on contexts, spans in UTF-16 units; with the relevant statements where the texts are not known."""
    if units:
        return [
            {**verdict, "spans": [[of(start), of(end)] for start, end in verdict["spans"]]}
            for verdict, of in zip(verdicts, units, strict=True)
        ]
    statements = _cited_statements(row, verdicts) or []
    shown, start = [], 0
    for verdict in verdicts:
        end = start + verdict["relevant_statements"]
        shown.append({**verdict, "spans": [], "sentences": statements[start:end]})
        start = end
    return shown


def _claims(outputs: Mapping[str, Any]) -> tuple[str, list[int], list[list[dict[str, Any]]]] | None:
    """Name, scores and evidence of the statements of an answer; None where the evaluator takes none apart."""
    if not {"statement_scores", "evidence"} <= outputs.keys():
        return None
    name = _list_beside(outputs, "statement_scores")
    return (name, outputs["statement_scores"], outputs["evidence"]) if name else None


def _list_beside(outputs: Mapping[str, Any], known: str) -> str | None:
    """The name of the texts that another list says something about."""
    if not isinstance(outputs.get(known), list):
        return None
    length = len(outputs[known])
    return next((name for name, value in outputs.items() if _is_texts(value) and len(value) == length), None)


def _is_texts(value: object) -> bool:
    return isinstance(value, list) and all(isinstance(item, str) for item in value)


def _place(place: Mapping[str, Any], units: Sequence[Callable[[int], int]]) -> dict[str, Any]:
    """Where something stands, its span in UTF-16 units."""
    context, span = place.get("context"), place.get("span")
    if context is None or span is None or not context < len(units):
        return {**place, "span": None}
    return {**place, "span": [units[context](place) for place in span]}


def _utf16_units(text: str) -> Callable[[int], int]:
    """From positions in characters to positions in UTF-16 units."""
    if text.isascii() or max(text) <= _ASTRAL:
        return lambda position: position
    wide = [place for place, character in enumerate(text) if character > _ASTRAL]
    return lambda position: position + bisect_left(wide, position)
