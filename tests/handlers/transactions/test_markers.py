"""WriteTxnMarkers: what ends a transaction in a partition, and who may not end it any more."""

from __future__ import annotations

import time
from collections.abc import Callable

import pytest
from tests.handlers.frames import batch, fetch, list_offset, produce, values
from tests.handlers.transactional import TransactionalClient, mark, until
from tests.handlers.transactions.conftest import transactional_broker
from tests.server.conftest import Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.generated.describe_producers import (
    DescribeProducersRequest,
    DescribeProducersResponse,
    TopicRequest,
)

Begun = Callable[..., TransactionalClient]
LATEST = -1
COMMITTED = 1


def committed(peer: Peer, topic: str) -> list[bytes | None]:
    """What a reader of committed records sees of partition 0: it leaves out what the answer says was aborted."""
    answer = fetch(peer, topic=topic, isolation_level=COMMITTED)
    assert not answer.aborted_transactions, "the tests' reader shows all that it is given"
    return values(answer)


def producers(peer: Peer, topic: str) -> dict[int, tuple[int, int, int]]:
    """Epoch, coordinator epoch and first offset of the open transaction, by producer."""
    request = DescribeProducersRequest(topics=[TopicRequest(name=topic, partition_indexes=[0])])
    found = peer.ask(request, 0, DescribeProducersResponse).topics[0].partitions[0].active_producers
    return {
        each.producer_id: (each.producer_epoch, each.coordinator_epoch, each.current_txn_start_offset) for each in found
    }


