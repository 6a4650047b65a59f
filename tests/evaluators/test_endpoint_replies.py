"""What an endpoint can answer, and what comes of it: one case for each kind of answer, through the real client."""

import json
import socket
from collections.abc import Callable, Sequence
from typing import Any

import pytest
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, cite, completion, error

from ctxrel.evaluators import Record, load_evaluator
from ctxrel.evaluators.errors import (
    EndpointUnreachable,
    FailureKind,
    KeyRefused,
    ModelUnknown,
    QuotaExhausted,
    RunError,
)
from ctxrel.evaluators.judges.asking import Asker, Patience
from ctxrel.evaluators.judges.dialect import Dialect
from ctxrel.evaluators.judges.endpoint import Endpoint
from ctxrel.evaluators.judges.openai_chat import ChatJudge
from ctxrel.evaluators.judging import Judging, Outcome
from ctxrel.evaluators.memory import PlainMemory
from ctxrel.evaluators.replies import Reply, Usage

RECORD = Record(
    index=0,
    id="r",
    where="log:1",
    question="Who wrote it?",
    contexts=("Ada wrote it. It is long.", "Bob read it. He slept."),
)
QUICK = Patience(first_wait=0.01, longest_wait=0.02)


async def judge(
    server: LoopbackServer,
    *answers: Answer,
    record: Record = RECORD,
    timeout: float = 5,
    memory: PlainMemory | None = None,
) -> Outcome:
    """The outcome of a record while the endpoint gives these answers in turn, the last one for ever."""
    script: Sequence[Answer] = answers
    server.script = lambda _: script[min(len(server.seen), len(script)) - 1]
    endpoint = Endpoint(model=MODEL, base_url=server.url, timeout=timeout)
    asker = Asker(ChatJudge(endpoint, concurrency=4), QUICK)
    try:
        return await Judging(asker, memory or PlainMemory()).judge(record, load_evaluator("context_relevance"))
    finally:
        await asker.close()


def kind_of(outcome: Outcome) -> FailureKind | None:
    return outcome.failure.kind if outcome.failure else None


VALID = '{"relevant_statements": [1, 3]}'


@pytest.mark.parametrize(
    "content",
    [
        pytest.param(VALID, id="valid"),
        pytest.param(f" \n\t{VALID}\n ", id="white space around"),
        pytest.param(f"```json\n{VALID}\n```", id="fence with json"),
        pytest.param(f"```\n{VALID}\n```\n", id="fence without json"),
        pytest.param(f"\ufeff{VALID}", id="leading BOM"),
        pytest.param(f"<think>1 {{or}} 3?\nBoth.</think>\n{VALID}", id="leading think block"),
        pytest.param(f"<think>hm</think>\n```json\n{VALID}\n```", id="think block and fence"),
        pytest.param('{"relevant_statements": [1, 3], "score": 0, "status": "bad"}', id="extra keys"),
        pytest.param('{"relevant_statements": [2], "relevant_statements": [1, 3]}', id="duplicate key"),
        pytest.param('{"relevant_statements": [3, 1, 3]}', id="any order and twice"),
        pytest.param('{"note": "\\ud83d", "relevant_statements": [1, 3]}', id="lone surrogate"),
    ],
)
async def test_evaluated(server: LoopbackServer, content: str) -> None:
    """A reply that says what it should, in whatever wrapping, is evaluated with one request."""
    outcome = await judge(server, completion(content))
    assert outcome.evaluation
    assert outcome.evaluation.score == 1
    assert outcome.evaluation.outputs["relevant_statements"] == ["Ada wrote it.", "Bob read it."]
    assert len(server.seen) == 1


