"""A run over several nodes, one of which dies."""

import os
import signal
import threading
from collections.abc import Callable
from pathlib import Path

import pytest
from conftest import RunCommand
from ray_runs import IN_FLIGHT, on_ray, records, rows_of
from servers.cluster import MARKS, RayCluster
from servers.loopback import Answer, LoopbackServer, Seen, judge_by_hash

pytestmark = [*MARKS, pytest.mark.filterwarnings("default")]
WriteLog = Callable[..., Path]


def test_node_killed(
    cluster: RayCluster, ctxrel: RunCommand, server: LoopbackServer, write_log: WriteLog, tmp_path: Path
) -> None:
    """A node that dies in the middle takes its workers with it: all rows are there, and no more than was in flight is asked twice."""
    node = cluster.add_node()
    kill = threading.Lock()

    def script(seen: Seen) -> Answer:
        if len(server.seen) >= 700 and kill.acquire(blocking=False):
            os.killpg(node.pid, signal.SIGKILL)
        return Answer(body=judge_by_hash(seen).body, delay=0.02)

    server.script = script
    try:
        done = ctxrel(*on_ray(cluster, server, write_log(records(1500)), workers=4), timeout=400)
        assert kill.locked()
    finally:
        if kill.acquire(blocking=False):
            os.killpg(node.pid, signal.SIGKILL)
        node.wait(30)
    assert done.returncode == 0, done.stderr
    rows = rows_of(tmp_path / "log.ctxrel")
    assert [row["id"] for row in rows] == [f"r-{n}" for n in range(1500)]
    assert {row["status"] for row in rows} == {"evaluated"}
    assert 1500 <= len(server.seen) <= 1500 + IN_FLIGHT
