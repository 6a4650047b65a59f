"""The evaluators as components of Haystack pipelines: Haystack's names, inputs and outputs, our judge underneath.

Only here a failed row's score is NaN, as Haystack's components and its reports on runs expect it of a list of numbers.
"""

from collections.abc import Mapping, Sequence
from math import nan
from typing import Any, Protocol, Self

try:
    from haystack import component
    from haystack.core.serialization import component_to_dict
    from haystack.core.serialization_security import allow_deserialization_module
    from haystack.dataclasses import ChatMessage
    from haystack.utils import deserialize_chatgenerator_inplace
except ImportError as error:
    raise ImportError("ctxrel.evaluators.haystack needs Haystack: pip install 'ctxrel[haystack]'") from error

from . import components
from .component import Component
from .judges.function import FunctionJudge
from .replies import Reply, Usage

__all__ = ["ContextRelevanceEvaluator", "FaithfulnessEvaluator", "LLMEvaluator"]

Outputs = dict[str, Any]
# A pipeline that was written down can be loaded where this module was imported; else with `allowed_modules`.
allow_deserialization_module(__name__)


class ChatGenerator(Protocol):
    """A chat generator of Haystack's."""

    def run(self, messages: list[ChatMessage]) -> Outputs:
        """Replies to messages."""


class _Seat(Component):
    """What the components add to the evaluators: a chat generator as the judge, and the way they are written down."""

    home = __name__

    def _sit(self, chat_generator: ChatGenerator | None) -> dict[str, Any]:
        """The judge's arguments; with a chat generator it is the judge."""
        self.chat_generator = chat_generator
        return {} if chat_generator is None else {"judge": FunctionJudge(self._answer, model="chat_generator")}

    def _answer(self, system: str, user: str) -> Reply:
        assert self.chat_generator is not None  # noqa: S101  # else there would be no such judge
        messages = [ChatMessage.from_system(system), ChatMessage.from_user(user)]
        message = self.chat_generator.run(messages)["replies"][0]
        return Reply(
            text=message.text,
            finish_reason=str(message.meta.get("finish_reason") or "stop"),
            model=message.meta.get("model"),
            usage=_usage(message.meta.get("usage")),
        )

    def warm_up(self) -> None:
        """Warm up the chat generator, if there is one."""
        if warm_up := getattr(self.chat_generator, "warm_up", None):
            warm_up()

    def close(self) -> None:
        """Close the chat generator, if there is one."""
        if close := getattr(self.chat_generator, "close", None):
            close()

    def to_dict(self) -> Outputs:
        """What `from_dict` makes the component of again; a chat generator is a part of it."""
        generator, options = self.chat_generator, self.options
        if generator is not None:  # it stands for the judge that was made of it
            self.options = options.copy()
            self.options.pop("judge")
        try:
            written: Outputs = super().to_dict()  # type: ignore[misc]  # of the evaluator
        finally:
            self.options = options
        described = None if generator is None else component_to_dict(obj=generator, name="chat_generator")
        written["init_parameters"]["chat_generator"] = described
        return written

    @classmethod
    def from_dict(cls, data: Mapping[str, Any]) -> Self:
        """The component that `to_dict` described."""
        parameters = dict(data.get("init_parameters", {}))
        if parameters.get("chat_generator"):
            deserialize_chatgenerator_inplace(parameters, key="chat_generator")
        made: Self = super().from_dict({**data, "init_parameters": parameters})  # type: ignore[misc]  # as above
        return made


class _ScoringSeat(_Seat):
    """A component whose rows have scores."""

    def __init__(
        self,
        examples: Sequence[Mapping[str, Any]] | None = None,
        progress_bar: bool = True,  # noqa: FBT001, FBT002  # Haystack's order
        raise_on_failure: bool = True,  # noqa: FBT001, FBT002
        chat_generator: ChatGenerator | None = None,
        **judge: Any,  # noqa: ANN401  # JudgeOptions
    ) -> None:
        """`judge` are the evaluator's own arguments: `model`, `base_url` …; a `chat_generator` replaces them."""
        arguments = {**judge, **self._sit(chat_generator)}
        begin: Any = super().__init__  # the evaluator's, whose arguments are others than its base's
        begin(examples, progress_bar, raise_on_failure, **arguments)
        component.set_input_types(self, **{name: _TYPES[name] for name in self.lists})

    def _run(self, inputs: Mapping[str, Sequence[Any]]) -> Outputs:
        return _with_nan(super().run(**inputs))

    async def _run_async(self, inputs: Mapping[str, Sequence[Any]]) -> Outputs:
        return _with_nan(await super().run_async(**inputs))


