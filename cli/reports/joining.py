"""The rows of two runs, joined by evaluator and id."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from .rows import ResultsFile, Verdict

Key = tuple[str, str, int]
"""Evaluator, id, and which of the rows of that id it is."""


@dataclass(kw_only=True)
class Side:
    """What one run's rows of one evaluator add up to."""

    n: int = 0
    errors: Counter[str] = field(default_factory=Counter)
    prompts: Counter[str] = field(default_factory=Counter)
    models: Counter[str] = field(default_factory=Counter)
    tokens: int = 0

    def add(self, verdict: Verdict) -> None:
        """Count a row."""
        self.n += 1
        self.tokens += verdict.tokens
        if verdict.error is not None:
            self.errors[verdict.error] += 1
        if verdict.prompt is not None:
            self.prompts[verdict.prompt] += 1
        if verdict.model is not None:
            self.models[verdict.model] += 1


class _Kept(NamedTuple):
    """What is kept of a row of the baseline."""

    score: float | None
    question: int


class Pair(NamedTuple):
    """A record that was judged in both runs."""

    verdict: Verdict
    """Of the second run."""
    before: float
    after: float
    same_question: bool
    cluster: int
    """A hash of the question, 0 where there is none."""


class Baseline:
    """The rows of the run that others are compared with, in memory: some 300 bytes each."""

    def __init__(self, results: ResultsFile) -> None:
        self.results = results
        self.sides: dict[str, Side] = {}
        self._rows: dict[Key, _Kept] = {}
        seen: Counter[tuple[str, str]] = Counter()
        for verdict in results.verdicts():
            self.sides.setdefault(verdict.evaluator, Side()).add(verdict)
            self._rows[_key(verdict, verdict.evaluator, seen)] = _Kept(verdict.score, _hash(verdict.question))

    def name_for(self, evaluators: list[str]) -> dict[str, str]:
        """Of another run's evaluators, the ones here that they are compared with.

        Those of the same name; the only one on both sides, whatever the names, so that prompts can be compared.
        """
        same = {name: name for name in evaluators if name in self.sides}
        if not same and len(evaluators) == len(self.sides) == 1:
            return {evaluators[0]: next(iter(self.sides))}
        return same

    def rows(self, other: ResultsFile, names: dict[str, str]) -> Iterator[tuple[Verdict, "_Kept | None"]]:
        """The other run's rows of these evaluators, each with what is kept of the row here, if there is one."""
        seen: Counter[tuple[str, str]] = Counter()
        for verdict in other.verdicts():
            if verdict.evaluator in names:
                yield verdict, self._rows.get(_key(verdict, names[verdict.evaluator], seen))


def paired(verdict: Verdict, kept: "_Kept | None") -> Pair | None:
    """The pair of a row and what is kept of the other one; None where one of them has no score."""
    if kept is None or kept.score is None or verdict.score is None:
        return None
    cluster = _hash(verdict.question)
    return Pair(verdict, kept.score, verdict.score, cluster == kept.question, cluster)


def _key(verdict: Verdict, evaluator: str, seen: Counter[tuple[str, str]]) -> Key:
    seen[evaluator, verdict.id] += 1
    return evaluator, verdict.id, seen[evaluator, verdict.id]


def _hash(text: str) -> int:
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest()) if text else 0
