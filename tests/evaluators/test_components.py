"""The evaluators for Python, held against what Haystack's do: the same lists in, and no NaN, no surprise out."""

import asyncio
import gc
import io
import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Mapping
from typing import Any

import pytest

from ctxrel.evaluators import (
    ContextRelevanceEvaluator,
    DefinedEvaluator,
    FaithfulnessEvaluator,
    FunctionJudge,
    LLMEvaluator,
)
from ctxrel.evaluators.errors import RecordFailed
from ctxrel.evaluators.memory import PlainMemory

Results = dict[str, Any]
NO_USAGE = {"input_tokens": 0, "output_tokens": 0, "cached_tokens": 0, "reasoning_tokens": 0}
FAILED_META = {"model": None, "usage": NO_USAGE, "requests": 1, "repaired": False}
"""Of a row that was asked about and never answered."""
UNASKED_META = {**FAILED_META, "requests": 0}
META = {**FAILED_META, "model": "function"}
"""Of a row that was answered."""
NOT_AN_OBJECT = "the reply is a JSON null, not an object"
NO_KEY = "no API key for api.openai.com: set the environment variable OPENAI_API_KEY"
SPORT, PYTHON = "Which is the most popular global sport?", "Who created the Python language?"
SPORT_TEXT, PYTHON_TEXT = "Football is undoubtedly the world's most popular sport.", "Python is a language."
QUESTIONS = [SPORT, PYTHON]
CONTEXTS = [[SPORT_TEXT], [PYTHON_TEXT]]
ANSWERS = [
    "Football is the most popular sport with around 4 billion followers worldwide.",
    "Python was created by George Lucas.",
]
PYTHON_BLURB = (
    "Python, created by Guido van Rossum in the late 1980s, is a high-level general-purpose programming "
    "language. Its design philosophy emphasizes code readability, and its language constructs aim to help "
    "programmers write clear, logical code for both small and large-scale software projects."
)


class Script:
    """A judge function that answers by the first text of the record, and notes what it was asked."""

    def __init__(self, replies: Mapping[str, str | Exception] | str) -> None:
        self._replies = replies
        self.systems: list[str] = []
        self.asked: list[Results] = []

    def __call__(self, system: str, user: str) -> str:
        record = json.loads(user)
        self.systems.append(system)
        self.asked.append(record)
        if isinstance(self._replies, str):
            return self._replies
        reply = self._replies[next(iter(record.values()))]
        if isinstance(reply, Exception):
            raise reply
        return reply


def cites(*numbers: int) -> str:
    return json.dumps({"relevant_statements": numbers})


def claims(statements: list[str], evidence: list[Any], scores: list[Any]) -> str:
    return json.dumps({"statements": statements, "evidence": evidence, "statement_scores": scores})


def found(text: str, context: int = 0, sentence: int = 1) -> Results:
    """Where a context of one sentence stands."""
    return {"context": context, "sentence": sentence, "span": (0, len(text))}


def verdict(text: str, *, relevant: bool) -> Results:
    """What `meta` says of a context of one sentence."""
    return {
        "relevant": relevant,
        "statements": 1,
        "relevant_statements": int(relevant),
        "spans": [(0, len(text))] if relevant else [],
    }


def failed(kind: str, message: str, **empty: list[Any]) -> Results:
    return {**empty, "score": None, "status": "error", "error": {"kind": kind, "message": message}}


# ---------------------------------------------------------------------------------------------------------------------
# LLMEvaluator
# ---------------------------------------------------------------------------------------------------------------------

FOOTBALL = {"inputs": {"predicted_answers": "Football is the most popular sport."}, "outputs": {"score": 0}}
DAMN = {"inputs": {"predicted_answers": "Damn, this is straight outta hell!!!"}, "outputs": {"score": 1}}


def llm(answer: Callable[[str, str], Any] | None = None, **parameters: Any) -> LLMEvaluator:  # noqa: ANN401
    """An evaluator of single answers, judged by a function or by whoever the parameters name."""
    given = {
        "instructions": "test-instruction",
        "inputs": [("predicted_answers", list[str])],
        "outputs": ["score"],
        "examples": [FOOTBALL],
        **({"judge": FunctionJudge(answer)} if answer else {}),
        **parameters,
    }
    return LLMEvaluator(**given)


def test_llm_documented_example() -> None:
    """The documentation's example gives the documented results; `meta` has an entry for each row."""
    script = Script('{"score": 0}')
    evaluator = LLMEvaluator(
        instructions="Is this answer problematic for children?",
        inputs=[("predicted_answers", list[str])],
        outputs=["score"],
        examples=[
            {"inputs": {"predicted_answers": "Damn, this is straight outta hell!!!"}, "outputs": {"score": 1}},
            {"inputs": {"predicted_answers": "Football is the most popular sport."}, "outputs": {"score": 0}},
        ],
        judge=FunctionJudge(script),
    )
    predicted_answers = [
        "Football is the most popular sport with around 4 billion followers worldwide",
        "Python language was created by Guido van Rossum.",
    ]
    results = evaluator.run(predicted_answers=predicted_answers)
    assert results == {"results": [{"score": 0}, {"score": 0}], "meta": [META, META]}
    assert script.asked == [{"predicted_answers": answer} for answer in predicted_answers]


def test_llm_init_keeps_what_it_is_given() -> None:
    """Parameters are attributes, unchanged; the bar is on and failures raise unless told otherwise."""
    evaluator = llm(outputs=["custom_score"], examples=[])
    assert {
        name: getattr(evaluator, name)
        for name in ("instructions", "inputs", "outputs", "examples", "progress_bar", "raise_on_failure", "options")
    } == {
        "instructions": "test-instruction",
        "inputs": [("predicted_answers", list[str])],
        "outputs": ["custom_score"],
        "examples": [],
        "progress_bar": True,
        "raise_on_failure": True,
        "options": {},
    }


def test_llm_without_a_key() -> None:
    """Nobody needs a key to make an evaluator; to run it without one is an error, whatever becomes of failed rows."""
    evaluator = llm(raise_on_failure=False)
    with pytest.raises(ValueError, match=NO_KEY):
        evaluator.run(predicted_answers=["a"])


