"""Three brokers and their tree as processes: a client of each sees one cluster, also when the controller is killed."""

from __future__ import annotations

import sys
import time
from collections.abc import Iterator
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
                "zookeeper.session.timeout.ms=3000\n"
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

    def leader(self, number: int, topic: str) -> int:
        (partition,) = self.metadata(number, topic).topics[0].partitions
        return int(partition.leader_id)


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
    controller = processes.metadata(1).controller_id
    assert {processes.metadata(number).controller_id for number in (2, 3)} == {controller}
    assert [broker.node_id for broker in processes.metadata(2).brokers] == [1, 2, 3]
    others = [number for number in processes.ports if number != controller]
    assert processes.create(others[0], "t", controller, others[0], others[1]) is ErrorCode.NONE
    assert processes.produce(controller, "t") is ErrorCode.NONE
    processes.brokers[controller].kill()
    leader = processes.must_produce(others[1], "t")
    assert leader in others
    assert processes.create(others[1], "u", *others) is ErrorCode.NONE
    # It comes back under its id, when the session of its earlier life is over at the latest.
    processes.brokers[controller].start()
    deadline = time.monotonic() + SECONDS_MAX
    while len(processes.metadata(controller, "t").topics[0].partitions[0].isr_nodes) < 3:
        assert time.monotonic() < deadline, "it is not in sync again"
    processes.brokers[leader].stop()
    left = next(number for number in others if number != leader)
    assert processes.must_produce(left, "t") in {left, controller}
