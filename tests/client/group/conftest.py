"""A broker for these tests: short sessions are allowed, and a new group does not wait for more members.

``OTTLA_INTEROP_TARGET=kafka`` runs them against Apache Kafka instead: what fails there is a wrong test, or a wrong
client.
"""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tools.kafka_jars import JarsUnavailable, jars
from tools.kafka_server import QUICK_KAFKA_FLAGS, kafka_server

from ottla import testing
from tests.client.conftest import TARGET
from tests.conftest import WatchServer

PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "100",
    "offsets.topic.num.partitions": "4",
}


@pytest.fixture(scope="session")
def bootstrap(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[str]:
    if TARGET == "ottla":
        with testing.broker(properties=PROPERTIES) as broker:
            yield broker.bootstrap
        return
    try:
        folder = jars()
    except JarsUnavailable as missing:
        pytest.skip(str(missing))
    data = tmp_path_factory.mktemp("kafka")
    with (
        watch_server(kafka_server(data, folder=folder, properties=PROPERTIES, flags=QUICK_KAFKA_FLAGS)) as server,
        server,
    ):
        yield server.bootstrap


@pytest.fixture
def group(new_name: str) -> str:
    return f"group-of-{new_name}"
