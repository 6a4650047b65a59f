"""A judge without output tokens: what is asked by predicates, what comes of probabilities, and what cannot be asked."""

import json
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import openai
import pytest
from servers.decisions import LUNA, MODELS, check_request, deciding, decision, questions_of
from servers.loopback import Answer, LoopbackServer, Seen, cite, error

from ctxrel.evaluators import ContextRelevanceEvaluator, DefinedEvaluator, FaithfulnessEvaluator, Record, load_evaluator
from ctxrel.evaluators.decisions.evaluator import DecidingEvaluator, load_deciding_evaluator
from ctxrel.evaluators.errors import (
    DefinitionError,
    EndpointUnreachable,
    FailureKind,
    KeyRefused,
    ModelUnknown,
    ParameterRefused,
    QuotaExhausted,
    RunError,
    UsageError,
)
from ctxrel.evaluators.judges.asking import Asker, Patience
from ctxrel.evaluators.judges.endpoint import Endpoint
from ctxrel.evaluators.judges.openai_chat import ChatJudge
from ctxrel.evaluators.judges.openai_decisions import DecisionsJudge
from ctxrel.evaluators.judging import Judging, Outcome
from ctxrel.evaluators.memory import PlainMemory

RECORD = Record(
    index=0,
    id="r",
    where="log:1",
    question="Who wrote it?",
    contexts=("Ada wrote it. It is long.", "Bob read it. He slept."),
    answer="Ada wrote it. She slept.",
)
QUICK = Patience(first_wait=0.01, longest_wait=0.02)
GOOD = decision({"1": 0.9, "2": 0.5, "3": 0.49, "4": 0})


@pytest.fixture
def luna() -> Any:  # noqa: ANN401  # a generator of LoopbackServer
    """An endpoint that finds the first sentence relevant."""
    with LoopbackServer(deciding(lambda _, name: 0.75 if name == "1" else 0.25), models=MODELS) as running:
        yield running


def judging_for(
    server: LoopbackServer,
    memory: PlainMemory | None = None,
    timeout: float = 5,
    most: int | None = None,
    **facts: Any,  # noqa: ANN401
) -> Judging:
    judge = DecisionsJudge(Endpoint(model=LUNA, base_url=server.url, timeout=timeout, **facts), concurrency=4)
    return Judging(Asker(judge, QUICK), memory or PlainMemory(), max_input_tokens=most)


async def judge(
    server: LoopbackServer,
    *answers: Answer,
    record: Record = RECORD,
    name: str = "context_relevance",
    **facts: Any,  # noqa: ANN401
) -> Outcome:
    """The outcome of a record while the endpoint gives these answers in turn, the last one for ever."""
    script: Sequence[Answer] = answers
    if answers:
        server.script = lambda _: script[min(len(server.seen), len(script)) - 1]
    judging = judging_for(server, **facts)
    try:
        return await judging.judge(record, load_deciding_evaluator(name))
    finally:
        await judging.asker.close()


def write(name: str, text: str) -> None:
    """A file in the working folder."""
    Path(name).write_text(text, encoding="utf-8")


def kind_of(outcome: Outcome) -> FailureKind | None:
    return outcome.failure.kind if outcome.failure else None


def record_of(sentences: int, answer: str = "It is so.") -> Record:
    context = " ".join(f"Sentence number {number} stands here." for number in range(1, sentences + 1))
    return Record(index=0, id="r", where="log:1", question="q?", contexts=(context,), answer=answer)


async def test_sends_what_the_openai_package_sends(luna: LoopbackServer) -> None:
    """Path and body are those of `client.decisions.create`, and the package's types describe them."""
    given = {"prompt_cache_key": "ctxrel"}
    await judge(luna, parameters=given)
    (ours,) = luna.seen
    check_request(ours.body)
    with openai.OpenAI(api_key="sk-secret", base_url=luna.url, max_retries=0) as client:
        answer = client.decisions.create(
            model=LUNA, input=ours.body["input"], questions=ours.body["questions"], prompt_cache_key="ctxrel"
        )
    theirs = luna.seen[-1]
    assert (theirs.path, theirs.body) == (ours.path, ours.body)
    assert [(a.type, a.name) for a in answer.answers] == [("predicate", name) for name in questions_of(ours)]