async def test_empty_list_is_zero(server: LoopbackServer) -> None:
    """An empty list is a judgement: score 0, not a failure."""
    outcome = await judge(server, cite())
    assert outcome.evaluation
    assert (outcome.evaluation.score, outcome.evaluation.outputs["relevant_statements"]) == (0, [])


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(completion(f"Here you are: {VALID}"), id="prose before"),
        pytest.param(completion(f"{VALID}\nI hope this helps."), id="prose after"),
        pytest.param(completion(VALID[:20]), id="cut short with stop"),
        pytest.param(completion(""), id="empty content"),
        pytest.param(completion(None), id="bare null content"),
        pytest.param(Answer(body={"object": "chat.completion", "choices": []}), id="no choices"),
        pytest.param(Answer(body={"object": "chat.completion", "choices": None}), id="null choices"),
        pytest.param(completion("[1, 3]"), id="JSON list"),
        pytest.param(completion('"1"'), id="JSON string"),
        pytest.param(completion("1"), id="JSON number"),
        pytest.param(completion("null"), id="JSON null"),
        pytest.param(completion('{"statements": [1]}'), id="missing key"),
        pytest.param(completion('{"Relevant_Statements": [1]}'), id="other capitalisation"),
        pytest.param(completion('{"result": {"relevant_statements": [1]}}'), id="wrapped"),
        pytest.param(completion('{"relevant_statements": "1"}'), id="string for a list"),
        pytest.param(completion('{"relevant_statements": null}'), id="null for a list"),
        pytest.param(completion('{"relevant_statements": 1}'), id="number for a list"),
        pytest.param(completion('{"relevant_statements": true}'), id="boolean for a list"),
        pytest.param(completion('{"relevant_statements": [""]}'), id="list of an empty string"),
        pytest.param(completion('{"relevant_statements": [null]}'), id="list of null"),
        pytest.param(completion('{"relevant_statements": [true]}'), id="list of a boolean"),
        pytest.param(completion('{"relevant_statements": [1.5]}'), id="list of a fraction"),
        pytest.param(completion('{"relevant_statements": ["Ada wrote it."]}'), id="text for a number"),
        pytest.param(completion('{"relevant_statements": [1, 5]}'), id="number of no sentence"),
        pytest.param(completion('{"relevant_statements": [0]}'), id="zero"),
        pytest.param(completion("{'relevant_statements': [1]}"), id="single quotes"),
        pytest.param(completion('{"relevant_statements": [1,]}'), id="trailing comma"),
        pytest.param(completion('{"note": "a\nb", "relevant_statements": [1]}'), id="raw newline in a string"),
        pytest.param(completion('{"relevant_statements": [NaN]}'), id="NaN"),
        pytest.param(completion("[" * 100_000), id="endless nesting"),
        pytest.param(
            error(500, "The model produced output that does not match the expected peg-native format"), id="llama.cpp"
        ),
    ],
)
async def test_invalid_reply(server: LoopbackServer, answer: Answer) -> None:
    """A reply that does not fit is asked again within the budget, then an error; never a score."""
    outcome = await judge(server, answer)
    assert (kind_of(outcome), outcome.evaluation) == (FailureKind.INVALID_REPLY, None)
    assert len(server.seen) == QUICK.invalid_replies
    assert len(outcome.replies) == (QUICK.invalid_replies if answer.status == 200 else 0)


async def test_invalid_reply_then_valid(server: LoopbackServer) -> None:
    """A second try that fits is the judgement; the tokens of both are accounted for."""
    outcome = await judge(server, completion("no"), cite(1))
    assert outcome.evaluation
    assert outcome.usage == (200, 14, 128, 6)


@pytest.mark.parametrize("content", [VALID[:20], "", None], ids=["cut short", "empty", "null"])
async def test_truncated(server: LoopbackServer, content: str | None) -> None:
    """A reply cut by the token limit gets one try with twice the room; the usage of both is kept."""
    outcome = await judge(server, completion(content, finish_reason="length"))
    assert kind_of(outcome) == FailureKind.TRUNCATED
    assert [seen.body["max_completion_tokens"] for seen in server.seen] == [4096, 8192]
    assert outcome.usage.input_tokens == 200


async def test_truncated_then_whole(server: LoopbackServer) -> None:
    """With enough room the record is evaluated."""
    outcome = await judge(server, completion(VALID[:20], finish_reason="length"), completion(VALID))
    assert outcome.evaluation