@pytest.mark.parametrize("version", [0, 2])
def test_readers_of_committed_records_see_a_transaction_when_its_marker_is_committed(
    peer: Peer, topic: str, begun: Begun, version: int
) -> None:
    client = begun(version)
    if not version:
        assert client.add(topic, 0) == [0]
    assert client.produce(b"a", topic).base_offset == 0
    produce(peer, batch(b"plain", timestamp=time.time_ns() // 1_000_000), topic=topic)
    assert committed(peer, topic) == []
    assert [list_offset(peer, LATEST, topic, isolation_level=level).offset for level in (0, COMMITTED)] == [2, 0]
    assert client.produce(b"b", topic).base_offset == 2
    assert client.end(commits=True) == 0
    until(lambda: len(committed(peer, topic)) == 4)
    # The last one is the marker.
    assert committed(peer, topic)[:3] == [b"a", b"plain", b"b"]
    assert list_offset(peer, LATEST, topic, isolation_level=COMMITTED).offset == 4


def test_a_transaction_is_open_until_its_own_marker(peer: Peer, topic: str, begun: Begun) -> None:
    client = begun()
    client.add(topic, 0)
    client.produce(b"a", topic)
    assert mark(peer, client, (topic, 0), producer_id=client.producer_id + 1000) == [0]
    assert producers(peer, topic)[client.producer_id] == (client.epoch, -1, 0)
    assert committed(peer, topic) == []
    assert mark(peer, client, (topic, 0), commits=True, coordinator_epoch=3) == [0]
    assert producers(peer, topic)[client.producer_id] == (client.epoch, 3, -1)
    assert committed(peer, topic)[0] == b"a"


def test_an_aborted_transaction_is_named_to_readers_of_committed_records(peer: Peer, topic: str, begun: Begun) -> None:
    client = begun()
    client.add(topic, 0)
    client.produce(b"a", topic)
    assert mark(peer, client, (topic, 0)) == [0]
    answer = fetch(peer, topic=topic, isolation_level=COMMITTED)
    assert [(each.producer_id, each.first_offset) for each in answer.aborted_transactions] == [(client.producer_id, 0)]
    assert answer.last_stable_offset == answer.high_watermark == 2


def test_markers_of_coordinators_and_producers_that_were_replaced(peer: Peer, topic: str, begun: Begun) -> None:
    client = begun()
    client.init()  # the epoch is 1 now
    client.add(topic, 0)
    client.produce(b"a", topic)
    assert mark(peer, client, (topic, 0), producer_epoch=0) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    assert mark(peer, client, (topic, 0), commits=True, coordinator_epoch=5) == [0]
    fenced = mark(peer, client, (topic, 0), coordinator_epoch=4)
    assert fenced == [ErrorCode.TRANSACTION_COORDINATOR_FENCED]
    assert fetch(peer, topic=topic).high_watermark == 2


def test_a_marker_of_an_epoch_a_transaction_is_of_a_later_one(peer: Peer, topic: str, begun: Begun) -> None:
    """And may come twice: the coordinator does not know whether the first one arrived."""
    client = begun(2)
    client.produce(b"a", topic)
    assert mark(peer, client, (topic, 0), version=2) == [ErrorCode.INVALID_PRODUCER_EPOCH]
    for _ in range(2):
        assert mark(peer, client, (topic, 0), version=2, producer_epoch=client.epoch + 1) == [0]
    assert fetch(peer, topic=topic).high_watermark == 3


def test_partitions_that_are_not_led_here(peer: Peer, topic: str, begun: Begun) -> None:
    places = [(topic, 1), (topic, 9), ("nowhere", 0), ("__consumer_offsets", 99)]
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert mark(peer, begun(), *places) == [0, unknown, unknown, unknown]


def test_a_transaction_stays_open_through_a_restart_and_ends_then(tmp_path: object, request: object) -> None:
    for life in range(3):
        with transactional_broker(tmp_path) as running, running.connect() as peer:
            if life == 0:
                running.create_topic("t")
                client = TransactionalClient(peer)
                client.init()
                client.add("t", 0)
                client.produce(b"a")
                client.produce(b"b")
                assert committed(peer, "t") == []
            elif life == 1:
                assert committed(peer, "t") == []
                assert producers(peer, "t")[client.producer_id] == (0, -1, 0)
                client.peer = peer
                assert client.produce(b"c").base_offset == 2
                assert client.end(commits=True) == 0
                until(lambda: bool(committed(peer, "t")))
            else:
                assert committed(peer, "t")[:3] == [b"a", b"b", b"c"]
                assert producers(peer, "t")[client.producer_id][2] == -1


def test_records_of_an_open_transaction_are_deleted(peer: Peer, topic: str, begun: Begun) -> None:
    """Readers of committed records then wait at the log's start."""
    client = begun()
    client.add(topic, 0)
    for value in (b"a", b"b", b"c"):
        client.produce(value, topic)
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=2)])
    deleted = peer.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=60_000), 2, DeleteRecordsResponse)
    assert deleted.topics[0].partitions[0].low_watermark == 2
    answer = fetch(peer, 2, topic=topic, isolation_level=COMMITTED)
    assert (answer.error_code, answer.log_start_offset, answer.last_stable_offset) == (0, 2, 2)
    assert values(answer) == []
    assert client.end(commits=True) == 0
    until(lambda: values(fetch(peer, 2, topic=topic, isolation_level=COMMITTED))[:1] == [b"c"])


@pytest.mark.parametrize("version", [1, 2])
def test_a_marker_of_no_producer_is_written_nowhere(peer: Peer, topic: str, begun: Begun, version: int) -> None:
    """As Kafka answers; a control batch without a producer would be read by everybody for ever."""
    client, before = begun(), list_offset(peer, LATEST, topic).offset
    for nonsense in ({"producer_id": -1}, {"producer_epoch": -1}):
        answer = mark(peer, client, (topic, 0), version=version, **nonsense)
        assert answer == [ErrorCode.UNKNOWN_SERVER_ERROR]
    if version == 2:
        assert mark(peer, client, (topic, 0), version=2, transaction_version=-1) == [ErrorCode.UNKNOWN_SERVER_ERROR]
    assert mark(peer, client, (topic, 0), version=version, producer_id=77_000, producer_epoch=-2) == [
        ErrorCode.INVALID_PRODUCER_EPOCH
    ]
    assert mark(peer, client, (topic, 0), version=version, producer_id=77_000, coordinator_epoch=-100) == [
        ErrorCode.TRANSACTION_COORDINATOR_FENCED
    ]
    assert list_offset(peer, LATEST, topic).offset == before
