"""A real broker as a process, and real clients of other people.

``OTTLA_INTEROP_TARGET=kafka`` runs the very same tests against Apache Kafka: what fails there is a wrong test.
"""

from __future__ import annotations

import itertools
import os
from collections.abc import Iterator, Mapping
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient, NewTopic
from tools.kafka_jars import JarsUnavailable, jars
from tools.recording_proxy import RecordingProxy
from tools.server_process import HOST, free_port

from tests.conftest import WatchServer
from tests.interop.broker import Broker, kafka_broker, ottla_broker
from tests.interop.clients import SECONDS_MAX, eventually
from tests.interop.group_members import STARTS, Member, Start
from tests.interop.java_members import JavaMembers

TARGET = os.environ.get("OTTLA_INTEROP_TARGET", "ottla")


def new_broker(folder: Path, properties: Mapping[str, str] | None = None) -> Broker:
    """A broker of the kind under test over ``folder``, not yet started."""
    if TARGET == "ottla":
        return ottla_broker(folder, properties)
    # After SIGKILL the controller lists the broker again only when its old session is over; 9 s by default. A Kafka
    # beside ours is not killed, and shall lose no session on a machine with other work.
    killed = {"broker.session.timeout.ms": "1000", "broker.heartbeat.interval.ms": "200"}
    try:
        return kafka_broker(folder, jars(), {**killed, **(properties or {})})
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


#: Heartbeats that are quick enough for tests, and sessions that may be as short as a test needs.
GROUP_PROPERTIES = {
    "group.initial.rebalance.delay.ms": "0",
    "group.min.session.timeout.ms": "500",
    "group.consumer.min.heartbeat.interval.ms": "50",
    "group.consumer.heartbeat.interval.ms": "100",
    "group.consumer.min.session.timeout.ms": "500",
    "group.consumer.assignment.interval.ms": "0",
    "offsets.topic.num.partitions": "5",
    "offsets.topic.replication.factor": "1",
}


@pytest.fixture(scope="session")
def group_broker(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Broker]:
    """The broker that tests of consumer groups share; each uses groups and topics of its own.

    Clients reach it by a proxy: when a test fails, what they and the broker have said goes with its failure.
    """
    folder = tmp_path_factory.mktemp("group-broker")
    port = free_port()
    advertised = {"advertised.listeners": f"PLAINTEXT://{HOST}:{port}"}
    shared = new_broker(folder, {**GROUP_PROPERTIES, **advertised})
    proxy = RecordingProxy(port, shared.server.port, folder / "conversation")
    with watch_server(shared.server), shared.server, watch_server(proxy), proxy:
        yield replace(shared, front=proxy)


@pytest.fixture(scope="session")
def group_admin(group_broker: Broker) -> AdminClient:
    return AdminClient({"bootstrap.servers": group_broker.bootstrap, "log_level": 0})


@pytest.fixture(scope="session")
def java_members(kafka_jars: Path) -> Iterator[JavaMembers]:
    with JavaMembers(kafka_jars) as members:
        yield members


@pytest.fixture
def join(request: pytest.FixtureRequest, group_broker: Broker) -> Iterator[Join]:
    """Starts members on the shared broker; those that have not left by the test's end leave then."""
    joining = Join(request, group_broker.bootstrap)
    yield joining
    for member in joining.members:
        if member not in joining.gone:
            member.leave()


class Join:
    def __init__(self, request: pytest.FixtureRequest, bootstrap: str) -> None:
        self.members: list[Member] = []
        self.gone: list[Member] = []
        self._request = request
        self._bootstrap = bootstrap

    def __call__(self, client: str, name: str, group: str, *topics: str, **settings: Any) -> Member:
        start: Start = self._request.getfixturevalue("java_members").start if client == "java" else STARTS[client]
        member = start(name, self._bootstrap, group, topics, **settings)
        self.members.append(member)
        return member

    def leave(self, member: Member) -> None:
        self.gone.append(member)
        member.leave()

    def stay(self, member: Member) -> None:
        self.gone.append(member)
        member.stay()

    @property
    def present(self) -> list[Member]:
        return [member for member in self.members if member not in self.gone]