async def test_what_is_asked(luna: LoopbackServer) -> None:
    """The record is shown with numbered sentences, after the instructions, and each number has a predicate."""
    await judge(luna)
    system, user = luna.seen[0].body["input"]
    assert (system["role"], user["role"]) == ("system", "user")
    assert luna.seen[0].record == {
        "question": "Who wrote it?",
        "contexts": [{"1": "Ada wrote it.", "2": "It is long."}, {"3": "Bob read it.", "4": "He slept."}],
    }
    assert questions_of(luna.seen[0]) == {
        str(number): f"Sentence {number} of the contexts is relevant to the question." for number in range(1, 5)
    }


async def test_rows_are_those_of_a_chat(luna: LoopbackServer, server: LoopbackServer) -> None:
    """From 0.5 on a sentence is relevant; columns and facts are a chat's, with the probabilities beside them."""
    server.script = lambda _: cite(1, 2)
    chat = Judging(
        Asker(ChatJudge(Endpoint(model="judge-1", base_url=server.url), concurrency=4), QUICK), PlainMemory()
    )
    evaluator = load_evaluator("context_relevance")
    told = (await chat.judge(RECORD, evaluator)).evaluation
    await chat.asker.close()
    outcome = await judge(luna, GOOD)
    assert told
    assert outcome.evaluation
    probabilities = outcome.evaluation.outputs.pop("statement_probabilities")
    assert outcome.evaluation == told
    assert probabilities == [0.9, 0.5, 0.49, 0.0]
    assert outcome.usage == (100, 0, 64, 0)
    assert outcome.model == f"{LUNA}-2026-10-06"
    assert load_deciding_evaluator("context_relevance").empty_outputs == {
        **evaluator.empty_outputs, "statement_probabilities": [],
    }  # fmt: skip


async def test_graded_shares_the_requests(luna: LoopbackServer) -> None:
    """The graded form reads the same replies: every sentence with its verdict and its probability."""
    judging = judging_for(luna)
    await judging.judge(RECORD, load_deciding_evaluator("context_relevance"))
    outcome = await judging.judge(RECORD, load_deciding_evaluator("context_relevance_graded"))
    await judging.asker.close()
    assert len(luna.seen) == 1
    assert outcome.evaluation
    assert outcome.evaluation.score == 0.25
    assert outcome.evaluation.outputs["statement_scores"] == [1, 0, 0, 0]
    assert outcome.evaluation.outputs["statement_probabilities"] == [0.75, 0.25, 0.25, 0.25]


async def test_faithfulness(luna: LoopbackServer) -> None:
    """The statements are the answer's own sentences; the score is their mean, and there is no evidence."""
    outcome = await judge(luna, name="faithfulness")
    assert luna.seen[0].record == {
        "question": "Who wrote it?",
        "contexts": ["Ada wrote it. It is long.", "Bob read it. He slept."],
        "answer": {"1": "Ada wrote it.", "2": "She slept."},
    }
    assert len(questions_of(luna.seen[0])) == 2
    assert outcome.evaluation
    assert outcome.evaluation.score == 0.5
    assert outcome.evaluation.outputs == {
        "statements": ["Ada wrote it.", "She slept."],
        "statement_scores": [1, 0],
        "evidence": [[], []],
        "statement_probabilities": [0.75, 0.25],
    }
    (figures,) = load_deciding_evaluator("faithfulness").figures()
    assert figures
    figures.add(outcome.evaluation.facts[0])
    result = figures.result()
    assert (result["statements"], result["supported_statements"]) == (2, 1)
    assert result["supported_without_evidence"] is None


