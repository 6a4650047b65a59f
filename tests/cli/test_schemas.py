"""--schema: a small export of each tool, as the tool writes it, is read rightly; --records chooses among lists."""

import json
from collections.abc import Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pyarrow as pa
import pyarrow.parquet as pq
import pytest
from conftest import RunCommand, read_rows, read_summary

from ctxrel.cli.records import Fields, open_log
from ctxrel.cli.records.paths import FieldPath
from ctxrel.cli.records.sampling import Selection
from ctxrel.cli.records.schemas import ROLES, all_schemas, find_schema
from ctxrel.cli.records.where import parse_condition
from ctxrel.evaluators.errors import InputError, UsageError

NEEDS = {"question": "text", "contexts": "contexts"}
QUESTION = "Where do otters sleep?"
CONTEXTS = ("Otters sleep on the water.", "They hold hands.")
ANSWER = "On the water."
HITS = [{"text": text, "score": 0.5} for text in CONTEXTS]
DOCUMENTS = [{"page_content": text, "metadata": {"source": "otters.pdf"}, "type": "Document"} for text in CONTEXTS]
DUMPED = [{"lc": 1, "type": "constructor", "id": ["Document"], "kwargs": {"page_content": text}} for text in CONTEXTS]
CONTENTS = [{"id": str(place), "content": text, "meta": {}} for place, text in enumerate(CONTEXTS)]
NODES = [{"node": {"id_": "n", "text": text, "metadata": {}}, "score": 0.9} for text in CONTEXTS]
ATTRIBUTES = "ai.observability"


class Export(NamedTuple):
    """An export, and what of it can be read."""

    schema: str
    text: str
    answer: str | None = ANSWER
    id: str = "7"
    name: str = "log.jsonl"
    where: str | None = None


def line(schema: str, value: object, **more: Any) -> Export:  # noqa: ANN401  # the fields of an export
    return Export(schema, json.dumps(value) + "\n", **more)


def bedrock(output: dict[str, object]) -> dict[str, object]:
    prompt = {"content": [{"text": QUESTION}]}
    reference = [{"content": [{"text": "An ideal answer."}]}]
    return {"conversationTurns": [{"prompt": prompt, "referenceResponses": reference, "output": output}]}


