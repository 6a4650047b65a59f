"""The form of summary.json."""

from ...evaluators.costs.price import Parts
from ...evaluators.definition import HIGHER, LOWER
from ...evaluators.errors import FailureKind
from ...evaluators.replies import Usage
from ..runs.columns import SCHEMA_VERSION
from ..runs.opinions.stability import THIRDS
from ..runs.summary import STATUSES
from .configuration import configuration_schema
from .figures import figures_schema
from .parts import Schema, boolean, choice, document, entries, integer, listing, mapping, nullable, number, text
from .row import FIXED_TOLD

_USD = "USD"


def summary_schema() -> Schema:
    """The form of a summary."""
    body = entries("", {**_of_the_run(), **_of_what_it_took()}, sometimes=["engine"])
    told = "The account of a run, written last into its folder; without one the run did not end."
    return document("summary", "The summary of a run of ctxrel", told, body | {"description": told})


def _of_the_run() -> dict[str, Schema]:
    return {
        "schema": {"description": "Version of the forms of this file and of its rows.", "const": SCHEMA_VERSION},
        "version": text("Version of ctxrel that wrote it."),
        "status": choice(
            "How the run ended: `interrupted` by a signal, `budget` where a cap was reached, `pending` where batches "
            "are under way, `failed` for every other error.",
            STATUSES,
        ),
        "error": nullable(text("Why the run ended early, a sentence for people; null of a complete run.")),
        "results": nullable(text("Name of the file or folder beside the summary that holds the rows; null for standard "
                                 "output, or where there are none.")),
        "results_hash": nullable(text("Hash over the rows, where they are complete and in one file.")),
        "setting": text("Hash over everything but the input that the rows depend on."),
        "evaluators": mapping("By the names of the evaluators.", _evaluator()),
        "gates": listing("What the gates say, for each evaluator that they concern.", gate()),
        "judge": _judge(),
        "input": _input(),
    }  # fmt: skip


def _of_what_it_took() -> dict[str, Schema]:
    return {
        "requests": entries("Requests of the run.", {
            "sent": integer("Sent, repeated attempts included."),
            "reused": integer("Answered from the store, or by a request of another record."),
            "not_needed": integer("Records that could be scored without any, as those without contexts."),
            "failed": _by_kind("Failed attempts by kind, those that were repeated included."),
        }),
        "concurrency": _concurrency(),
        "tokens": tokens("Tokens that this run paid for."),
        "batch": nullable(_batch()),
        "cost": nullable(_cost()),
        "budget": nullable(entries("Caps, and what is spent of them.", {
            "max_cost": nullable(number("As `--max-cost`.")),
            "max_tokens_total": nullable(integer("As `--max-tokens-total`.")),
            "spent": nullable(number("USD spent at this output, earlier runs included; null where no price is known.")),
            "spent_tokens": integer("Tokens spent at this output, earlier runs included."),
        })),
        "timings": entries("When it ran.", {
            "started": text("Time of the start, ISO 8601 in UTC.", format="date-time"),
            "ended": text("Time of the end.", format="date-time"),
            "seconds": number("Between the two.", minimum=0),
            "batches": listing("When batches were created and over, with `--batch`.", entries("A batch.", {
                "id": text("The endpoint's id of it."),
                "created": nullable(text("When it was created.", format="date-time")),
                "ended": nullable(text("When it was over; null while it is not.", format="date-time")),
            })),
        }, sometimes=["batches"]),
        "configuration": configuration_schema(),
        "engine": entries("What carried the run out, where that was Ray.", {
            "name": choice("Its name.", ["ray"]),
            "version": text("Version of Ray."),
            "workers": integer("Processes that judged."),
            "starts": integer("How many were started, those that died included."),
        }),
    }  # fmt: skip


def tokens(told: str) -> Schema:
    """Tokens by kind."""
    return entries(told, {name: integer(FIXED_TOLD[f"usage.{name}"]["description"]) for name in Usage._fields})


def _by_kind(told: str) -> Schema:
    kinds = {"enum": [kind.value for kind in FailureKind]}
    return mapping(told, integer("How many."), propertyNames=kinds)