async def test_whole_reply_at_the_limit(server: LoopbackServer) -> None:
    """A reply that is whole counts, though it ends at the limit."""
    outcome = await judge(server, completion(VALID, finish_reason="length"))
    assert outcome.evaluation


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(completion(None, finish_reason="content_filter"), "content_filter", id="filtered reply"),
        pytest.param(completion(VALID, finish_reason="content_filter"), "content_filter", id="filtered with content"),
        pytest.param(completion(None, refusal="I cannot."), "refusal", id="refusal"),
        pytest.param(error(400, "filtered", code="content_filter"), "content_filter", id="filtered prompt"),
        pytest.param(error(400, "Invalid value", param="messages"), "rejected", id="other 400"),
        pytest.param(error(422, "Unprocessable"), "rejected", id="422"),
        pytest.param(error(405, "Not allowed"), "rejected", id="405"),
    ],
)
async def test_not_retried(server: LoopbackServer, answer: Answer, kind: str) -> None:
    """What asking again cannot change is asked once."""
    outcome = await judge(server, answer)
    assert kind_of(outcome) == kind
    assert len(server.seen) == 1


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(error(500, "Internal"), "server_error", id="500"),
        pytest.param(
            Answer(status=502, body=b"<html>Bad gateway</html>", headers={"Content-Type": "text/html"}),
            "server_error",
            id="502 with HTML",
        ),
        pytest.param(error(503, "Overloaded"), "server_error", id="503"),
        pytest.param(error(408, "Timeout"), "server_error", id="408"),
        pytest.param(error(409, "Conflict"), "server_error", id="409"),
        pytest.param(Answer(body=b"<html>ok</html>"), "server_error", id="200 that is no JSON"),
        pytest.param(Answer(body={"error": {"message": "upstream"}}), "server_error", id="200 with an error"),
        pytest.param(Answer(body=cite(1).body, fault="cut"), "server_error", id="200 cut"),
        pytest.param(Answer(fault="reset"), "connection", id="connection reset"),
    ],
)
async def test_retried(server: LoopbackServer, answer: Answer, kind: str) -> None:
    """What may pass is tried again, within the budget."""
    good = await judge(server, cite(1))
    assert good.evaluation
    server.seen.clear()
    outcome = await judge(server, answer, answer, cite(1))
    assert outcome.evaluation
    assert len(server.seen) == 3
    server.seen.clear()
    if kind == "connection":
        with pytest.raises(EndpointUnreachable, match="nothing has ever been answered"):
            await judge(server, answer)
    else:
        assert kind_of(await judge(server, answer)) == kind
    assert len(server.seen) == QUICK.attempts


@pytest.mark.parametrize("fault", ["hang", "trickle"])
async def test_total_timeout(server: LoopbackServer, fault: str) -> None:
    """An attempt ends after its time, whether nothing arrives or one byte after the other."""
    slow = Answer(body=cite(1).body, fault=fault)
    outcome = await judge(server, error(500, "first an answer"), slow, slow, slow, slow, timeout=0.2)
    assert kind_of(outcome) == FailureKind.TIMEOUT
    assert len(server.seen) == QUICK.attempts


@pytest.mark.parametrize("headers", [{}, {"Retry-After": "0.1"}, {"retry-after-ms": "100"}], ids=["none", "s", "ms"])
async def test_rate_limit(server: LoopbackServer, headers: dict[str, str]) -> None:
    """A rate limit is waited out and does not use up the tries."""
    limited = error(429, "Slow down", code="rate_limit_exceeded", headers=headers)
    outcome = await judge(server, *[limited] * 6, cite(1))
    assert outcome.evaluation
    assert len(server.seen) == 7


async def test_rate_limit_for_ever(server: LoopbackServer) -> None:
    """A rate limit that never ends is an error in the end."""
    outcome = await judge(server, error(429, "Slow down", headers={"retry-after-ms": "1"}))
    assert kind_of(outcome) == FailureKind.RATE_LIMITED