RETRIEVED = {"retrievalResults": [{"content": {"text": text}, "metadata": {}} for text in CONTEXTS]}
CITED = {"citations": [{"content": text, "id": "c"} for text in CONTEXTS]}
MESSAGES = [
    {"role": "user", "content": "Hello?"},
    {"role": "assistant", "content": "Hello."},
    {"role": "user", "content": QUESTION},
    {"role": "assistant", "content": ANSWER, "context": CITED},
]
TURN = {"speaker": "user", "text": QUESTION}
GENERATED = {
    "type": "haystack.dataclasses.answer.GeneratedAnswer",
    "init_parameters": {"data": ANSWER, "query": QUESTION, "documents": CONTENTS, "meta": {}},
}
SPAN = {"input": QUESTION, "retrievalContext": CONTEXTS, "type": "retriever"}
EXPORTS = {
    "autorag": line("autorag", {"qid": "7", "query": QUESTION, "retrieved_contents": CONTEXTS, "retrieved_contents_semantic": ["x y"], "generated_texts": ANSWER}),
    "autorag, one node": line("autorag", {"qid": "7", "query": QUESTION, "retrieved_contents_lexical": CONTEXTS, "retrieval_gt": [["id"]]}, answer=None),
    "azure": line("azure", {"id": 7, "query": QUESTION, "context": CONTEXTS, "response": ANSWER, "ground_truth": "x"}),
    "azure, evaluate()": line("azure", {"rows": [{"inputs.id": 7, "inputs.query": QUESTION, "inputs.context": CONTEXTS, "outputs.response": ANSWER}], "metrics": {"m": 1}}, name="log.json"),
    "azure, conversation": line("azure", {"id": 7, "conversation": {"messages": MESSAGES}}),
    "bedrock": line("bedrock", bedrock({"text": ANSWER, "knowledgeBaseIdentifier": "kb", "retrievedPassages": RETRIEVED}), id="0"),
    "bedrock, retrieve only": line("bedrock", bedrock({"knowledgeBaseIdentifier": "kb", "retrievedResults": RETRIEVED}), answer=None, id="0"),
    "deepeval": line("deepeval", {"name": "7", "input": QUESTION, "actual_output": ANSWER, "context": ["An ideal one."], "retrieval_context": CONTEXTS}),
    "deepeval, test run": line("deepeval", {"testCases": [{"name": "7", "input": QUESTION, "actualOutput": ANSWER, "context": ["An ideal one."], "trace": {"retrieverSpans": [SPAN]}}], "metricsScores": [{"metric": "m"}]}, name="log.json"),
    "flashrag": line("flashrag", [{"id": "7", "question": QUESTION, "golden_answers": ["x"], "output": {"retrieval_result": [{"id": "1", "contents": text} for text in CONTEXTS], "pred": ANSWER}}], name="log.json"),
    "haystack": line("haystack", {"questions": [QUESTION], "contexts": [CONTEXTS], "predicted_answers": [ANSWER]}, name="log.json", id="0"),
    "haystack, answer": line("haystack", GENERATED, id="0"),
    "haystack, pipeline": line("haystack", {"retriever": {"documents": CONTENTS}, "answer_builder": {"answers": [{"data": ANSWER, "query": QUESTION, "documents": CONTENTS}]}}, id="0"),
    "langchain": line("langchain", {"id": "7", "query": QUESTION, "result": ANSWER, "source_documents": DOCUMENTS}),
    "langchain, chain": line("langchain", {"id": "7", "input": QUESTION, "answer": ANSWER, "context": DUMPED}),
    "langfuse": line("langfuse", {"id": "7", "type": "RETRIEVER", "input": QUESTION, "output": DOCUMENTS}, answer=None),
    "langfuse, texts": line("langfuse", {"id": "7", "type": "RETRIEVER", "input": json.dumps({"query": QUESTION}), "output": json.dumps({"documents": DOCUMENTS})}, answer=None),
    "langfuse, all kinds": Export("langfuse", "".join(json.dumps({"id": "8", "type": "GENERATION", "input": "x", "output": "y"}) + "\n" for _ in range(60)) + json.dumps({"id": "7", "type": "RETRIEVER", "input": {"query": QUESTION}, "output": DOCUMENTS}), answer=None, where="type=RETRIEVER"),
    "langsmith": line("langsmith", {"runs": [{"id": "7", "run_type": "retriever", "inputs": {"query": QUESTION}, "outputs": {"documents": DOCUMENTS}}]}, name="log.json", answer=None),
    "langsmith, chain": line("langsmith", {"id": "7", "run_type": "chain", "inputs": {"input": QUESTION}, "outputs": {"context": DOCUMENTS, "answer": ANSWER}}),
    "llamaindex": line("llamaindex", {"id": "7", "query": QUESTION, "contexts": CONTEXTS, "response": ANSWER, "passing": True}),
    "llamaindex, response": line("llamaindex", {"id": "7", "query": QUESTION, "source_nodes": NODES, "response": ANSWER}),
    "mlflow": line("mlflow", {"request_id": "7", "request": {"messages": [{"role": "user", "content": QUESTION}]}, "retrieved_context": [{"content": text, "doc_uri": "a/b.md"} for text in CONTEXTS], "response": {"choices": [{"message": {"content": ANSWER}}]}}),
    "mlflow, texts": line("mlflow", {"request_id": "7", "request": QUESTION, "retrieved_context": HITS, "response": ANSWER}),
    "mtrag": line("mtrag", {"task_id": "7", "input": [{"speaker": "user", "text": "Hi"}, {"speaker": "agent", "text": "Hi"}, TURN], "contexts": HITS, "targets": [{"text": "ideal"}], "predictions": [{"text": ANSWER}]}),
    "phoenix": line("phoenix", {"context.span_id": "7", "span_kind": "RETRIEVER", "attributes.input.value": QUESTION, "attributes.retrieval.documents": [{"document.content": text, "document.score": 0.1} for text in CONTEXTS]}, answer=None),
    "phoenix, nested": line("phoenix", {"context": {"span_id": "7"}, "attributes": {"input": {"value": QUESTION}, "retrieval": {"documents": [{"document": {"content": text}} for text in CONTEXTS]}}}, answer=None),
    "promptflow": line("promptflow", {"line_number": 7, "question": QUESTION, "answer": ANSWER, "documents": [{"[doc1]": {"title": "t"}}], "context": CONTEXTS}),
    "promptflow, details": line("promptflow", {"inputs.line_number": 7, "inputs.question": QUESTION, "outputs.answer": ANSWER, "outputs.context": CONTEXTS}),
    "ragas": line("ragas", {"id": "7", "user_input": QUESTION, "retrieved_contexts": CONTEXTS, "reference_contexts": ["ideal one"], "response": ANSWER, "reference": "x"}),
    "ragas, 0.1": Export("ragas", f'question,contexts,answer,ground_truth\n{QUESTION},"{list(CONTEXTS)}",{ANSWER},x\n', id="0", name="log.csv"),
    "ragchecker": line("ragchecker", {"results": [{"query_id": "7", "query": QUESTION, "gt_answer": "x", "response": ANSWER, "retrieved_context": [{"doc_id": "0", "text": text} for text in CONTEXTS]}], "metrics": [{"m": 1}]}, name="log.json"),
    "trulens": line("trulens", {"event_id": "5", "record_attributes": {f"{ATTRIBUTES}.record_id": "7", f"{ATTRIBUTES}.retrieval.query_text": QUESTION, f"{ATTRIBUTES}.retrieval.retrieved_contexts": CONTEXTS, f"{ATTRIBUTES}.span_type": "retrieval"}}, answer=None),
    "vectara": Export("vectara", "query_id,query,query_run,passage_id,passage,generated_answer\n" + "".join(f'7,{QUESTION},1,[{place}],{text},{ANSWER if place == 1 else ""}\n' for place, text in enumerate(CONTEXTS, start=1)), name="log.csv"),
}  # fmt: skip


