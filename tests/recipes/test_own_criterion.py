"""docs/recipes/own-criterion.md."""

import json
import re
from collections.abc import Callable
from pathlib import Path

import duckdb
import pytest
from conftest import Record, read_rows
from recipes.conftest import Shell
from recipes.page import Page
from servers.loopback import Answer, LoopbackServer, Seen, completion

PAGE = Page("own-criterion.md")
ANSWERS = ("Press the button.", "We are sorry.", "Call 555 0100.")


def judge(seen: Seen) -> Answer:
    """Takes a telephone number for a step, until it is told otherwise."""
    answer = seen.record["answer"]
    told = "is no step" in seen.body["messages"][0]["content"]
    step = answer.startswith("Press") or (answer.startswith("Call") and not told)
    return completion(json.dumps({"has_step": step, "step": answer if step else ""}))


def typed(log: list[Record], done: str) -> str:
    """What a person types who sees these records: a button is a step."""
    shown = re.findall(r"^answer: (.*)$", done, re.MULTILINE)
    assert len(shown) <= len(log)
    return "".join("y\n" if answer.startswith("Press") else "n\n" for answer in shown)


@pytest.fixture
def log(write_log: Callable[..., Path]) -> list[Record]:
    """Three hundred records with three kinds of answers."""
    records = [{"id": f"r{n:03}", "question": f"Question {n}?", "answer": ANSWERS[n % 3]} for n in range(300)]
    write_log(records)
    return records


def label(shell: Shell, command: str, log: list[Record]) -> None:
    """Carry out `ctxrel label`: skip through once to see what is shown, then type."""
    shown = shell.run(command, stdin="s\n" * len(log)).stderr
    shell.run(command, stdin=typed(log, shown))


def test_from_a_sentence_to_a_number(shell: Shell, endpoint: LoopbackServer, log: list[Record]) -> None:
    """The blocks run one after the other; labels find the hole, the mended file closes it, fresh labels say so."""
    endpoint.script = judge
    PAGE.write("next_step.yaml", "stricter.diff")
    look, first, measure, mend, fresh = PAGE.blocks("bash")
    assert "press the button for 5 seconds" in shell.run(look).stdout
    run, labelling = first.splitlines()
    shell.run(run)
    label(shell, labelling, log)
    labels = read_rows(Path(), "labels.jsonl")
    assert {each["id"] for each in labels} == {row["id"] for row in read_rows(Path("before"))}
    assert "next_step" in shell.run(measure).stdout
    disagreements = duckdb.execute(PAGE.block("sql", "score <> label")).fetchall()
    assert disagreements
    assert {(row[1], row[2], row[4]) for row in disagreements} == {(0, 1, "Call 555 0100.")}
    told = shell.run(mend).stdout
    assert "fuzz" not in told  # the patch fits to the line
    assert told.index("after") < told.index("before")
    assert re.search(r"^next_step .* lower$", told, re.MULTILINE)
    run, labelling, measure = fresh.splitlines()
    shell.run(run)
    label(shell, labelling, log)
    (block,) = json.loads(shell.run(f"{measure} --json").stdout)["results"]
    assert block["kappa"]["value"] == 1
    assert block["labelled"] == 120
    assert read_rows(Path(), "fresh.jsonl") != labels
