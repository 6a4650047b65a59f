"""docs/recipes/exports.md, with files as the tools' exports leave them."""

import json
from pathlib import Path
from typing import Any

import pytest
from conftest import read_rows
from recipes.conftest import Shell
from recipes.page import Page
from servers.loopback import Answer, LoopbackServer, Seen, cite, completion

PAGE = Page("exports.md")
QUESTION = "Where do otters sleep?"
TEXTS = ["Otters sleep on the water.", "They hold hands."]
ANSWER = "On the water."
IDS = {"lc": 1, "type": "constructor", "id": ["langchain", "schema", "document", "Document"]}
NODE: dict[str, object] = {
    "embedding": None,
    "metadata": {},
    "relationships": {},
    "mimetype": "text/plain",
    "class_name": "TextNode",
}
EXPORTS: dict[str, list[dict[str, Any]]] = {
    "haystack": [
        {
            "id": "7", "data": ANSWER, "query": QUESTION, "meta": {"all_messages": [{"role": "assistant", "content": [{"text": ANSWER}]}]},
            "documents": [{"id": f"d{n}", "content": text, "blob": None, "meta": {"source_index": n}, "score": 0.8, "embedding": None} for n, text in enumerate(TEXTS)],
        }
    ],
    "ragas": [{"user_input": QUESTION, "retrieved_contexts": TEXTS, "reference_contexts": ["The ideal one."], "response": ANSWER, "reference": "x"}],
    "langchain": [
        {"id": "7", "input": QUESTION, "answer": ANSWER, "context": [{**IDS, "kwargs": {"metadata": {"source": "a"}, "page_content": text, "type": "Document"}} for text in TEXTS]}
    ],
    "llamaindex": [
        {"id": "7", "query": QUESTION, "response": ANSWER, "source_nodes": [{"node": {"id_": "n", "text": text, **NODE}, "score": 0.5, "class_name": "NodeWithScore"} for text in TEXTS]}
    ],
    "langfuse": [
        {"id": "7", "type": "RETRIEVER", "input": QUESTION, "output": [{"page_content": text, "metadata": {}} for text in TEXTS]},
        {"id": "8", "type": "GENERATION", "input": [{"role": "user", "content": "x"}], "output": "y"},
    ],
    "phoenix": [
        {"context.span_id": "7", "span_kind": "RETRIEVER", "attributes.input.value": QUESTION, "attributes.retrieval.documents": [{"document.content": text, "document.score": 0.5} for text in TEXTS]},
        {"context.span_id": "8", "span_kind": "LLM", "attributes.input.value": "x", "attributes.retrieval.documents": None},
    ],
    "other": [{"request": {"id": "7", "q": QUESTION}, "hits": [{"body": text} for text in TEXTS], "reply": ANSWER}],
}  # fmt: skip


def judge(seen: Seen) -> Answer:
    """Says that the first sentence is relevant and supports the answer."""
    if "answer" in seen.record:
        return completion(json.dumps({"statements": [ANSWER], "evidence": [[1]], "statement_scores": [1]}))
    return cite(1)


@pytest.mark.parametrize(("name", "records"), EXPORTS.items(), ids=list(EXPORTS))
def test_export(shell: Shell, endpoint: LoopbackServer, name: str, records: list[dict[str, Any]]) -> None:
    """The command asks about question, contexts and answer of the export, in their order, and about nothing else."""
    endpoint.script = judge
    Path(f"{name}.jsonl").write_text("".join(json.dumps(record) + "\n" for record in records))
    command = PAGE.block("bash", f"ctxrel run {name}.jsonl ")
    shell.run(command)
    shown = {"question": QUESTION, "contexts": [{"1": TEXTS[0]}, {"2": TEXTS[1]}]}
    wanted = [shown, {**shown, "answer": ANSWER}] if "faithfulness" in command else [shown]
    assert sorted((seen.record for seen in endpoint.seen), key=len) == wanted
    rows = read_rows(Path(f"{name}.ctxrel"))
    assert {(row["id"], row["score"]) for row in rows} == {("0" if name == "ragas" else "7", 1)}
    assert len(rows) == len(wanted)


def test_every_command_has_an_export() -> None:
    """No command of the page goes untested."""
    assert len(PAGE.blocks("bash")) == len(EXPORTS)
    assert PAGE.blocks("python") == []