def read(*paths: str, schema: str | None = None, where: Sequence[str] = (), **fields: str) -> list[Any]:
    """All records of a log; `fields` are paths by role."""
    named: dict[str, Any] = {role: FieldPath(path) for role, path in fields.items()}
    selection = Selection(where=[parse_condition(text) for text in where])
    log = open_log(paths, Fields(**named, schema=find_schema(schema) if schema else None), NEEDS, selection=selection)
    return [position.record for position in log.records()]


def refused(text: str, name: str = "log.jsonl", **fields: str) -> str:
    """The sentence with which a log is refused."""
    Path(name).write_text(text)
    with pytest.raises(InputError) as raised:
        read(name, **fields)
    return str(raised.value)


@pytest.mark.parametrize("export", EXPORTS.values(), ids=EXPORTS)
def test_export(export: Export) -> None:
    """Question, contexts, answer and id are those of the tool; nothing has to be named beside the schema."""
    Path(export.name).write_text(export.text, encoding="utf-8")
    (record,) = read(export.name, schema=export.schema, where=[export.where] if export.where else [])
    assert (record.question, record.contexts, record.answer, record.id) == (
        QUESTION, CONTEXTS, export.answer, export.id,
    )  # fmt: skip
    assert not record.problems


def test_every_schema_is_read() -> None:
    """Each schema has a file here, a question and contexts, and nothing that no reader knows."""
    assert {export.schema for export in EXPORTS.values()} == set(all_schemas())
    for schema in all_schemas().values():
        assert {"question", "contexts"} <= set(schema.fields) <= set(ROLES)
        if schema.goes_with:
            assert parse_condition(schema.goes_with.removeprefix("--where ").strip("'"))


def test_parquet_export() -> None:
    """The columns of a bulk export hold JSON as text; only those that are needed are read."""
    row = {"id": "7", "run_type": "retriever", "inputs": json.dumps({"query": QUESTION}), "outputs": json.dumps({"documents": DOCUMENTS})}  # fmt: skip
    pq.write_table(pa.Table.from_pylist([row]), "runs.parquet")
    (record,) = read("runs.parquet", schema="langsmith")
    assert (record.question, record.contexts) == (QUESTION, CONTEXTS)