@pytest.mark.parametrize(
    ("name", "record"),
    [
        ("context_relevance", Record(index=0, id="r", where="w", question="q?", contexts=("", " "))),
        ("faithfulness", Record(index=0, id="r", where="w", question="q?", contexts=(), answer="So.")),
        ("faithfulness", Record(index=0, id="r", where="w", question="q?", contexts=("A.",), answer=" ")),
    ],
    ids=["no context", "an answer without contexts", "no answer"],
)
async def test_nothing_to_ask(luna: LoopbackServer, name: str, record: Record) -> None:
    """Where there is no sentence the score is 0 without a request."""
    outcome = await judge(luna, record=record, name=name)
    assert outcome.evaluation
    assert (outcome.evaluation.score, outcome.requests, luna.seen) == (0, 0, [])
    assert outcome.evaluation.outputs["statement_probabilities"] == []


@pytest.mark.parametrize(
    ("answers", "why"),
    [
        pytest.param({"1": 0.9, "2": 0.5, "3": 0.4}, "3 answers to 4 predicates", id="too few"),
        pytest.param({"1": 0.9, "2": 0.5, "3": 0.4, "4": 0.1, "5": 0}, "5 answers to 4 predicates", id="too many"),
        pytest.param({"1": 0.9, "2": 0.5, "3": 0.4, "5": 0.1}, "no answer to the predicate 4", id="another name"),
        pytest.param({"1": 0.9, "2": 0.5, "3": 0.4, "4": 1.001}, "no number from 0 to 1", id="above 1"),
        pytest.param({"1": 0.9, "2": 0.5, "3": 0.4, "4": -0.1}, "no number from 0 to 1", id="below 0"),
    ],
)
async def test_malformed_probabilities(luna: LoopbackServer, answers: dict[str, float | None], why: str) -> None:
    """Answers that do not fit the predicates are asked for again, then an error; never a score."""
    outcome = await judge(luna, decision(answers))
    assert outcome.failure
    assert (kind_of(outcome), outcome.evaluation) == (FailureKind.INVALID_REPLY, None)
    assert why in outcome.failure.message
    assert (len(luna.seen), len(outcome.replies)) == (QUICK.invalid_replies, QUICK.invalid_replies)


def answer_of(change: Callable[[list[Any]], object]) -> Answer:
    """A good decision whose answers were changed."""
    assert isinstance(GOOD.body, dict)
    body: dict[str, Any] = json.loads(json.dumps(GOOD.body))
    change(body["answers"])
    return Answer(body=body)


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(answer_of(lambda answers: answers[0].update(name=None)), id="no name"),
        pytest.param(answer_of(lambda answers: answers[0].pop("name")), id="name missing"),
        pytest.param(answer_of(lambda answers: answers[0].update(name="2")), id="a name twice"),
        pytest.param(answer_of(lambda answers: answers[0].pop("probability")), id="no probability"),
        pytest.param(answer_of(lambda answers: answers[0].update(probability="0.9")), id="text for a probability"),
        pytest.param(answer_of(lambda answers: answers[0].update(probability=True)), id="boolean"),
        pytest.param(answer_of(lambda answers: answers[0].update(type="score", score=1)), id="another type"),
        pytest.param(answer_of(lambda answers: answers.__setitem__(0, "yes")), id="no object"),
        pytest.param(
            Answer(body=json.dumps(answer_of(lambda a: a[0].update(probability=float("nan"))).body).encode()), id="NaN"
        ),
        pytest.param(Answer(body={"model": LUNA, "answers": None}), id="null answers"),
        pytest.param(Answer(body={"model": LUNA}), id="no answers"),
    ],
)
async def test_malformed_answers(luna: LoopbackServer, answer: Answer) -> None:
    """What is no list of named probabilities is an invalid reply, and a second try that fits is the judgement."""
    assert kind_of(await judge(luna, answer)) == FailureKind.INVALID_REPLY
    assert len(luna.seen) == QUICK.invalid_replies
    luna.seen.clear()
    outcome = await judge(luna, answer, GOOD)
    assert outcome.evaluation
    assert len(luna.seen) == 2


