"""A record with its contexts in another order, and verdicts brought back into the log's."""

from collections.abc import Sequence
from dataclasses import replace
from hashlib import blake2b
from random import Random

import orjson

from ....evaluators.evaluator import Evaluation
from ....evaluators.record import Record

_FEWEST = 2


def order_of(record: Record, seed: int) -> list[int] | None:
    """The places of the contexts in the order in which they are to be shown; None for fewer than two that say anything.

    It is drawn from all orders, the log's own included, by the seed, the question and the contexts: so a context's
    position in it says nothing of what stands in the context.
    """
    if sum(bool(text.strip()) for text in record.contexts) < _FEWEST:
        return None
    content = orjson.dumps((seed, record.question, record.contexts))
    order = list(range(len(record.contexts)))
    Random(blake2b(content, digest_size=16).digest()).shuffle(order)  # noqa: S311  # an order is no secret
    return order


def in_order(record: Record, order: Sequence[int]) -> Record:
    """The record with its contexts in this order."""
    return replace(record, contexts=tuple(record.contexts[place] for place in order))


def verdicts_of(evaluation: Evaluation | None, order: Sequence[int] | None = None) -> list[bool | None] | None:
    """Whether each context is relevant, in the log's order, where they were shown in this one.

    None for a context without a sentence, and for all where the evaluator says nothing of single contexts.
    """
    found = evaluation.outputs.get("contexts") if evaluation else None
    if not isinstance(found, list) or not all(isinstance(each, dict) and "relevant" in each for each in found):
        return None
    shown = [bool(each["relevant"]) if each.get("statements") else None for each in found]
    if order is None:
        return shown
    verdicts: list[bool | None] = [None] * len(shown)
    for place, verdict in zip(order, shown, strict=True):
        verdicts[place] = verdict
    return verdicts