def test_named_fields_win() -> None:
    """A field that is named takes the place of the schema's."""
    record = {"user_input": "x", "rewritten": QUESTION, "retrieved_contexts": CONTEXTS, "reference_contexts": ["a b"]}
    Path("log.jsonl").write_text(json.dumps(record))
    (found,) = read("log.jsonl", schema="ragas", question="rewritten", contexts="reference_contexts")
    assert (found.question, found.contexts) == (QUESTION, ("a b",))


@pytest.mark.parametrize(
    ("schema", "record", "sentence"),
    [
        ("ragas", {"q": "x", "retrieved_contexts": ["a b"]}, "log.jsonl: the schema 'ragas' does not fit: no record at the beginning has a field 'user_input' or 'question'; name the question with --question-field (there are: q, retrieved_contexts)"),
        ("ragas", {"user_input": "x", "retrieved_contexts": None}, "log.jsonl: the schema 'ragas' does not fit: the field 'retrieved_contexts' is null in every record at the beginning; name the contexts with --contexts-field (there are: user_input, retrieved_contexts)"),
        ("azure", {"query": "x", "context": ["https://a.b/c", "d.pdf"]}, "log.jsonl: the schema 'azure' does not fit: the field 'context' seems to hold names of documents, not their text; name the contexts with --contexts-field (there are: query, context)"),
        ("deepeval", {"input": "x", "context": ["ideal one"]}, "log.jsonl: the schema 'deepeval' does not fit: no record at the beginning has a field 'retrieval_context', 'retrievalContext' or 'trace.retrieverSpans[].retrievalContext[]'; name the contexts with --contexts-field (there are: input, context)"),
        ("langfuse", {"type": "GENERATION", "input": "x", "output": "some answer"}, "log.jsonl: the schema 'langfuse' does not fit: no record at the beginning has a field 'output.documents[]' or 'output[]'; such a log mostly needs --where type=RETRIEVER; name the contexts with --contexts-field (there are: type, input, output)"),
        ("autorag", {"query": "x", "retrieved_contents_semantic": ["a b"], "retrieved_contents_lexical": ["c d"]}, "log.jsonl: the contexts may be 'retrieved_contents_semantic' or 'retrieved_contents_lexical'; choose with --contexts-field retrieved_contents_semantic"),
    ],
)  # fmt: skip
def test_schema_that_does_not_fit(schema: str, record: dict[str, object], sentence: str) -> None:
    """One sentence names the paths that were looked for and the fields that are there."""
    assert refused(json.dumps(record), schema=schema) == sentence


def test_schema_without_the_field() -> None:
    """An evaluator may need what a schema does not know."""
    Path("log.jsonl").write_text(EXPORTS["trulens"].text)
    with pytest.raises(InputError, match=r"does not fit: it names no field for the answer; .*; name the answer with"):
        open_log(["log.jsonl"], Fields(schema=find_schema("trulens")), {**NEEDS, "answer": "text"})


def test_no_such_schema() -> None:
    """A slip gives the name that was meant, anything else all of them."""
    with pytest.raises(UsageError, match="no schema 'deepevl'; did you mean 'deepeval'"):
        find_schema("deepevl")
    with pytest.raises(UsageError, match="no schema 'x'; known are autorag, azure, bedrock, "):
        find_schema("x")


@pytest.mark.parametrize("name", ["bedrock", "mtrag"])
def test_schema_is_suggested(name: str) -> None:
    """Where no field has a usual name, the schema that fits is told."""
    assert refused(EXPORTS[name].text).endswith(f"; or give --schema {name}")


def test_run(ctxrel: RunCommand) -> None:
    """The option reaches the run, its summary, and a config file."""
    Path("log.json").write_text(EXPORTS["deepeval, test run"].text)
    Path("ctxrel.toml").write_text('[run]\nschema = "deepeval"\nmodel = "offline"\n')
    assert ctxrel("run", "log.json").returncode == 0
    (row,) = read_rows(Path("log.ctxrel"))
    assert (row["id"], row["question"], len(row["contexts"])) == ("7", QUESTION, 2)
    assert read_summary(Path("log.ctxrel"))["configuration"]["schema"] == "deepeval"