@pytest.mark.parametrize(
    ("answer", "expected", "words"),
    [
        pytest.param(error(429, "You exceeded", code="insufficient_quota"), QuotaExhausted, "quota", id="quota"),
        pytest.param(error(402, "Insufficient balance"), QuotaExhausted, "quota", id="402"),
        pytest.param(error(401, "Incorrect API key provided: sk-x"), KeyRefused, "--api-key-env", id="401"),
        pytest.param(error(403, "Forbidden"), KeyRefused, "--api-key-env", id="403"),
        pytest.param(
            error(404, "The model `judge-1` does not exist", code="model_not_found"),
            ModelUnknown,
            MODEL,
            id="404 model",
        ),
        pytest.param(error(404, "Not Found"), RunError, "--base-url", id="404 path"),
    ],
)
async def test_ends_the_run(server: LoopbackServer, answer: Answer, expected: type[RunError], words: str) -> None:
    """What no request can survive ends the run after one request, and the text names the next step, never the key."""
    with pytest.raises(expected, match=words) as raised:
        await judge(server, answer)
    assert len(server.seen) == 1
    assert "sk-x" not in str(raised.value)


def too_long_from(sentences: int) -> Callable[[Seen], Answer]:
    """An endpoint whose context holds fewer than so many sentences."""

    def script(seen: Seen) -> Answer:
        numbers = [int(number) for context in seen.record["contexts"] for number in context]
        if len(numbers) >= sentences:
            return error(400, "This model's maximum context length is 8 tokens", code="context_length_exceeded")
        return cite(*(number for number in numbers if number % 2))

    return script


async def test_too_long_is_divided(server: LoopbackServer) -> None:
    """A record that does not fit is divided by contexts; verdicts and spans unite as if it had been whole."""
    memory = PlainMemory()
    server.script = too_long_from(3)
    endpoint = Endpoint(model=MODEL, base_url=server.url)
    judging = Judging(Asker(ChatJudge(endpoint, concurrency=4), QUICK), memory)
    evaluator = load_evaluator("context_relevance")
    outcome = await judging.judge(RECORD, evaluator)
    assert outcome.evaluation
    assert outcome.evaluation.outputs["relevant_statements"] == ["Ada wrote it.", "Bob read it."]
    verdict = {"relevant": True, "statements": 2, "relevant_statements": 1}
    assert outcome.evaluation.outputs["contexts"] == [{**verdict, "spans": [(0, 13)]}, {**verdict, "spans": [(0, 12)]}]
    assert (outcome.requests, len(server.seen)) == (2, 3)
    again = await judging.judge(RECORD, evaluator)
    assert (again.reused, len(server.seen)) == (2, 3)
    await judging.asker.close()


@pytest.mark.parametrize(
    "answer",
    [
        pytest.param(error(400, "too long", code="context_length_exceeded"), id="OpenAI"),
        pytest.param(
            error(400, "the request exceeds the available context size", type="exceed_context_size_error"),
            id="llama.cpp",
        ),
        pytest.param(error(400, "This model's maximum context length is 4096 tokens"), id="vLLM"),
        pytest.param(error(413, "Payload too large"), id="413"),
    ],
)
async def test_context_too_long(server: LoopbackServer, answer: Answer) -> None:
    """A single context that does not fit is an error of its own kind."""
    one = Record(index=0, id="r", where="log:1", question="q?", contexts=("A text.",))
    assert kind_of(await judge(server, answer, record=one)) == FailureKind.CONTEXT_TOO_LONG


def endpoint_without(*unknown: str, message: str = "Unsupported parameter: '{}'") -> Callable[[Seen], Answer]:
    """An endpoint that takes none of these parameters."""

    def script(seen: Seen) -> Answer:
        for name in unknown:
            if name in seen.body:
                return error(400, message.format(name), param=name if "{}" in message else None)
        return cite(1)

    return script