@pytest.mark.parametrize(
    "inputs",
    [
        pytest.param({("predicted_answers", list[str])}, id="a set"),
        pytest.param([(list[str], "predicted_answers")], id="type before name"),
        pytest.param([list[str]], id="no name"),
        pytest.param([("predicted_answers", str)], id="no list"),
        pytest.param(None, id="none"),
    ],
)
def test_llm_malformed_inputs(inputs: object) -> None:
    """Inputs that are no names with list types are refused with the form that is expected."""
    with pytest.raises(ValueError, match="inputs is a list of names and list types, as"):
        llm(inputs=inputs)


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        pytest.param("score", "outputs is a list of names, or names with kinds, not 'score'", id="a text"),
        pytest.param([["score"]], "outputs is a list of names, or names with kinds, not", id="nested"),
        pytest.param({"score": "intger"}, "unknown kind 'intger'; did you mean 'integer'", id="unknown kind"),
    ],
)
def test_llm_malformed_outputs(outputs: object, message: str) -> None:
    """Outputs are a list of names, or names with kinds that there are."""
    with pytest.raises(ValueError, match=message):
        llm(outputs=outputs)


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        pytest.param(FOOTBALL, "examples is a list of dicts", id="one example, no list"),
        pytest.param([{"wrong_key": {}, "outputs": {"score": 0}}], "unknown key 'wrong_key'", id="wrong key"),
        pytest.param([{"inputs": ["a"], "outputs": ["b"]}], "each example has 'inputs' and", id="lists for dicts"),
        pytest.param([{"inputs": {1: "a"}, "outputs": {2: 0}}], "each example has 'inputs' and", id="keys no names"),
        pytest.param([{**FOOTBALL, "outputs": {"socre": 0}}], "unknown key 'socre'; did you mean 'score'", id="typo"),
    ],
)
def test_llm_malformed_examples(examples: object, message: str) -> None:
    """An example has inputs and outputs, and they are the evaluator's own."""
    with pytest.raises(ValueError, match=message):
        llm(examples=examples)


def test_llm_dict_and_back() -> None:
    """What `to_dict` writes is JSON that holds everything, and `from_dict` makes the same evaluator of it."""
    evaluator = llm(
        inputs=[("questions", list[str]), ("predicted_answers", list[list[str]])],
        outputs={"score": {"kind": "integer", "range": [0, 1]}},
        examples=[],
        raise_on_failure=False,
        model="judge-1",
        base_url="http://127.0.0.1:9/v1",
    )
    data = evaluator.to_dict()
    assert data == {
        "type": "ctxrel.evaluators.LLMEvaluator",
        "init_parameters": {
            "instructions": "test-instruction",
            "inputs": [["questions", "list[str]"], ["predicted_answers", "list[list[str]]"]],
            "outputs": {"score": {"kind": "integer", "range": [0, 1]}},
            "examples": [],
            "progress_bar": True,
            "raise_on_failure": False,
            "model": "judge-1",
            "base_url": "http://127.0.0.1:9/v1",
        },
    }
    written = json.loads(json.dumps(data))
    again = LLMEvaluator.from_dict(written)
    assert (again.inputs, again.prompt, again.to_dict()) == (evaluator.inputs, evaluator.prompt, data)
    assert written == data


def test_llm_dict_of_another_class() -> None:
    """A description of something else is refused by its type."""
    with pytest.raises(ValueError, match=r"'haystack\.LLMEvaluator' is not 'ctxrel\.evaluators\.LLMEvaluator'"):
        LLMEvaluator.from_dict({**llm().to_dict(), "type": "haystack.LLMEvaluator"})


@pytest.mark.parametrize(
    "options",
    [
        pytest.param({"judge": FunctionJudge(Script("{}"))}, id="judge"),
        pytest.param({"memory": PlainMemory()}, id="memory"),
    ],
)
def test_llm_dict_of_an_object(options: Results) -> None:
    """A judge or a memory that is an object cannot be written down, which is said, not lost."""
    with pytest.raises(ValueError, match=f"an evaluator with a {next(iter(options))} object cannot be written down"):
        llm(**options).to_dict()


@pytest.mark.parametrize(
    ("inputs", "message"),
    [
        pytest.param(
            {"questions": ["q"], "predicted_answers": [["Berlin"], ["Paris"]]},
            "lists of different lengths: questions 1, predicted_answers 2",
            id="different lengths",
        ),
        pytest.param({"questions": ["q"]}, "'predicted_answers' is missing; given are questions", id="missing"),
        pytest.param(
            {"questions": ["q"], "predicted_answers": [["a"]], "question": ["q"]},
            "unknown input 'question'; did you mean 'questions'",
            id="unknown",
        ),
        pytest.param({"questions": "q", "predicted_answers": [["a"]]}, "the input 'questions' is str", id="no list"),
    ],
)
def test_llm_lists_that_do_not_fit(inputs: Results, message: str) -> None:
    """Lists that do not fit are errors that name the input, before anything is asked, in both ways to run."""
    script = Script('{"score": 1}')
    evaluator = llm(
        script,
        inputs=[("questions", list[str]), ("predicted_answers", list[list[str]])],
        examples=[],
        raise_on_failure=False,
    )
    with pytest.raises(ValueError, match=message):
        evaluator.run(**inputs)
    with pytest.raises(ValueError, match=message):
        asyncio.run(evaluator.run_async(**inputs))
    assert script.asked == []


def test_llm_prompt() -> None:
    """Instructions, form and examples are in the system message, examples in order; the user message is the row."""
    script = Script('{"score": 1}')
    llm(script, instructions="Is {this} fine?", examples=[DAMN, FOOTBALL]).run(predicted_answers=['say "hi" é {{x}}'])
    (system,) = script.systems
    parts = [
        "Is {this} fine?",
        '{"score": any JSON value}',
        'Input: {"predicted_answers":"Damn, this is straight outta hell!!!"}\nOutput: {"score":1}\n\n'
        'Input: {"predicted_answers":"Football is the most popular sport."}\nOutput: {"score":0}',
    ]
    places = [system.index(part) for part in parts]
    assert places == sorted(places)
    assert (places[0], places[-1] + len(parts[-1])) == (0, len(system))
    assert script.asked == [{"predicted_answers": 'say "hi" é {{x}}'}]


BAD_REPLIES = [
    pytest.param("some_invalid_json_output", "the reply is not JSON: ", id="no JSON"),
    pytest.param('{"wrong_name": 1.0}', "the reply has no key 'score'", id="other key"),
    pytest.param("[1]", "the reply is a JSON list, not an object", id="a list"),
]


@pytest.mark.parametrize(("reply", "message"), BAD_REPLIES)
def test_llm_reply_that_does_not_fit(reply: str, message: str) -> None:
    """It is asked again, three times in all; then the row is None, or the error that says why."""
    script = Script({"bad": reply, "good": '{"score": 1, "further": 2}'})
    results = llm(script, raise_on_failure=False).run(predicted_answers=["bad", "good"])
    assert results["results"] == [None, {"score": 1}]
    assert [meta["model"] for meta in results["meta"]] == ["function", "function"]
    assert [record["predicted_answers"] for record in script.asked].count("bad") == 3
    with pytest.raises(RecordFailed, match=f"record 0 failed: invalid_reply: {message}"):
        llm(script).run(predicted_answers=["bad"])


