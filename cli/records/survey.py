"""What a whole log holds, counted record by record."""

import re
import unicodedata
from array import array
from collections import Counter
from functools import cache
from hashlib import blake2b
from statistics import median

from ...evaluators.jsontext import dumps_anything
from ...evaluators.record import Record
from ...evaluators.tokens import most_tokens
from .fields import Needs

LONG_TOKENS = 8_000
"""Of a record that is called long."""
_MOST_REASONS = 20
_LETTERS = 40
"""Of a question's beginning, by which its script is told."""
_PARTS = 1024
"""Of the hashes, so that a set of one part is small."""
_NUMBER = re.compile(r"\d+")


class Reason:
    """Why some records cannot be used."""

    def __init__(self, first: str) -> None:
        """`first` is what is wrong with the first one of them, with its place."""
        self.first = first
        self.n = 0


class Survey:
    """Counts over a log; memory grows by 16 bytes for each record, for what stands in it twice."""

    def __init__(self, needs: Needs) -> None:
        """`needs` tells whether there are contexts to count."""
        self.records = 0
        self.without_contexts = 0
        """Records without any text in their contexts: scored 0 without a request."""
        self.blank_contexts = 0
        """Contexts without text, of records that have others."""
        self.text_bytes = 0
        self.reasons: dict[str, Reason] = {}
        """Why records cannot be used, by the reason without its numbers."""
        self.unusable = 0
        self.long = 0
        self.longest = (0, "")
        """Tokens of the longest record, and where it stands."""
        self.scripts: Counter[str] = Counter()
        """Records by the script of their question."""
        self._needs = needs
        self._contexts: Counter[int] = Counter()
        self._contents = _Repeats()
        self._ids = _Repeats()

    def add(self, record: Record, *, has_id: bool) -> None:
        """Count a record; `has_id` tells that its id is its own and not its position."""
        self.records += 1
        if has_id and not record.problem:
            self._ids.add(record.id)
        problems = [record.problem] if record.problem else list(record.problems.values())
        self.unusable += bool(problems)
        for problem in problems:
            self._note(problem, record.where)
        if record.problem:
            return
        self._contents.add((record.question, record.contexts, record.answer, record.fields, problems))
        self._measure(record)
        if "contexts" in self._needs and "contexts" not in record.problems:
            self._count_contexts(record)

    @property
    def contexts(self) -> dict[str, float] | None:
        """The fewest, the middle and the most contexts of a record; None where there are none to count."""
        if not self._contexts:
            return None
        return {
            "min": min(self._contexts),
            "median": _middle(self._contexts),
            "max": max(self._contexts),
        }

    @property
    def repeated_ids(self) -> int | None:
        """Records whose id an earlier one has as well; None where the records have none of their own."""
        return self._ids.result() if self._ids else None

    @property
    def repeated_records(self) -> int:
        """Records that are the same as an earlier one, up to the id."""
        return self._contents.result()

    def _note(self, problem: str, where: str) -> None:
        reason = _NUMBER.sub("N", problem.removeprefix(f"{where}: "))
        if reason not in self.reasons and len(self.reasons) >= _MOST_REASONS:
            reason = "other reasons"
        self.reasons.setdefault(reason, Reason(problem)).n += 1

    def _count_contexts(self, record: Record) -> None:
        self._contexts[len(record.contexts)] += 1
        filled = sum(bool(text.strip()) for text in record.contexts)
        if filled:
            self.blank_contexts += len(record.contexts) - filled
        else:
            self.without_contexts += 1

    def _measure(self, record: Record) -> None:
        text = f"{record.question}{record.answer or ''}{''.join(record.contexts)}"
        self.text_bytes += len(text.encode())
        tokens = most_tokens(text)
        self.long += tokens > LONG_TOKENS
        if tokens > self.longest[0]:
            self.longest = (tokens, record.where)
        if scripts := Counter(map(_script, filter(str.isalpha, record.question[:_LETTERS]))):
            self.scripts[max(scripts, key=scripts.__getitem__)] += 1


class _Repeats:
    """Counts the values that came before; 8 bytes each, in parts of which one at a time is looked through."""

    def __init__(self) -> None:
        self._parts = [array("Q") for _ in range(_PARTS)]

    def add(self, value: object) -> None:
        """One more of them."""
        hashed = int.from_bytes(blake2b(dumps_anything(value), digest_size=8).digest())
        self._parts[hashed % _PARTS].append(hashed)

    def result(self) -> int:
        """How many of them came before."""
        return sum(len(part) - len(set(part)) for part in self._parts)

    def __bool__(self) -> bool:
        return any(self._parts)


def _middle(counts: Counter[int]) -> float:
    """The median of numbers that are given by how often each of them stands there."""
    total = sum(counts.values())
    places = {(total - 1) // 2, total // 2}
    found = []
    before = 0
    for number, count in sorted(counts.items()):
        found += [number for place in places if before <= place < before + count]
        before += count
    return median(found)


@cache
def _script(letter: str) -> str:
    """`Latin`, `Hangul`, `Han`: by the first word of a letter's name."""
    word = unicodedata.name(letter, "other").split()[0]
    return "Han" if word == "CJK" else word.capitalize()