@pytest.mark.parametrize(
    ("unknown", "left"),
    [
        (("temperature",), {"max_completion_tokens": 4096}),
        (("max_completion_tokens",), {"max_tokens": 4096, "temperature": 0}),
        (("max_completion_tokens", "max_tokens"), {"temperature": 0}),
        (("max_completion_tokens", "temperature"), {"max_tokens": 4096}),
    ],
)
async def test_parameter_is_replaced_or_dropped(
    server: LoopbackServer, unknown: tuple[str, ...], left: dict[str, Any]
) -> None:
    """A parameter the endpoint does not take goes by its other name, else is left out, and is told about once."""
    server.script = endpoint_without(*unknown)
    notices: list[str] = []
    chat = ChatJudge(Endpoint(model=MODEL, base_url=server.url), concurrency=4, on_notice=notices.append)
    judging = Judging(Asker(chat, QUICK), PlainMemory())
    evaluator = load_evaluator("context_relevance")
    for number in range(3):
        record = Record(index=number, id="r", where="log:1", question=f"q{number}?", contexts=("A text.",))
        assert (await judging.judge(record, evaluator)).evaluation
    await judging.asker.close()
    sent = server.seen[-1].body
    assert {name: sent[name] for name in sent if name not in ("model", "messages", "response_format")} == left
    assert (
        len(server.seen)
        == 3 + len(chat.dialect.changes()) + (2 if len(left) == 1 and "temperature" in left else 0) // 2
    )
    assert all(name in " ".join(notices) for name in unknown if name != "max_tokens")


async def test_weaker_response_format(server: LoopbackServer) -> None:
    """Without JSON schema a JSON object is asked for, then plain text; each step is said."""
    tried: list[Any] = []

    def script(seen: Seen) -> Answer:
        tried.append(seen.body.get("response_format", {}).get("type"))
        return error(400, "'response_format' is not supported") if tried[-1] else cite(1)

    server.script = script
    notices: list[str] = []
    chat = ChatJudge(Endpoint(model=MODEL, base_url=server.url), concurrency=4, on_notice=notices.append)
    judging = Judging(Asker(chat, QUICK), PlainMemory())
    assert (await judging.judge(RECORD, load_evaluator("context_relevance"))).evaluation
    await judging.asker.close()
    assert tried == ["json_schema", "json_object", None]
    assert notices == ["the endpoint does not take a JSON schema; response_format is text"]


def judging_for(server: LoopbackServer, memory: PlainMemory | None = None, **facts: Any) -> Judging:  # noqa: ANN401
    chat = ChatJudge(Endpoint(model=MODEL, base_url=server.url, **facts), concurrency=4)
    return Judging(Asker(chat, QUICK), memory or PlainMemory())


def record_of(question: str) -> Record:
    return Record(index=0, id="r", where="log:1", question=question, contexts=("A text.",))


async def test_one_records_fault_changes_no_other_request(server: LoopbackServer) -> None:
    """Once the endpoint has answered, what another way of asking brings is that record's own affair."""
    echo = {"detail": [{"loc": ["body", "messages"], "msg": "too odd", "input": {"temperature": 0, "max_tokens": 1}}]}
    faults = {
        "q1?": Answer(status=422, body=echo),
        "q2?": error(400, "Invalid 'temperature' for this input"),
        "q3?": error(400, "response_format could not be satisfied", param="response_format"),
    }
    server.script = lambda seen: faults.get(seen.record["question"], cite(1))
    judging = judging_for(server)
    evaluator = load_evaluator("context_relevance")
    outcomes = [await judging.judge(record_of(f"q{number}?"), evaluator) for number in range(5)]
    await judging.asker.close()
    assert [kind_of(outcome) for outcome in outcomes] == [None, "rejected", "rejected", "rejected", None]
    first, *_, last = [seen.body for seen in server.seen]
    assert {**first, "messages": 0} == {**last, "messages": 0}
    assert len(server.seen) == 1 + 1 + 2 + 3 + 1