async def test_answers_in_any_order(luna: LoopbackServer) -> None:
    """Names tell which predicate was answered."""
    outcome = await judge(luna, decision({"4": 0.4, "3": 0.3, "2": 0.2, "1": 0.1}))
    assert outcome.evaluation
    assert outcome.evaluation.outputs["statement_probabilities"] == [0.1, 0.2, 0.3, 0.4]


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(decision({"1": 0.9, "2": None, "3": 0.4, "4": 0.1}), "refusal", id="one is refused"),
        pytest.param(error(400, "filtered", code="content_filter"), "content_filter", id="filtered prompt"),
        pytest.param(error(400, "Invalid value", param="questions"), "rejected", id="other 400"),
        pytest.param(error(422, "Unprocessable"), "rejected", id="422"),
    ],
)
async def test_not_retried(luna: LoopbackServer, answer: Answer, kind: str) -> None:
    """What asking again cannot change is asked once; a record of which one sentence was refused has no score."""
    assert kind_of(await judge(luna, answer)) == kind
    assert len(luna.seen) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(error(500, "Internal"), "server_error", id="500"),
        pytest.param(Answer(status=502, body=b"<html>Bad gateway</html>"), "server_error", id="502 with HTML"),
        pytest.param(error(409, "Conflict"), "server_error", id="409"),
        pytest.param(Answer(body=b"<html>ok</html>"), "server_error", id="200 that is no JSON"),
        pytest.param(Answer(body=b"[]"), "server_error", id="200 with a list"),
        pytest.param(Answer(body={"error": {"message": "upstream"}}), "server_error", id="200 with an error"),
        pytest.param(Answer(body=GOOD.body, fault="cut"), "server_error", id="200 cut"),
        pytest.param(Answer(fault="reset"), "connection", id="connection reset"),
    ],
)
async def test_retried(luna: LoopbackServer, answer: Answer, kind: str) -> None:
    """What may pass is tried again, within the budget."""
    outcome = await judge(luna, answer, answer, GOOD)
    assert outcome.evaluation
    assert len(luna.seen) == 3
    luna.seen.clear()
    if kind == "connection":
        with pytest.raises(EndpointUnreachable, match="nothing has ever been answered"):
            await judge(luna, answer)
    else:
        assert kind_of(await judge(luna, answer)) == kind
    assert len(luna.seen) == QUICK.attempts


async def test_rate_limit_and_timeout(luna: LoopbackServer) -> None:
    """A rate limit is waited out and counts as no try; an attempt ends after its time."""
    limited = error(429, "Slow down", code="rate_limit_exceeded", headers={"retry-after-ms": "20"})
    assert (await judge(luna, *[limited] * 6, GOOD)).evaluation
    assert len(luna.seen) == 7
    luna.seen.clear()
    slow = Answer(body=GOOD.body, fault="hang")
    outcome = await judge(luna, error(500, "first an answer"), slow, slow, slow, slow, timeout=0.2)
    assert kind_of(outcome) == FailureKind.TIMEOUT


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        pytest.param(error(429, "You exceeded", code="insufficient_quota"), QuotaExhausted, "quota", id="quota"),
        pytest.param(error(401, "Incorrect API key provided: sk-x"), KeyRefused, "--api-key-env", id="401"),
        pytest.param(error(404, "No such model", code="model_not_found"), ModelUnknown, LUNA, id="404 model"),
        pytest.param(error(404, "Not Found"), RunError, "has no Decisions API", id="404 path"),
    ],
)
async def test_ends_the_run(luna: LoopbackServer, answer: Answer, expected: type[RunError], words: str) -> None:
    """What no request can survive ends the run after one request, in words that name the service."""
    with pytest.raises(expected, match=words) as raised:
        await judge(luna, answer)
    assert len(luna.seen) == 1
    assert "sk-x" not in str(raised.value)


async def test_a_parameter_that_is_not_taken(luna: LoopbackServer) -> None:
    """A request parameter that the endpoint blames ends the run with its name; an evaluator's are not sent at all."""
    told = error(400, "Unknown parameter: 'reasoning_effort'.", param="reasoning_effort", code="unknown_parameter")
    with pytest.raises(ParameterRefused, match="'reasoning_effort' as 'low'"):
        await judge(luna, told, parameters={"reasoning_effort": "low"})
    assert luna.seen[0].body.keys() == {"model", "input", "questions", "reasoning_effort"}


