"""The forms of what commands print with --json."""

from collections.abc import Callable

from ...evaluators.case import CONTEXTS
from ..runs.summary import STATUSES
from .parts import Schema, boolean, choice, document, entries, integer, listing, mapping, nullable, number, text
from .summary import gate, price

_RANGE = ("low", "likely", "high")
_USD = "USD"


def estimate_schema() -> Schema:
    """The form of what `ctxrel estimate --json` prints."""
    told = "What a run would send, take and cost."
    return document("estimate", "What ctxrel estimate --json prints", told, entries(told, {
        "judge": text("The judge in words."),
        "records": integer("Records that would be judged."),
        "requests": entries("What becomes of them, for each evaluator.", {
            "to_send": integer("Requests that would be sent."),
            "stored": integer("Rows whose replies are in the store."),
            "identical": integer("Requests that are the same as an earlier one."),
            "not_needed": integer("Rows that need no request."),
            "unusable": integer("Rows that would be errors for what stands in the log."),
        }),
        "tokens": entries("Tokens of the requests to send.", {
            "input": _range("Sent.", integer), "output": _range("Received, reasoning included.", integer),
        }),
        "assumed": listing("Evaluators whose replies' length was assumed: the store knows too few.", text("A name.")),
        "cost": nullable(_range(f"{_USD} at list price; null where it is not known.", number)),
        "cost_in_batches": nullable(_range("The same with `--batch`; null where there are no batches.", number)),
        "price": nullable(price()),
        "shares": entries("Of the likely input.", {
            "examples": number("Worked examples, as a share of its tokens."),
            "examples_of_cost": nullable(number("The same as a share of the cost; null where it is not known.")),
            "cacheable": number("What the provider's prompt cache can hold."),
        }),
        "seconds": number("How long it would take.", minimum=0),
        "in_flight": integer("With so many requests in flight."),
        "request": {"description": "With `--show`: the first request as it would be sent; null where there is none."},
    }, sometimes=["request"]))  # fmt: skip


def _range(told: str, value: Callable[[str], Schema]) -> Schema:
    words = {"low": "At least, as it seems.", "likely": "What is to be expected.", "high": "At most, as it seems."}
    return entries(told, {name: value(words[name]) for name in _RANGE})


def inspect_schema() -> Schema:
    """The form of what `ctxrel inspect --json` prints."""
    told = "How a run would read a log, and what is in it."
    return document("inspect", "What ctxrel inspect --json prints", told, entries(told, {
        "files": listing("The files.", entries("A file.", {
            "name": text("Its name; - is standard input."),
            "format": text("What it was recognised as, in words."),
            "packing": nullable(text("What it is packed in; null where it is not.")),
            "bytes": nullable(integer("Its size; null for a pipe.")),
            "records": integer("Records in it, or of it."),
            "fields": mapping("Paths by what stands there.", text("A path.")),
        })),
        "records": integer("Records."),
        "unusable": integer("Those of them that some evaluator cannot be asked about."),
        "reasons": listing("Why, at most 20 and the others together.", entries("A reason.", {
            "n": integer("Records."), "first": text("The first one, with its file and line."),
        })),
        CONTEXTS: nullable(entries("Contexts of a record; null where the evaluators need none.", {
            "min": integer("The fewest."), "median": number("The middle."), "max": integer("The most."),
        })),
        "without_contexts": nullable(integer("Records without any text in their contexts.")),
        "blank_contexts": nullable(integer("Contexts without text beside others.")),
        "repeated_ids": nullable(integer("Records with an earlier one's id; null where there are no ids.")),
        "repeated_records": integer("Records that are the same as an earlier one."),
        "text_bytes": integer("Bytes of what is judged."),
        "long": entries("Long records.", {
            "n": integer("How many."), "above_tokens": integer("Beyond so many tokens."),
            "most_tokens": integer("Tokens of the longest."), "where": nullable(text("Where that one stands.")),
        }),
        "scripts": mapping("Records by the script of their question.", integer("Records.")),
        "evaluator": text("The evaluator that shows them."),
        "shown": listing("Records as the judge would see them.", entries("A record.", {
            "where": text("Where it stands."), "id": text("Its id."),
            "request": nullable(text("What the judge would be shown; null where nothing is asked.")),
        })),
        "config": nullable(text("The config file in force; null without one.")),
    }))  # fmt: skip


def check_schema() -> Schema:
    """The form of what `ctxrel check --json` prints."""
    told = "Whether a run that is there meets its gates."
    return document("check", "What ctxrel check --json prints", told, entries(told, {
        "status": choice("As `status` of the summary.", STATUSES),
        "met": boolean("Whether the run is complete and all gates are met."),
        "gates": listing("What the gates say, for each evaluator that they concern.", gate()),
    }))  # fmt: skip


def doctor_schema() -> Schema:
    """The form of what `ctxrel doctor --json` prints."""
    told = "What a run needs, and whether it is there."
    statuses = ("ok", "warn", "fail")
    return document("doctor", "What ctxrel doctor --json prints", told, entries(told, {
        "status": choice("The worst of all.", statuses),
        "checks": listing("What was looked at.", entries("A check.", {
            "name": text("What it is about."),
            "status": choice("Whether a run can rely on it.", statuses),
            "found": text("What was found, for people."),
            "advice": nullable(text("What to do; null where there is nothing to do, or it is said already.")),
        })),
    }))  # fmt: skip
