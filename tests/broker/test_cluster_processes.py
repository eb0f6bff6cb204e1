"""Three brokers and their tree as processes: a client of each sees one cluster, also when the controller is killed."""

from __future__ import annotations

import sys
import time
from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.server.conftest import Peer
from tools.server_process import HOST, ServerProcess, free_port

from ottla.model import ErrorCode
from ottla.protocol.generated.create_topics import (
    CreatableReplicaAssignment,
    CreatableTopic,
    CreateTopicsRequest,
    CreateTopicsResponse,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic, MetadataResponse
from ottla.protocol.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.record import Record, encode_batch

SECONDS_MAX = 60.0


class Processes:
    def __init__(self, folder: Path) -> None:
        self.tree_port = free_port()
        python = [sys.executable, "-m", "ottla"]
        self.tree = ServerProcess(
            [*python, "tree", "--dir", str(folder / "tree"), "--listen", f"{HOST}:{self.tree_port}"],
            port=self.tree_port,
            log=folder / "tree.log",
        )
        self.ports = {number: free_port() for number in (1, 2, 3)}
        self.brokers: dict[int, ServerProcess] = {}
        for number, port in self.ports.items():
            properties = folder / f"{number}.properties"
            properties.write_text(
                f"broker.id={number}\n"
                f"listeners=PLAINTEXT://{HOST}:{port}\n"
                f"log.dirs={folder}/logs-{number}\n"
                f"zookeeper.connect={HOST}:{self.tree_port}\n"
                # The tree ends the session of a killed one as soon as its connection is gone: nobody waits for this.
                "zookeeper.session.timeout.ms=60000\n"
            )
            self.brokers[number] = ServerProcess(
                [*python, "broker", "--config", str(properties)], port=port, log=folder / f"{number}.log"
            )

    def start_tree(self) -> None:
        deadline = self.tree.launch() + SECONDS_MAX
        while b"is listening" not in self.tree.log.read_bytes():
            assert time.monotonic() < deadline, self.tree.log_tail()

    def metadata(self, number: int, *topics: str) -> MetadataResponse:
        with Peer(self.ports[number]) as peer:
            request = MetadataRequest(
                topics=[MetadataRequestTopic(name=name) for name in topics], allow_auto_topic_creation=False
            )
            answer: MetadataResponse = peer.ask(request, 9, MetadataResponse)
            return answer

    def create(self, number: int, name: str, *replicas: int) -> ErrorCode:
        placed = [CreatableReplicaAssignment(partition_index=0, broker_ids=list(replicas))]
        topic = CreatableTopic(name=name, num_partitions=-1, replication_factor=-1, assignments=placed)
        with Peer(self.ports[number]) as peer:
            answer = peer.ask(CreateTopicsRequest(topics=[topic], timeout_ms=30_000), 7, CreateTopicsResponse)
        return ErrorCode(answer.topics[0].error_code)

    def produce(self, number: int, topic: str) -> ErrorCode:
        records = encode_batch([Record(0, round(time.time() * 1000), None, b"value")])
        data = TopicProduceData(name=topic, partition_data=[PartitionProduceData(index=0, records=records)])
        with Peer(self.ports[number]) as peer:
            request = ProduceRequest(acks=-1, timeout_ms=30_000, topic_data=[data])
            answer = peer.ask(request, 9, ProduceResponse)
        return ErrorCode(answer.responses[0].partition_responses[0].error_code)

    def must_produce(self, number: int, topic: str) -> int:
        """To whomever this broker names as the leader, as clients do: until it is the leader. Returns it."""
        deadline = time.monotonic() + SECONDS_MAX
        while True:
            leader = self.leader(number, topic)
            if self.brokers.get(leader) and self.brokers[leader].running:
                error = self.produce(leader, topic)
                if error is ErrorCode.NONE:
                    return leader
                assert error in {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}, error
            assert time.monotonic() < deadline, "nobody leads"
            time.sleep(0.02)

    def leader(self, number: int, topic: str) -> int:
        """-1 where nobody leads, or this broker has not heard of the topic yet."""
        partitions = self.metadata(number, topic).topics[0].partitions
        return int(partitions[0].leader_id) if partitions else -1

    def in_sync(self, number: int, topic: str) -> list[int]:
        partitions = self.metadata(number, topic).topics[0].partitions
        return list(partitions[0].isr_nodes) if partitions else []


def until(holds: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not holds():
        assert time.monotonic() < deadline, "it did not come to be"
        time.sleep(0.02)


@pytest.fixture
def processes(tmp_path: Path) -> Iterator[Processes]:
    made = Processes(tmp_path)
    try:
        yield made
    finally:
        for broker in made.brokers.values():
            broker.kill()
        made.tree.kill()


def test_three_processes_are_one_cluster(processes: Processes) -> None:
    processes.start_tree()
    for broker in processes.brokers.values():
        broker.start()
    # A broker that answers has heard of itself at least; of the others a moment later.
    for number in (1, 2, 3):
        until(lambda: [broker.node_id for broker in processes.metadata(number).brokers] == [1, 2, 3])  # noqa: B023
    until(lambda: len({processes.metadata(number).controller_id for number in (1, 2, 3)}) == 1)
    controller = processes.metadata(1).controller_id
    assert controller in processes.ports
    others = [number for number in processes.ports if number != controller]
    assert processes.create(others[0], "t", controller, others[0], others[1]) is ErrorCode.NONE
    assert processes.must_produce(controller, "t") == controller
    processes.brokers[controller].kill()
    leader = processes.must_produce(others[1], "t")
    assert leader in others
    assert processes.create(others[1], "u", *others) is ErrorCode.NONE
    # It comes back under its id, when the session of its earlier life is over at the latest.
    processes.brokers[controller].start()
    until(lambda: len(processes.in_sync(controller, "t")) == 3)
    processes.brokers[leader].stop()
    left = next(number for number in others if number != leader)
    assert processes.must_produce(left, "t") in {left, controller}


def test_a_broker_that_waits_for_its_id_stops_when_it_is_asked_to(processes: Processes) -> None:
    processes.start_tree()
    processes.brokers[1].start()
    # Another machine's broker under the same id: it waits for the session to end.
    second = processes.brokers[2]
    second.command += ["--override", "broker.id=1"]
    second.launch()
    deadline = time.monotonic() + SECONDS_MAX
    while b"is registered still" not in second.log.read_bytes():
        assert time.monotonic() < deadline, second.log_tail()
        assert second.running, second.log_tail()
    second.stop()
    assert second.exit_code() == 0, second.log_tail()
    assert processes.metadata(1).controller_id == 1
