"""Rates of tokens by script, and how far estimates are off: `python tests/benchmarks/token_rates.py LABELLED.jsonl...`.

Each log is rendered as requests of context relevance, or of faithfulness where it has answers. The first table is the
error of the rates in use; the rates below it are fitted anew to every other record (least squares of the relative
error, no rate below zero, every log and language of the same weight), with their error on the records in between.
"""

import argparse
import json
import sys
from collections.abc import Iterator, Sequence
from itertools import groupby
from pathlib import Path
from typing import NamedTuple

import numpy as np

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import heading
from servers.tokens import NAME, count_tokens

from ctxrel.evaluators import load_evaluator
from ctxrel.evaluators.costs import tokens
from ctxrel.evaluators.record import Record

_CLASSES = [*tokens._ASCII, *tokens._OTHERS]
_ROUNDS = 4000


class Text(NamedTuple):
    """A request's user message."""

    log: str
    counts: list[int]
    """Characters of each class."""
    tokens: int
    estimate: float


def main() -> None:
    """Print the tables."""
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("logs", type=Path, nargs="+")
    texts = sorted((text for log in parser.parse_args().logs for text in read(log)), key=lambda text: text.log)
    print(heading("numpy"))
    print(f"{NAME}; {len(texts)} requests\n\nrates in use")
    show_errors(texts, [text.estimate for text in texts])
    fitting, rest = texts[::2], texts[1::2]
    rates = fit(fitting)
    print("\nrates fitted to every other request, errors on those in between")
    for (members, rate), fitted in zip(_CLASSES, rates, strict=True):
        print(f"  {members[:1].hex()}-{members[-1:].hex()}  {rate:5.2f} in use  {fitted:6.3f} fitted")
    show_errors(rest, [float(np.dot(rates, text.counts)) for text in rest])


def read(log: Path) -> Iterator[Text]:
    """The user messages of a log, by language where it has several."""
    evaluators = {True: load_evaluator("faithfulness"), False: load_evaluator("context_relevance")}
    for number, line in enumerate(log.read_text(encoding="utf-8").splitlines()):
        row = json.loads(line)
        record = Record(
            index=number, id=str(number), where=log.name, question=row["question"], contexts=tuple(row["contexts"]),
            answer=row.get("answer"),
        )  # fmt: skip
        request = evaluators["answer" in row].task(record).request()
        if request is None:
            continue
        data = request.user.encode()
        counts = [len(data.translate(None, bytes(set(range(256)) - set(members)))) for members, _ in _CLASSES]
        yield Text(
            f"{log.stem} {row.get('lang', '')}", counts, count_tokens(request.user), tokens.likely_tokens(request.user)
        )


def fit(texts: Sequence[Text]) -> Sequence[float]:
    """Rates by coordinate descent; those of classes that hardly occur say nothing."""
    sizes = {name: len(list(group)) for name, group in groupby(texts, key=lambda text: text.log)}
    weights = np.array([1 / (text.tokens * np.sqrt(sizes[text.log])) for text in texts])
    matrix = np.array([text.counts for text in texts], float) * weights[:, None]
    goal = np.array([text.tokens for text in texts], float) * weights
    square, product = matrix.T @ matrix, matrix.T @ goal
    rates = np.full(len(_CLASSES), 0.3)
    for _ in range(_ROUNDS):
        for place in range(len(rates)):
            if square[place, place] > 0:
                step = (square[place] @ rates - product[place]) / square[place, place]
                rates[place] = max(0.0, rates[place] - step)
    return [float(rate) for rate in rates]


def show_errors(texts: Sequence[Text], estimates: Sequence[float]) -> None:
    """A line for each log: the error of the sum, and that of a single request."""
    print(f"{'log':32} {'requests':>8} {'chars/token':>11} {'sum':>7} {'mean of one':>11} {'worst':>6}")
    pairs = list(zip(texts, estimates, strict=True))
    for name, group in groupby(pairs, key=lambda pair: pair[0].log):
        found = list(group)
        actual = np.array([text.tokens for text, _ in found], float)
        guessed = np.array([estimate for _, estimate in found])
        size = sum(sum(text.counts) for text, _ in found)
        one = np.abs(guessed / actual - 1)
        print(
            f"{name:32} {len(found):8} {size / actual.sum():11.2f} {guessed.sum() / actual.sum() - 1:+7.1%} "
            f"{one.mean():11.1%} {one.max():6.1%}"
        )


if __name__ == "__main__":
    main()