@pytest.mark.parametrize("recalled", [True, False])
async def test_one_record_that_needs_another_way(server: LoopbackServer, recalled: bool) -> None:  # noqa: FBT001
    """A record that passes only without a schema passes; what an earlier run has found is not forgotten for it."""
    server.script = lambda seen: (
        error(400, "could not apply response_format to this input")
        if seen.record["question"] == "q0?" and "response_format" in seen.body
        else cite(1)
    )
    kept: list[dict[str, object]] = []
    chat = ChatJudge(
        Endpoint(model=MODEL, base_url=server.url),
        concurrency=1,
        dialect=Dialect() if recalled else None,
        on_dialect=kept.append,
    )
    judging = Judging(Asker(chat, QUICK), PlainMemory())
    evaluator = load_evaluator("context_relevance")
    for number in range(2):
        assert (await judging.judge(record_of(f"q{number}?"), evaluator)).evaluation
    await judging.asker.close()
    assert ("response_format" in server.seen[-1].body) is recalled
    assert kept == [{"response_format": "json_schema" if recalled else "text", "renamed": {}}]


async def test_an_endpoint_that_has_changed(server: LoopbackServer) -> None:
    """Where request after request needs another way than the one remembered, that way is the new one."""
    server.script = lambda seen: error(400, "no response_format") if "response_format" in seen.body else cite(1)
    chat = ChatJudge(Endpoint(model=MODEL, base_url=server.url), concurrency=1, dialect=Dialect())
    judging = Judging(Asker(chat, QUICK), PlainMemory())
    evaluator = load_evaluator("context_relevance")
    for number in range(10):
        assert (await judging.judge(record_of(f"q{number}?"), evaluator)).evaluation
    await judging.asker.close()
    assert len(server.seen) == 4 * 3 + 6
    assert chat.notices() == ["the endpoint does not take a JSON schema; response_format is text"]


async def test_words_of_a_question_blame_nothing(server: LoopbackServer) -> None:
    """An error that names a part of the messages is not about a parameter whose name the question holds."""
    server.script = lambda _: error(400, "bad input: What is the temperature?", param="messages[1].content")
    judging = judging_for(server, parameters={"temperature": 0.2})
    outcome = await judging.judge(RECORD, load_evaluator("context_relevance"))
    await judging.asker.close()
    assert (kind_of(outcome), len(server.seen)) == ("rejected", 1)


async def test_more_than_a_minutes_tokens(server: LoopbackServer) -> None:
    """A 429 for a single request that is too large holds up nobody: the record is divided."""
    server.script = lambda seen: (
        error(429, "Request too large for gpt-5 on tokens per min (TPM)", type="tokens", code="rate_limit_exceeded")
        if len(seen.record["contexts"]) > 1
        else cite(int(next(iter(seen.record["contexts"][0]))))
    )
    judging = judging_for(server)
    outcome = await judging.judge(RECORD, load_evaluator("context_relevance"))
    await judging.asker.close()
    assert outcome.evaluation
    assert (outcome.requests, len(server.seen)) == (2, 3)
    assert judging.asker.limiter.limit == 4


async def test_a_422_that_repeats_the_request_blames_nothing_in_it(server: LoopbackServer) -> None:
    """FastAPI's errors repeat the input: only where and what is read."""
    echo = {"detail": [{"loc": ["body", "messages", 0], "msg": "bad", "input": {"temperature": 0}}]}
    judging = judging_for(server)
    server.script = lambda _: Answer(status=422, body=echo)
    outcome = await judging.judge(RECORD, load_evaluator("context_relevance"))
    await judging.asker.close()
    assert (kind_of(outcome), len(server.seen)) == ("rejected", 1)


async def test_room_too_large_for_one_record(server: LoopbackServer) -> None:
    """Where the record fits and the room for its reply does not, that record is asked for without a limit."""
    told = (
        "'max_tokens' or 'max_completion_tokens' is too large: 4096. This model's maximum context length is 4096 tokens"
    )
    server.script = lambda seen: (
        error(400, told) if seen.record["question"] == "q1?" and "max_completion_tokens" in seen.body else cite(1)
    )
    judging = judging_for(server)
    evaluator = load_evaluator("context_relevance")
    for number in range(3):
        assert (await judging.judge(record_of(f"q{number}?"), evaluator)).evaluation
    await judging.asker.close()
    assert ["max_completion_tokens" in seen.body for seen in server.seen] == [True, True, False, True]


