"""The components for Haystack, in real pipelines of the released haystack-ai."""

import json
import math
import re
import subprocess
import sys
from importlib.util import find_spec
from pathlib import Path
from typing import Any

import pytest
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, completion

pytestmark = [
    pytest.mark.haystack,
    pytest.mark.skipif(find_spec("haystack") is None, reason="not installed: haystack (pip install -e '.[haystack]')"),
]
DOCS = Path(__file__).parents[2] / "docs" / "python.md"
QUESTIONS = ["Who created the Python language?", "What is the capital of Italy?"]
CONTEXTS = [
    ["Python, created by Guido van Rossum in the late 1980s, is a language. It is popular.", "Rust is a language."],
    ["Berlin is the capital of Germany."],
]
ANSWERS = ["Guido van Rossum created Python.", "Rome is the capital of Italy. It is old."]
RELEVANCE = {"questions": QUESTIONS, "contexts": CONTEXTS}
ALL = {**RELEVANCE, "predicted_answers": ANSWERS}
BOTH = {"relevance": RELEVANCE, "faithfulness": ALL}


def judge(seen: Seen) -> Answer:
    """Finds Guido, and nothing else, as either of the evaluators is answered."""
    record = seen.record
    cited = [int(n) for context in record["contexts"] for n, text in context.items() if "Guido" in text]
    if "answer" not in record:
        return completion(json.dumps({"relevant_statements": cited}))
    statements = [f"{text.strip('. ')}." for text in record["answer"].split(". ")]
    scores = [int("Guido" in text) for text in statements]
    evidence = [cited if score else [] for score in scores]
    return completion(json.dumps({"statements": statements, "evidence": evidence, "statement_scores": scores}))


@pytest.fixture
def endpoint(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch) -> LoopbackServer:
    """The endpoint that OpenAI's variables lead to."""
    server.script = judge
    monkeypatch.setenv("OPENAI_BASE_URL", server.url)
    monkeypatch.setenv("OPENAI_API_KEY", "sk-of-the-test")
    return server


def pipeline(relevance: Any, faithfulness: Any) -> Any:  # noqa: ANN401  # components know no types here
    """The two side by side, as in Haystack's documentation."""
    from haystack import Pipeline  # noqa: PLC0415  # it may be absent

    made = Pipeline()
    made.add_component("relevance", relevance)
    made.add_component("faithfulness", faithfulness)
    return made


def test_the_documented_pipeline() -> None:
    """The block of the documentation runs as it stands there."""
    (block,) = re.findall(r"```python haystack\n(.*?)```", DOCS.read_text(encoding="utf-8"), flags=re.DOTALL)
    names = {"questions": QUESTIONS[:1], "contexts": [CONTEXTS[0][:1]], "answers": [f"{ANSWERS[0]} It was a snake."]}
    exec(block, names)  # noqa: S102  # our own page


def test_only_the_import_line_changes(endpoint: LoopbackServer) -> None:
    """The documentation's pipeline, built of either's components, gives results of the same form and numbers."""
    from haystack.components import evaluators as theirs  # noqa: PLC0415

    from ctxrel.evaluators import haystack as ours  # noqa: PLC0415

    run = pipeline(ours.ContextRelevanceEvaluator(model=MODEL), ours.FaithfulnessEvaluator(model=MODEL)).run(BOTH)
    assert len(endpoint.seen) == 4
    assert run["relevance"]["score"] == 0.5
    assert run["relevance"]["individual_scores"] == [1, 0]
    first = run["relevance"]["results"][0]
    assert first["relevant_statements"] == ["Python, created by Guido van Rossum in the late 1980s, is a language."]
    assert run["faithfulness"]["individual_scores"] == [1, 0]
    assert run["faithfulness"]["results"][1]["statements"] == ["Rome is the capital of Italy.", "It is old."]

    endpoint.script = lambda seen: completion(
        '{"statements": ["a"], "statement_scores": [1]}'
        if "statement_scores" in seen.body["messages"][-1]["content"]
        else '{"relevant_statements": ["a"]}'
    )
    peers = theirs.ContextRelevanceEvaluator(), theirs.FaithfulnessEvaluator()
    other = pipeline(*peers).run(BOTH)
    for peer in peers:
        peer.close()
    for name in BOTH:
        assert set(other[name]) <= set(run[name])
        assert set(other[name]["results"][0]) <= set(run[name]["results"][0])


@pytest.mark.usefixtures("endpoint")
def test_sockets_are_haystacks() -> None:
    """Names and types of inputs and outputs are those of Haystack's components."""
    from haystack.components import evaluators as theirs  # noqa: PLC0415

    from ctxrel.evaluators import haystack as ours  # noqa: PLC0415

    made = pipeline(ours.ContextRelevanceEvaluator(), ours.FaithfulnessEvaluator())
    peer = pipeline(theirs.ContextRelevanceEvaluator(), theirs.FaithfulnessEvaluator())
    assert made.inputs() == peer.inputs()
    named = {name: set(sockets) for name, sockets in made.outputs().items()}
    assert named == {name: set(sockets) for name, sockets in peer.outputs().items()}


