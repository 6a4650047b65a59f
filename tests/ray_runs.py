"""Runs on Ray, and what becomes of them."""

import os
import signal
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.parquet as pq
from conftest import Record
from servers.cluster import RayCluster
from servers.loopback import MODEL, Answer, LoopbackServer, Seen, judge_by_hash
from servers.processes import process_at

IN_FLIGHT = 8


def records(count: int, *, first: int = 0) -> list[Record]:
    return [
        {
            "id": f"r-{number}",
            "question": f"What is item {number}?",
            "contexts": [f"Item {number} is a thing. It weighs {number} g.", f"Nothing of {number} here."],
        }
        for number in range(first, first + count)
    ]


def rows_of(folder: Path) -> list[dict[str, Any]]:
    """The rows of all files, by index."""
    rows = pa.concat_tables([pq.read_table(path) for path in sorted((folder / "results").iterdir())]).to_pylist()
    return sorted(rows, key=lambda row: row["index"])


def on_ray(
    cluster: RayCluster, server: LoopbackServer, *arguments: str | Path, model: str = MODEL, workers: int = 2
) -> list[str]:
    """The command's arguments."""
    where = ["--engine", "ray", "--ray-address", cluster.address, "--ray-workers", str(workers)]
    judge = ["-m", model, "--base-url", server.url, "--api-key-env", "RAY_TEST_KEY", "-c", str(IN_FLIGHT)]
    return ["run", *map(str, arguments), *judge, *where]


class Killer:
    """Answers as the endpoint does, and kills whoever asks what it is to be killed for."""

    def __init__(self, deadly: Callable[[Seen], bool]) -> None:
        self.killed = 0
        self._deadly = deadly

    def __call__(self, seen: Seen) -> Answer:
        if self._deadly(seen) and (process := process_at(seen.peer)):
            os.kill(process, signal.SIGKILL)
            self.killed += 1
        answer = judge_by_hash(seen)
        return Answer(body=answer.body, delay=0.01)
