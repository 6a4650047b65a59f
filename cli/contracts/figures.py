"""The figures of an evaluator's block in the summary."""

from .parts import Schema, integer, mapping, nullable, number

_COUNTS = {
    "no_contexts": "Records without contexts, or with blank ones only; their score is 0.",
    "none_relevant": "Records of whose contexts none is relevant.",
    "contexts": "Contexts of all records.",
    "relevant_contexts": "How many of them are relevant.",
    "statements": "Statements of all contexts or, of claims, of all answers.",
    "relevant_statements": "How many of the statements are relevant.",
    "quotes": "Statements that the judge copied.",
    "unlocated": "How many of them stand in no context.",
    "no_statements": "Records in whose answer the judge found no statement; their score is 0.",
    "supported_statements": "How many of the statements the contexts support.",
}
_SHARES = {
    "context_precision": "Mean share of a record's contexts that are relevant.",
    "mrr": "Mean of 1 / rank of the first relevant context, 0 without one.",
    "map": "Mean average precision over the contexts that were retrieved.",
    "ndcg": "Mean discounted gain, by that of the best order of the same contexts.",
    "precision_at_1": "Mean share of relevant contexts among the first.",
    "precision_at_3": "The same among the first 3, by 3.",
    "precision_at_5": "The same among the first 5, by 5.",
    "precision_at_10": "The same among the first 10, by 10.",
    "never_relevant": "Share of the distinct contexts that were relevant to none of their questions.",
    "statement_support": "Share of all statements that the contexts support.",
}


def figures_schema() -> Schema:
    """The form of `figures`: which of them there are depends on the kinds of the outputs."""
    evidence = integer("Of claims: supported statements for which no sentence was named; null with `--api decisions`.")
    rank = number("Mean rank of the first relevant context, from 1, over the records that have one.", minimum=1)
    return mapping(
        "What the outputs add up to over the evaluated records; null where there is nothing to divide by.",
        {},
        properties={
            **{name: integer(told) for name, told in _COUNTS.items()},
            "supported_without_evidence": nullable(evidence),
            **{name: nullable(number(told, minimum=0, maximum=1)) for name, told in _SHARES.items()},
            "first_relevant_rank": nullable(rank),
        },
        patternProperties={
            "_counts$": mapping("Of the label before `_counts`: how often each value was given.", integer("Records.")),
            "_mean$": nullable(number("Of the number or truth value before `_mean`: its mean, true as 1.")),
        },
    )