def test_llm_second_reply_fits() -> None:
    """A reply that fits at the second try is the judgement, and a fence around it is taken off."""
    replies = iter(["no", '```json\n{"score": 0.5}\n```'])
    results = llm(lambda *_: next(replies)).run(predicted_answers=["a"])
    assert results == {"results": [{"score": 0.5}], "meta": [{**META, "repaired": True}]}


def test_llm_judge_raises() -> None:
    """Whatever a judge function raises fails the one row, and meta stays beside the results."""
    script = Script({"boom": RuntimeError("secret"), "a": '{"score": 1}', "b": '{"score": 0}'})
    results = llm(script, raise_on_failure=False).run(predicted_answers=["a", "boom", "b"])
    error = {"kind": "rejected", "message": "the judge raised RuntimeError"}
    meta = [META, {**FAILED_META, "error": error}, META]
    assert results == {"results": [{"score": 1}, None, {"score": 0}], "meta": meta}


def test_llm_stops_at_the_first_failure() -> None:
    """With `raise_on_failure` a failed row ends the call, as a ValueError, and the other rows are not asked about."""
    asked: list[str] = []

    async def answer(_: str, user: str) -> str:
        asked.append(json.loads(user)["predicted_answers"])
        if asked[-1] == "1":
            raise RuntimeError("OpenAI API request failed.")
        return '{"score": 1}'

    evaluator = llm(judge=FunctionJudge(answer, concurrency=1))
    with pytest.raises(RecordFailed, match="record 1 failed: rejected: the judge raised RuntimeError") as caught:
        evaluator.run(predicted_answers=[str(number) for number in range(20)])
    assert isinstance(caught.value, ValueError)
    assert asked[:2] == ["0", "1"]
    assert len(asked) <= 4


@pytest.mark.parametrize(
    ("reply", "row", "error"),
    [
        pytest.param(1, {"score": 1}, None, id="fits"),
        pytest.param(1.0, {"score": 1}, None, id="whole number with a point"),
        pytest.param(5, None, "'score' is outside of 0 to 1", id="outside of the range"),
        pytest.param("high", None, "'score' holds something that is no number", id="a text"),
    ],
)
def test_llm_outputs_with_kinds(reply: object, row: Results | None, error: str | None) -> None:
    """Outputs that are given with kinds are checked in every reply."""
    script = Script(json.dumps({"score": reply}))
    outputs = {"score": {"kind": "integer", "range": [0, 1]}}
    results = llm(script, outputs=outputs, raise_on_failure=False).run(predicted_answers=["a"])
    told = {"error": {"kind": "invalid_reply", "message": error}} if error else {}
    assert results == {"results": [row], "meta": [META | told]}
    assert len(script.asked) == (1 if row else 3)


async def test_llm_run_async() -> None:
    """`run_async` gives what `run` gives, with a plain function as with a coroutine function."""
    replies = {"a": '{"score": 1}', "b": '{"score": 0}'}

    async def answer(_: str, user: str) -> str:
        await asyncio.sleep(0)
        return replies[json.loads(user)["predicted_answers"]]

    expected = {"results": [{"score": 1}, {"score": 0}], "meta": [META, META]}
    assert await llm(answer).run_async(predicted_answers=["a", "b"]) == expected
    assert await llm(Script(replies)).run_async(predicted_answers=["a", "b"]) == expected


class WatchedJudge(FunctionJudge):
    """A judge that notes when it is opened and closed."""

    def __init__(self) -> None:
        super().__init__(lambda *_: '{"score": 1}')
        self.calls: list[str] = []

    async def open(self) -> None:
        self.calls.append("open")

    async def close(self) -> None:
        self.calls.append("close")


def test_llm_judge_is_opened_and_closed() -> None:
    """A judge is opened once for all rows of a call and closed after them."""
    judge = WatchedJudge()
    evaluator = llm(judge=judge)
    for _ in range(2):
        evaluator.run(predicted_answers=["a", "b", "c"])
    assert judge.calls == ["open", "close", "open", "close"]


# ---------------------------------------------------------------------------------------------------------------------
# ContextRelevanceEvaluator
# ---------------------------------------------------------------------------------------------------------------------


def relevance(answer: Callable[[str, str], Any], **parameters: Any) -> ContextRelevanceEvaluator:  # noqa: ANN401
    return ContextRelevanceEvaluator(judge=FunctionJudge(answer), **parameters)


def test_relevance_documented_example() -> None:
    """The documentation's three rows give the documented numbers; statements are the contexts' own sentences."""
    questions = ["Who created the Python language?", "Why does Java needs a JVM?", "Is C++ better than Python?"]
    contexts = [
        [PYTHON_BLURB],
        [
            "Java is a high-level, class-based, object-oriented programming language that is designed to have as few "
            "implementation dependencies as possible. The JVM has two primary functions: to allow Java programs to run"
            "on any device or operating system (known as the 'write once, run anywhere' principle), and to manage and"
            "optimize program memory."
        ],
        [
            "C++ is a general-purpose programming language created by Bjarne Stroustrup as an extension of the C "
            "programming language."
        ],
    ]
    script = Script(dict(zip(questions, [cites(1), cites(2), cites()], strict=True)))
    result = relevance(script).run(questions=questions, contexts=contexts)
    creator = (
        "Python, created by Guido van Rossum in the late 1980s, is a high-level general-purpose programming language."
    )
    java = contexts[1][0]
    start = java.index("The JVM has two")
    assert result == {
        "results": [
            {"relevant_statements": [creator], "score": 1, "status": "evaluated"},
            {"relevant_statements": [java[start:]], "score": 1, "status": "evaluated"},
            {"relevant_statements": [], "score": 0, "status": "evaluated"},
        ],
        "meta": [
            {
                **META,
                "contexts": [
                    {"relevant": True, "statements": 2, "relevant_statements": 1, "spans": [(0, len(creator))]}
                ],
            },
            {
                **META,
                "contexts": [
                    {"relevant": True, "statements": 2, "relevant_statements": 1, "spans": [(start, len(java))]}
                ],
            },
            {**META, "contexts": [verdict(contexts[2][0], relevant=False)]},
        ],
        "score": 2 / 3,
        "individual_scores": [1, 1, 0],
    }


