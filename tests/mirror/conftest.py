"""Two brokers of ours, each a cluster of its own, for tests that are coroutines."""

from __future__ import annotations

from collections.abc import Iterator

import pytest

from ottla.testing.in_process import InProcessBroker
from tests.client.conftest import pytest_pyfunc_call
from tests.mirror.flows import Clusters

__all__ = ["pytest_pyfunc_call"]

#: A new group does not wait for others, members are missed soon, topics come from whoever creates them, what can be
#: compacted is, at once, and records of years ago are kept: retention is looked at every five minutes.
PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "auto.create.topics.enable": "false",
    "log.cleaner.backoff.ms": "50",
    "log.retention.ms": "-1",
}


@pytest.fixture(scope="session")
def source_broker() -> Iterator[InProcessBroker]:
    with InProcessBroker(properties=PROPERTIES) as running:
        yield running


@pytest.fixture(scope="session")
def target_broker() -> Iterator[InProcessBroker]:
    with InProcessBroker(properties=PROPERTIES) as running:
        yield running


@pytest.fixture
def clusters(source_broker: InProcessBroker, target_broker: InProcessBroker) -> Clusters:
    return Clusters(source_broker.bootstrap, target_broker.bootstrap)
