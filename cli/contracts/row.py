"""The form of result rows: the columns of `runs.columns`, with what they mean."""

from ...evaluators.decisions.asking import PROBABILITIES
from ...evaluators.errors import FailureKind
from ...evaluators.outputs.citations import Citations
from ...evaluators.outputs.claims import Claims
from ...evaluators.outputs.columns import CONTEXT_VERDICTS, ColumnTypes, Scalar
from ...evaluators.outputs.quotes import Quotes
from ...evaluators.outputs.reason import REASON, reason
from ..runs.columns import FIRST, FURTHER, LAST
from .parts import Schema, columns, document, text

_COUNT: Schema = {"minimum": 0}
_SPAN: Schema = {"minItems": 2, "maxItems": 2}
_SHARE: Schema = {"minimum": 0, "maximum": 1}


def _told(sentence: str, **more: object) -> Schema:
    return {"description": sentence, **more}


def _usage(path: str) -> dict[str, Schema]:
    return {
        f"{path}.input_tokens": _told("Tokens sent, cached ones included.", **_COUNT),
        f"{path}.output_tokens": _told("Tokens received, reasoning included.", **_COUNT),
        f"{path}.cached_tokens": _told("Of the tokens sent, those read from the provider's prompt cache.", **_COUNT),
        f"{path}.reasoning_tokens": _told("Of the tokens received, those of reasoning.", **_COUNT),
    }


FIXED_TOLD: dict[str, Schema] = {
    "index": _told("Position of the record in the whole input, from 0.", **_COUNT),
    "id": _told("The record's id in the log, as text; its position where the log has no ids."),
    "evaluator": _told("Name of the evaluator."),
    "status": _told("`evaluated`, or `error` for a record that could not be judged.", enum=["evaluated", "error"]),
    "score": _told("The score; null for an error row, and of an evaluator that gives none.", null=True),
    "question": _told("The question; empty where the record has none."),
    "model": _told("The model as the endpoint named it; null where there was no reply.", null=True),
    "prompt": _told("The evaluator's name and a hash over its definition, as `context_relevance@be23c831`."),
    "repaired": _told("Whether a reply had a fence, a BOM or thoughts around its JSON."),
    "usage": _told("Tokens of the replies that the row was derived from, paid for in this run or an earlier one."),
    **_usage("usage"),
    "cost": _told("What these replies cost in USD at list price; null where the price is not known.", null=True),
    "error": _told("Why the record could not be judged; null where it was.", null=True),
    "error.kind": _told("The kind of failure, from a closed list.", enum=[kind.value for kind in FailureKind]),
    "error.message": _told("A sentence for people; its words may change at any time."),
    "requests": _told("Requests that the record was divided into; only there where they are more than one.",
                      minimum=2),
    "opinions": _told("Further answers on the record, with `--repeat`, `--judge-also` or `--shuffle-contexts`."),
    "opinions[].judge": _told("The model that was asked."),
    "opinions[].repeat": _told("Which of the repeats it is, 1 for an answer that is none.", minimum=1),
    "opinions[].shuffled": _told("Whether the contexts were shown in another order."),
    "opinions[].status": _told("As `status` of the row.", enum=["evaluated", "error"]),
    "opinions[].score": _told("As `score` of the row.", null=True),
    "opinions[].contexts_relevant": _told("Whether each context is relevant, in the log's order; null where it "
                                          "says nothing of contexts.", null=True),
    "opinions[].contexts_relevant[]": {"null": True},
    "opinions[].usage": _told("Tokens of this answer."),
    **_usage("opinions[].usage"),
    "opinions[].cost": _told("What it cost in USD; null where the price is not known.", null=True),
    "opinions[].error": _told("The kind of failure; null where there is none.", null=True,
                              enum=[kind.value for kind in FailureKind]),
    "majority": _told("The most frequent score among the repeats, with the same options; null in a tie.",
                      null=True),
    "file": _told("The file of the record, where the input is a folder, a glob or several files."),
    "kept": _told("The fields that `--keep` names, by their paths; null where the record has none.", type="object"),
    "input": _told("The whole record, with `--with-input`; null for a line that cannot be read."),
}  # fmt: skip
"""By the path of a column or of a part of one."""

