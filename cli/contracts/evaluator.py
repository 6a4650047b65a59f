"""The form of an evaluator's YAML: its keys, the kinds and the rules, as `evaluators.definition` reads them.

It says what can be said without looking from one key to another; `ctxrel prompts check` is the authority.
"""

from collections.abc import Mapping, Sequence

from ...evaluators.case import CONTEXTS
from ...evaluators.decisions.asking import DECISIONS, DEFAULT_THRESHOLD, INSTRUCTIONS, PREDICATES, THRESHOLD
from ...evaluators.definition import (
    BETTER,
    EXTENDING,
    HIGHER,
    INPUT,
    INPUT_KINDS,
    LOWER,
    NAME,
    OPTIONAL,
    REQUIRED,
    RESERVED,
)
from ...evaluators.outputs.building import ALL, KINDS, RELEVANT, ROW_KEYS
from ...evaluators.outputs.building import NAME as OUTPUT
from ...evaluators.outputs.reason import REASON
from ...evaluators.scoring import RULES
from .parts import Schema, choice, closed, document, entries, listing, mapping, nullable, number, text

_ANY: Schema = {}
_FILLED = r"\S"
_FORMAT = r"\{\{\s*output_format\s*\}\}"


def evaluator_schema() -> Schema:
    """The form of an evaluator's YAML."""
    own = [*REQUIRED, *OPTIONAL]
    keys = {**_KEYS, "extends": text(
        "Another evaluator, by its name or its file, whose requests this one shares; beside it stand only "
        f"`{'`, `'.join(EXTENDING)}`, with outputs of the same names and kinds, and of `{DECISIONS}` the `{THRESHOLD}`."
    )}  # fmt: skip
    by_itself: Schema = {
        "required": list(REQUIRED),
        "properties": dict.fromkeys(own, True) | {DECISIONS: {"required": [PREDICATES, INSTRUCTIONS]}},
        "additionalProperties": False,
    }
    extending: Schema = {
        "required": ["extends"],
        "properties": dict.fromkeys(("extends", *EXTENDING), True) | {DECISIONS: _only(THRESHOLD)},
        "additionalProperties": False,
    }
    return document(
        "evaluator",
        "An evaluator of ctxrel",
        "What a judge is told, what it is shown of a record, what it replies, and how the reply becomes a score.",
        {
            "type": "object",
            "properties": keys,
            "additionalProperties": False,
            "if": {"type": "object", "required": ["extends"]},
            "then": extending,
            "else": by_itself,
        },
    )


def _only(name: str) -> Schema:
    return {"required": [name], "properties": {name: True}, "additionalProperties": False}


def _whole(pattern: str) -> str:
    return f"^{pattern}$"


def _of_kind(kind: str, further: Sequence[str]) -> Schema:
    """An output of a kind as it is written out."""
    properties = {"kind": {"const": kind}} | {name: _FURTHER[name] for name in further}
    needed = ["kind"] + (["values"] if "values" in further else [])
    return {"if": {"properties": {"kind": {"const": kind}}},
            "then": {"properties": properties, "required": needed, "additionalProperties": False}}  # fmt: skip


_FURTHER: Mapping[str, Schema] = {
    "report": choice(
        f"Of citations: `{RELEVANT}` (the default) puts the relevant statements into the row, `{ALL}` every statement "
        "with 1 or 0.",
        (RELEVANT, ALL),
    ),
    "values": listing("Of a label: all that it can be.", {"type": "string"}, minItems=2, uniqueItems=True),
    "range": listing(
        "Of numbers: the lowest and the highest that is valid.", {"type": "number"}, minItems=2, maxItems=2
    ),
}
"""Keys of an output beside its kind."""

_OUTPUT: Schema = {
    "description": "A kind, or an object with the kind and what else it takes.",
    "anyOf": [
        choice("The kind alone; a label needs its values.", [kind for kind in KINDS if kind != "label"]),
        {
            "type": "object",
            "properties": {"kind": choice("What the judge replies.", [*KINDS]), **_FURTHER},
            "required": ["kind"],
            "allOf": [_of_kind(kind, further) for kind, (_, further) in KINDS.items()],
        },
    ],
}

