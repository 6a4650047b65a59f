"""What the rows of a run add up to: distributions, ranks, errors, and the same by the values of a field."""

from array import array
from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, field
from typing import Any

from ....evaluators.errors import UsageError
from ....evaluators.sentences import language_of
from ...records.fields import optional
from ...records.paths import FieldPath
from ...records.where import plain_text
from ...statistics.intervals import Interval, normal_interval, wilson_interval
from .detail import context_verdicts
from .records import Row

LANGUAGE = "language (guessed)"
"""What every record has: the language of its question, by its script and its small words."""
_LANGUAGE = "language"
"""What asks for it, where no field is called so."""
_MOST_VALUES = 12
"""Values of a field that is broken down without being asked for; shown of one that was."""
_MOST_COUNTED = 10_000
_MOST_DEFAULTS = 4
_LONGEST_VALUE = 60
_RECORDS_PER_VALUE = 1.5
_MOST_RANKS = 20


@dataclass(kw_only=True)
class Share:
    """Rows, and the scores among them."""

    rows: int = 0
    scored: int = 0
    total: float = 0.0

    def add(self, score: float | None) -> None:
        """Count a row."""
        self.rows += 1
        if score is not None:
            self.scored += 1
            self.total += score

    @property
    def mean(self) -> float | None:
        """Mean of the scores, None without any."""
        return self.total / self.scored if self.scored else None


@dataclass(kw_only=True)
class Ranks:
    """Contexts by their rank, and how many of them were relevant."""

    contexts: Counter[int] = field(default_factory=Counter)
    relevant: Counter[int] = field(default_factory=Counter)


@dataclass(kw_only=True)
class EvaluatorSurvey:
    """The rows of one evaluator."""

    rows: int = 0
    evaluated: int = 0
    scores: "array[float]" = field(default_factory=lambda: array("d"))
    errors: Counter[str] = field(default_factory=Counter)
    context_counts: Counter[int] = field(default_factory=Counter)
    ranks: Ranks = field(default_factory=Ranks)

    def add(self, row: Row) -> None:
        """Count a row."""
        self.rows += 1
        self.evaluated += row["status"] == "evaluated"
        if row["error"]:
            self.errors[row["error"]["kind"]] += 1
        if row["score"] is not None:
            self.scores.append(row["score"])
        if row["status"] == "evaluated" and (verdicts := context_verdicts(row)) is not None:
            self.context_counts[len(verdicts)] += 1
            for rank, verdict in enumerate(verdicts[:_MOST_RANKS], start=1):
                self.ranks.contexts[rank] += 1
                self.ranks.relevant[rank] += bool(verdict["relevant"])

    @property
    def score(self) -> float | None:
        """Mean of the scores, None without any."""
        return sum(self.scores) / len(self.scores) if self.scores else None

    @property
    def interval(self) -> Interval | None:
        """The 95 % interval of the score, as a run's summary would have it for an evaluator without known range."""
        n, mean = len(self.scores), self.score
        if mean is None:
            return None
        if all(score in (0, 1) for score in self.scores):
            return wilson_interval(sum(self.scores), n)
        variance = sum((score - mean) ** 2 for score in self.scores) / max(1, n - 1)
        return normal_interval(mean, variance, n)


@dataclass(kw_only=True)
class Breakdown:
    """Rows by the values of a field."""

    name: str
    wanted: bool
    """Whether it was asked for."""
    shares: dict[str, dict[str, Share]] = field(default_factory=dict)
    """By value, then by evaluator."""
    too_many: bool = False
    """Whether it has more values than can be told apart."""

    def add(self, value: str, rows: Sequence[Row]) -> None:
        """Count a record."""
        if value not in self.shares and len(self.shares) >= (_MOST_COUNTED if self.wanted else _MOST_VALUES):
            self.too_many = True
            return
        by_evaluator = self.shares.setdefault(value, {})
        for row in rows:
            by_evaluator.setdefault(row["evaluator"], Share()).add(row["score"])

    @property
    def values(self) -> list[str]:
        """The most frequent values, in their order."""
        rows = {value: sum(share.rows for share in shares.values()) for value, shares in self.shares.items()}
        return sorted(sorted(rows, key=lambda value: -rows[value])[:_MOST_VALUES])

    @property
    def left_out(self) -> int:
        """Further values."""
        return len(self.shares) - len(self.values)


