"""What a start takes, best of five in turn: `python tests/benchmarks/startup.py [--rounds N]`."""

import argparse
import shutil
import sys
import tempfile
from importlib.util import find_spec
from pathlib import Path

sys.path.insert(0, str(Path(__file__).parent.parent))
from benchmarks.measuring import Cost, ctxrel, heading, load, measure, write_log
from servers.fast import FastServer

RECORDS = 10
CONTEXT_BYTES = 2000


def main() -> None:
    """Print the table."""
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--rounds", type=int, default=5)
    rounds: int = parser.parse_args().rounds
    openai = find_spec("openai") is not None
    print(heading("typer", "aiohttp", *(["openai"] if openai else [])))
    with tempfile.TemporaryDirectory() as name, FastServer() as server:
        log, output = Path(name) / "log.jsonl", Path(name) / "out"
        write_log(log, RECORDS, context_bytes=CONTEXT_BYTES)
        commands = {
            "python -c pass": [sys.executable, "-c", "pass"],
            "ctxrel --help": [sys.executable, "-m", "ctxrel.cli", "--help"],
            "ctxrel run, 10 records, offline": ctxrel(log, output),
            "ctxrel run, 10 records, endpoint": ctxrel(log, output, url=server.url()),
        }
        if openai:
            commands["python -c 'import openai'"] = [sys.executable, "-c", "import openai"]
        costs: dict[str, list[Cost]] = {what: [] for what in commands}
        for _ in range(rounds + 1):  # the first fills the caches of the disk and is not counted
            for what, command in commands.items():
                costs[what].append(measure(command))
                shutil.rmtree(output, ignore_errors=True)
    print(f"{'':34} {'wall s':>7} {'CPU s':>7} {'peak MB':>8}")
    for what, measured in costs.items():
        wall, cpu, peak = map(min, zip(*measured[1:], strict=True))
        print(f"{what:34} {wall:7.2f} {cpu:7.2f} {peak:8.1f}")
    print(f"best of {rounds}; {load()} at the end")


if __name__ == "__main__":
    main()