_TYPES = {"questions": list[str], "contexts": list[list[str]], "predicted_answers": list[str]}
_SCORED = {
    "score": float,
    "individual_scores": list[float],
    "results": list[dict[str, Any]],
    "meta": list[dict[str, Any]],
}


class _CriterionSeat(_Seat):
    """A component with a criterion of one's own."""

    def __init__(
        self,
        instructions: str,
        inputs: Sequence[tuple[str, Any]],
        outputs: Sequence[str] | Mapping[str, Any],
        examples: Sequence[Mapping[str, Any]],
        progress_bar: bool = True,  # noqa: FBT001, FBT002  # Haystack's order
        *,
        raise_on_failure: bool = True,
        chat_generator: ChatGenerator | None = None,
        **judge: Any,  # noqa: ANN401  # JudgeOptions
    ) -> None:
        """`judge` are the evaluator's own arguments: `model`, `base_url` …; a `chat_generator` replaces them."""
        arguments = {"raise_on_failure": raise_on_failure, **judge, **self._sit(chat_generator)}
        begin: Any = super().__init__  # as above
        begin(instructions, inputs, outputs, examples, progress_bar, **arguments)
        component.set_input_types(self, **dict(inputs))

    def _run(self, inputs: Mapping[str, Sequence[Any]]) -> Outputs:
        return super().run(**inputs)

    async def _run_async(self, inputs: Mapping[str, Sequence[Any]]) -> Outputs:
        return await super().run_async(**inputs)


# Haystack makes its components anew of what it decorates, where `super()` finds nothing: they hold no more than `run`.
@component
class ContextRelevanceEvaluator(_ScoringSeat, components.ContextRelevanceEvaluator):
    """Whether anything in the retrieved contexts is relevant to the question, as a component.

    Inputs are `questions` (list of texts) and `contexts` (list of lists of texts).
    """

    @component.output_types(**_SCORED)
    def run(self, **inputs: Any) -> Outputs:  # noqa: ANN401  # lists
        """Judge rows; see the evaluator."""
        return self._run(inputs)

    @component.output_types(**_SCORED)
    async def run_async(self, **inputs: Any) -> Outputs:  # noqa: ANN401  # as above
        """The same in an event loop that goes on meanwhile."""
        return await self._run_async(inputs)


@component
class FaithfulnessEvaluator(_ScoringSeat, components.FaithfulnessEvaluator):
    """Which statements of an answer the contexts support, as a component.

    Inputs are `questions`, `contexts` and `predicted_answers`.
    """

    @component.output_types(**_SCORED)
    def run(self, **inputs: Any) -> Outputs:  # noqa: ANN401  # lists
        """Judge rows; see the evaluator."""
        return self._run(inputs)

    @component.output_types(**_SCORED)
    async def run_async(self, **inputs: Any) -> Outputs:  # noqa: ANN401  # as above
        """The same in an event loop that goes on meanwhile."""
        return await self._run_async(inputs)


@component
class LLMEvaluator(_CriterionSeat, components.LLMEvaluator):
    """Any criterion as a component; its inputs are those it was given."""

    @component.output_types(results=list[dict[str, Any]], meta=list[dict[str, Any]])
    def run(self, **inputs: Any) -> Outputs:  # noqa: ANN401  # lists
        """Judge rows; see the evaluator."""
        return self._run(inputs)

    @component.output_types(results=list[dict[str, Any]], meta=list[dict[str, Any]])
    async def run_async(self, **inputs: Any) -> Outputs:  # noqa: ANN401  # as above
        """The same in an event loop that goes on meanwhile."""
        return await self._run_async(inputs)


def _with_nan(outputs: Outputs) -> Outputs:
    """The outputs with NaN for the scores that there are not."""
    for row in outputs["results"]:
        row["score"] = nan if row["score"] is None else row["score"]
    scores = [nan if score is None else score for score in outputs["individual_scores"]]
    score = nan if outputs["score"] is None else outputs["score"]
    return {**outputs, "score": score, "individual_scores": scores}


def _usage(given: object) -> Usage:
    """The tokens that a chat generator tells of, as OpenAI's API names them."""
    if not isinstance(given, Mapping):
        return Usage()

    def number(name: str, inside: object = given) -> int:
        value = inside.get(name) if isinstance(inside, Mapping) else None
        return value if isinstance(value, int) else 0

    return Usage(
        input_tokens=number("prompt_tokens"),
        output_tokens=number("completion_tokens"),
        cached_tokens=number("cached_tokens", given.get("prompt_tokens_details")),
        reasoning_tokens=number("reasoning_tokens", given.get("completion_tokens_details")),
    )
