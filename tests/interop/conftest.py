"""A real broker as a process, and real clients of other people.

``OTTLA_INTEROP_TARGET=kafka`` runs the very same tests against Apache Kafka: what fails there is a wrong test.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator
from pathlib import Path

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka_jars import JarsUnavailable, jars
from tools.kafka_tools import KafkaTools

from tests.conftest import WatchServer
from tests.interop.broker import Broker, kafka_broker, ottla_broker
from tests.interop.clients import SECONDS_MAX, eventually

TARGET = os.environ.get("OTTLA_INTEROP_TARGET", "ottla")


def new_broker(folder: Path) -> Broker:
    """A broker of the kind under test over ``folder``, not yet started."""
    if TARGET == "ottla":
        return ottla_broker(folder)
    try:
        return kafka_broker(folder, jars())
    except JarsUnavailable as missing:
        pytest.skip(str(missing))


@pytest.fixture(scope="session")
def broker(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Broker]:
    """The broker that most tests share; each uses topics of its own."""
    shared = new_broker(tmp_path_factory.mktemp("shared-broker"))
    with watch_server(shared.server), shared.server:
        yield shared


@pytest.fixture
def own_broker(tmp_path: Path, watch_server: WatchServer) -> Iterator[Broker]:
    """A broker for one test, not yet started, which the test may stop, kill and start."""
    own = new_broker(tmp_path / "own-broker")
    with watch_server(own.server):
        yield own


@pytest.fixture(scope="session")
def bootstrap(broker: Broker) -> str:
    return broker.bootstrap


@pytest.fixture(scope="session")
def admin(bootstrap: str) -> AdminClient:
    return AdminClient({"bootstrap.servers": bootstrap})


_numbers = itertools.count()


@pytest.fixture
def new_name(request: pytest.FixtureRequest) -> str:
    """A topic name that no other test uses."""
    return f"{request.function.__name__.removeprefix('test_')[:60]}-{next(_numbers)}"


@pytest.fixture
def topic(admin: AdminClient, new_name: str) -> str:
    """A fresh topic of one partition that keeps records of any age."""
    create_topic(admin, new_name)
    return new_name


def create_topic(admin: AdminClient, name: str, partitions: int = 1, **config: str) -> None:
    settings = {"retention.ms": "-1", **{key.replace("_", "."): value for key, value in config.items()}}
    created = admin.create_topics([NewTopic(name, partitions, 1, config=settings)])
    created[name].result(SECONDS_MAX)
    eventually(lambda: name in admin.list_topics(timeout=SECONDS_MAX).topics)


@pytest.fixture(scope="session")
def kafka_tools(kafka_jars: Path) -> Iterator[KafkaTools]:
    """Kafka's command line tools in one warm virtual machine."""
    with KafkaTools(kafka_jars) as tools:
        yield tools