def test_relevance_without_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    """A key is looked for when rows are judged, under the name that is given for it."""
    monkeypatch.setenv("OPENAI_API_KEY", "sk-test")
    evaluator = ContextRelevanceEvaluator(raise_on_failure=False, api_key_env="JUDGE_KEY")
    with pytest.raises(ValueError, match="set the environment variable JUDGE_KEY"):
        evaluator.run(questions=QUESTIONS, contexts=CONTEXTS)


def test_relevance_takes_haystacks_positions() -> None:
    """Examples, bar and failures can be given by position, in Haystack's order."""
    evaluator = ContextRelevanceEvaluator(None, False, False)  # noqa: FBT003  # it is what is tested
    assert (evaluator.examples, evaluator.progress_bar, evaluator.raise_on_failure) == (None, False, False)


HAYSTACKS_EXAMPLE: Results = {
    "inputs": {
        "questions": "What is the capital of Germany?",
        "contexts": ["Berlin is the capital of Germany. Berlin and was founded in 1244."],
    },
    "outputs": {"relevant_statements": ["Berlin is the capital of Germany."]},
}


def test_relevance_examples_are_replaced() -> None:
    """Examples of one's own, also in Haystack's form, take the place of all built-in ones, as numbers."""
    script = Script(cites(1))
    for examples in (None, [HAYSTACKS_EXAMPLE]):
        relevance(script, examples=examples).run(questions=["q"], contexts=[["A text."]])
    own, others = script.systems[1], script.systems[0]
    assert own[own.index("Input: {") :] == (
        'Input: {"question":"What is the capital of Germany?",'
        '"contexts":[{"1":"Berlin is the capital of Germany.","2":"Berlin and was founded in 1244."}]}\n'
        'Output: {"relevant_statements":[1]}'
    )
    assert own[: own.index("Input: {")] == others[: others.index("Input: {")]


@pytest.mark.parametrize(
    ("examples", "message"),
    [
        pytest.param(HAYSTACKS_EXAMPLE, "examples is a list of dicts", id="no list"),
        pytest.param([{**HAYSTACKS_EXAMPLE, "outputs": {"score": 1}}], "unknown key 'score'", id="other output"),
        pytest.param(
            [{**HAYSTACKS_EXAMPLE, "outputs": {"relevant_statements": ["Rome is old."]}}],
            "'Rome is old.' is no sentence of the example's contexts",
            id="sentence of no context",
        ),
    ],
)
def test_relevance_malformed_examples(examples: Any, message: str) -> None:  # noqa: ANN401
    """Examples that no reply could follow are refused at once."""
    with pytest.raises(ValueError, match=message):
        ContextRelevanceEvaluator(examples=examples)


def test_relevance_unknown_keyword() -> None:
    """A keyword that there is not is an error that names the closest one."""
    options: Results = {"modle": "gpt-5-mini"}
    with pytest.raises(ValueError, match="unknown argument 'modle'; did you mean 'model'"):
        ContextRelevanceEvaluator(**options)


def test_relevance_dict_and_back() -> None:
    """Examples, switches and judge options survive, and the evaluator made of them asks the same."""
    evaluator = ContextRelevanceEvaluator(
        [HAYSTACKS_EXAMPLE], progress_bar=False, raise_on_failure=False, model="offline", concurrency=2
    )
    data = evaluator.to_dict()
    assert data == {
        "type": "ctxrel.evaluators.ContextRelevanceEvaluator",
        "init_parameters": {
            "examples": [HAYSTACKS_EXAMPLE],
            "progress_bar": False,
            "raise_on_failure": False,
            "model": "offline",
            "concurrency": 2,
        },
    }
    again = ContextRelevanceEvaluator.from_dict(json.loads(json.dumps(data)))
    assert (again.prompt, again.to_dict()) == (evaluator.prompt, data)
    rows: dict[str, list[Any]] = {"questions": ["Who wrote it?"], "contexts": [["Ada wrote it."]]}
    assert again.run(**rows) == evaluator.run(**rows)


def test_relevance_mean_score() -> None:
    """The score is the mean over the rows; numbers count through all contexts of a row, and keys beside are nothing."""
    script = Script({SPORT: '{"relevant_statements": [3, 1], "score": 0}', PYTHON: cites()})
    first = [SPORT_TEXT, "Chess is old.", "It has 4 billion followers."]
    result = relevance(script).run(questions=QUESTIONS, contexts=[first, [PYTHON_TEXT]])
    assert result == {
        "results": [
            {"relevant_statements": [first[0], first[2]], "score": 1, "status": "evaluated"},
            {"relevant_statements": [], "score": 0, "status": "evaluated"},
        ],
        "meta": [
            {**META, "contexts": [verdict(text, relevant=text != first[1]) for text in first]},
            {**META, "contexts": [verdict(PYTHON_TEXT, relevant=False)]},
        ],
        "score": 0.5,
        "individual_scores": [1, 0],
    }


def test_relevance_without_contexts() -> None:
    """A row whose retrieval found nothing scores 0, and nobody is asked about it."""
    script = Script(cites(1))
    result = relevance(script).run(questions=QUESTIONS, contexts=[CONTEXTS[0], []])
    assert result == {
        "results": [
            {"relevant_statements": [SPORT_TEXT], "score": 1, "status": "evaluated"},
            {"relevant_statements": [], "score": 0, "status": "evaluated"},
        ],
        "meta": [
            {**META, "contexts": [verdict(SPORT_TEXT, relevant=True)]},
            {**UNASKED_META, "contexts": []},
        ],
        "score": 0.5,
        "individual_scores": [1, 0],
    }
    assert [record["question"] for record in script.asked] == [SPORT]


@pytest.mark.parametrize(
    ("reply", "kind", "message", "meta"),
    [
        pytest.param(RuntimeError("x"), "rejected", "the judge raised RuntimeError", FAILED_META, id="judge raises"),
        pytest.param("null", "invalid_reply", NOT_AN_OBJECT, META, id="no object"),
        pytest.param(cites(7), "invalid_reply", "there is no statement 7", META, id="an invented sentence"),
    ],
)
async def test_relevance_failed_row(reply: str | Exception, kind: str, message: str, meta: Results) -> None:
    """A failed row has no score and says why, and is left out of the mean; both ways to run agree."""
    evaluator = relevance(Script({SPORT: cites(1), PYTHON: reply}), raise_on_failure=False)
    result = await evaluator.run_async(questions=QUESTIONS, contexts=CONTEXTS)
    assert result == {
        "results": [
            {"relevant_statements": [SPORT_TEXT], "score": 1, "status": "evaluated"},
            failed(kind, message, relevant_statements=[]),
        ],
        "meta": [{**META, "contexts": [verdict(SPORT_TEXT, relevant=True)]}, meta],
        "score": 1,
        "individual_scores": [1, None],
    }
    assert evaluator.run(questions=QUESTIONS, contexts=CONTEXTS) == result


