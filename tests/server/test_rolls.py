"""Batches whose log needs another segment wait for it, in their order; those of other logs go on."""

from __future__ import annotations

import dataclasses
import errno
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import SECONDS_MAX, BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.controller.interface import TopicRef
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.real import real_ports
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.records.record import Record, encode_batch

NOW = 1_700_000_000_000
VERSION = 9


class SlowDisk:
    """A disk whose new segments wait until they may be made, or fail once."""

    def __init__(self, real: Any) -> None:
        self._real = real
        self.may_make = threading.Event()
        self.may_make.set()
        self.asked = threading.Event()
        self.fault: OSError | None = None

    def __getattr__(self, name: str) -> Any:
        return getattr(self._real, name)

    def open(self, path: str, *, create: bool = False) -> Any:
        if create and path.endswith(".log") and not path.endswith("0" * 20 + ".log"):
            self.asked.set()
            assert self.may_make.wait(SECONDS_MAX)
            fault, self.fault = self.fault, None
            if fault is not None:
                raise fault
        return self._real.open(path, create=create)


class SlowBroker(BrokerThread):
    async def _start(self) -> None:
        ports = real_ports()
        self.disk = SlowDisk(ports.disk)
        self.ports = dataclasses.replace(ports, disk=self.disk)
        self.broker = Broker(Config.parse(self.properties), self.ports)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[SlowBroker]:
    with SlowBroker(str(tmp_path)) as broker:
        broker.create_topic("rolls", segment_ms="1")
        broker.create_topic("other")
        yield broker


def batch(number: int, sequence: int = -1) -> bytes:
    """Ten seconds later than the one before: with segment.ms=1 each has a segment of its own."""
    record = Record(0, NOW + number * 10_000, None, b"%d" % number)
    if sequence < 0:
        return encode_batch([record])
    return encode_batch([record], producer_id=7, producer_epoch=0, base_sequence=sequence)


def request(records: bytes, topic: str = "rolls", acks: int = -1) -> ProduceRequest:
    data = PartitionProduceData(index=0, records=records)
    return ProduceRequest(
        acks=acks, timeout_ms=30_000, topic_data=[TopicProduceData(name=topic, partition_data=[data])]
    )


def answered(peer: Peer) -> tuple[int, int]:
    (topic,) = peer.answer(ProduceResponse, VERSION).responses
    (partition,) = topic.partition_responses
    return partition.error_code, partition.base_offset


def test_batches_that_each_roll_a_segment_are_answered_in_their_order(broker: SlowBroker) -> None:
    count = 100
    with broker.connect() as peer:
        for number in range(count):
            peer.send(peer.frame(request(batch(number, sequence=number)), VERSION))
        assert [answered(peer) for _ in range(count)] == [(0, number) for number in range(count)]
    log = broker.broker.services.replicas.leaders[TopicPartition("rolls", 0)].log  # type: ignore[union-attr]
    assert len(log.segments) == count


def test_others_are_served_while_a_segment_is_made(broker: SlowBroker) -> None:
    with broker.connect() as peer, broker.connect() as second, broker.connect() as other:
        peer.send(peer.frame(request(batch(0)), VERSION))
        assert answered(peer) == (0, 0)
        broker.disk.asked.clear()
        broker.disk.may_make.clear()
        peer.send(peer.frame(request(batch(1)), VERSION))
        assert broker.disk.asked.wait(SECONDS_MAX)
        second.send(second.frame(request(batch(1)), VERSION))
        for number in range(10):
            other.send(other.frame(request(batch(number), "other"), VERSION))
            assert answered(other) == (0, number)
        broker.disk.may_make.set()
        assert sorted([answered(peer), answered(second)]) == [(0, 1), (0, 2)]


def test_those_that_wait_for_a_segment_that_cannot_be_made_are_refused_and_the_next_makes_it(
    broker: SlowBroker,
) -> None:
    with broker.connect() as peer:
        peer.send(peer.frame(request(batch(0)), VERSION))
        assert answered(peer) == (0, 0)
        broker.disk.fault = OSError(errno.ENOSPC, "no room")
        peer.send(peer.frame(request(batch(1)), VERSION))
        assert answered(peer) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
        peer.send(peer.frame(request(batch(2)), VERSION))
        assert answered(peer) == (0, 1)


def test_a_topic_is_deleted_while_its_segment_is_made(broker: SlowBroker) -> None:
    """The worker's file does not land in the folder of a topic that is made again under that name."""
    with broker.connect() as peer:
        peer.send(peer.frame(request(batch(0)), VERSION))
        assert answered(peer) == (0, 0)
        broker.disk.asked.clear()
        broker.disk.may_make.clear()
        peer.send(peer.frame(request(batch(1)), VERSION))
        assert broker.disk.asked.wait(SECONDS_MAX)
        threading.Timer(0.2, broker.disk.may_make.set).start()
        broker.run(broker.broker.services.controller.delete_topics([TopicRef("rolls")]))  # type: ignore[union-attr]
        assert answered(peer)[0] in {ErrorCode.NOT_LEADER_OR_FOLLOWER, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
        broker.create_topic("rolls")
        log = broker.broker.services.replicas.leaders[TopicPartition("rolls", 0)].log  # type: ignore[union-attr]
        assert [name for name in broker.disk.names(log.directory) if name.endswith(".log")] == ["0" * 20 + ".log"]
        peer.send(peer.frame(request(batch(0)), VERSION))
        assert answered(peer) == (0, 0)
