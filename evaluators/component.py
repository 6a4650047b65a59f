"""What the evaluators for Python have in common: lists in, and the way to judge them."""

import asyncio
import sys
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from contextlib import suppress
from typing import Any, Generic, TypeVar

import orjson

from . import checks
from .batch import judge_batch
from .decisions.evaluator import make_deciding_evaluator
from .definition import Definition
from .errors import UsageError
from .evaluator import Evaluator
from .jsontext import dumps_anything, replace_surrogates
from .judges.asking import Asker, Patience
from .judges.endpoint import Api
from .judges.options import JudgeOptions, check_options, make_judge, make_limits
from .judging import Judging, Outcome
from .memory import Memory, PlainMemory
from .record import Record

Results = dict[str, Any]
_Value = TypeVar("_Value")


class Component:
    """What the evaluators have in common: a definition, the names of its lists, and the way to run it."""

    home = "ctxrel.evaluators"
    """The module that a class is to be imported from."""

    def __init__(
        self,
        definition: Definition,
        lists: Mapping[str, str],
        *,
        progress_bar: bool,
        raise_on_failure: bool,
        options: JudgeOptions,
    ) -> None:
        check_options(options)
        self.progress_bar = progress_bar
        self.raise_on_failure = raise_on_failure
        make = make_deciding_evaluator if options.get("api") == Api.DECISIONS else Evaluator
        self.evaluator: Evaluator = make(definition, explain=options.get("explain", False))
        self.lists = lists
        self.options = options

    @property
    def prompt(self) -> str:
        """The evaluator's name and the hash of its content."""
        return self.evaluator.prompt

    def run(self, /, **inputs: Sequence[Any]) -> Results:
        """Judge rows given as one list for each input, all of the same length.

        Also where an event loop is running, as in a notebook, which waits meanwhile. Raises UsageError (a ValueError)
        for lists that do not fit, RunError where the endpoint will not serve, and RecordFailed (a ValueError) at the
        first failed row if `raise_on_failure` is set.
        """
        records = self._records(inputs)
        return _run_to_its_end(lambda: self._judge(records))

    async def run_async(self, /, **inputs: Sequence[Any]) -> Results:
        """The same for an event loop that goes on meanwhile."""
        return await self._judge(self._records(inputs))

    async def _judge(self, records: Sequence[Record]) -> Results:
        from tqdm.auto import tqdm  # noqa: PLC0415  # the command has no use for it

        judge = make_judge(self.options, {self.evaluator.name: self.evaluator.static})
        asker = Asker(judge, Patience(attempts=self.options.get("attempts", 5)), make_limits(self.options, judge))
        judging = Judging(asker, _memory(self.options), max_input_tokens=self.options.get("max_input_tokens"))
        try:
            with tqdm(total=len(records), disable=self._hides_progress()) as bar:
                outcomes = await judge_batch(
                    judging, self.evaluator, records, stop_on_failure=self.raise_on_failure, on_done=bar.update
                )
        finally:
            await asker.close()
        return self.results(outcomes)

    def _records(self, inputs: Mapping[str, Sequence[Any]]) -> list[Record]:
        for name in inputs:
            if name not in self.lists:
                raise UsageError(f"unknown input {name!r}; {checks.closest(name, self.lists)}")
        for name in self.lists:
            if name not in inputs:
                raise UsageError(f"the input {name!r} is missing; given are {', '.join(inputs) or 'none'}")
        lists = {name: _list(name, values) for name, values in inputs.items()}
        lengths = {name: len(values) for name, values in lists.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise UsageError(f"the inputs are lists of different lengths: {given}")
        return [self._record(place, lists) for place in range(next(iter(lengths.values()), 0))]

    def _record(self, place: int, lists: Mapping[str, list[Any]]) -> Record:
        values: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for name, input_name in self.lists.items():
            try:
                values[input_name] = _READINGS[self.evaluator.inputs[input_name]](lists[name][place])
            except TypeError as error:
                problems[input_name] = f"{name}[{place}]{error}"
        own = {name: values.pop(name) for name in ("question", "contexts", "answer") if name in values}
        return Record(index=place, id=str(place), where=f"row {place}", fields=values, problems=problems, **own)

    def _hides_progress(self) -> bool | None:
        """Whether no bar is shown; None: only on a terminal."""
        if not self.progress_bar:
            return True
        return False if "ipykernel" in sys.modules else None

    def results(self, outcomes: Sequence[Outcome]) -> Results:
        """What `run` gives."""
        raise NotImplementedError


def _memory(options: JudgeOptions) -> Memory:
    memory = options.get("memory")
    return PlainMemory() if memory is None else memory


def _list(name: str, values: object) -> list[Any]:
    """The values of an input, also out of a tuple, an array or a column of a table. Raises UsageError."""
    plain = values.tolist() if hasattr(values, "tolist") else values
    if not isinstance(plain, (list, tuple)):
        raise UsageError(f"the input {name!r} is {type(values).__name__}; give a list with an entry for each row")
    return list(plain)


def _read_text(value: object) -> str:
    """A text, of an object (Haystack's Document) or a dict its content. Raises TypeError."""
    inner = value.get("content", value.get("text")) if isinstance(value, Mapping) else getattr(value, "content", value)
    if not isinstance(inner, str):
        raise TypeError(f" is {type(value).__name__}, not a text")
    return replace_surrogates(inner)


def _read_texts(value: object) -> tuple[str, ...]:
    """Texts; one alone is a list of one. Raises TypeError."""
    if isinstance(value, str):
        return (replace_surrogates(value),)
    items = value.tolist() if hasattr(value, "tolist") else value
    if not isinstance(items, (list, tuple)):
        raise TypeError(f" is {type(value).__name__}, not a list of texts")
    texts: list[str] = []
    for place, item in enumerate(items):
        try:
            texts.append("" if item is None else _read_text(item))
        except TypeError as error:
            raise TypeError(f"[{place}]{error}") from None
    return tuple(texts)


def _read_json(value: object) -> object:
    """A value as JSON holds it. Raises TypeError."""
    try:
        return orjson.loads(dumps_anything(value))
    except TypeError as error:
        raise TypeError(f" is nothing that JSON can hold: {error}") from None


_READINGS: dict[str, Callable[[object], object]] = {
    "text": _read_text,
    "texts": _read_texts,
    "contexts": _read_texts,
    "json": _read_json,
}


def _run_to_its_end(make: Callable[[], Coroutine[Any, Any, _Value]]) -> _Value:
    """The value of a coroutine, on an event loop of its own, in a thread of its own where one is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    aside = _Aside(make)
    thread = threading.Thread(target=aside.work, name="ctxrel-run", daemon=True)
    thread.start()
    try:
        thread.join()
    except BaseException:  # an interrupt: nothing is asked and paid for behind anybody's back
        aside.cancel()
        thread.join()
        raise
    if aside.error:
        raise aside.error
    return aside.values[0]


class _Aside(Generic[_Value]):
    """A coroutine on a thread, which can be cancelled from outside."""

    def __init__(self, make: Callable[[], Coroutine[Any, Any, _Value]]) -> None:
        self.values: list[_Value] = []
        self.error: BaseException | None = None
        self._make = make
        self._loop: asyncio.AbstractEventLoop | None = None
        self._task: asyncio.Task[_Value] | None = None

    def work(self) -> None:
        try:
            self.values.append(asyncio.run(self._run()))
        except BaseException as error:  # noqa: BLE001  # it is raised again by the caller
            self.error = error

    def cancel(self) -> None:
        if self._loop and self._task:
            with suppress(RuntimeError):  # the loop has ended meanwhile
                self._loop.call_soon_threadsafe(self._task.cancel)

    async def _run(self) -> _Value:
        self._loop = asyncio.get_running_loop()
        self._task = asyncio.create_task(self._make())
        return await self._task
