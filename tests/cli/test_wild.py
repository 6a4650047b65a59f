"""Shapes in which other tools publish logs: read rightly as they are, with the options told, or refused with what to do."""

import json
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import RunCommand


class Shape(NamedTuple):
    """A log, and what becomes of it."""

    name: str
    content: object
    """Text, else a list of records as JSON Lines or as Parquet."""
    refused: str | None
    """The end of the sentence without an option; None where it is read."""
    options: tuple[str, ...] | None
    """With them it is read; None where it holds nothing to judge."""
    contexts: dict[str, float] | None = None
    """Fewest, middle and most of a record, as it is read."""


def counted(least: float, middle: float, most: float) -> dict[str, float]:
    return {"min": least, "median": middle, "max": most}


CHAT = {
    "conversation": {"messages": [{"content": "Is it far?", "role": "user"}, {"content": "No.", "role": "assistant"}]}
}
GRADED = [{"query": "Is it far?", "ground_truth": "No.", "response": "Not at all."}]
ANNOTATED = {"helpfulness": [{"metric_input": {"user_input": "Is it far?", "response": "No."}, "metric_output": 1}]}
COLUMNS = {
    "questions": ["Is it far?", "Is it near?"],
    "ground_truths": ["No.", "Yes."],
    "filepaths": ["a.pdf", "b.pdf"],
}
CORPUS = [{"query": "Is it far?", "context": "It is a mile." if n % 2 else None, "response": "No."} for n in range(4)]
FACTS = [{"question": "Is it far?", "facts": ["It is near."], "documents": ["https://a.example/b", "c.pdf"]}]
NODES = [{"query": "Is it far?", "retrieved_contents_lexical": ["It is a mile."], "retrieved_contents_semantic": ["It is near."], "retrieval_gt": [["id-1"]]}]  # fmt: skip
SPANS = {"retrieverSpans": [{"retrievalContext": ["It is a mile."]}, {"retrievalContext": ["It is near.", "A mile."]}]}
TEST_RUN = {
    "testCases": [{"name": "t", "input": "Is it far?", "actualOutput": "No.", "context": ["Ideal."], "trace": SPANS}],
    "metricsScores": [{"metric": "m", "scores": [1]}],
}
TURNS = {
    "contexts": [{"text": "It is a mile.", "document_id": "1"}],
    "input": [{"speaker": "user", "text": "Is it far?"}],
}
PASSAGES = {"retrievalResults": [{"content": {"text": "It is a mile."}}, {"content": {"text": "It is near."}}]}
BEDROCK = {"prompt": {"content": [{"text": "Is it far?"}]}, "output": {"text": "No.", "retrievedPassages": PASSAGES}}
CALL = {f"ai.observability.{key}": value for key, value in {"retrieval.query_text": "Is it far?", "retrieval.retrieved_contexts": ["It is a mile."]}.items()}  # fmt: skip
SHAPES = {
    "a chat": Shape("log.jsonl", [CHAT], "no field looks like the question; name the question with --question-field (there are: conversation)", None),
    "an array without contexts": Shape("log.jsonl", json.dumps(GRADED, indent=1), "no field looks like the contexts; name the contexts with --contexts-field (there are: query, ground_truth, response)", ("-e", "answer_relevance")),
    "annotations": Shape("log.json", json.dumps(ANNOTATED), "no field looks like the question; name the question with --question-field (there are: metric_input, metric_output)", ("-e", "answer_relevance", "--question-field", "metric_input.user_input", "--answer-field", "metric_input.response")),
    "columns without contexts": Shape("log.json", json.dumps(COLUMNS), "no field looks like the contexts; name the contexts with --contexts-field (there are: questions, ground_truths, filepaths)", None),
    "contexts in half of the records": Shape("log.jsonl", CORPUS, None, ("--where", "context!=null"), counted(1, 1, 1)),
    "names of documents": Shape("log.parquet", FACTS, "the field 'documents' seems to hold names of documents, not their text; name the contexts with --contexts-field (there are: question, facts, documents)", ("--contexts-field", "facts"), counted(1, 1, 1)),
    "two retrievals": Shape("log.parquet", NODES, "the contexts may be 'retrieved_contents_semantic' or 'retrieved_contents_lexical'; choose with --contexts-field retrieved_contents_semantic", ("--contexts-field", "retrieved_contents_lexical"), counted(1, 1, 1)),
    "a test run": Shape("log.json", json.dumps(TEST_RUN), "the records may be those of 'testCases' or 'metricsScores'; choose with --records testCases", ("--schema", "deepeval"), counted(3, 3, 3)),
    "a test run's cases": Shape("log.jsonl", TEST_RUN["testCases"], "no field looks like the contexts; name the contexts with --contexts-field (there are: name, input, actualOutput, context, trace); or give --schema deepeval", ("--schema", "deepeval"), counted(3, 3, 3)),
    "a conversation's turns": Shape("log.jsonl", [TURNS], "the field 'input' is a list, not a text; name the question with --question-field (there are: contexts, input); or give --schema mtrag", ("--schema", "mtrag"), counted(1, 1, 1)),
    "nested passages": Shape("log.jsonl", [{"conversationTurns": [BEDROCK]}], "no field looks like the question; name the question with --question-field (there are: conversationTurns); or give --schema bedrock", ("--schema", "bedrock"), counted(2, 2, 2)),
    "a span": Shape("log.json", json.dumps({"record_attributes": CALL}, indent=1), None, ("--schema", "trulens"), counted(1, 1, 1)),
}  # fmt: skip


@pytest.mark.parametrize("shape", SHAPES.values(), ids=SHAPES)
def test_shape(ctxrel: RunCommand, shape: Shape) -> None:
    """Without an option it is refused with what to do, or read; with the options it is read."""
    if isinstance(shape.content, str):
        Path(shape.name).write_text(shape.content)
    elif isinstance(shape.content, list) and shape.name.endswith(".parquet"):
        pq.write_table(pa.Table.from_pylist(shape.content), shape.name)
    elif isinstance(shape.content, list):
        Path(shape.name).write_text("".join(json.dumps(record) + "\n" for record in shape.content))
    done = ctxrel("inspect", shape.name, "--json")
    assert done.stderr == ("" if shape.refused is None else f"ctxrel: {shape.name}: {shape.refused}\n")
    assert done.returncode == (0 if shape.refused is None else 2)
    if shape.options is None:
        return
    found: dict[str, Any] = json.loads(ctxrel("inspect", shape.name, "--json", *shape.options).stdout)
    assert (found["unusable"], found["contexts"]) == (0, shape.contexts)
    assert json.loads(found["shown"][0]["request"])["question"] == "Is it far?"
