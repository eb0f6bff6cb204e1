"""ListOffsets by time over a segment that was damaged while the broker ran."""

from __future__ import annotations

from tests.handlers.frames import batch, produce
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.storage.log.rolling import roll

MAX_TIMESTAMP = -3
TOPIC = "damaged-while-it-ran"
GARBAGE = b"\xff" * 61


def damage(broker: Broker) -> None:
    """The sealed segment's only batch, of which nothing is in memory any more."""
    assert broker.services is not None
    log = broker.services.replicas.leaders[TopicPartition(TOPIC, 0)].log
    roll(log.staging, log.end_offset)
    segment = log.segments[0]
    segment.release_files()
    log.places.forget()
    for path in segment.paths():
        if path.endswith(".log"):
            with open(path, "r+b") as file:
                file.write(GARBAGE)


def test_it_is_answered_as_a_fault_of_the_disk(running: BrokerThread, peer: Peer) -> None:
    running.create_topic(TOPIC)
    assert produce(peer, batch(b"a", timestamp=1000), topic=TOPIC).error_code == 0
    running.look(damage)
    for timestamp in (1000, MAX_TIMESTAMP, 1000):
        asked = ListOffsetsPartition(partition_index=0, timestamp=timestamp)
        request = ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=TOPIC, partitions=[asked])])
        answer = peer.ask(request, 8, ListOffsetsResponse).topics[0].partitions[0]
        assert (answer.error_code, answer.offset) == (ErrorCode.KAFKA_STORAGE_ERROR, -1)