def _pair(told: str) -> Schema:
    return listing(told, {"type": "number"}, minItems=2, maxItems=2)


def _share(told: str) -> Schema:
    return number(told, minimum=0, maximum=1)


def _share_of(told: str) -> Schema:
    return entries(told, {
        "share": nullable(_share("The share; null of nothing.")),
        "interval_95": nullable(_pair("Its 95 % interval.")),
        "n": integer("Of how many."),
    })  # fmt: skip


def _evaluator() -> Schema:
    return entries("What an evaluator's rows add up to.", {
        "prompt": text("As `prompt` of the rows."),
        "score": nullable(number("Mean over the evaluated records, of a sample by a field over the whole population; "
                                 "null if there are none or it gives no score.")),
        "better": choice("Which scores are the good ones.", [HIGHER, LOWER]),
        "n": integer("Rows."),
        "evaluated": integer("Rows that are no errors."),
        "errors": _by_kind("Error rows by kind."),
        "coverage": nullable(_share("evaluated / n.")),
        "repaired": integer("Rows whose reply had something around its JSON."),
        "interval_95": nullable(_pair("The 95 % interval of the score.")),
        "design_effect": number("By how much repeated questions widen it, 1 where they do not.", minimum=0),
        "bounds_if_failed": nullable(_pair("The score if all error rows had the lowest score, and the highest.")),
        "figures": figures_schema(),
        "stability": _stability(),
    }, sometimes=["stability"])  # fmt: skip


def _stability() -> Schema:
    return entries("With `--repeat`, `--judge-also` or `--shuffle-contexts`: how far the judge can be relied on.", {
        "opinions": integer("Further answers."),
        "errors": _by_kind("Of these, failures by kind."),
        "repeats": nullable(entries("Agreement with itself; null without `--repeat`.", {
            "repeat": integer("As `--repeat`."),
            "agreement": nullable(_share("Share of pairs of answers on a record with the same score.")),
            "unanimous": _share_of("Records whose answers all have the same score."),
            "ties": integer("Records without a most frequent score."),
            "score_by_majority": nullable(number("Mean of the most frequent scores.")),
        })),
        "judges": nullable(entries("Agreement with the second judge; null without one.", {
            "model": text("The second judge."),
            "asked": choice("On which records it was asked.", ["always", "on disagreement"]),
            "n": integer("Records that both have a score for."),
            "agreement": _share_of("Records with the same score."),
            "kappa": nullable(number("Cohen's kappa; null where it is not defined.")),
            "score": nullable(number("The second judge's mean score.")),
        })),
        "order": nullable(entries("What another order of the contexts changes; null without `--shuffle-contexts`.", {
            "score_agreement": _share_of("Records with the same score in both orders."),
            "flipped": _share_of("Contexts with another verdict in the other order."),
            "relevant_by_position": entries("Contexts found relevant, by where they were shown.", {
                third: _share_of(f"In the {third} third.") for third in THIRDS
            }),
        })),
    })  # fmt: skip


def gate() -> Schema:
    """A gate."""
    return entries("A gate and what came of it.", {
        "gate": text("As it was given on the command line."),
        "evaluator": text("Whom it concerns."),
        "figure": text("What is looked at."),
        "threshold": number("What it has to reach, or may not pass."),
        "value": nullable(number("What was found; null where there is no such number.")),
        "met": nullable(boolean("Whether it is met; null where the run did not end.")),
        "message": text("A sentence about it, for people."),
    })  # fmt: skip


def _judge() -> Schema:
    also = entries("The second judge, with `--judge-also`.", {
        "model": text("Its model."),
        "description": text("It in words."),
        "notices": listing("What a reader should know of it.", {"type": "string"}),
        "tokens": tokens("Tokens that it took."),
        "cost": nullable(_cost()),
    })  # fmt: skip
    return entries("Who judged.", {
        "model": text("The model that was asked for."),
        "description": text("The judge in words."),
        "models": mapping("Replies by the model's name as the endpoint returned it.", integer("Rows.")),
        "notices": listing("What a reader of the results should know of it, sentences for people.", {"type": "string"}),
        "also": also,
    }, sometimes=["also"])  # fmt: skip


