"""Produce as Kafka answers it, over a socket."""

from __future__ import annotations

import struct
import time
from collections.abc import Callable

import pytest
from tests.handlers.frames import batch, fetch, list_offset, produce, produce_request, values
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.produce import ProduceResponse
from ottla.records.compression import GZIP

Make = Callable[..., BrokerThread]


@pytest.fixture
def topic(running: BrokerThread, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name)
    return name


@pytest.mark.parametrize("version", range(3, 13))
def test_every_version_appends_and_answers(peer: Peer, topic: str, version: int) -> None:
    first = produce(peer, batch(b"a", b"b"), version=version, topic=topic)
    second = produce(peer, batch(b"c"), version=version, topic=topic)
    third = produce(peer, batch(b"d"), version=version, topic=topic)
    assert [a.error_code for a in (first, second, third)] == [0, 0, 0]
    assert [a.base_offset for a in (first, second, third)] == [0, 2, 3]
    assert values(fetch(peer, topic=topic)) == [b"a", b"b", b"c", b"d"]


def test_a_remembered_request_with_another_size_of_batch(peer: Peer, topic: str) -> None:
    sizes = [1, 10, 100, 1000, 20_000, 100_000, 100, 1]
    for version in (8, 9):
        for size in sizes:
            assert produce(peer, batch(b"x" * size), version=version, topic=topic).error_code == 0
    stored = values(fetch(peer, topic=topic, max_bytes=1 << 24, partition_max_bytes=1 << 24))
    assert [len(value or b"") for value in stored] == sizes * 2


@pytest.mark.parametrize("acks", [1, -1])
def test_pipelined_requests_are_answered_in_order(peer: Peer, topic: str, acks: int) -> None:
    peer.send(b"".join(peer.frame(produce_request(batch(b"%d" % n), topic, acks=acks), 8) for n in range(100)))
    for n in range(100):
        answer = peer.answer(ProduceResponse, 8).responses[0].partition_responses[0]
        assert (peer.last_correlation, answer.error_code, answer.base_offset) == (n + 1, 0, n)


def test_acks_0_is_not_answered(peer: Peer, topic: str) -> None:
    for n in range(3):
        peer.send(peer.frame(produce_request(batch(b"%d" % n), topic, acks=0), 8))
    assert produce(peer, batch(b"3"), topic=topic).base_offset == 3


def test_an_error_with_acks_0_closes_the_connection(peer: Peer) -> None:
    peer.send(peer.frame(produce_request(batch(b"x"), "nowhere", acks=0), 8))
    assert peer.is_closed()


@pytest.mark.parametrize("acks", [2, -2, 100])
def test_other_acks_are_refused(peer: Peer, topic: str, acks: int) -> None:
    assert produce(peer, batch(b"x"), topic=topic, acks=acks).error_code == ErrorCode.INVALID_REQUIRED_ACKS


def test_an_unknown_topic_and_an_unknown_partition(peer: Peer, topic: str) -> None:
    assert produce(peer, batch(b"x"), topic="nowhere").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert produce(peer, batch(b"x"), topic=topic, partition=9).error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_records_of_no_bytes_are_refused(peer: Peer, topic: str) -> None:
    assert produce(peer, b"", topic=topic).error_code == ErrorCode.INVALID_RECORD
    assert produce(peer, None, topic=topic).error_code == ErrorCode.INVALID_RECORD


def damaged(at: int, with_bytes: bytes, whole: bytes) -> bytes:
    return whole[:at] + with_bytes + whole[at + len(with_bytes) :]


@pytest.mark.parametrize(
    ("at", "value", "error"),
    [
        pytest.param(70, b"\xee", ErrorCode.CORRUPT_MESSAGE, id="crc"),
        pytest.param(16, b"\3", ErrorCode.CORRUPT_MESSAGE, id="magic"),
        pytest.param(8, struct.pack(">i", 5), ErrorCode.CORRUPT_MESSAGE, id="length too small"),
        pytest.param(8, struct.pack(">i", 2**30), ErrorCode.CORRUPT_MESSAGE, id="length beyond"),
    ],
)
def test_a_damaged_batch_is_refused(peer: Peer, topic: str, at: int, value: bytes, error: ErrorCode) -> None:
    assert produce(peer, batch(b"good"), topic=topic).error_code == 0
    refused = produce(peer, damaged(at, value, batch(b"a value of some bytes")), topic=topic)
    assert refused.error_code in (error, ErrorCode.INVALID_RECORD)
    assert produce(peer, batch(b"good"), topic=topic).base_offset == 1


def test_two_batches_in_one_partition_are_refused(peer: Peer, topic: str) -> None:
    assert produce(peer, batch(b"a") + batch(b"b"), topic=topic).error_code == ErrorCode.INVALID_RECORD