async def test_too_many_sentences_are_divided(luna: LoopbackServer) -> None:
    """More sentences than a request may ask about are asked about in several, and verdicts unite as one."""
    luna.script = deciding(lambda _, name: int(name) / 1000)
    outcome = await judge(luna, record=record_of(900))
    assert outcome.evaluation
    asked = [list(questions_of(seen)) for seen in luna.seen]
    assert max(map(len, asked)) <= 400
    assert sorted(int(name) for names in asked for name in names) == list(range(1, 901))
    assert outcome.requests == len(luna.seen) == 4
    assert outcome.evaluation.outputs["statement_probabilities"] == [number / 1000 for number in range(1, 901)]
    assert luna.seen[0].record["contexts"][0].keys() == set(asked[0])


async def test_400_sentences_are_one_request(luna: LoopbackServer) -> None:
    """The limit itself is no reason to divide."""
    assert (await judge(luna, record=record_of(400))).requests == len(luna.seen) == 1


async def test_an_answer_of_too_many_sentences(luna: LoopbackServer) -> None:
    """A long answer is divided by its own sentences: each part is checked against all contexts."""
    luna.script = deciding(lambda _, name: int(name) / 1000)
    answer = " ".join(f"Statement number {number} is this one." for number in range(1, 502))
    outcome = await judge(luna, record=record_of(3, answer), name="faithfulness")
    assert outcome.evaluation
    assert [len(questions_of(seen)) for seen in luna.seen] == [250, 251]
    assert {len(seen.record["contexts"][0]) for seen in luna.seen} == {len(record_of(3).contexts[0])}
    assert outcome.evaluation.outputs["statement_probabilities"] == [number / 1000 for number in range(1, 502)]
    assert outcome.evaluation.score == pytest.approx(2 / 501)


MIXED = """\
inputs: [question, contexts]
outputs: {relevant_statements: citations, enough: boolean}
scoring: any
instructions: "Judge. {{output_format}}"
decisions:
  instructions: Judge.
  predicates: {relevant_statements: "Sentence {{number}} helps.", enough: The contexts suffice.}
"""


async def test_sentences_and_truth_values(luna: LoopbackServer) -> None:
    """Both are asked in one request; what cannot be divided for the truth value's sake is not sent."""
    write("mixed.yaml", MIXED)
    outcome = await judge(luna, name="./mixed.yaml")
    assert outcome.evaluation
    assert list(questions_of(luna.seen[0])) == ["1", "2", "3", "4", "enough"]
    assert outcome.evaluation.outputs["relevant_statements"] == ["Ada wrote it."]
    assert (outcome.evaluation.outputs["enough"], outcome.evaluation.outputs["enough_probability"]) == (False, 0.25)
    luna.seen.clear()
    outcome = await judge(luna, name="./mixed.yaml", record=record_of(400))
    assert outcome.failure
    assert (kind_of(outcome), luna.seen) == (FailureKind.CONTEXT_TOO_LONG, [])
    assert outcome.failure.message == "401 predicates, which cannot be divided further; a request takes 400"


async def test_too_long_is_divided(luna: LoopbackServer) -> None:
    """Contexts that do not fit are divided; a statement of the answer keeps its higher probability."""

    def probability(seen: Seen, name: str) -> float:
        return 0.9 if (name == "1") == ("Ada wrote it." in seen.record["contexts"][0]) else 0.3

    fits = deciding(probability)
    too_long = error(400, "too long", code="context_length_exceeded")
    luna.script = lambda seen: too_long if len(seen.record["contexts"]) > 1 else fits(seen)
    outcome = await judge(luna, name="faithfulness")
    assert outcome.evaluation
    assert (outcome.requests, len(luna.seen)) == (2, 3)
    assert outcome.evaluation.outputs["statement_probabilities"] == [0.9, 0.9]
    one = Record(index=0, id="r", where="w", question="q?", contexts=("A.",))
    assert kind_of(await judge(luna, too_long, record=one)) == FailureKind.CONTEXT_TOO_LONG


async def test_too_many_tokens_are_divided(luna: LoopbackServer) -> None:
    """Predicates count as input, like the record."""
    outcome = await judge(luna, record=record_of(100), most=2000)
    assert outcome.evaluation
    assert outcome.requests == len(luna.seen) > 1
    single = Record(index=0, id="r", where="w", question="q?", contexts=("word " * 5000,))
    outcome = await judge(luna, record=single, most=2000)
    assert kind_of(outcome) == FailureKind.CONTEXT_TOO_LONG


