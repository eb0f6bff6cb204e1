"""A log that goes on beyond its high watermark, or its last stable offset: no consumer learns of what is up there."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.handlers.frames import batch, fetch, fetch_request, produce, values
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.metadata import PartitionState
from ottla.model import BrokerId, Epoch, TopicPartition
from ottla.protocol.generated.fetch import FetchResponse
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.storage.log.append import Origin

US, FOLLOWER = 1001, 9
READ_COMMITTED = 1
MAX_TIMESTAMP, LATEST = -3, -1
DEBUGGING = -2


def replicate(broker: Broker, topic: str) -> None:
    """From now on the partition has a follower, in sync, that has fetched nothing."""
    assert broker.services is not None
    replicas = broker.services.replicas
    leader = replicas.leaders[TopicPartition(topic, 0)]
    both = (BrokerId(US), BrokerId(FOLLOWER))
    state = PartitionState(
        topic=topic,
        partition=0,
        topic_id=leader.log.topic_id,
        controller_epoch=Epoch(1),
        leader=BrokerId(US),
        leader_epoch=Epoch(leader.epoch),
        isr=both,
        replicas=both,
        partition_epoch=1,
    )
    replicas.apply([state], lambda _: leader.log.config)


def open_transaction(broker: Broker, topic: str) -> None:
    assert broker.services is not None
    log = broker.services.replicas.leaders[TopicPartition(topic, 0)].log
    records = batch(b"open", timestamp=1200, producer_id=7, producer_epoch=0, base_sequence=0, transactional=True)
    log.stage(memoryview(bytearray(records)), 0, 10**13, Origin.REPLICATION)
    log.write_staged()
    broker.services.replicas.leaders[TopicPartition(topic, 0)].advance()


@pytest.fixture
def topic(running: BrokerThread, peer: Peer, request: pytest.FixtureRequest) -> Iterator[str]:
    """Offset 0 at time 1000 is committed, and offset 1 at time 1100 is not."""
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name)
    assert produce(peer, batch(b"a", timestamp=1000), topic=name).error_code == 0
    running.look(lambda broker: replicate(broker, name))
    assert produce(peer, batch(b"b", timestamp=1100), topic=name, acks=1).error_code == 0
    return name


def found(peer: Peer, topic: str, timestamp: int, *, isolation: int = 0, replica: int = -1) -> tuple[int, int]:
    asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
    request = ListOffsetsRequest(
        replica_id=replica, isolation_level=isolation, topics=[ListOffsetsTopic(name=topic, partitions=[asked])]
    )
    answer = peer.ask(request, 8, ListOffsetsResponse).topics[0].partitions[0]
    assert answer.error_code == 0
    return answer.offset, answer.timestamp


def test_list_offsets_ends_at_the_high_watermark(peer: Peer, topic: str) -> None:
    assert found(peer, topic, LATEST) == (1, -1)
    assert found(peer, topic, 900) == (0, 1000)
    assert found(peer, topic, 1050) == (-1, -1)
    assert found(peer, topic, MAX_TIMESTAMP) == (-1, -1)
    # A follower has what the leader has.
    assert found(peer, topic, LATEST, replica=FOLLOWER) == (2, -1)
    assert found(peer, topic, MAX_TIMESTAMP, replica=FOLLOWER) == (1, 1100)
    # And once it has it, all of it is committed.
    assert fetch(peer, 2, topic=topic, replica_id=FOLLOWER).error_code == 0
    assert found(peer, topic, LATEST) == (2, -1)
    assert found(peer, topic, 1050) == (1, 1100)
    assert found(peer, topic, MAX_TIMESTAMP) == (1, 1100)


def test_list_offsets_ends_at_the_last_stable_offset(running: BrokerThread, peer: Peer, topic: str) -> None:
    assert fetch(peer, 2, topic=topic, replica_id=FOLLOWER).error_code == 0
    running.look(lambda broker: open_transaction(broker, topic))
    assert fetch(peer, 3, topic=topic, replica_id=FOLLOWER).error_code == 0
    for timestamp, uncommitted, committed in (
        (LATEST, (3, -1), (2, -1)),
        (MAX_TIMESTAMP, (2, 1200), (-1, -1)),
        (1150, (2, 1200), (-1, -1)),
        (1050, (1, 1100), (1, 1100)),
    ):
        assert found(peer, topic, timestamp) == uncommitted
        assert found(peer, topic, timestamp, isolation=READ_COMMITTED) == committed


@pytest.mark.parametrize("replica", [-1, DEBUGGING, -7])
def test_a_fetch_ends_at_the_high_watermark(peer: Peer, topic: str, replica: int) -> None:
    answer = fetch(peer, 0, topic=topic, replica_id=replica)
    assert (answer.error_code, answer.high_watermark, values(answer)) == (0, 1, [b"a"])
    above = fetch(peer, 1, topic=topic, replica_id=replica)
    assert (above.error_code, above.high_watermark, values(above)) == (0, 1, [])
    assert values(fetch(peer, 0, topic=topic, replica_id=FOLLOWER)) == [b"a", b"b"]


@pytest.mark.parametrize("replica", [-1, DEBUGGING])
def test_a_fetch_of_committed_records_ends_at_the_last_stable_offset(
    running: BrokerThread, peer: Peer, topic: str, replica: int
) -> None:
    assert fetch(peer, 2, topic=topic, replica_id=FOLLOWER).error_code == 0
    running.look(lambda broker: open_transaction(broker, topic))
    assert fetch(peer, 3, topic=topic, replica_id=FOLLOWER).error_code == 0
    request = fetch_request(topic=topic, replica_id=replica, isolation_level=READ_COMMITTED)
    answer = peer.ask(request, 11, FetchResponse).responses[0].partitions[0]
    assert (answer.high_watermark, answer.last_stable_offset, values(answer)) == (3, 2, [b"a", b"b"])
    assert answer.aborted_transactions == []
