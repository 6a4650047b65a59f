"""What there is to know of a log before it is judged."""

from typing import Any

from ...evaluators.errors import Failure
from ...evaluators.evaluator import Evaluator
from ...evaluators.record import Record
from ..records import Log
from ..records.fields import Layout, Needs
from ..records.source import Source
from ..records.survey import LONG_TOKENS, Survey

_SHOWN = 3
"""Records that are shown as the judge would see them."""


def inspect_log(log: Log, evaluator: Evaluator, needs: Needs) -> dict[str, Any]:
    """Everything that is told of a log, as JSON can hold it; `evaluator` makes the requests that are shown.

    Raises InputError where it cannot be read to its end.
    """
    survey = Survey(needs)
    counts = [0] * len(log.parts)
    shown: list[dict[str, Any]] = []
    at = 0
    for position in log.records():
        record = position.record
        while at < len(counts) - 1 and not record.where.startswith(f"{log.parts[at][0].name}:"):
            at += 1
        counts[at] += 1
        survey.add(record, has_id=log.parts[at][1].id is not None)
        if len(shown) < _SHOWN and not record.problem:
            shown += _requests(evaluator, record)
    files = [_file(source, layout, count) for (source, layout), count in zip(log.parts, counts, strict=True)]
    return {"files": files, **_counts(survey), "evaluator": evaluator.name, "shown": shown}


def _requests(evaluator: Evaluator, record: Record) -> list[dict[str, Any]]:
    """What the judge would be shown of a record; nothing of one that the evaluator cannot be asked about."""
    try:
        request = evaluator.task(record).request()
    except Failure:
        return []
    return [{"where": record.where, "id": record.id, "request": request and request.user}]


def _file(source: Source, layout: Layout, records: int) -> dict[str, Any]:
    paths = {role: path.text for role, path in layout.inputs.items()}
    return {
        "name": source.name,
        "format": source.format,
        "packing": source.packing,
        "bytes": source.size,
        "records": records,
        "fields": paths | ({"id": layout.id.text} if layout.id else {}),
    }


def _counts(survey: Survey) -> dict[str, Any]:
    tokens, where = survey.longest
    return {
        "records": survey.records,
        "unusable": survey.unusable,
        "reasons": [{"n": reason.n, "first": reason.first} for reason in survey.reasons.values()],
        "contexts": survey.contexts,
        "without_contexts": survey.without_contexts if survey.contexts else None,
        "blank_contexts": survey.blank_contexts if survey.contexts else None,
        "repeated_ids": survey.repeated_ids,
        "repeated_records": survey.repeated_records,
        "text_bytes": survey.text_bytes,
        "long": {"n": survey.long, "above_tokens": LONG_TOKENS, "most_tokens": tokens, "where": where or None},
        "scripts": dict(survey.scripts.most_common()),
    }