async def test_keys_differ_from_those_of_a_chat(luna: LoopbackServer) -> None:
    """The same model and evaluator asked by chat is another request; another threshold is the same one."""
    endpoint = Endpoint(model=LUNA, base_url=luna.url)
    judge = DecisionsJudge(endpoint, concurrency=1)
    evaluator = load_deciding_evaluator("context_relevance")
    assert judge.fingerprint(evaluator.static) != ChatJudge(endpoint, concurrency=1).fingerprint(evaluator.static)
    write("strict.yaml", "extends: context_relevance\ndecisions: {threshold: 0.8}\n")
    strict = load_deciding_evaluator("strict.yaml")
    assert judge.fingerprint(strict.static) == judge.fingerprint(evaluator.static)
    assert strict.prompt != evaluator.prompt
    judging = judging_for(luna)
    scores = []
    for each in (evaluator, strict):
        found = (await judging.judge(RECORD, each)).evaluation
        scores.append(found and found.score)
    await judging.asker.close()
    assert (scores, len(luna.seen)) == ([1, 0], 1)


POLITE = """\
inputs: [answer]
outputs: {polite: boolean, short: boolean}
scoring: {value: polite}
instructions: "Judge the tone. {{output_format}}"
decisions:
  threshold: 0.6
  instructions: Judge the tone.
  predicates:
    polite: The answer is polite.
    short: The answer has fewer than 20 words.
"""


async def test_truth_values(luna: LoopbackServer) -> None:
    """Outputs that are truth values are one predicate each, about the record as it is."""
    write("polite.yaml", POLITE)
    luna.script = deciding(lambda _, name: {"polite": 0.6, "short": 0.59}[name])
    outcome = await judge(luna, name="./polite.yaml")
    assert outcome.evaluation
    assert luna.seen[0].record == {"answer": RECORD.answer}
    assert questions_of(luna.seen[0])["polite"] == "The answer is polite."
    assert outcome.evaluation.score == 1
    assert outcome.evaluation.outputs == {
        "polite": True, "polite_probability": 0.6, "short": False, "short_probability": 0.59,
    }  # fmt: skip
    (polite, _) = load_deciding_evaluator("./polite.yaml").figures()
    assert polite
    polite.add(outcome.evaluation.facts[0])
    assert polite.result() == {"polite_mean": 1}


@pytest.mark.parametrize(
    ("name", "words"),
    [
        (
            "context_relevance_verbatim",
            "cannot answer 'context_relevance_verbatim', whose output 'relevant_statements'",
        ),
        ("answer_relevance", "whose output 'verdict' is of the kind 'label'"),
        ("child_safety", "whose output 'score' is of the kind 'integer'"),
        ("./plain.yaml", "'plain' does not say what the Decisions API is to be asked; add the key 'decisions'"),
    ],
)
def test_what_cannot_be_asked(name: str, words: str) -> None:
    """Evaluators that need text from the judge, and those without predicates, say so."""
    write("plain.yaml", POLITE.partition("decisions:")[0])
    with pytest.raises(UsageError, match=words):
        load_deciding_evaluator(name)