async def test_larger_room_is_refused(server: LoopbackServer) -> None:
    """A truncated reply whose larger room the endpoint refuses stays truncated."""
    cut = completion(VALID[:20], finish_reason="length")
    outcome = await judge(server, cut, error(400, "max_completion_tokens is too large: 8192"))
    assert kind_of(outcome) == FailureKind.TRUNCATED
    assert len(server.seen) == 2


async def test_nothing_to_enlarge(server: LoopbackServer) -> None:
    """Without a limit of ours a truncated reply is not asked for twice in the same words."""
    server.script = lambda _: completion(VALID[:20], finish_reason="length")
    judging = judging_for(server, parameters={"max_completion_tokens": None})
    outcome = await judging.judge(RECORD, load_evaluator("context_relevance"))
    await judging.asker.close()
    assert (kind_of(outcome), len(server.seen)) == (FailureKind.TRUNCATED, 1)


async def test_truncated_in_an_earlier_run(server: LoopbackServer) -> None:
    """What was cut before a kill is asked for with more room at once."""
    memory = PlainMemory()
    await judge(server, completion(VALID[:20], finish_reason="length"), Answer(fault="reset"), memory=memory)
    server.seen.clear()
    outcome = await judge(server, cite(1), memory=memory)
    assert outcome.evaluation
    assert [seen.body["max_completion_tokens"] for seen in server.seen] == [8192]
    assert outcome.usage.input_tokens == 200


async def test_a_failed_text_is_paid_for_once_in_a_run(server: LoopbackServer) -> None:
    """The same failing record twice in a log is asked once; the next run asks again."""
    server.script = lambda _: completion("no")
    judging = judging_for(server)
    evaluator = load_evaluator("context_relevance")
    outcomes = [await judging.judge(RECORD, evaluator) for _ in range(3)]
    await judging.asker.close()
    assert len(server.seen) == QUICK.invalid_replies
    assert {outcome.usage.input_tokens for outcome in outcomes} == {300}


class SharedMemory(PlainMemory):
    """A memory into which another run has put a reply a moment earlier."""

    def keep_reply(self, key: bytes, reply: Reply) -> None:
        other = Reply(text='{"relevant_statements": []}', finish_reason="stop", model="other", usage=Usage(1, 1, 0, 0))
        super().keep_reply(key, other)
        super().keep_reply(key, reply)


async def test_the_first_reply_counts(server: LoopbackServer) -> None:
    """Where two runs asked, both derive their row from the reply that is first in the store."""
    outcome = await judge(server, cite(1), memory=SharedMemory())
    assert outcome.evaluation
    assert (outcome.evaluation.score, outcome.model, outcome.usage.input_tokens) == (0, "other", 1)


@pytest.mark.parametrize(
    ("answer", "kind"),
    [
        pytest.param(error(400, "no", param=5), "rejected", id="param is a number"),
        pytest.param(error(400, "no", code=["a"], type={"b": 1}), "rejected", id="code is a list"),
        pytest.param(Answer(status=400, body=b"[]"), "rejected", id="error is a list"),
        pytest.param(Answer(status=400, body=b"<html>"), "rejected", id="error is HTML"),
        pytest.param(error(400, "no", code="sk-very-secret_123", param="my secret words"), "rejected", id="odd code"),
        pytest.param(completion("```" + " " * 100_000 + "x"), "invalid_reply", id="endless fence"),
        pytest.param(completion("```" + "\n" * 100_000 + "x```"), "invalid_reply", id="endless lines in a fence"),
        pytest.param(completion('{"a": NaN, "b": ' + "[" * 900 + "]" * 900 + "}"), "invalid_reply", id="deep with NaN"),
        pytest.param(Answer(body={"choices": [5], "usage": [1]}), "invalid_reply", id="choice is a number"),
        pytest.param(
            Answer(body={"choices": {}, "usage": {"prompt_tokens": "x"}}), "invalid_reply", id="choices is an object"
        ),
        pytest.param(Answer(body=b"[]"), "server_error", id="body is a list"),
        pytest.param(Answer(body=b"\xff\xfe"), "server_error", id="body is no text"),
    ],
)
async def test_odd_answers(server: LoopbackServer, answer: Answer, kind: str) -> None:
    """Whatever an endpoint comes up with is one record's failure, in words of ours."""
    assert (await judge(server, cite(1))).evaluation
    outcome = await judge(server, completion("x"), answer, cite(1), memory=PlainMemory())
    if outcome.failure is None:  # what is retried was answered in the end
        outcome = await judge(server, error(500, "an answer first"), answer)
    assert kind_of(outcome) == kind
    assert outcome.failure
    assert "secret" not in outcome.failure.message