class Survey:
    """All rows of a run, record by record."""

    def __init__(self, by: Sequence[str]) -> None:
        """`by` are the fields to break down; none for those that have a few values. Raises UsageError."""
        self.records = 0
        self.evaluators: dict[str, EvaluatorSurvey] = {}
        self.usage: Counter[str] = Counter()
        self.cost: float | None = 0.0
        """In USD, of the replies behind all rows; None where that of one is not known."""
        self._paths = {name: FieldPath(name) for name in by}
        self._breakdowns = {name: Breakdown(name=name, wanted=True) for name in by}
        self._breakdowns.setdefault(LANGUAGE, Breakdown(name=LANGUAGE, wanted=False))
        self._chosen = bool(by)

    def add(self, rows: Sequence[Row]) -> None:
        """Count a record."""
        self.records += 1
        for row in rows:
            self.evaluators.setdefault(row["evaluator"], EvaluatorSurvey()).add(row)
            self.usage.update({name: count for name, count in (row.get("usage") or {}).items() if count})
            cost = row.get("cost")
            self.cost = None if self.cost is None or cost is None else self.cost + cost
        for name, value in self.values_of(rows[0]).items():
            breakdown = self._breakdowns.setdefault(name, Breakdown(name=name, wanted=False))
            breakdown.add(value, rows)

    def values_of(self, row: Row) -> dict[str, str]:
        """The values of a record's fields, as they are counted."""
        if self._chosen:
            found = {name: field_of(row, path) for name, path in self._paths.items()}
            values = {name: plain_text(value) for name, value in found.items() if value is not None}
        else:
            values = plain_fields(row)
        return {**values, LANGUAGE: language_of(row["question"])}

    def breakdowns(self) -> list[Breakdown]:
        """Those that were asked for, else the first few that tell groups apart. Raises UsageError."""
        if self._chosen:
            return [self._wanted(name) for name in self._paths]
        return [breakdown for breakdown in self._breakdowns.values() if _tells(breakdown)][:_MOST_DEFAULTS]

    def _wanted(self, name: str) -> Breakdown:
        found = self._breakdowns[name]
        if found.shares or not self.records:
            return found
        if name == _LANGUAGE:
            return self._breakdowns[LANGUAGE]
        raise UsageError(f"--by {name}: no row has this field; carry it along with ctxrel run --keep {name}")

    def filters(self) -> dict[str, list[str]]:
        """The fields that records can be filtered by, with their values: those broken down, and the language."""
        shown = {breakdown.name: breakdown.values for breakdown in self.breakdowns()}
        languages = self._breakdowns[LANGUAGE].values
        return {**shown, LANGUAGE: languages} if len(languages) > 1 else shown


def _tells(breakdown: Breakdown) -> bool:
    """Whether a field divides the records into groups, and is no mere name of each."""
    counts = [max(share.rows for share in shares.values()) for shares in breakdown.shares.values()]
    return not breakdown.too_many and len(counts) > 1 and sum(counts) >= _RECORDS_PER_VALUE * len(counts)


def field_of(row: Row, path: FieldPath) -> object:
    """A field that a row carries, None where it has none of that name."""
    kept, whole = row.get("kept"), row.get("input")
    if isinstance(kept, dict) and path.text in kept:
        return kept[path.text]
    return optional(path, whole) if isinstance(whole, dict) else None


def plain_fields(row: Row) -> dict[str, str]:
    """The carried fields that could name a group: short texts, whole numbers, true and false."""
    carried: list[tuple[str, Any]] = []
    for name in ("kept", "input"):
        if isinstance(row.get(name), dict):
            carried += row[name].items()
    return {name: plain_text(value) for name, value in carried if _is_plain(value)}


def _is_plain(value: object) -> bool:
    return isinstance(value, (bool, int)) or (isinstance(value, str) and 0 < len(value) <= _LONGEST_VALUE)


def survey_of(records: Iterable[Sequence[Row]], by: Sequence[str]) -> Survey:
    """The survey of all records. Raises UsageError."""
    survey = Survey(by)
    for rows in records:
        survey.add(rows)
    return survey
