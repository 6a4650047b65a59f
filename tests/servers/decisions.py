"""The Decisions API on the loopback endpoint: requests checked against the openai package's types, answers made by them."""

import zlib
from collections.abc import Callable, Mapping
from typing import Any

from openai.types.decision import Answer as TypedAnswer
from openai.types.decision import (
    AnswerAnswerResourcePredicate,
    AnswerAnswerResourceRefusal,
    Decision,
    Usage,
    UsageInputTokensDetails,
    UsageOutputTokensDetails,
)
from openai.types.decision_create_params import (
    DecisionCreateParams,
    InputUnionMember1DecisionInputSystemMessage,
    InputUnionMember1DecisionInputUserMessage,
    QuestionQuestionParamPredicate,
)
from pydantic import TypeAdapter, ValidationError
from servers.loopback import Answer, Script, Seen, error

LUNA = "gpt-6-luna"
MODELS = Answer(body={"object": "list", "data": [{"id": LUNA, "created": 1, "object": "model"}]})
_MOST = 400
_MESSAGES: dict[str, type] = {
    "system": InputUnionMember1DecisionInputSystemMessage,
    "user": InputUnionMember1DecisionInputUserMessage,
}


def check_request(body: Mapping[str, Any]) -> None:
    """Raise ValueError (pydantic's included) for a body that the package's types do not describe."""
    _check(DecisionCreateParams, body)
    for message in body["input"]:
        _check(_MESSAGES[message["role"]], message)
    for question in body["questions"]:
        _check(QuestionQuestionParamPredicate, question)
    if not 1 <= len(body["questions"]) <= _MOST:
        raise ValueError(f"{len(body['questions'])} questions")


def _check(kind: Any, value: Mapping[str, Any]) -> None:  # noqa: ANN401  # a TypedDict
    TypeAdapter(kind).validate_python(value, strict=True)
    if unknown := value.keys() - kind.__annotations__.keys():
        raise ValueError(f"unknown {sorted(unknown)}")


def decision(probabilities: Mapping[str, float | None]) -> Answer:
    """A decision as the package's models have it; None is a refusal."""
    answers: list[TypedAnswer] = [
        AnswerAnswerResourceRefusal(type="refusal", name=name)
        if probability is None
        else AnswerAnswerResourcePredicate(type="predicate", name=name, probability=probability)
        for name, probability in probabilities.items()
    ]
    usage = Usage(
        input_tokens=100,
        input_tokens_details=UsageInputTokensDetails(cached_tokens=64, cache_write_tokens=0),
        output_tokens=0,
        output_tokens_details=UsageOutputTokensDetails(reasoning_tokens=0),
        total_tokens=100,
    )
    made = Decision(answers=answers, model=f"{LUNA}-2026-10-06", usage=usage)
    return Answer(body=made.model_dump(mode="json"))


def questions_of(seen: Seen) -> dict[str, str]:
    """The predicates of a request by their names."""
    return {question["name"]: question["instructions"] for question in seen.body["questions"]}


def deciding(probability: Callable[[Seen, str], float | None]) -> Script:
    """Answers each predicate, given by its name; a request that is none is an HTTP 400."""

    def script(seen: Seen) -> Answer:
        try:
            check_request(seen.body)
        except (ValidationError, ValueError, KeyError) as wrong:
            return error(400, f"no request for a decision: {type(wrong).__name__}", code="malformed")
        return decision({name: probability(seen, name) for name in questions_of(seen)})

    return script


def decide_by_hash(seen: Seen, name: str) -> float:
    """Always the same probability for the same sentence of the contexts."""
    sentences = {number: text for context in seen.record["contexts"] for number, text in context.items()}
    return zlib.crc32(sentences[name].encode()) % 1000 / 1000