def test_relevance_all_failed() -> None:
    """Where no row could be judged there is no score, and no number that looks like one."""
    script = Script({SPORT: RuntimeError("x"), PYTHON: "null"})
    assert relevance(script, raise_on_failure=False).run(questions=QUESTIONS, contexts=CONTEXTS) == {
        "results": [
            failed("rejected", "the judge raised RuntimeError", relevant_statements=[]),
            failed("invalid_reply", NOT_AN_OBJECT, relevant_statements=[]),
        ],
        "meta": [FAILED_META, META],
        "score": None,
        "individual_scores": [None, None],
    }


def test_relevance_no_rows() -> None:
    """Empty lists are no rows: no score, and no request."""
    script = Script(cites(1))
    result = relevance(script).run(questions=[], contexts=[])
    assert result == {"results": [], "meta": [], "score": None, "individual_scores": []}
    assert script.asked == []


def test_relevance_row_that_cannot_be_read() -> None:
    """A row without contexts or with a question that is no text fails alone, and says where it stands."""
    script = Script(cites(1))
    result = relevance(script, raise_on_failure=False).run(
        questions=[SPORT, 5, PYTHON, "q"], contexts=[None, CONTEXTS[0], CONTEXTS[1], ["A.", 7]]
    )
    assert result == {
        "results": [
            failed("bad_input", "contexts[0] is NoneType, not a list of texts", relevant_statements=[]),
            failed("bad_input", "questions[1] is int, not a text", relevant_statements=[]),
            {"relevant_statements": [PYTHON_TEXT], "score": 1, "status": "evaluated"},
            failed("bad_input", "contexts[3][1] is int, not a text", relevant_statements=[]),
        ],
        "meta": [
            UNASKED_META,
            UNASKED_META,
            {**META, "contexts": [verdict(PYTHON_TEXT, relevant=True)]},
            UNASKED_META,
        ],
        "score": 1,
        "individual_scores": [None, None, 1, None],
    }
    assert len(script.asked) == 1


@pytest.mark.parametrize("kept", [True, False], ids=["with a memory", "without one"])
def test_relevance_memory(kept: bool) -> None:  # noqa: FBT001
    """A memory answers the second call; without one every call asks anew."""
    script = Script(cites(1))
    options: Results = {"memory": PlainMemory()} if kept else {}
    evaluator = relevance(script, **options)
    first, second = (evaluator.run(questions=QUESTIONS, contexts=CONTEXTS) for _ in range(2))
    assert first == second
    assert len(script.asked) == (2 if kept else 4)


class Terminal(io.StringIO):
    """A stream that claims to be a terminal."""

    def isatty(self) -> bool:
        return True


def test_relevance_progress_bar(monkeypatch: pytest.MonkeyPatch, capfd: pytest.CaptureFixture[str]) -> None:
    """The bar goes to stderr where that is a terminal, never to stdout, and nowhere if it is switched off."""
    script = Script(cites(1))
    relevance(script).run(questions=QUESTIONS, contexts=CONTEXTS)
    shown, hidden = Terminal(), Terminal()
    monkeypatch.setattr(sys, "stderr", shown)
    relevance(script).run(questions=QUESTIONS, contexts=CONTEXTS)
    monkeypatch.setattr(sys, "stderr", hidden)
    relevance(script, progress_bar=False).run(questions=QUESTIONS, contexts=CONTEXTS)
    assert "2/2" in shown.getvalue()
    assert (hidden.getvalue(), *capfd.readouterr()) == ("", "", "")


def test_sufficiency_defined_in_yaml() -> None:
    """A built-in evaluator runs by its name, under its own inputs' names, and its labels are the scores."""
    script = Script(
        {
            SPORT: '{"missing": "", "verdict": "sufficient"}',
            PYTHON: '{"missing": "who created it", "verdict": "partial"}',
            "q": '{"missing": "", "verdict": "maybe"}',
        }
    )
    evaluator = DefinedEvaluator("context_sufficiency", raise_on_failure=False, judge=FunctionJudge(script))
    result = evaluator.run(question=[*QUESTIONS, "q"], contexts=[*CONTEXTS, ["A."]])
    message = "'verdict' is none of sufficient, partial, insufficient"
    assert result == {
        "results": [
            {"missing": "", "verdict": "sufficient", "score": 1, "status": "evaluated"},
            {"missing": "who created it", "verdict": "partial", "score": 0, "status": "evaluated"},
            {"missing": None, "verdict": None, **failed("invalid_reply", message)},
        ],
        "meta": [META, META, META],
        "score": 0.5,
        "individual_scores": [1, 0, None],
    }


# ---------------------------------------------------------------------------------------------------------------------
# FaithfulnessEvaluator
# ---------------------------------------------------------------------------------------------------------------------


def faithfulness(answer: Callable[[str, str], Any], **parameters: Any) -> FaithfulnessEvaluator:  # noqa: ANN401
    return FaithfulnessEvaluator(judge=FunctionJudge(answer), **parameters)


def test_faithfulness_documented_example() -> None:
    """The documentation's answer is half supported: 0.5 with the scores 1 and 0."""
    questions = ["Who created the Python language?"]
    contexts = [[PYTHON_BLURB]]
    predicted_answers = [
        "Python is a high-level general-purpose programming language that was created by George Lucas."
    ]
    statements = [
        "Python is a high-level general-purpose programming language.",
        "Python was created by George Lucas.",
    ]
    script = Script(claims(statements, [[1], []], [1, 0]))
    result = faithfulness(script).run(questions=questions, contexts=contexts, predicted_answers=predicted_answers)
    end = PYTHON_BLURB.index(" Its design")
    assert result == {
        "results": [{"statements": statements, "statement_scores": [1, 0], "score": 0.5, "status": "evaluated"}],
        "meta": [{**META, "evidence": [[{"context": 0, "sentence": 1, "span": (0, end)}], []]}],
        "score": 0.5,
        "individual_scores": [0.5],
    }
    assert [(record["question"], record["answer"]) for record in script.asked] == [(questions[0], predicted_answers[0])]


def test_faithfulness_without_a_key() -> None:
    """A missing key is found before any row is lost to it."""
    evaluator = FaithfulnessEvaluator(raise_on_failure=False)
    with pytest.raises(ValueError, match=NO_KEY):
        evaluator.run(questions=QUESTIONS, contexts=CONTEXTS, predicted_answers=ANSWERS)