def test_no_reasons() -> None:
    """A judge that writes nothing gives no reasons."""
    with pytest.raises(UsageError, match="gives no reasons"):
        load_deciding_evaluator("context_relevance", explain=True)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("threshold: 0.6", "threshold: 1.5", "x.yaml:6: expected a probability from 0 to 1, found 1.5"),
        ("threshold: 0.6", "threshold: high", "x.yaml:6: expected a number, found 'high'"),
        ("threshold: 0.6", "limit: 0.6", "x.yaml:6: unknown key 'limit'"),
        ("    short: The", "    shrt: The", "x.yaml:10: unknown key 'shrt'; did you mean 'short'?"),
        ("    short: The answer has fewer than 20 words.\n", "", "x.yaml:8: the key 'short' is missing"),
        ("answer is polite.", "answer {{number}} is.", "x.yaml:9: the predicate of a 'boolean' output is about the"),
        ("  instructions: Judge the tone.\n", "  instructions: ''\n", "x.yaml:7: the instructions are empty"),
        ("short: boolean", "short: text", "x.yaml:5: a probability answers no output of the kind 'text', as 'short'"),
        ("short", "polite_probability", "x.yaml:5: the probabilities fill the column 'polite_probability'"),
    ],
)  # fmt: skip
def test_definitions_that_are_wrong(old: str, new: str, words: str) -> None:
    """What is wrong with the decisions of a file is told with its line, also to those who ask by chat."""
    assert old in POLITE
    write("x.yaml", POLITE.replace(old, new))
    with pytest.raises(DefinitionError) as raised:
        load_evaluator("./x.yaml")
    assert words in str(raised.value)


@pytest.mark.parametrize(
    ("text", "words"),
    [
        ("extends: context_relevance\ndecisions: {threshold: 0.7, instructions: x}\n", "unknown key 'instructions'"),
        ("extends: child_safety\ndecisions: {threshold: 0.7}\n", "the evaluator that is extended has no decisions"),
    ],
    ids=["another request", "nothing to change"],
)
def test_extending_changes_the_threshold_only(text: str, words: str) -> None:
    """An evaluator that extends another shares its requests, and so its predicates."""
    write("x.yaml", text)
    with pytest.raises(DefinitionError, match=words):
        load_evaluator("./x.yaml")


def test_decisions_change_nothing_for_a_chat() -> None:
    """The prompt's hash, which stands in the rows of a chat, does not depend on what is asked by predicates."""
    write("polite.yaml", POLITE)
    with_decisions = load_evaluator("./polite.yaml")
    write("polite.yaml", POLITE.partition("decisions:")[0])
    assert load_evaluator("./polite.yaml").prompt == with_decisions.prompt


def test_from_python(luna: LoopbackServer) -> None:
    """The evaluators of Haystack's names ask by predicates with `api="decisions"`, of gpt-6-luna by default."""
    questions, contexts = ["Who wrote it?"], [["Ada wrote it. It is long."]]
    relevance = ContextRelevanceEvaluator(api="decisions", base_url=luna.url, progress_bar=False)
    found = relevance.run(questions=questions, contexts=contexts)
    assert found["results"] == [{"relevant_statements": ["Ada wrote it."], "score": 1, "status": "evaluated"}]
    assert found["meta"][0]["statement_probabilities"] == [0.75, 0.25]
    assert luna.seen[0].body["model"] == LUNA
    again = ContextRelevanceEvaluator.from_dict(relevance.to_dict())
    assert again.run(questions=questions, contexts=contexts) == found
    faithful = FaithfulnessEvaluator(api="decisions", base_url=luna.url, progress_bar=False)
    given: dict[str, Any] = {"questions": questions, "contexts": contexts, "predicted_answers": ["Ada. Bob."]}
    assert faithful.run(**given)["results"][0]["statement_scores"] == [1, 0]


def test_from_python_what_cannot_be() -> None:
    """Another service, a judge without it and an evaluator that needs text are refused before anything is sent."""
    with pytest.raises(UsageError, match="'api' is chat or decisions, not 'openai'"):
        ContextRelevanceEvaluator(api="openai")
    with pytest.raises(UsageError, match="the offline judge has no Decisions API"):
        ContextRelevanceEvaluator(api="decisions", model="offline").run(questions=["q?"], contexts=[["A."]])
    with pytest.raises(UsageError, match="cannot answer 'child_safety'"):
        DefinedEvaluator("child_safety", api="decisions")


def test_examples_leave_the_decisions() -> None:
    """Worked examples of one's own are for judges that write; the predicates stay."""
    examples = [{"inputs": {"questions": "q?", "contexts": ["A."]}, "outputs": {"relevant_statements": []}}]
    made = ContextRelevanceEvaluator(examples=examples, api="decisions").evaluator
    assert isinstance(made, DecidingEvaluator)
    assert made.static.system == load_deciding_evaluator("context_relevance").static.system
