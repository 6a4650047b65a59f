"""The threshold for `--api decisions` from labels: `python tests/benchmarks/thresholds.py LABELLED.jsonl [-- RUN OPTIONS]`.

A labelled log is JSON Lines with `question`, `contexts` and `label` (1: something is relevant, 0: nothing is). It is
judged by context_relevance, with the options after `--`. The table has the agreement at 0.5, at the threshold tuned on
all records, and at thresholds tuned on one half and measured on the other, which is the figure to believe. The
tuned one goes into an evaluator's YAML: `extends: context_relevance` and `decisions: {threshold: …}`.
"""

import json
import subprocess
import sys
import tempfile
from pathlib import Path

from ctxrel.evaluators.decisions.threshold import Agreement, agreement_at, record_probability, tune_threshold

Pair = tuple[float, bool]


def judged(log: Path, options: list[str]) -> list[Pair]:
    """Probability and label of each record that could be judged."""
    labels = [json.loads(line)["label"] for line in log.open(encoding="utf-8")]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ctxrel.cli", "run", str(log), "--api", "decisions", "-o", folder, *options]
        subprocess.run(command, check=True)
        rows = [json.loads(line) for line in (Path(folder) / "results.jsonl").open(encoding="utf-8")]
    return [(record_probability(row), labels[row["index"]] == 1) for row in rows if row["status"] == "evaluated"]


def columns(pairs: list[Pair]) -> tuple[list[float], list[bool]]:
    """Probabilities and labels."""
    return [probability for probability, _ in pairs], [label for _, label in pairs]


def crossed(pairs: list[Pair]) -> list[Agreement]:
    """Agreement of each half at the threshold that the other half asks for."""
    halves = pairs[::2], pairs[1::2]
    return [
        agreement_at(tune_threshold(*columns(other)).threshold, *columns(half))
        for half, other in (halves, halves[::-1])
    ]


def main() -> None:
    """Print the table."""
    arguments = sys.argv[1:]
    place = arguments.index("--") if "--" in arguments else len(arguments)
    for log in map(Path, arguments[:place]):
        pairs = judged(log, arguments[place + 1 :])
        lines = [("as it is", agreement_at(0.5, *columns(pairs))), ("tuned on all", tune_threshold(*columns(pairs)))]
        lines += [("tuned on the other half", found) for found in crossed(pairs)]
        print(f"{log.stem}: {len(pairs)} records\n{'':24} {'threshold':>9} {'accuracy':>8} {'kappa':>6}")
        for name, found in lines:
            print(f"{name:24} {found.threshold:9.3f} {found.accuracy:8.3f} {found.kappa:6.2f}")


if __name__ == "__main__":
    main()