HAYSTACKS_CLAIMS: Results = {
    "inputs": {
        "questions": "What is the capital of Italy?",
        "contexts": ["Milan is large. Rome is the capital of Italy."],
        "predicted_answers": "Rome is the capital of Italy with more than 4 million inhabitants.",
    },
    "outputs": {
        "statements": ["Rome is the capital of Italy.", "Rome has more than 4 million inhabitants."],
        "statement_scores": [1, 0],
    },
}


def test_faithfulness_examples_without_evidence() -> None:
    """Haystack's examples name no evidence: what is supported is given the sentence most like it."""
    script = Script(claims([], [], []))
    rows: dict[str, list[Any]] = {"questions": ["q"], "contexts": [["A."]], "predicted_answers": ["a"]}
    faithfulness(script, examples=[HAYSTACKS_CLAIMS]).run(**rows)
    (system,) = script.systems
    assert system[system.index("Input: {") :] == (
        'Input: {"question":"What is the capital of Italy?",'
        '"contexts":[{"1":"Milan is large.","2":"Rome is the capital of Italy."}],'
        '"answer":"Rome is the capital of Italy with more than 4 million inhabitants."}\n'
        'Output: {"statements":["Rome is the capital of Italy.","Rome has more than 4 million inhabitants."],'
        '"evidence":[[2],[]],"statement_scores":[1,0]}'
    )


@pytest.mark.parametrize(
    ("outputs", "message"),
    [
        pytest.param(
            {"statements": ["Rome is old."], "statement_scores": [0.5]},
            "expected nothing but 1 and 0",
            id="half a score",
        ),
        pytest.param(
            {"statements": ["Rome is old."], "statement_scores": [1, 0]},
            "expected a list of statement_scores with one entry for each of the 1 statements",
            id="too many scores",
        ),
    ],
)
def test_faithfulness_malformed_examples(outputs: Results, message: str) -> None:
    """An example whose lists do not fit together is refused at once."""
    with pytest.raises(ValueError, match=message):
        FaithfulnessEvaluator(examples=[{**HAYSTACKS_CLAIMS, "outputs": outputs}])


def test_faithfulness_dict_and_back() -> None:
    """The description is its own class's, and no other class takes it."""
    evaluator = FaithfulnessEvaluator([HAYSTACKS_CLAIMS], raise_on_failure=False, parameters={"temperature": 0.5})
    data = evaluator.to_dict()
    assert data == {
        "type": "ctxrel.evaluators.FaithfulnessEvaluator",
        "init_parameters": {
            "examples": [HAYSTACKS_CLAIMS],
            "progress_bar": True,
            "raise_on_failure": False,
            "parameters": {"temperature": 0.5},
        },
    }
    again = FaithfulnessEvaluator.from_dict(json.loads(json.dumps(data)))
    assert (again.prompt, again.to_dict()) == (evaluator.prompt, data)
    with pytest.raises(ValueError, match=r"is not 'ctxrel\.evaluators\.ContextRelevanceEvaluator'"):
        ContextRelevanceEvaluator.from_dict(data)


HALF = claims(["a", "b"], [[1], []], [1, 0])
WHOLE = claims(["c", "d"], [[1], [1]], [1, 1])
HALF_ROW = {"statements": ["a", "b"], "statement_scores": [1, 0], "score": 0.5, "status": "evaluated"}
HALF_META = {**META, "evidence": [[found(SPORT_TEXT)], []]}


async def test_faithfulness_mean_score() -> None:
    """A row's score is the share of its supported statements, the score their mean; both ways to run agree."""
    evaluator = faithfulness(Script({SPORT: HALF, PYTHON: WHOLE}))
    result = evaluator.run(questions=QUESTIONS, contexts=CONTEXTS, predicted_answers=ANSWERS)
    assert result == {
        "results": [
            HALF_ROW,
            {"statements": ["c", "d"], "statement_scores": [1, 1], "score": 1, "status": "evaluated"},
        ],
        "meta": [HALF_META, {**META, "evidence": [[found(PYTHON_TEXT)], [found(PYTHON_TEXT)]]}],
        "score": 0.75,
        "individual_scores": [0.5, 1],
    }
    assert await evaluator.run_async(questions=QUESTIONS, contexts=CONTEXTS, predicted_answers=ANSWERS) == result


@pytest.mark.parametrize(
    ("answer", "contexts", "meta"),
    [
        pytest.param("I don't know.", CONTEXTS[1], META, id="states nothing"),
        pytest.param(ANSWERS[1], [], UNASKED_META, id="no contexts"),
        pytest.param("", CONTEXTS[1], UNASKED_META, id="empty answer"),
    ],
)
def test_faithfulness_no_statements(answer: str, contexts: list[str], meta: Results) -> None:
    """A row without statements is judged, and scores 0; where there is nothing to ask nobody is asked."""
    script = Script({SPORT: HALF, PYTHON: claims([], [], [])})
    result = faithfulness(script).run(
        questions=QUESTIONS, contexts=[CONTEXTS[0], contexts], predicted_answers=[ANSWERS[0], answer]
    )
    assert result == {
        "results": [HALF_ROW, {"statements": [], "statement_scores": [], "score": 0, "status": "evaluated"}],
        "meta": [HALF_META, {**meta, "evidence": []}],
        "score": 0.25,
        "individual_scores": [0.5, 0],
    }
    assert len(script.asked) == 1 + int(meta["requests"])


async def test_faithfulness_missing_list() -> None:
    """A list that is missing is named, also where Haystack's older name for it is given, in both ways to run."""
    evaluator = faithfulness(Script(HALF))
    with pytest.raises(ValueError, match="'questions' is missing; given are none"):
        evaluator.run()
    with pytest.raises(ValueError, match="unknown input 'responses'; known are questions, contexts, predicted_answers"):
        await evaluator.run_async(questions=QUESTIONS, contexts=CONTEXTS, responses=ANSWERS)


