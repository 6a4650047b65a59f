"""Agreement of a judge with human labels: `python tests/benchmarks/agreement.py LABELLED.jsonl... [-- RUN OPTIONS]`.

A labelled log is JSON Lines with `id`, `question`, `contexts` and `label` (1: something is relevant, 0: nothing is), or
with `answer` and `faithful` (1: the contexts support the answer); then a score of 0.5 or more counts as faithful.
Public sets of these kinds: ClapNQ, MIRACL and NoMIRACL; MTRAG and BEGIN. Options after `--` go to `ctxrel run`; without
any the offline judge is measured.
"""

import json
import subprocess
import sys
import tempfile
from importlib.metadata import version
from pathlib import Path

FAITHFUL = 0.5
"""The share of supported statements from which an answer counts as faithful."""


def agreement(pairs: list[tuple[int, int]]) -> tuple[float, float]:
    """Accuracy, and Cohen's kappa (Educ. Psychol. Meas. 20 (1960) 37) of binary pairs; 0 where chance explains all."""
    n = len(pairs)
    observed = sum(label == verdict for label, verdict in pairs) / n
    labels, verdicts = sum(label for label, _ in pairs) / n, sum(verdict for _, verdict in pairs) / n
    expected = labels * verdicts + (1 - labels) * (1 - verdicts)
    return observed, (observed - expected) / (1 - expected) if expected < 1 else 0.0


def measure(log: Path, options: list[str]) -> str:
    """A line of the table."""
    records = [json.loads(line) for line in log.open(encoding="utf-8")]
    about_answers = all(record.get("faithful") is not None for record in records)
    labels = [record["faithful" if about_answers else "label"] for record in records]
    options = [*options, "-e", "faithfulness" if about_answers else "context_relevance"]
    with tempfile.TemporaryDirectory() as folder:
        command = [sys.executable, "-m", "ctxrel.cli", "run", str(log), "-o", folder, "--progress", "none", *options]
        subprocess.run(command, check=True)
        rows = [json.loads(line) for line in (Path(folder) / "results.jsonl").open(encoding="utf-8")]
        seconds = json.loads((Path(folder) / "summary.json").read_text(encoding="utf-8"))["timings"]["seconds"]
    least = FAITHFUL if about_answers else 1
    pairs = [(labels[row["index"]], int(row["score"] >= least)) for row in rows if row["status"] == "evaluated"]
    accuracy, kappa = agreement(pairs)
    return f"{log.stem:24} {len(rows):7} {len(pairs):9} {accuracy:8.3f} {kappa:6.2f} {1000 * seconds / len(rows):9.2f}"


def main() -> None:
    """Print the table."""
    arguments = sys.argv[1:]
    place = arguments.index("--") if "--" in arguments else len(arguments)
    logs, options = arguments[:place], arguments[place + 1 :]
    print(f"ctxrel {version('ctxrel')}, {' '.join(options) or '--model offline'}")
    print(f"{'set':24} {'records':>7} {'evaluated':>9} {'accuracy':>8} {'kappa':>6} {'ms/record':>9}")
    for log in logs:
        print(measure(Path(log), options or ["--model", "offline"]))


if __name__ == "__main__":
    main()
