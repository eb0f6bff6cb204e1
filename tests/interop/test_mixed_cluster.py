"""A broker of Apache Kafka 3.9 and one of ours in one cluster, over our tree: either decides, leads and follows."""

from __future__ import annotations

import shutil
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tools.java import java_command
from tools.kafka_jars import BROKER_39, JarsUnavailable, classpath, jars
from tools.server_process import HOST, ServerProcess, free_port

from ottla.model import ErrorCode
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.broker.test_cluster_processes import SECONDS_MAX, Processes
from tests.searches import slow
from tests.server.conftest import Peer

KAFKA, OURS = 9, 1


@pytest.fixture
def mixed(tmp_path: Path) -> Iterator[Processes]:
    if shutil.which("java") is None:
        pytest.skip("Java is not installed")
    try:
        folder = jars(BROKER_39)
    except JarsUnavailable as missing:
        pytest.skip(str(missing))
    made = Processes(tmp_path)
    port = made.ports[KAFKA] = free_port()
    config = tmp_path / "kafka.properties"
    config.write_text(
        f"broker.id={KAFKA}\n"
        f"listeners=PLAINTEXT://{HOST}:{port}\n"
        f"log.dirs={tmp_path}/kafka-logs\n"
        f"zookeeper.connect={HOST}:{made.tree_port}\n"
        "zookeeper.session.timeout.ms=6000\n"
    )
    command = java_command(classpath(folder), "kafka.Kafka", str(config), flags=("-Xmx300m",))
    made.brokers[KAFKA] = ServerProcess(command, port=port, log=tmp_path / "kafka.log")
    try:
        yield made
    finally:
        for broker in made.brokers.values():
            broker.kill()
        made.tree.kill()


def until(found: Callable[[], bool], what: str) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not found():
        assert time.monotonic() < deadline, what
        time.sleep(0.05)


def brokers_of(mixed: Processes, asked: int) -> set[int]:
    return {broker.node_id for broker in mixed.metadata(asked).brokers}


def in_sync(mixed: Processes, asked: int, topic: str) -> set[int]:
    (found,) = mixed.metadata(asked, topic).topics
    return {replica for partition in found.partitions for replica in partition.isr_nodes}


def producer_id(mixed: Processes, asked: int) -> int:
    """A new one, which the controller has given the broker that is asked."""
    found: list[int] = []

    def is_given() -> bool:
        request = InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=60_000)
        with Peer(mixed.ports[asked]) as peer:
            answer = peer.ask(request, 4, InitProducerIdResponse)
        found.append(answer.producer_id)
        return answer.error_code == ErrorCode.NONE

    until(is_given, f"broker {asked} gives producers ids")
    return found[-1]


@pytest.mark.java
@pytest.mark.parametrize(
    ("first", "second"),
    [pytest.param(OURS, KAFKA, id="ours-decides"), slow(pytest.param(KAFKA, OURS, id="kafka-decides"))],
)
def test_either_is_controller_leader_and_follower(mixed: Processes, first: int, second: int) -> None:
    mixed.start_tree()
    mixed.brokers[first].start()
    mixed.brokers[second].start()
    assert mixed.metadata(first).controller_id == first
    until(lambda: mixed.metadata(second).controller_id == first, "the second one knows the controller")
    until(lambda: all(brokers_of(mixed, asked) == {KAFKA, OURS} for asked in (KAFKA, OURS)), "both know both")
    # Ours forwards what it is asked; in ZooKeeper mode Kafka's clients go to the controller themselves.
    assert mixed.create(OURS, "led-by-kafka", KAFKA, OURS) is ErrorCode.NONE
    assert mixed.create(first, "led-by-ours", OURS, KAFKA) is ErrorCode.NONE
    for topic, leader in (("led-by-kafka", KAFKA), ("led-by-ours", OURS)):
        for asked in (KAFKA, OURS):
            until(lambda: in_sync(mixed, asked, topic) == {KAFKA, OURS}, f"{topic} is known to {asked}")  # noqa: B023
            assert mixed.must_produce(asked, topic) == leader
    # Whoever has laid the tree out, Kafka's controller finds no block of producer ids yet.
    given = [producer_id(mixed, asked) for asked in (KAFKA, OURS)] if first == KAFKA else []
    # The controller stops: the other one takes everything over, its leaderships too.
    mixed.brokers[first].stop()
    until(lambda: mixed.metadata(second).controller_id == second, "the second one is the controller")
    for topic in ("led-by-kafka", "led-by-ours"):
        assert mixed.must_produce(second, topic) == second
    given.append(producer_id(mixed, second))
    assert len(set(given)) == len(given)
    mixed.brokers[first].start()
    for topic in ("led-by-kafka", "led-by-ours"):
        until(lambda: in_sync(mixed, second, topic) == {KAFKA, OURS}, f"{topic} is in sync again")  # noqa: B023