def test_a_batch_over_the_topics_limit_is_refused(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("small", max_message_bytes="1000")
    assert produce(peer, batch(b"x" * 2000), topic="small").error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(peer, batch(b"x" * 100), topic="small").error_code == 0


def test_a_timestamp_too_far_ahead_is_refused(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("punctual", message_timestamp_after_max_ms="1000")
    ahead = int(time.time() * 1000) + 3_600_000
    refused = produce(peer, batch(b"x", timestamp=ahead), topic="punctual")
    assert refused.error_code == ErrorCode.INVALID_TIMESTAMP


def test_log_append_time_is_told_and_stored(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("stamped", message_timestamp_type="LogAppendTime")
    answer = produce(peer, batch(b"x", timestamp=5), topic="stamped")
    assert abs(answer.log_append_time_ms - time.time() * 1000) < 60_000
    assert list_offset(peer, answer.log_append_time_ms, topic="stamped").offset == 0


@pytest.mark.parametrize("pure", ["", "1"])
def test_what_is_refused_is_not_stamped_before(make_broker: Make, monkeypatch: pytest.MonkeyPatch, pure: str) -> None:
    """A request that is like the one before it is looked at twice before it is refused, where nothing is compiled."""
    monkeypatch.setenv("OTTLA_PURE", pure)
    with make_broker() as running:
        running.create_topic("stamped", message_timestamp_type="LogAppendTime")
        with running.connect() as peer:
            for sequence, error in ((0, 0), (1, 0), (7, ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER), (2, 0)):
                records = batch(b"x", producer_id=1, producer_epoch=0, base_sequence=sequence)
                assert produce(peer, records, topic="stamped").error_code == error


def test_a_topic_with_a_codec_of_its_own_recompresses(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("packed", compression_type="gzip")
    assert produce(peer, batch(b"x" * 1000, b"y"), topic="packed").error_code == 0
    stored = fetch(peer, topic="packed")
    assert int.from_bytes(bytes(stored.records)[21:23], "big") & 7 == GZIP
    assert values(stored) == [b"x" * 1000, b"y"]


def test_an_idempotent_producers_duplicate_gets_its_first_offset(peer: Peer, topic: str) -> None:
    def numbered(sequence: int) -> bytes:
        return batch(b"%d" % sequence, producer_id=7000, producer_epoch=0, base_sequence=sequence)

    assert [produce(peer, numbered(n), topic=topic).base_offset for n in range(7)] == list(range(7))
    again = produce(peer, numbered(4), topic=topic)
    assert (again.error_code, again.base_offset) == (0, 4)
    gap = produce(peer, numbered(9), topic=topic)
    assert gap.error_code == ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
    stale = batch(b"old", producer_id=7000, producer_epoch=1, base_sequence=0)
    assert produce(peer, stale, topic=topic).error_code == 0
    assert produce(peer, numbered(7), topic=topic).error_code == ErrorCode.INVALID_PRODUCER_EPOCH
    assert len(values(fetch(peer, topic=topic))) == 8


@pytest.mark.parametrize("kind", ["LogAppendTime", "CreateTime"])
def test_a_duplicate_is_answered_with_the_time_that_is_stored(
    running: BrokerThread, peer: Peer, topic: str, kind: str
) -> None:
    """As Apache Kafka does it, also where the time is the producer's own."""
    name = f"{topic}-again"
    running.create_topic(name, message_timestamp_type=kind)
    records = [batch(b"x", producer_id=4711, producer_epoch=0, base_sequence=sequence) for sequence in range(2)]
    times = []
    for each in records:
        first = produce(peer, each, topic=name)
        assert first.error_code == 0
        times.append(first.log_append_time_ms)
    stored = [int.from_bytes(fetch(peer, offset, topic=name).records[35:43], "big") for offset in range(2)]
    assert times == (stored if kind == "LogAppendTime" else [-1, -1])
    for offset, each in enumerate(records):
        again = produce(peer, each, topic=name)
        assert (again.error_code, again.base_offset, again.log_append_time_ms) == (0, offset, stored[offset])


def test_internal_topics_are_not_for_clients(running: BrokerThread, peer: Peer) -> None:
    unknown = produce(peer, batch(b"x"), topic="__share_group_state")
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    running.create_topic("__consumer_offsets")
    refused = produce(peer, batch(b"x"), topic="__consumer_offsets")
    assert refused.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


@pytest.mark.parametrize("acks", [1, -1])
def test_flush_before_the_answer(make_broker: Make, acks: int) -> None:
    with make_broker(log_flush_interval_messages="1") as running, running.connect() as peer:
        running.create_topic("t")
        peer.send(b"".join(peer.frame(produce_request(batch(b"%d" % n), acks=acks), 8) for n in range(20)))
        for n in range(20):
            answer = peer.answer(ProduceResponse, 8).responses[0].partition_responses[0]
            assert (answer.error_code, answer.base_offset) == (0, n)
            points = running.look(lambda broker: [log.recovery_point for log in broker.logs()])
            assert points[0] > n, "answered before it was on the disk"


def test_everything_is_there_after_a_restart(make_broker: Make) -> None:
    for start in (0, 50, 100):
        with make_broker() as running, running.connect() as peer:
            if start == 0:
                running.create_topic("t")
            for n in range(start, start + 50):
                assert produce(peer, batch(b"%d" % n)).base_offset == n
            assert values(fetch(peer)) == [b"%d" % n for n in range(start + 50)]
