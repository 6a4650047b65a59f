"""What the evaluators for Python have in common: lists in, and the way to judge them."""

import asyncio
import threading
from collections.abc import Callable, Coroutine, Mapping, Sequence
from typing import Any, TypeVar

from . import checks
from .batch import judge_batch
from .definition import Definition
from .errors import UsageError
from .evaluator import Evaluator
from .jsontext import replace_surrogates
from .judges.asking import Asker, Patience
from .judges.options import JudgeOptions, check_options, make_judge
from .judging import Judging, Outcome
from .memory import PlainMemory
from .record import Record

Results = dict[str, Any]
_Value = TypeVar("_Value")


class Component:
    """What the evaluators have in common: a definition, the names of its lists, and the way to run it."""

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
        self.evaluator = Evaluator(definition)
        self._lists = lists
        self.options = options

    @property
    def prompt(self) -> str:
        """The evaluator's name and the hash of its content."""
        return self.evaluator.prompt

    def run(self, **inputs: Sequence[Any]) -> Results:
        """Judge rows given as one list for each input, all of the same length.

        Also where an event loop is running, as in a notebook, which waits meanwhile. Raises UsageError (a ValueError)
        for lists that do not fit, RunError where the endpoint will not serve, and RecordFailed (a ValueError) at the
        first failed row if `raise_on_failure` is set.
        """
        records = self._records(inputs)
        return _run_to_its_end(lambda: self._judge(records))

    async def run_async(self, **inputs: Sequence[Any]) -> Results:
        """The same for an event loop that goes on meanwhile."""
        return await self._judge(self._records(inputs))

    async def _judge(self, records: Sequence[Record]) -> Results:
        from tqdm import tqdm  # noqa: PLC0415  # the command has no use for it

        judge = make_judge(self.options, {self.evaluator.name: self.evaluator.static})
        asker = Asker(judge, Patience(attempts=self.options.get("attempts", 5)))
        judging = Judging(asker, self.options.get("memory") or PlainMemory())
        try:
            with tqdm(total=len(records), disable=None if self.progress_bar else True) as bar:
                outcomes = await judge_batch(
                    judging, self.evaluator, records, stop_on_failure=self.raise_on_failure, on_done=bar.update
                )
        finally:
            await asker.close()
        return self.results(outcomes)

    def _records(self, inputs: Mapping[str, Sequence[Any]]) -> list[Record]:
        for name in self._lists:
            if name not in inputs:
                raise UsageError(f"the input {name!r} is missing; given are {', '.join(inputs) or 'none'}")
        for name, values in inputs.items():
            if name not in self._lists:
                raise UsageError(f"unknown input {name!r}; {checks.closest(name, self._lists)}")
            if not isinstance(values, list):
                raise UsageError(
                    f"the input {name!r} is {type(values).__name__}; give a list with an entry for each row"
                )
        lengths = {name: len(values) for name, values in inputs.items()}
        if len(set(lengths.values())) > 1:
            given = ", ".join(f"{name} {length}" for name, length in lengths.items())
            raise UsageError(f"the inputs are lists of different lengths: {given}")
        return [self._record(place, inputs) for place in range(next(iter(lengths.values()), 0))]

    def _record(self, place: int, inputs: Mapping[str, Sequence[Any]]) -> Record:
        values: dict[str, Any] = {}
        problems: dict[str, str] = {}
        for name, input_name in self._lists.items():
            try:
                values[input_name] = _READINGS[self.evaluator.inputs[input_name]](inputs[name][place])
            except TypeError as error:
                problems[input_name] = f"{name}[{place}] {error}"
        own = {name: values.pop(name) for name in ("question", "contexts", "answer") if name in values}
        return Record(index=place, id=str(place), where=f"row {place}", fields=values, problems=problems, **own)

    def results(self, outcomes: Sequence[Outcome]) -> Results:
        """What `run` gives."""
        raise NotImplementedError


def _read_text(value: object) -> str:
    if not isinstance(value, str):
        raise TypeError(f"is {type(value).__name__}, not a text")
    return replace_surrogates(value)


def _read_texts(value: object) -> tuple[str, ...]:
    if isinstance(value, str):
        return (replace_surrogates(value),)
    if not isinstance(value, (list, tuple)):
        raise TypeError(f"is {type(value).__name__}, not a list of texts")
    return tuple("" if item is None else _read_text(item) for item in value)


_READINGS: dict[str, Callable[[object], object]] = {
    "text": _read_text,
    "texts": _read_texts,
    "contexts": _read_texts,
    "json": lambda value: value,
}


def _run_to_its_end(make: Callable[[], Coroutine[Any, Any, _Value]]) -> _Value:
    """The value of a coroutine, on an event loop of its own, in a thread of its own where one is running already."""
    try:
        asyncio.get_running_loop()
    except RuntimeError:
        return asyncio.run(make())
    values: list[_Value] = []
    errors: list[BaseException] = []

    def work() -> None:
        try:
            values.append(asyncio.run(make()))
        except BaseException as error:  # noqa: BLE001  # it is raised again by the caller
            errors.append(error)

    thread = threading.Thread(target=work, name="ctxrel-run")
    thread.start()
    thread.join()
    if errors:
        raise errors[0]
    return values[0]