def test_list(ctxrel: RunCommand) -> None:
    """`ctxrel schemas` lists them, and the fields of one."""
    listed = ctxrel("schemas").stdout
    assert [row.split()[0] for row in listed.splitlines()[1:]] == list(all_schemas())
    assert ctxrel("schemas", "mtrag").stdout == (
        "what      field, tried in this order\nquestion  input[-1].text\ncontexts  contexts\n"
        "answer    predictions[0].text\nid        task_id\n"
    )
    assert ctxrel("schemas", "mtrg").stderr.startswith("ctxrel: no schema 'mtrg'; did you mean 'mtrag'?")


DOCUMENT = json.dumps(
    {
        "cases": [{"question": "a?", "contexts": ["b c"]}, {"question": "d?", "contexts": ["e f"]}],
        "more": {"old.runs": [{"question": "g?", "contexts": ["h i"]}]},
        "pages": [{"rows": [{"question": "j?", "contexts": []}]}, {"rows": [{"question": "k?", "contexts": []}]}],
        "n": 1,
    },
    indent=1,
)


@pytest.mark.parametrize(
    ("records", "questions"),
    [
        ("cases", ["a?", "d?"]),
        ("cases[]", ["a?", "d?"]),
        ('more."old.runs"', ["g?"]),
        ("pages[].rows", ["j?", "k?"]),
    ],
)
@pytest.mark.parametrize("by", ["file", "pipe"])
def test_records(ctxrel: RunCommand, records: str, questions: list[str], by: str) -> None:
    """--records names the list; in a pipe as well, where nobody could look for it."""
    Path("log.json").write_text(DOCUMENT)
    given = "-" if by == "pipe" else "log.json"
    done = ctxrel("run", given, "-m", "offline", "-o", "out", "--records", records, stdin=DOCUMENT)
    assert done.returncode == 0, done.stderr
    assert [row["question"] for row in read_rows(Path("out"))] == questions
    assert read_summary(Path("out"))["configuration"]["records"] == records


@pytest.mark.parametrize(
    ("name", "text", "records", "sentence"),
    [
        ("log.json", DOCUMENT, "case", "log.json: no records under 'case'; name another list (there are: cases, pages, more, n)"),
        ("log.json", DOCUMENT, "more", "log.json: no records under 'more'; name another list (there are: cases, pages, more, n)"),
        ("log.json", DOCUMENT, "pages[0].rows", "--records pages[0].rows: the records are all items of a list; leave out the [N]"),
        ("log.json", "[]", "cases", "log.json is no JSON object; --records cases names a list in one, leave it out"),
        ("log.csv", "question,contexts\na,b\n", "cases", "log.csv is no JSON object; --records cases names a list in one, leave it out"),
        ("log.jsonl", '{"cases": []}\n{"cases": []}\n', "cases", "log.jsonl is JSON Lines; --records cases names a list in one object, leave it out"),
    ],
)  # fmt: skip
def test_no_records(ctxrel: RunCommand, name: str, text: str, records: str, sentence: str) -> None:
    """A list that is not there, and a log that has no lists by name, are refused with what to do."""
    Path(name).write_text(text)
    done = ctxrel("run", name, "-m", "offline", "--records", records)
    assert (done.returncode, done.stderr) == (2, f"ctxrel: {sentence}\n")


def test_other_records_are_another_run(ctxrel: RunCommand) -> None:
    """The same file with another list of it is not taken for the run that is here."""
    twice = {"a": [{"question": "a?", "contexts": []}], "b": [{"question": "b?", "contexts": []}]}
    Path("log.json").write_text(json.dumps(twice))
    for records in ("a", "b"):
        done = ctxrel("run", "log.json", "-m", "offline", "--records", records)
        assert "its results stand" not in done.stderr
        assert [row["question"] for row in read_rows(Path("log.ctxrel"))] == [f"{records}?"]