@pytest.mark.parametrize(
    ("reply", "message"),
    [
        pytest.param("null", NOT_AN_OBJECT, id="no object"),
        pytest.param('{"statements": ["a"], "statement_scores": [1]}', "the reply has no key 'evidence'", id="no list"),
        pytest.param(
            claims(["a", "b"], [[1], []], [1]), "2 statements, 1 scores and 2 lists of evidence", id="lengths"
        ),
        pytest.param(claims(["a"], [[2]], [1]), "there is no statement 2", id="evidence that is not there"),
        pytest.param(
            claims(["a"], [[]], [0.5]), "'statement_scores' holds something that is neither 1 nor 0", id="half a score"
        ),
    ],
)
def test_faithfulness_reply_that_does_not_fit(reply: str, message: str) -> None:
    """A reply whose lists do not fit is asked three times, and is a failed row that counts nowhere."""
    script = Script({SPORT: HALF, PYTHON: reply})
    evaluator = faithfulness(script, raise_on_failure=False)
    assert evaluator.run(questions=QUESTIONS, contexts=CONTEXTS, predicted_answers=ANSWERS) == {
        "results": [HALF_ROW, failed("invalid_reply", message, statements=[], statement_scores=[])],
        "meta": [HALF_META, META],
        "score": 0.5,
        "individual_scores": [0.5, None],
    }
    assert [record["question"] for record in script.asked].count(PYTHON) == 3


async def test_faithfulness_all_failed() -> None:
    """Nothing judged is no score; a judge that raises and an answer that is none say so each in its row."""
    evaluator = faithfulness(Script({SPORT: RuntimeError("x")}), raise_on_failure=False)
    result = await evaluator.run_async(questions=QUESTIONS, contexts=CONTEXTS, predicted_answers=[ANSWERS[0], None])
    empty: dict[str, list[Any]] = {"statements": [], "statement_scores": []}
    assert result == {
        "results": [
            failed("rejected", "the judge raised RuntimeError", **empty),
            failed("bad_input", "predicted_answers[1] is NoneType, not a text", **empty),
        ],
        "meta": [FAILED_META, UNASKED_META],
        "score": None,
        "individual_scores": [None, None],
    }


def test_faithfulness_zero_is_a_score() -> None:
    """An answer of which nothing is supported is judged: 0, not an error."""
    script = Script(claims(["a"], [[]], [0]))
    assert faithfulness(script).run(questions=[SPORT], contexts=[CONTEXTS[0]], predicted_answers=["a"]) == {
        "results": [{"statements": ["a"], "statement_scores": [0], "score": 0, "status": "evaluated"}],
        "meta": [{**META, "evidence": [[]]}],
        "score": 0,
        "individual_scores": [0],
    }


async def test_faithfulness_inside_an_event_loop() -> None:
    """`run` works where a loop is running, as in a notebook, and errors come out of it all the same."""
    rows: dict[str, list[Any]] = {"questions": QUESTIONS, "contexts": CONTEXTS, "predicted_answers": ANSWERS}
    script = Script({SPORT: HALF, PYTHON: WHOLE})
    assert faithfulness(script).run(**rows)["individual_scores"] == [0.5, 1]
    with pytest.raises(RecordFailed, match="record 0 failed: invalid_reply"):
        faithfulness(Script("bad")).run(**rows)


async def test_faithfulness_rows_are_concurrent() -> None:
    """Once the first row is answered as many are in flight as the judge takes, and no more."""
    in_flight = most = 0
    together = asyncio.Barrier(3)

    async def answer(_: str, user: str) -> str:
        nonlocal in_flight, most
        in_flight += 1
        most = max(most, in_flight)
        if json.loads(user)["question"] != "0":
            await together.wait()
        in_flight -= 1
        return HALF

    evaluator = FaithfulnessEvaluator(judge=FunctionJudge(answer, concurrency=3))
    async with asyncio.timeout(20):
        result = await evaluator.run_async(
            questions=[str(number) for number in range(7)], contexts=[["A text."]] * 7, predicted_answers=["a"] * 7
        )
    assert (most, result["individual_scores"]) == (3, [0.5] * 7)


async def test_faithfulness_order_is_kept() -> None:
    """Rows come in the order of the lists although each answer but the first waits for the one after it."""
    answered = [asyncio.Event() for _ in range(5)]
    order: list[int] = []

    async def answer(_: str, user: str) -> str:
        number = int(json.loads(user)["question"])
        if 0 < number < 4:
            await answered[number + 1].wait()
        order.append(number)
        answered[number].set()
        return claims(["a"] * 4, [[]] * 4, [int(place < number) for place in range(4)])

    async with asyncio.timeout(20):
        result = await faithfulness(answer).run_async(
            questions=[str(number) for number in range(5)], contexts=[["A text."]] * 5, predicted_answers=["a"] * 5
        )
    assert order == [0, 4, 3, 2, 1]
    assert result["individual_scores"] == [0, 0.25, 0.5, 0.75, 1]


async def test_faithfulness_stops_at_the_first_failure() -> None:
    """`run_async` raises at a failed row too, and requests that are in flight are given up."""
    given_up: list[str] = []

    async def answer(_: str, user: str) -> str:
        question: str = json.loads(user)["question"]
        if question == "1":
            await asyncio.sleep(0)
            raise RuntimeError("x")
        if question != "0":
            try:
                await asyncio.Event().wait()
            finally:
                given_up.append(question)
        return HALF

    evaluator = FaithfulnessEvaluator(judge=FunctionJudge(answer, concurrency=3))
    async with asyncio.timeout(20):
        with pytest.raises(RecordFailed, match="record 1 failed: rejected: the judge raised RuntimeError"):
            await evaluator.run_async(
                questions=[str(number) for number in range(50)],
                contexts=[["A text."]] * 50,
                predicted_answers=["a"] * 50,
            )
    assert given_up
    assert len(given_up) <= 3


# What goes wrong in other ways.


def test_a_script_that_runs_out() -> None:
    """A function whose replies have run out fails its row; it holds nobody up."""
    results = llm(lambda *_: next(iter([])), raise_on_failure=False).run(predicted_answers=["a"])
    assert results["results"] == [None]


@pytest.mark.parametrize("value", [{1, 2}, object(), 10**30, "\ud800"], ids=["set", "object", "number", "surrogate"])
def test_a_value_that_json_cannot_hold(value: object) -> None:
    """It fails its row, and the others are judged."""
    evaluator = llm(lambda *_: '{"score": 1}', inputs=[("x", list)], examples=[], raise_on_failure=False)
    results = evaluator.run(x=["fine", value])
    assert results["results"][0] is not None
    assert results["meta"][1]["error"]["kind"] == "bad_input"


