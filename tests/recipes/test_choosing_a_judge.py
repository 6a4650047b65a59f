"""docs/recipes/choosing-a-judge.md, with a good judge, a dear one that is no better, and a cheap one that guesses."""

import json
import re
import zlib
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from conftest import read_rows, read_summary
from recipes.conftest import Shell, serving
from recipes.page import Page
from servers.loopback import Answer, LoopbackServer, Seen, completion

PAGE = Page("choosing-a-judge.md")
MODELS = ("gpt-6-luna", "gpt-6.1-terra", "gpt-6-sol")
PRICES = """
"*":
  models:
    gpt-6-luna: {input: 1, output: 1}
    gpt-6.1-terra: {input: 10, output: 10}
    gpt-6-sol: {input: 20, output: 20}
"""


def chance(*parts: object, of: int) -> bool:
    """One in `of`, always the same."""
    return zlib.crc32(repr(parts).encode()) % of == 0


def judge(seen: Seen) -> Answer:
    """The dear models err in one of twenty records; the cheap one in one of three, and not always in the same way."""
    text, model = seen.record["question"], seen.body["model"]
    wrong = chance(text, seen.number, of=3) if model == "gpt-6-luna" else chance(text, model, of=20)
    answer = completion(json.dumps({"relevant_statements": [1] if ("good" in text) != wrong else []}))
    assert isinstance(answer.body, dict)
    answer.body["model"] = model
    return answer


@pytest.fixture
def judges(monkeypatch: pytest.MonkeyPatch, write_log: Callable[..., Path]) -> Iterator[LoopbackServer]:
    """An endpoint with three models and a log; the config file gives them prices."""
    write_log(
        [
            {"id": f"r{n:03}", "question": f"{'good' if n % 2 else 'bad'} {n}?", "contexts": [f"Text {n}."]}
            for n in range(240)
        ]
    )
    Path("prices.yaml").write_text(PRICES)
    Path("ctxrel.toml").write_text('[run]\nprices = "prices.yaml"\n')
    with LoopbackServer(judge, models=serving(*MODELS)) as server:
        monkeypatch.setenv("OPENAI_BASE_URL", server.url)
        yield server


def test_estimates(shell: Shell, write_log: Callable[..., Path]) -> None:
    """Each model's price is told, without a key."""
    write_log([{"question": "q?", "contexts": ["A text."]}])
    told = shell.run(PAGE.block("bash", "ctxrel estimate")).stdout.splitlines()
    assert [line.split()[1] for line in told if line.startswith("estimate")] == list(MODELS)
    assert all(re.match(r"cost +\$", line) for line in told[1::2])


def test_price_and_agreement(shell: Shell, judges: LoopbackServer) -> None:
    """The table ranks the judges by agreement and tells what each costs; repeats show who wavers."""
    PAGE.write("table.py")
    shell.run(PAGE.block("bash", "--max-cost 5"))
    assert len(judges.seen) == 3 * 200
    command = PAGE.block("bash", "ctxrel label")
    shown = re.findall(r"^question: (good|bad)", shell.run(command, stdin="s\n" * 120).stderr, re.MULTILINE)
    shell.run(command, stdin="".join("y\n" if word == "good" else "n\n" for word in shown))
    sampled = {row["id"] for row in read_rows(Path("judges/gpt-6-sol"))}
    labels = read_rows(Path(), "labels.jsonl")
    assert len(labels) == 120
    assert {each["id"] for each in labels} <= sampled
    shell.run(PAGE.block("bash", "calibration.json"))
    heading, *lines = shell.run(PAGE.block("bash", "python table.py")).stdout.splitlines()
    assert heading.split()[0] == "judge"
    told = {line.split()[0]: float(line.split()[-1]) for line in lines}
    assert told == {"gpt-6.1-terra": 1.07, "gpt-6-sol": 2.14, "gpt-6-luna": 0.11}
    assert list(told)[-1] == "gpt-6-luna"
    kappas = [float(line.split()[1]) for line in lines]
    assert kappas[0] >= kappas[1] > 0.8
    assert kappas[2] < 0.6
    shell.run(PAGE.block("bash", "--repeat 2"))
    stability = read_summary(Path("judges/gpt-6-luna"))["evaluators"]["context_relevance"]["stability"]
    assert stability["repeats"]["agreement"] < 0.8
    assert sum(seen.body["model"] == "gpt-6-sol" for seen in judges.seen) > 200
