"""What per-context verdicts say about the retrieval, summed up record by record."""

import math
from collections.abc import Sequence
from hashlib import blake2b
from typing import NamedTuple

from .case import Case

CUTOFFS = (1, 3, 5, 10)
"""The k of precision@k."""
_TRACKED = 1 << 16


class ContextFact(NamedTuple):
    """One record's verdicts over its contexts, in retrieval order."""

    relevant: tuple[bool, ...]
    texts: tuple[int, ...]
    """64-bit hashes of the contexts' texts, 0 for blank ones."""
    statements: int
    relevant_statements: int


def context_fact(case: Case, numbers: set[int]) -> ContextFact:
    """The fact of a whole record whose statements `numbers` are relevant."""
    return ContextFact(
        relevant=tuple(any(statement.number in numbers for statement in context) for context in case.contexts),
        texts=tuple(map(_hash, case.texts)),
        statements=sum(map(len, case.contexts)),
        relevant_statements=len(numbers),
    )


def _hash(text: str) -> int:
    digest = blake2b(text.encode(errors="surrogatepass"), digest_size=8).digest()
    return int.from_bytes(digest) if text.strip() else 0


def precision_at(relevant: Sequence[bool], k: int) -> float:
    """Relevant contexts among the first k, by k, also where fewer were retrieved (trec_eval's P_k)."""
    return sum(relevant[:k]) / k


def reciprocal_rank(relevant: Sequence[bool]) -> float:
    """1 / rank of the first relevant context, 0 without one (Voorhees, TREC-8 QA track report, 1999)."""
    return 1 / (relevant.index(True) + 1) if True in relevant else 0.0


def average_precision(relevant: Sequence[bool]) -> float:
    """Mean of the precisions at the ranks of the relevant contexts, 0 without one.

    Buckley and Voorhees, SIGIR 2000, with the relevant contexts that were retrieved as all there are:
    what was not retrieved was not judged.
    """
    hits = [rank for rank, is_relevant in enumerate(relevant, start=1) if is_relevant]
    return sum(count / rank for count, rank in enumerate(hits, start=1)) / len(hits) if hits else 0.0


def ndcg(relevant: Sequence[bool]) -> float:
    """Discounted gain, 1 / log2(rank + 1) for a relevant context, by that of the same contexts in the best order.

    Järvelin and Kekäläinen, ACM TOIS 20 (2002) 422, with binary gains and the discount of trec_eval; 0 without a
    relevant context.
    """
    gain = sum(1 / math.log2(rank + 1) for rank, is_relevant in enumerate(relevant, start=1) if is_relevant)
    best = sum(1 / math.log2(rank + 1) for rank in range(1, sum(relevant) + 1))
    return gain / best if best else 0.0


class ContextFigures:
    """Running sums over evaluated records; memory does not grow with them."""

    def __init__(self) -> None:
        self._records = self._no_contexts = self._none_relevant = 0
        self._contexts = self._relevant_contexts = 0
        self._statements = self._relevant_statements = 0
        self._ranks = 0
        self._sums = dict.fromkeys(("context_precision", "mrr", "map", "ndcg", *map(_precision_name, CUTOFFS)), 0.0)
        self._distinct = DistinctContexts()

    def add(self, fact: ContextFact) -> None:
        """Count one record."""
        flags = fact.relevant
        self._records += 1
        self._no_contexts += fact.statements == 0
        self._none_relevant += True not in flags
        self._contexts += len(flags)
        self._relevant_contexts += sum(flags)
        self._statements += fact.statements
        self._relevant_statements += fact.relevant_statements
        self._ranks += flags.index(True) + 1 if True in flags else 0
        sums = self._sums
        sums["context_precision"] += sum(flags) / len(flags) if flags else 0.0
        sums["mrr"] += reciprocal_rank(flags)
        sums["map"] += average_precision(flags)
        sums["ndcg"] += ndcg(flags)
        for k in CUTOFFS:
            sums[_precision_name(k)] += precision_at(flags, k)
        for text, is_relevant in zip(fact.texts, flags, strict=True):
            if text:
                self._distinct.add(text, relevant=is_relevant)

    def result(self) -> dict[str, float | int | None]:
        """Counts, and means over the evaluated records (None without any).

        `first_relevant_rank` is the mean rank, from 1, over the records that have a relevant context;
        `never_relevant` the share of the distinct contexts that were relevant to none of their questions.
        """
        return {
            "no_contexts": self._no_contexts,
            "none_relevant": self._none_relevant,
            "contexts": self._contexts,
            "relevant_contexts": self._relevant_contexts,
            "statements": self._statements,
            "relevant_statements": self._relevant_statements,
            **{name: ratio(total, self._records) for name, total in self._sums.items()},
            "first_relevant_rank": ratio(self._ranks, self._records - self._none_relevant),
            "never_relevant": self._distinct.never_relevant,
        }


class DistinctContexts:
    """Which of the distinct contexts of a log were ever relevant, in bounded memory.

    Exact up to 65,536 of them; beyond, an estimate over a sample of at least half as many, drawn by their hashes
    (adaptive sampling; Flajolet, Computing 43 (1990) 391).
    """

    def __init__(self, tracked: int = _TRACKED) -> None:
        self._most = tracked
        self._mask = 0
        self._relevant: dict[int, bool] = {}

    def add(self, text: int, *, relevant: bool) -> None:
        """Count a context by the hash of its text."""
        if text & self._mask:
            return
        self._relevant[text] = relevant or self._relevant.get(text, False)
        while len(self._relevant) > self._most:
            self._mask = 2 * self._mask + 1
            self._relevant = {text: was for text, was in self._relevant.items() if not text & self._mask}

    @property
    def never_relevant(self) -> float | None:
        """The share that was relevant to no question; None without any context."""
        return ratio(len(self._relevant) - sum(self._relevant.values()), len(self._relevant))


def ratio(part: float, whole: int) -> float | None:
    """The share, None where there is no whole."""
    return part / whole if whole else None


def _precision_name(k: int) -> str:
    return f"precision_at_{k}"