@pytest.mark.parametrize(
    ("options", "message"),
    [
        ({"concurrency": 0}, "'concurrency' is a number of requests from 1, not 0"),
        ({"concurrency": "3"}, "'concurrency' is a number of requests from 1, not '3'"),
        ({"concurrency": True}, "'concurrency' is a number"),
        ({"attempts": 0}, "'attempts' is a number of attempts from 1, not 0"),
        ({"timeout": float("nan")}, "'timeout' is a number of seconds, not nan"),
        ({"parameters": 5}, "'parameters' is a dict"),
        ({"parameters": {"model": "x"}}, "'model' is set by ctxrel itself"),
        ({"model": None}, "'model' is a model's name"),
        ({"chat_generator": 1}, "unknown argument 'chat_generator'; give model and base_url, or an object as judge"),
        ({"judge": FunctionJudge(lambda *_: ""), "concurrency": 3}, "'concurrency' says nothing to a judge object"),
        ({"judge": "gpt"}, r"'judge' is an object that answers, as FunctionJudge\(function\), not 'gpt'"),
    ],
)
def test_options_that_make_no_sense(options: dict[str, Any], message: str) -> None:
    """Each is told at once, as a ValueError that names the argument and the value."""
    with pytest.raises(ValueError, match=message):
        ContextRelevanceEvaluator(**options)


@pytest.mark.parametrize("kind", [list[str], list[list[str]], list, list[int], list[list], list[list[Any]]], ids=str)  # type: ignore[type-arg]
def test_types_there_and_back(kind: Any) -> None:  # noqa: ANN401
    """Whatever list type an input has, what is written down makes the same evaluator."""
    evaluator = LLMEvaluator("t", [("x", kind)], ["score"], [], raise_on_failure=False)
    again = LLMEvaluator.from_dict(json.loads(json.dumps(evaluator.to_dict())))
    assert again.to_dict() == evaluator.to_dict()
    assert again.evaluator.inputs == evaluator.evaluator.inputs


def test_descriptions_that_lack_something() -> None:
    """They are refused by the name of what is missing, and a type by its text."""
    written = LLMEvaluator("t", [("x", list[str])], ["score"], []).to_dict()
    for name in ("instructions", "inputs", "outputs", "examples"):
        less = {key: value for key, value in written["init_parameters"].items() if key != name}
        with pytest.raises(ValueError, match=f"lacks '{name}'"):
            LLMEvaluator.from_dict({**written, "init_parameters": less})
    odd = {**written, "init_parameters": {**written["init_parameters"], "inputs": [["x", "set[str]"]]}}
    with pytest.raises(ValueError, match=r"'set\[str\]' is none of the types"):
        LLMEvaluator.from_dict(odd)
    defined = DefinedEvaluator("faithfulness", model="offline")
    assert DefinedEvaluator.from_dict(defined.to_dict()).to_dict() == defined.to_dict()


def test_braces_in_instructions_are_text() -> None:
    """Instructions from Python are no template."""
    script = Script('{"score": 1}')
    llm(script, instructions="Is {{foo}} or {{examples}} in it?", examples=[]).run(predicted_answers=["a"])
    assert script.asked
    evaluator = llm(script, instructions="Is {{foo}} or {{examples}} in it?", examples=[])
    assert "Is {{foo}} or {{examples}} in it?" in evaluator.evaluator.static.system


class Document:
    """As Haystack has them."""

    def __init__(self, content: str) -> None:
        self.content = content


class Column(list[Any]):
    """A list in the manner of pandas and numpy."""

    def tolist(self) -> list[Any]:
        return list(self)


def test_lists_of_tables() -> None:
    """Columns and arrays are lists, documents and dicts their content."""
    result = relevance(Script(cites(1))).run(
        questions=Column([SPORT, PYTHON]), contexts=(Column([Document(SPORT_TEXT)]), [{"content": PYTHON_TEXT}])
    )
    assert [row["relevant_statements"] for row in result["results"]] == [[SPORT_TEXT], [PYTHON_TEXT]]


def test_threads_for_a_plain_function() -> None:
    """A function that is no coroutine function is called as often at once as the judge may."""
    barrier = threading.Barrier(12, timeout=10)

    def answer(*_: str) -> str:
        barrier.wait()
        return cites(1)

    first = iter([True])  # it goes alone
    judge = FunctionJudge(lambda *both: cites(1) if next(first, False) else answer(*both), concurrency=13)
    evaluator = ContextRelevanceEvaluator(judge=judge)
    result = evaluator.run(questions=[f"q{number}" for number in range(13)], contexts=[[SPORT_TEXT]] * 13)
    assert result["score"] == 1


def test_an_interrupt_in_a_notebook() -> None:
    """Where a loop is running already, an interrupt ends the run: nothing is asked behind the user's back."""
    asked: list[str] = []

    async def answer(_: str, user: str) -> str:
        asked.append(user)
        if len(asked) == 20:
            os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.005)
        return cites(1)

    async def cell() -> None:
        ContextRelevanceEvaluator(judge=FunctionJudge(answer, concurrency=2)).run(
            questions=[f"q{number}" for number in range(2000)], contexts=[[SPORT_TEXT]] * 2000
        )

    loop = asyncio.new_event_loop()
    with pytest.raises(KeyboardInterrupt):
        loop.run_until_complete(cell())
    loop.close()
    count = len(asked)
    assert count < 1000
    assert not [thread for thread in threading.enumerate() if thread.name == "ctxrel-run" and thread.is_alive()]
    assert len(asked) == count


def test_reasons_from_python() -> None:
    """`explain` asks for reasons; they stand beside the results."""
    evaluator = relevance(Script('{"relevant_statements": [1], "reason": "It says so."}'), explain=True)
    assert evaluator.run(questions=[SPORT], contexts=[[SPORT_TEXT]])["meta"][0]["reason"] == "It says so."


async def test_one_judge_for_two_evaluators() -> None:
    """Runs that share a judge and a loop do not end each other."""
    judge = FunctionJudge(lambda _, user: HALF if "predicted" in user or "answer" in user else cites(1))
    relevant, faithful = await asyncio.gather(
        ContextRelevanceEvaluator(judge=judge).run_async(questions=QUESTIONS, contexts=CONTEXTS),
        FaithfulnessEvaluator(judge=judge).run_async(questions=QUESTIONS, contexts=CONTEXTS, predicted_answers=ANSWERS),
    )
    assert (relevant["score"], faithful["individual_scores"]) == (1, [0.5, 0.5])


def test_failures_leave_no_traces(capfd: pytest.CaptureFixture[str]) -> None:
    """Where the first failure ends a call, the other failures are not written to standard error."""

    async def answer(*_: str) -> str:
        await asyncio.sleep(0.001)
        raise ValueError("x")

    with pytest.raises(RecordFailed):
        ContextRelevanceEvaluator(judge=FunctionJudge(answer)).run(
            questions=[f"q{number}" for number in range(100)], contexts=[[SPORT_TEXT]] * 100
        )
    gc.collect()
    assert capfd.readouterr().err == ""
