"""A real ensemble of three for the tests of this folder, and sessions with it."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools.kafka_jars import JarsUnavailable
from tools.zookeeper_server import ZooKeeperEnsemble


@pytest.fixture(scope="session")
def ensemble(tmp_path_factory: pytest.TempPathFactory) -> Iterator[ZooKeeperEnsemble]:
    """Three servers that all tests of a process share: a test that stops one starts it again."""
    try:
        made = ZooKeeperEnsemble(tmp_path_factory.mktemp("zookeeper"))
    except JarsUnavailable as missing:
        pytest.skip(str(missing))
    with made:
        yield made


@pytest.fixture
def own_ensemble(ensemble: ZooKeeperEnsemble) -> Iterator[ZooKeeperEnsemble]:
    """The same, for a test that stops and starts its servers: whole again afterwards."""
    yield ensemble
    ensemble.start()
