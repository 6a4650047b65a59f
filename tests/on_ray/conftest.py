"""One cluster for all tests of a run on Ray: each start takes some 20 s of CPU."""

from collections.abc import Iterator

import pytest
from servers.cluster import RayCluster


@pytest.fixture(scope="session")
def running() -> Iterator[RayCluster]:
    with RayCluster() as running:
        yield running


@pytest.fixture
def cluster(running: RayCluster, monkeypatch: pytest.MonkeyPatch) -> RayCluster:
    """The cluster, and what lets the command into it; the key is with the cluster alone."""
    for name, value in running.environment.items():
        monkeypatch.setenv(name, value)
    return running