async def test_usage_beyond_belief(server: LoopbackServer) -> None:
    """Counts that no reply can have are no counts; the reply is kept all the same."""
    answer = cite(1)
    assert isinstance(answer.body, dict)
    odd = {"prompt_tokens": 2**64 - 1, "completion_tokens": -1, "prompt_tokens_details": 7}
    outcome = await judge(server, Answer(body={**answer.body, "usage": odd}))
    assert outcome.evaluation
    assert outcome.usage == (0, 0, 0, 0)


@pytest.mark.parametrize("models", [b"[]", b"null", b'{"data": 5}', b'{"data": [5, {"id": 7}]}', b"<html>"])
async def test_odd_model_lists(server: LoopbackServer, models: bytes) -> None:
    """A `/models` that makes no sense is as good as none."""
    server.models = Answer(body=models)
    assert (await judge(server, cite(1))).evaluation


@pytest.mark.parametrize("trouble", ["DNS", "TLS"])
async def test_no_connection(server: LoopbackServer, monkeypatch: pytest.MonkeyPatch, trouble: str) -> None:
    """A name that is not found and an endpoint that speaks no TLS end a run in which nothing was ever answered."""
    url = server.url.replace("http:", "https:")
    if trouble == "DNS":
        url = "http://judge.invalid/v1"

        def not_found(*_: object, **__: object) -> None:
            raise socket.gaierror(socket.EAI_NONAME, "Name or service not known")

        monkeypatch.setattr("socket.getaddrinfo", not_found)
    chat = ChatJudge(Endpoint(model=MODEL, base_url=url), concurrency=4)
    judging = Judging(Asker(chat, QUICK), PlainMemory())
    with pytest.raises(EndpointUnreachable, match=r"no (?:connection to|TLS with) http"):
        await judging.judge(RECORD, load_evaluator("context_relevance"))
    await judging.asker.close()
    assert server.seen == []


async def test_the_request(server: LoopbackServer) -> None:
    """Static part first, the record alone in the user message, the strictest format, no key of ours in it."""
    await judge(server, cite(1))
    body = server.seen[0].body
    system, user = body["messages"]
    assert system["role"] == "system"
    assert "Ada" not in system["content"]
    assert json.loads(user["content"]) == {
        "question": "Who wrote it?",
        "contexts": [{"1": "Ada wrote it.", "2": "It is long."}, {"3": "Bob read it.", "4": "He slept."}],
    }
    assert body["response_format"]["json_schema"]["strict"] is True
    assert body["model"] == MODEL


async def test_the_same_text_answered_while_another_waits(server: LoopbackServer) -> None:
    """Two records of one text are one request, also where the second was looked up before the first was answered."""
    server.script = lambda _: cite(1)
    judging = judging_for(server)
    evaluator = load_evaluator("context_relevance")
    first, second = judging.begin(RECORD, evaluator), judging.begin(RECORD, evaluator)
    outcomes = [await judging.finish(first), await judging.finish(second)]
    await judging.asker.close()
    assert len(server.seen) == 1
    assert [(outcome.requests, outcome.reused) for outcome in outcomes] == [(1, 0), (1, 1)]
    assert outcomes[0].evaluation == outcomes[1].evaluation
