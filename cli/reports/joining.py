"""The rows of two runs, joined by evaluator and id."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import dataclass, field
from hashlib import blake2b
from typing import NamedTuple

from .rows import ResultsFile, Verdict

Key = int
"""A hash of evaluator, id, and which of the rows of that id it is."""


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
    """A hash of what it has in common with others that tell the same: the id where ids repeat, else the question."""


class Baseline:
    """The rows of the run that others are compared with; they are in memory, without their texts."""

    def __init__(self, results: ResultsFile) -> None:
        self.results = results
        self.sides: dict[str, Side] = {}
        self._rows: dict[Key, _Kept] = {}
        seen: Counter[int] = Counter()
        for verdict in results.verdicts():
            self.sides.setdefault(verdict.evaluator, Side()).add(verdict)
            self._rows[_key(verdict, verdict.evaluator, seen)] = _Kept(verdict.score, _hash(verdict.question))
        self._by_id = len(seen) < len(self._rows)

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
        seen: Counter[int] = Counter()
        for verdict in other.verdicts():
            if verdict.evaluator in names:
                yield verdict, self._rows.get(_key(verdict, names[verdict.evaluator], seen))

    def pair(self, verdict: Verdict, kept: "_Kept | None") -> Pair | None:
        """The pair of a row and what is kept of the one here; None where one of them has no score."""
        if kept is None or kept.score is None or verdict.score is None:
            return None
        question = _hash(verdict.question)
        cluster = _hash(verdict.id) if self._by_id or not question else question
        return Pair(verdict, kept.score, verdict.score, question == kept.question, cluster)


def _key(verdict: Verdict, evaluator: str, seen: Counter[int]) -> Key:
    name = _hash(f"{evaluator}\0{verdict.id}")
    seen[name] += 1
    return name if seen[name] == 1 else _hash(f"{name}\0{seen[name]}")


def _hash(text: str) -> int:
    """64 bits of a text, 0 of none."""
    return int.from_bytes(blake2b(text.encode(errors="replace"), digest_size=8).digest()) if text else 0
