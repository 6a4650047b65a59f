"""The forms of what the commands that hold runs against something print with --json."""

from ..runs.summary import STATUSES
from .parts import Schema, boolean, choice, document, entries, integer, listing, mapping, nullable, number, text

_TEXTS: Schema = {"type": "string"}


def compare_schema() -> Schema:
    """The form of what `ctxrel compare --json` prints."""
    told = "What differs between runs, record by record."
    return document("compare", "What ctxrel compare --json prints", told, entries(told, {
        "baseline": text("The results that the others are held against."),
        "comparisons": listing("One for each of the others.", entries("A comparison.", {
            "name": text("The other results."),
            "warnings": listing("What makes the two hard to compare, sentences for people.", _TEXTS),
            "evaluators": mapping("By the names of the evaluators.", _compared()),
            "cost": entries("What the runs cost in USD; null where it is not known.", {
                "before": nullable(number("The first.")), "after": nullable(number("The other.")),
            }),
        })),
    }))  # fmt: skip


def _compared() -> Schema:
    changed = entries("A record.", {
        "results": text("The other results."),
        "evaluator": text("The evaluator."),
        "id": text("The record's id."),
        "change": choice("Which way.", ("up", "down")),
        "before": number("Its first score."),
        "after": number("Its other score."),
        "question": text("Its question, cut where it is long."),
    })  # fmt: skip
    return entries("One evaluator.", {
        "joined": integer("Records with a score in both."),
        "clusters": integer("Different questions among them."),
        "score": entries("Mean scores of these.", {
            "before": nullable(number("The first.")), "after": nullable(number("The other.")),
        }),
        "difference": nullable(number("After less before.")),
        "interval_95": nullable(_interval("Its 95 % interval.")),
        "interval_method": text("How the interval was made."),
        "mcnemar_p": nullable(number("McNemar's p; null unless scores are 1 and 0 and questions differ.",
                                     minimum=0, maximum=1)),
        "up": integer("Records whose score rose."),
        "down": integer("Records whose score fell."),
        "verdict": choice("Whether the interval is on one side of 0.", ("higher", "lower", "no clear difference")),
        "regression": boolean("Whether that is the bad side."),
        "changed": listing("Records whose score changed, the first ones.", changed),
        "before": _side("The first run."),
        "after": _side("The other run."),
        "only_after": integer("Rows that only the other run has."),
        "only_before": integer("Rows that only the first run has."),
    })  # fmt: skip


def _side(told: str) -> Schema:
    return entries(told, {
        "rows": integer("Its rows."),
        "errors": mapping("Error rows by kind.", integer("How many.")),
        "error_rate": nullable(number("Their share.", minimum=0, maximum=1)),
        "tokens": integer("Tokens of all rows."),
        "prompts": listing("The prompts in it.", _TEXTS),
        "models": listing("The models in it.", _TEXTS),
    })  # fmt: skip


def _interval(told: str) -> Schema:
    return listing(told, {"type": "number"}, minItems=2, maxItems=2)


def _estimate(told: str) -> Schema:
    return entries(told, {
        "value": nullable(number("The figure; null where it is not defined.")),
        "interval_95": nullable(_interval("Its 95 % interval.")),
    })  # fmt: skip


def _mean(told: str) -> Schema:
    return entries(told, {
        "mean": number("The mean."),
        "interval_95": nullable(_interval("Its 95 % interval.")),
        "weight": number("How much the judge's scores of records without a label count."),
    })  # fmt: skip


def calibrate_schema() -> Schema:
    """The form of what `ctxrel calibrate --json` prints."""
    told = "How far judges agree with people, the best first."
    return document("calibrate", "What ctxrel calibrate --json prints", told, entries(told, {
        "labels": integer("Records with a label."),
        "ties": integer("Records on which the raters are evenly divided."),
        "warnings": listing("What a reader should know, sentences for people.", _TEXTS),
        "results": listing("For each file and evaluator.", _calibrated()),
    }))  # fmt: skip


def _calibrated() -> Schema:
    return entries("One evaluator in one file.", {
        "results": text("The file."),
        "evaluator": text("The evaluator."),
        "models": listing("The models in it.", _TEXTS),
        "prompts": listing("The prompts in it.", _TEXTS),
        "labelled": integer("Records with a label and a score."),
        "unlabelled": integer("Records with a score alone."),
        "not_judged": integer("Records with a label alone."),
        "threshold": nullable(number("From which score on a verdict is a 1; null where labels are grades.")),
        "confusion": nullable(listing("How often which verdict met which label; null of too many grades.", _cell())),
        "accuracy": nullable(_estimate("Share of the same; null likewise.")),
        "classes": nullable(listing("By the label; null likewise.", entries("A label.", {
            "class": number("The label."),
            "precision": _estimate("Of the verdicts that say so, how many labels do."),
            "recall": _estimate("Of the labels that say so, how many verdicts do."),
        }))),
        "kappa": _estimate("Cohen's kappa, of grades weighted."),
        "raters": nullable(entries("How far people agree with each other; null where each record has one rater.", {
            "records": integer("Records with several."), "alpha": _estimate("Krippendorff's alpha."),
        })),
        "score": entries("Mean scores.", {
            "judge": number("The judge's, over all records."),
            "labels": _mean("People's, over labelled records."),
            "corrected": _mean("The judge's over all records, corrected by what people say of some."),
        }),
    })  # fmt: skip


def _cell() -> Schema:
    return entries("A pair of them.", {
        "label": number("The label."), "verdict": number("The verdict."), "n": integer("How often."),
    })  # fmt: skip


def trend_schema() -> Schema:
    """The form of what `ctxrel trend --json` prints."""
    told = "The nights of each evaluator in the order of time, and the band of chance."
    night = entries("A night.", {
        "summary": text("Its summary, or the folder of it."),
        "started": text("When it started."),
        "status": choice("As `status` of the summary.", STATUSES),
        "score": nullable(number("Its score.")),
        "interval_95": nullable(_interval("The 95 % interval.")),
        "evaluated": integer("Rows that are no errors."),
        "n": integer("Rows."),
        "prompt": text("As `prompt` of the rows."),
        "model": text("The model that was asked for."),
        "models": listing("The models as the endpoint named them.", _TEXTS),
        "counts": boolean("Whether it is among those that the band is made of."),
        "changed": listing("What is not as in the night before.", choice("What.", ("prompt", "model", "models"))),
        "outside": boolean("Whether its score is outside of the band."),
        "side": nullable(choice("On which side of the band it is; null inside.", ("better", "worse"))),
    })  # fmt: skip
    band = entries("Between which scores chance would leave them; null of too few nights.", {
        "low": number("The lower end."), "centre": number("The middle."), "high": number("The upper end."),
    })  # fmt: skip
    series = entries("An evaluator.", {"band": nullable(band), "nights": listing("Its nights.", night)})
    evaluators = mapping("By the names of the evaluators.", series)
    return document("trend", "What ctxrel trend --json prints", told, entries(told, {"evaluators": evaluators}))
