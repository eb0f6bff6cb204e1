"""Requests of very many partitions are served piece by piece, and answered as one."""

from __future__ import annotations

import struct
import threading
from typing import Any

import pytest
from tests.handlers.frames import batch, fetch, produce_request, values
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, ProduceResponse, TopicProduceData
from ottla.protocol.hot.produce import PLAIN_PARTS_MAX

MANY = 2 * PLAIN_PARTS_MAX + 7


def long_request(acks: int = -1, topic: str = "t", copies: int = MANY) -> ProduceRequest:
    """Many times two partitions that there are, and one that there is not."""
    data = [PartitionProduceData(index=n % 3, records=batch(b"%d" % n)) for n in range(copies)]
    return ProduceRequest(acks=acks, timeout_ms=60_000, topic_data=[TopicProduceData(name=topic, partition_data=data)])


@pytest.mark.parametrize("version", [3, 8, 9, 12])
@pytest.mark.parametrize("acks", [1, -1])
def test_all_are_stored_and_answered_in_their_order(version: int, acks: int, make_broker: type[BrokerThread]) -> None:
    with make_broker() as broker:
        broker.create_topic("t", 2)
        with broker.connect() as peer:
            answer = peer.ask(long_request(acks), version, ProduceResponse)
            (topic,) = answer.responses
            found = topic.partition_responses
            assert [each.index for each in found] == [n % 3 for n in range(MANY)]
            unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
            assert [each.error_code for each in found] == [unknown if n % 3 == 2 else 0 for n in range(MANY)]
            for partition in range(2):
                offsets = [each.base_offset for each in found if each.index == partition]
                assert offsets == list(range(len(offsets)))
                stored = values(fetch(peer, topic="t", partition=partition))
                assert stored == [b"%d" % n for n in range(MANY) if n % 3 == partition]


def test_it_keeps_its_place_among_others(make_broker: type[BrokerThread]) -> None:
    """Three requests are sent at once, and the long one is the second: they are answered in this order."""
    with make_broker() as broker:
        broker.create_topic("t", 3)
        with broker.connect() as peer:
            requests = [produce_request(batch(b"first")), long_request(), produce_request(batch(b"last"))]
            peer.send(b"".join(peer.frame(request, 9) for request in requests))
            for number, request in enumerate(requests, 1):
                answer = peer.answer(ProduceResponse, 9)
                assert peer.last_correlation == number
                assert len(answer.responses[0].partition_responses) == len(request.topic_data[0].partition_data)
            stored = values(fetch(peer, topic="t", partition=0))
            assert (stored[0], stored[-1]) == (b"first", b"last")


def test_without_acknowledgement(make_broker: type[BrokerThread]) -> None:
    with make_broker() as broker:
        broker.create_topic("t", 3)
        with broker.connect() as peer:
            peer.send(peer.frame(long_request(acks=0), 9))
            peer.ask(produce_request(batch(b"behind"), partition=2), 9, ProduceResponse)
            assert peer.last_correlation == 2
            assert len(values(fetch(peer, topic="t", partition=1))) == len(range(1, MANY, 3))


def test_without_acknowledgement_a_fault_closes_the_connection(make_broker: type[BrokerThread]) -> None:
    with make_broker() as broker:
        broker.create_topic("t", 2)
        with broker.connect() as peer:
            peer.send(peer.frame(long_request(acks=0), 9))
            assert peer.is_closed()


def test_transactional_batches_are_refused_as_in_a_short_one(make_broker: type[BrokerThread]) -> None:
    with make_broker() as broker:
        broker.create_topic("t", 3)
        request = long_request()
        request.topic_data[0].partition_data[-1].records = batch(
            b"x", producer_id=1, producer_epoch=0, base_sequence=0, transactional=True
        )
        with broker.connect() as peer:
            (topic,) = peer.ask(request, 9, ProduceResponse).responses
            errors = {each.error_code for each in topic.partition_responses}
            assert errors == {ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED}


def test_one_that_is_cut_short_closes_the_connection(make_broker: type[BrokerThread], peer: Peer) -> None:
    whole = peer.frame(long_request(), 9)
    cut = whole[:-40]
    peer.send(struct.pack(">i", len(cut) - 4) + cut[4:])
    assert peer.is_closed()


def test_what_is_sent_behind_it_does_not_overwrite_it(make_broker: type[BrokerThread]) -> None:
    """A frame that is too large to be copied stays in its buffer, into which the connection goes on receiving."""
    first = produce_request(batch(b"x" * (5 << 20)))
    value = b"." * 10
    data = [PartitionProduceData(index=n % 3, records=batch(b"%6d" % n + value)) for n in range(50_000)]
    request = ProduceRequest(acks=1, timeout_ms=60_000, topic_data=[TopicProduceData(name="t", partition_data=data)])
    question = ApiVersionsRequest(client_software_name="c" * 30_000, client_software_version="1")
    with make_broker() as broker, broker.connect() as peer:
        broker.create_topic("t", 3)
        peer.socket.settimeout(60)
        long_frame = peer.frame(request, 9)
        assert 4 << 20 < len(long_frame) < 6 << 20
        # One whose buffer has room for the small one behind it, and goes on to the long one.
        for _ in range(3):
            peer.send(peer.frame(first, 9) + peer.frame(question, 3))
            assert peer.answer(ProduceResponse, 9)
            assert peer.answer(ApiVersionsResponse, 3)
        # Beside the reading: while the long answer waits for its reader, nothing is read of what stands behind it.
        raw = long_frame + b"".join(peer.frame(question, 3) for _ in range(300))
        sending = threading.Thread(target=peer.send, args=(raw,))
        sending.start()
        (topic,) = peer.answer(ProduceResponse, 9).responses
        assert {each.error_code for each in topic.partition_responses} == {ErrorCode.NONE}
        for _ in range(300):
            peer.answer(ApiVersionsResponse, 3)
        sending.join(60)
        for partition in range(3):
            stored = values(fetch(peer, topic="t", partition=partition, max_bytes=1 << 26, partition_max_bytes=1 << 26))
            assert stored == [b"%6d" % n + value for n in range(partition, 50_000, 3)]


@pytest.mark.parametrize("acks", [1, -1])
def test_it_is_one_request_of_its_partitions_to_metrics(make_broker: type[BrokerThread], acks: int) -> None:
    def counted(broker: Any) -> tuple[int, int]:
        metrics = broker.services.metrics
        return sum(metrics.times_of("Produce").counts), metrics.total_produces.value

    with make_broker() as broker:
        broker.create_topic("t", 3)
        with broker.connect() as peer:
            for turn in range(3):
                peer.ask(long_request(acks), 9, ProduceResponse)
                assert broker.look(counted) == (turn + 1, (turn + 1) * MANY)
