"""What the fixture gives: single records judged, and assertions about their scores."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import Any, NamedTuple, TypeVar

from ...evaluators.components import DefinedEvaluator
from ...evaluators.errors import CtxrelError, RecordFailed, RunError
from ...evaluators.judges.asking import Asker, Patience
from ...evaluators.judges.named import NAMED
from ...evaluators.judges.options import JudgeOptions, make_judge, make_limits
from ...evaluators.judging import Judging, Outcome
from ...evaluators.record import Record
from ..runs.store import Store
from .telling import options_of_pytest, tell_low_score

_Value = TypeVar("_Value")


class Judged(NamedTuple):
    """What an evaluator made of a record."""

    score: float | None
    """None where the evaluator gives no score."""
    row: dict[str, Any]
    """Outputs, score and status, verdicts on the contexts, model, usage and requests."""


class ContextJudge:
    """Judges single records on an event loop and a thread of its own, to which the store belongs.

    So it works in tests with an event loop, which waits meanwhile, and in those without. Requests, connections and
    whatever was found out about the endpoint are shared by all tests of a session.
    """

    def __init__(self, options: JudgeOptions, *, store: Path | None) -> None:
        """`store` is kept; None is one that goes with the session. Raises OutputError."""
        self._options = options
        self._evaluators: dict[str, DefinedEvaluator] = {}
        self._judging: Judging | None = None
        self._loop = asyncio.new_event_loop()
        self._thread = threading.Thread(target=self._loop.run_forever, name="ctxrel", daemon=True)
        self._thread.start()
        try:
            self._store = self._run(lambda: _open(store))
        except CtxrelError:
            self._end()
            raise

    def assert_relevant(self, question: str, contexts: Sequence[str], min_score: float = 1.0) -> Judged:
        """Assert that something in the contexts is relevant to the question (`context_relevance`).

        Raises AssertionError where the score is lower, and CtxrelError as `evaluate` does.
        """
        __tracebackhide__ = True
        return self._assert("context_relevance", min_score, question=question, contexts=contexts)

    def assert_faithful(self, question: str, contexts: Sequence[str], answer: str, min_score: float = 1.0) -> Judged:
        """Assert that the contexts support that share of the answer's statements (`faithfulness`).

        Raises AssertionError where the score is lower, and CtxrelError as `evaluate` does.
        """
        __tracebackhide__ = True
        return self._assert("faithfulness", min_score, question=question, contexts=contexts, answer=answer)

    def evaluate(self, evaluator: str, /, **inputs: Any) -> Judged:  # noqa: ANN401  # what the evaluator takes
        """The score and the row of a record, by a built-in evaluator or a YAML file.

        Raises UsageError for what cannot be asked, RunError where the endpoint will not serve, and RecordFailed, which
        names the kind of the failure, where this record could not be judged.
        """
        __tracebackhide__ = True
        try:
            component = self._evaluator(evaluator)
            (record,) = component.records({name: [value] for name, value in inputs.items()})
            outcome = self._run(lambda: self._judge(component, record))
        except CtxrelError as error:  # its way here is of no interest to the reader of a test's report
            error.args = (options_of_pytest(str(error)),)
            raise error.with_traceback(None) from None
        if outcome.failure:
            raise RecordFailed(f"{evaluator} could not be judged: {outcome.failure.kind}: {outcome.failure.message}")
        results = component.results([outcome])
        return Judged(results["individual_scores"][0], {**results["meta"][0], **results["results"][0]})

    def close(self) -> None:
        """End what is under way and close the store."""
        self._run(self._close)
        self._end()

    def _assert(self, evaluator: str, min_score: float, **inputs: Any) -> Judged:  # noqa: ANN401  # as above
        __tracebackhide__ = True
        judged = self.evaluate(evaluator, **inputs)
        if judged.score is None or judged.score < min_score:
            raise AssertionError(tell_low_score(evaluator, judged.row, min_score, inputs))
        return judged

    def _evaluator(self, name: str) -> DefinedEvaluator:
        if name not in self._evaluators:
            self._evaluators[name] = DefinedEvaluator(name, progress_bar=False, **self._options)
        return self._evaluators[name]

    async def _judge(self, component: DefinedEvaluator, record: Record) -> Outcome:
        prompts = {component.evaluator.name: component.evaluator.static}
        if named := NAMED.get(self._options.get("model", "")):
            named.check(prompts)
        if self._judging is None:
            judge = make_judge(self._options, prompts)
            patience = Patience(attempts=self._options.get("attempts", 5))
            asker = Asker(judge, patience, make_limits(self._options, judge))
            self._judging = Judging(asker, self._store, max_input_tokens=self._options.get("max_input_tokens"))
        try:
            return await self._judging.judge(record, component.evaluator)
        except RunError as error:
            raise await self._judging.asker.judge.explain(error) from None
        except asyncio.CancelledError:  # nothing is asked and paid for behind anybody's back
            await self._judging.cancel()
            raise

    def _run(self, make: Callable[[], Coroutine[Any, Any, _Value]]) -> _Value:
        """The value of a coroutine that runs on the thread."""
        future = asyncio.run_coroutine_threadsafe(make(), self._loop)
        try:
            return future.result()
        finally:
            future.cancel()

    async def _close(self) -> None:
        if self._judging:
            await self._judging.cancel()
            await self._judging.asker.close()
        self._store.close()

    def _end(self) -> None:
        self._loop.call_soon_threadsafe(self._loop.stop)
        self._thread.join()
        self._loop.close()


async def _open(path: Path | None) -> Store:
    return Store(path)
