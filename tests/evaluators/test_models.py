"""What is said about a model before the first record is sent."""

import datetime as dt

import pytest

from ctxrel.evaluators.judges.endpoint import Endpoint
from ctxrel.evaluators.judges.openai_chat import ChatJudge
from ctxrel.evaluators.judges.preflight import nearest_models, shutdown_notice
from ctxrel.evaluators.prompt import Prompt

TODAY = dt.date(2026, 11, 30)


@pytest.mark.parametrize(
    ("date", "notice"),
    [
        (None, None),
        ("", None),
        ("soon", None),
        ("2027-06-01", None),
        ("2026-12-31", None),
        ("2026-12-30", "the model m will be shut down on 2026-12-30 (in 30 days); choose its successor with --model in time"),
        ("2026-12-11T00:00:00Z", "the model m will be shut down on 2026-12-11 (in 11 days); choose its successor with --model in time"),
        ("2026-11-01", "the model m was to be shut down on 2026-11-01; choose its successor with --model in time"),
    ],
)  # fmt: skip
def test_shutdown(date: object, notice: str | None) -> None:
    """A shutdown is told from 30 days before it."""
    assert shutdown_notice("m", date, today=TODAY) == notice


def test_nearest_models() -> None:
    """Successors of the same line and size first, then similar names, at most five."""
    names = ["tts-2", "gpt-6-mini", "gpt-6", "gpt-5.4-mini", "gpt-4o", "o9", "a", "b", "c"]
    assert nearest_models("gpt-5-mini", names)[:3] == ["gpt-6-mini", "gpt-5.4-mini", "gpt-6"]
    assert len(nearest_models("gpt-5-mini", names)) == 5
    assert nearest_models("zzz", ["a"]) == ["a"]


@pytest.mark.parametrize(
    ("model", "given", "sent"),
    [
        ("gpt-5-mini", {}, {"max_completion_tokens": 9}),
        ("gpt-5-mini", {"reasoning_effort": "low"}, {"max_completion_tokens": 9, "reasoning_effort": "low"}),
        ("openai/gpt-6-luna", {}, {"max_completion_tokens": 9}),
        ("o4-mini", {}, {"max_completion_tokens": 9}),
        ("llama3", {}, {"max_completion_tokens": 9, "temperature": 0}),
        ("llama3", {"temperature": 0.5, "max_completion_tokens": None}, {"temperature": 0.5}),
        ("gpt-5-mini", {"max_tokens": 7}, {"max_tokens": 7}),
    ],
)
def test_parameters(model: str, given: dict[str, object], sent: dict[str, object]) -> None:
    """Models that reason get no temperature; others are asked for the likeliest answer; the user's word wins."""
    judge = ChatJudge(Endpoint(model=model, base_url="http://127.0.0.1/v1", parameters=given), concurrency=1)
    prompt = Prompt(name="x", system="s", schema={}, parameters={"max_completion_tokens": 9})
    assert judge.parameters(prompt) == sent


def test_what_changes_the_key() -> None:
    """Model, host, parameters, instructions and schema are part of a request's key; timeout and key are not."""
    prompt = Prompt(name="x", system="s", schema={})
    base = Endpoint(model="m", base_url="http://127.0.0.1:1/v1", api_key="a")

    def fingerprint(endpoint: Endpoint, asked: Prompt = prompt) -> bytes:
        return ChatJudge(endpoint, concurrency=1).fingerprint(asked)

    same = [Endpoint(model="m", base_url="http://127.0.0.1:1/v1", api_key="b", timeout=3)]
    others = [
        fingerprint(Endpoint(model="n", base_url="http://127.0.0.1:1/v1")),
        fingerprint(Endpoint(model="m", base_url="http://127.0.0.1:2/v1")),
        fingerprint(Endpoint(model="m", base_url="http://127.0.0.1:1/other/v1")),
        fingerprint(Endpoint(model="m", base_url="http://127.0.0.1:1/v1", parameters={"seed": 1})),
        fingerprint(base, Prompt(name="x", system="t", schema={})),
        fingerprint(base, Prompt(name="x", system="s", schema={"a": 1})),
    ]
    assert {fingerprint(endpoint) for endpoint in same} == {fingerprint(base)}
    assert len({fingerprint(base), *others}) == 7