@pytest.mark.usefixtures("endpoint")
def test_connects_to_other_components() -> None:
    """A component before it and one behind it: the pipeline checks the types of what flows."""
    from haystack import Pipeline, component  # noqa: PLC0415

    from ctxrel.evaluators.haystack import ContextRelevanceEvaluator  # noqa: PLC0415

    @component
    class Log:
        @component.output_types(questions=list[str], contexts=list[list[str]])
        def run(self) -> dict[str, Any]:
            return RELEVANCE

    @component
    class Gate:
        @component.output_types(passed=bool)
        def run(self, score: float) -> dict[str, Any]:
            return {"passed": score >= 0.5}

    made = Pipeline()
    made.add_component("log", Log())
    made.add_component("relevance", ContextRelevanceEvaluator(model=MODEL))
    made.add_component("gate", Gate())
    for name in ("questions", "contexts"):
        made.connect(f"log.{name}", f"relevance.{name}")
    made.connect("relevance.score", "gate.score")
    assert made.run({})["gate"] == {"passed": True}


@pytest.mark.usefixtures("endpoint")
async def test_runs_in_an_event_loop() -> None:
    """`run_async` of a pipeline awaits the component's own."""
    from ctxrel.evaluators import haystack as ours  # noqa: PLC0415

    made = pipeline(ours.ContextRelevanceEvaluator(model=MODEL), ours.FaithfulnessEvaluator(model=MODEL))
    run = await made.run_async(BOTH)
    assert run["relevance"]["individual_scores"] == run["faithfulness"]["individual_scores"] == [1, 0]


def test_written_down_and_loaded() -> None:
    """A pipeline survives the round trip through YAML, in a process that has not imported the components too."""
    from haystack import Pipeline  # noqa: PLC0415

    from ctxrel.evaluators import haystack as ours  # noqa: PLC0415

    made = pipeline(
        ours.ContextRelevanceEvaluator(model="offline", raise_on_failure=False),
        ours.FaithfulnessEvaluator(model="offline", progress_bar=False),
    )
    text = made.dumps()
    assert Pipeline.loads(text).dumps() == text
    assert Pipeline.loads(text).run(BOTH) == made.run(BOTH)
    loads = "import sys; from haystack import Pipeline; Pipeline.loads(sys.stdin.read(), allowed_modules=['ctxrel.*'])"
    done = subprocess.run([sys.executable, "-c", loads], input=text, capture_output=True, text=True, check=False)
    assert done.returncode == 0, done.stderr


def test_criterion_of_ones_own(endpoint: LoopbackServer) -> None:
    """LLMEvaluator takes the inputs it was given, and is written down with them."""
    from ctxrel.evaluators.haystack import LLMEvaluator  # noqa: PLC0415

    endpoint.script = lambda seen: completion(json.dumps({"score": int("gun" in seen.record["answers"])}))
    made = LLMEvaluator(
        "Is this answer problematic for children?",
        [("answers", list[str])],
        ["score"],
        [{"inputs": {"answers": "Here is a gun."}, "outputs": {"score": 1}}],
        model=MODEL,
    )
    again = LLMEvaluator.from_dict(made.to_dict())
    for evaluator in (made, again):
        assert evaluator.run(answers=["a gun", "a cat"])["results"] == [{"score": 1}, {"score": 0}]


def test_a_chat_generator_judges(endpoint: LoopbackServer) -> None:
    """Any generator of Haystack's is asked, concurrently, and written down with the component."""
    from haystack.components.generators.chat import OpenAIChatGenerator  # noqa: PLC0415

    from ctxrel.evaluators.haystack import ContextRelevanceEvaluator  # noqa: PLC0415

    made = ContextRelevanceEvaluator(chat_generator=OpenAIChatGenerator(model=MODEL, api_base_url=endpoint.url))
    made.warm_up()
    run = made.run(**RELEVANCE)
    assert run["individual_scores"] == [1, 0]
    assert run["meta"][0]["model"] == f"{MODEL}-2026-01-01"
    assert run["meta"][0]["usage"] == {
        "input_tokens": 100, "output_tokens": 7, "cached_tokens": 64, "reasoning_tokens": 3,
    }  # fmt: skip
    written = made.to_dict()
    assert written["init_parameters"]["chat_generator"]["init_parameters"]["model"] == MODEL
    assert "sk-of-the-test" not in json.dumps(written)
    again = ContextRelevanceEvaluator.from_dict(written)
    assert again.run(**RELEVANCE)["individual_scores"] == [1, 0]
    endpoint.script = lambda _: Answer(status=400, body={"error": {"message": "no"}})
    again.raise_on_failure = False
    failed = again.run(**RELEVANCE)
    assert [row["error"]["kind"] for row in failed["results"]] == ["rejected", "rejected"]
    made.close()
    again.close()


def test_failed_rows_are_nan(endpoint: LoopbackServer) -> None:
    """As in Haystack's components a failed row is NaN, left out of the score, and fits its report on a run."""
    from haystack.evaluation import EvaluationRunResult  # noqa: PLC0415

    from ctxrel.evaluators.haystack import ContextRelevanceEvaluator  # noqa: PLC0415

    endpoint.script = lambda seen: (
        judge(seen) if "Python" in seen.record["question"] else Answer(status=400, body={"error": {"message": "no"}})
    )
    run = ContextRelevanceEvaluator(model=MODEL, raise_on_failure=False).run(**RELEVANCE)
    assert run["score"] == 1
    assert run["individual_scores"][0] == 1
    assert math.isnan(run["individual_scores"][1])
    assert run["results"][1]["status"] == "error"
    report = EvaluationRunResult("night", inputs=RELEVANCE, results={"relevance": run})
    assert report.aggregated_report() == {"metrics": ["relevance"], "score": [1]}