OUTPUT_TOLD: dict[str, Schema] = {
    "relevant_statements": _told("The relevant statements, in the order of the contexts."),
    "contexts": _told("Of citations and quotes: a verdict for each context, in their order; empty for an error row."),
    "contexts[].relevant": _told("Whether any statement of the context is relevant."),
    "contexts[].statements": _told("Statements of the context.", **_COUNT),
    "contexts[].relevant_statements": _told("How many of them are relevant.", **_COUNT),
    "contexts[].spans": _told("Where these stand in the context."),
    "contexts[].spans[]": _told("First character and the one after the last, in code points.", **_SPAN),
    "contexts[].spans[][]": _COUNT,
    "statements": _told("All statements: of the contexts in their order, or of the answer."),
    "statement_scores": _told("1 or 0 for each statement: relevant or not, supported or not."),
    "statement_scores[]": {"enum": [0, 1]},
    "evidence": _told("For each statement the sentences of the contexts that show it."),
    "evidence[][].context": _told("Position of the context, from 0.", **_COUNT),
    "evidence[][].sentence": _told("Number of the sentence through all contexts.", **_COUNT),
    "evidence[][].span": _told("First character and the one after the last, in code points.", **_SPAN),
    "locations": _told("For each statement where it stands."),
    "locations[].located": _told("Whether it stands in a context at all."),
    "locations[].context": _told("Position of the context, from 0; null where it stands in none.", null=True, **_COUNT),
    "locations[].span": _told("First character and the one after the last; null where it stands in none.", null=True,
                              **_SPAN),
    "locations[].similarity": _told("1 if verbatim, less where letters differ; null where it stands in none.",
                                    null=True, **_SHARE),
    PROBABILITIES: _told("With `--api decisions`: a probability for each sentence, in their order."),
    f"{PROBABILITIES}[]": _SHARE,
    REASON: _told("The judge's reason, with `--explain`; null where it gave none.", null=True),
}  # fmt: skip
"""The same for the columns of outputs, under the names that the built-in evaluators give them."""

_REQUESTS, _CONTEXTS = "requests", "contexts"
_CITED, _STATED = "relevant_statements", "statements"
_KINDS: dict[str, tuple[str, str, ColumnTypes]] = {
    "citations": ("Citations", "Sentences of the contexts that were cited.", Citations(_CITED).types()),
    "citations_all": (
        "Citations with report: all",
        "All sentences of the contexts, and which of them were cited.",
        Citations(_CITED, report_all=True).types(),
    ),
    "quotes": ("Quotes", "Statements that the judge copied from the contexts.", Quotes(_CITED).types()),
    "claims": ("Claims", "Statements of the answer, and what supports them.", Claims(_STATED).types()),
    "probabilities": (
        "Probabilities",
        "Beside citations and claims, where the judge answers with probabilities.",
        {PROBABILITIES: [Scalar.NUMBER]},
    ),
    "reason": ("Reasons", "Beside all others, where reasons were asked for.", reason().types()),
}
"""What outputs come to in rows: by their kinds a title, a sentence and the columns."""


def row_schema() -> Schema:
    """The form of a row, whatever its evaluator."""
    fixed = columns({**FIRST, **LAST, **FURTHER}, FIXED_TOLD, sometimes=[_REQUESTS, *FURTHER])
    contexts = columns({_CONTEXTS: CONTEXT_VERDICTS}, OUTPUT_TOLD)["properties"]
    kinds = {
        kind: {"title": title, "description": told, **_beside_contexts(types)}
        for kind, (title, told, types) in _KINDS.items()
    }
    return document(
        "row",
        "A result row of ctxrel",
        "One record as one evaluator judged it: a line of results.jsonl, or a row of results.parquet. Beside the "
        "columns named here it has those of the evaluator's outputs, under the names that its YAML gives them; below "
        "is what the kinds of outputs come to.",
        {
            **fixed,
            "properties": {**fixed["properties"], **contexts},
            "propertyNames": text("Columns are called as outputs are.", pattern="^[A-Za-z_][A-Za-z0-9_]*$"),
            "additionalProperties": {"description": "What an output of the evaluator came to."},
            "allOf": [_OF_ERRORS],
            "$defs": kinds,
        },
    )


def _beside_contexts(types: ColumnTypes) -> Schema:
    return columns({name: kind for name, kind in types.items() if name != _CONTEXTS}, OUTPUT_TOLD)


_OF_ERRORS: Schema = {
    "if": {"properties": {"status": {"const": "error"}}},
    "then": {"properties": {"score": {"type": "null"}, "error": {"type": "object"}}},
    "else": {"properties": {"error": {"type": "null"}}},
}
