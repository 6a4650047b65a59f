"""Judges other than a chat, on Ray."""

from collections.abc import Callable
from pathlib import Path

import pyarrow.parquet as pq
import pytest
from conftest import RunCommand, read_summary
from ray_runs import on_ray, records, rows_of
from servers.cluster import MARKS, RayCluster
from servers.decisions import LUNA, MODELS, decide_by_hash, deciding
from servers.loopback import LoopbackServer

pytestmark = [*MARKS, pytest.mark.filterwarnings("default")]
WriteLog = Callable[..., Path]


def test_decisions(cluster: RayCluster, ctxrel: RunCommand, write_log: WriteLog, tmp_path: Path) -> None:
    """Decisions have the rows and the figures that they have in one process, and each record is asked once."""
    log = write_log(records(90))
    with LoopbackServer(deciding(decide_by_hash), models=MODELS) as luna:
        asked = ["--api", "decisions"]
        alone = ctxrel("run", log, "-o", "alone", "-m", LUNA, "--base-url", luna.url, "--format", "parquet", *asked)
        assert alone.returncode == 0, alone.stderr
        done = ctxrel(*on_ray(cluster, luna, log, "-o", "ray", *asked, model=LUNA), timeout=300)
        assert done.returncode == 0, done.stderr
        assert [seen.path for seen in luna.seen] == ["/v1/decisions"] * 180
    assert rows_of(tmp_path / "ray") == pq.read_table(tmp_path / "alone" / "results.parquet").to_pylist()
    one, other = read_summary(tmp_path / "alone"), read_summary(tmp_path / "ray")
    for name in ("status", "evaluators", "judge", "input", "requests", "tokens", "setting"):
        assert other[name] == one[name], name