_INPUT: Schema = {"pattern": _whole(INPUT.pattern), "not": {"const": "id"}}

_INPUTS: Schema = {
    "description": "What the judge is shown of a record, in this order: names, or names with kinds. `question`, "
    f"`{CONTEXTS}` and `answer` are found in the log; another stands in the field of its name.",
    "anyOf": [
        {"type": "array", "items": {"type": "string", **_INPUT}, "minItems": 1, "uniqueItems": True},
        {
            "type": "object",
            "minProperties": 1,
            "propertyNames": _INPUT,
            "properties": {CONTEXTS: {"const": CONTEXTS}, "question": {"const": "text"}, "answer": {"const": "text"}},
            "additionalProperties": choice("How it is shown.", [kind for kind in INPUT_KINDS if kind != CONTEXTS]),
        },
    ],
}

_SCORES: Schema = mapping("A score for each label.", {"type": "number"}, minProperties=1)

_RULE_OF: Schema = {
    **closed(entries("A rule and an output's name.", {rule: {"type": "string"} for rule in RULES}, sometimes=[*RULES])),
    "minProperties": 1,
    "maxProperties": 1,
}

_SCORING: Schema = {
    "description": "How the reply becomes a score: a rule, a rule with the output it is for, a score for each label "
    "(with the output's name around them where several have labels), or none.",
    "anyOf": [
        choice("A rule.", [*RULES, "none"]),
        {"type": "null"},
        _RULE_OF,
        _SCORES,
        mapping("The scores of one output's labels.", _SCORES, minProperties=1, maxProperties=1),
    ],
}  # fmt: skip

_EXAMPLE: Schema = closed(entries(
    "A worked record that the judge is shown.",
    {
        "inputs": mapping("What it is shown, by the names of the inputs.", _ANY, minProperties=1),
        "outputs": mapping("What it should reply, by the names of the outputs.", _ANY, minProperties=1),
        REASON: nullable(text("Why; used under `--explain`.")),
    },
    sometimes=[REASON],
))  # fmt: skip

_TOKENS: Schema = nullable({"description": "Tokens that a reply may have.", "type": "integer"})

_KEYS: Mapping[str, Schema] = {
    "name": text("Stands in rows and summary; the file's name by default.", pattern=_whole(NAME.pattern)),
    "description": nullable(text("A line for `ctxrel prompts list`.")),
    "instructions": text(
        "The system message. {{output_format}} stands in it once and, where there are examples, {{examples}}.",
        allOf=[{"pattern": _FILLED}, {"pattern": _FORMAT}],
    ),
    "inputs": _INPUTS,
    "outputs": mapping(
        "What the judge replies, by name; what each name comes to is a column of the row.",
        _OUTPUT,
        minProperties=1,
        propertyNames={"pattern": _whole(OUTPUT.pattern), "not": {"enum": sorted(ROW_KEYS)}},
    ),
    "scoring": _SCORING,
    BETTER: choice("Which scores are the good ones; of a problem, as `child_safety` finds, `lower`.", [HIGHER, LOWER]),
    "examples": nullable(listing("Worked records.", _EXAMPLE)),
    "parameters": nullable(
        mapping(
            "Request parameters; `--param` wins over them.",
            _ANY,
            properties={"max_tokens": _TOKENS, "max_completion_tokens": _TOKENS},
            propertyNames={"not": {"enum": sorted(RESERVED)}},
        )
    ),
    DECISIONS: closed(entries(
        "What `--api decisions` asks (beta).",
        {
            PREDICATES: mapping(
                "For each output a statement whose truth is asked for; {{number}} stands for a sentence's number.",
                {"type": "string", "pattern": _FILLED},
                minProperties=1,
            ),
            INSTRUCTIONS: text("What is said before every record.", pattern=_FILLED),
            THRESHOLD: number("The probability from which a predicate counts as true.",
                              minimum=0, maximum=1, default=DEFAULT_THRESHOLD),
        },
        sometimes=[PREDICATES, INSTRUCTIONS, THRESHOLD],
    )),
}  # fmt: skip
"""The keys, `extends` aside."""