def _input() -> Schema:
    sample = entries("What was drawn, and from where.", {
        "n": nullable(integer("As `--sample`.")),
        "seed": nullable(integer("As `--seed`; null without a sample.")),
        "by": nullable(text("As `--sample-by`.")),
        "where": listing("As `--where`.", {"type": "string"}),
        "drawn": integer("Records that were drawn; with `--sample`."),
        "interval_of": choice("Whose mean the intervals are of; with `--sample`.", ["population"]),
        "strata": mapping("By the values of the field that is drawn by.", entries("Of one value.", {
            "population": integer("Records that have it."), "drawn": integer("How many were drawn."),
        })),
    }, sometimes=["drawn", "interval_of", "strata"])  # fmt: skip
    return entries("What was judged.", {
        "files": listing("Names of the files.", {"type": "string"}),
        "fields": listing("How they were read, a line for people for each way.", {"type": "string"}),
        "records": integer("Records that were judged."),
        "population": integer("Records that they were drawn from."),
        "sample": nullable(sample),
        "size": nullable(integer("Bytes of the files; null where they are not known.")),
        "fingerprint": nullable(text("Hash over all that is judged or carried along; null where not all was read.")),
        "ids": nullable(text("Hash over the records' ids, in their order.")),
    })  # fmt: skip


def _concurrency() -> Schema:
    course = listing("Seconds and the number from then on.", _pair("A step."))
    return entries("Requests in flight.", {
        "fixed": boolean("Whether their number was given."),
        "lowest": nullable(integer("The lowest number.")),
        "highest": nullable(integer("The highest number.")),
        "last": nullable(integer("The last number.")),
        "cuts": integer("How often it was cut at a rate limit."),
        "course": course,
        "workers": listing("On Ray, instead of the rest: the course of each worker.", course),
    }, sometimes=["lowest", "highest", "last", "cuts", "course", "workers"])  # fmt: skip


def _batch() -> Schema:
    part = entries("A batch.", {
        "id": nullable(text("The endpoint's id; null before it has one.")),
        "state": text("How far it is, in the endpoint's words where it knows it."),
        "collected": boolean("Whether its replies are in the store."),
        "requests": integer("Requests in it."),
        "completed": integer("Of these, answered."),
        "failed": integer("Of these, failed."),
    })  # fmt: skip
    return entries("The batches of the run; null without `--batch`.", {
        "rounds": integer("How often batches were sent, repeated requests in later ones."),
        "requests": integer("Requests in batches."),
        "parts": listing("The batches.", part),
        "tokens": tokens("Tokens of what they brought."),
    })  # fmt: skip


def _cost() -> Schema:
    return entries("What this run cost at list price; null where a price is not known.", {
        "currency": choice("Of all amounts.", [_USD]),
        "total": number("All of it."),
        **{name: number(_PARTS[name]) for name in Parts._fields},
        "unanswered": number("What attempts without a reply may have cost at most; not in the total."),
        "saved_by_store": number("What replies from the store would have cost."),
        "saved_by_caching": number("What the provider's prompt cache has saved."),
        "price": price(),
    })  # fmt: skip


_PARTS = {
    "input": "Of this, tokens sent, cached ones aside.",
    "cached_input": "Of this, tokens read from the provider's cache.",
    "output": "Of this, tokens received, reasoning aside.",
    "reasoning": "Of this, tokens of reasoning.",
}


def price() -> Schema:
    """A price."""
    return entries("The price, in USD for a million tokens.", {
        "model": text("Whose price it is."),
        "input": number("Tokens sent."),
        "cached_input": number("Tokens read from the cache."),
        "cache_write": nullable(number("Tokens written to it, where they cost more than input.")),
        "output": number("Tokens received."),
        "batch": nullable(number("Share of the price in a batch; null where there are none.")),
        "source": nullable(text("Where the price stands.")),
        "checked": nullable(text("On which day.")),
    })  # fmt: skip
