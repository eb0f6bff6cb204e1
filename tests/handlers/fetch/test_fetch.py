"""Fetch as Kafka answers it, over a socket."""

from __future__ import annotations

import struct
import time
from typing import Any

import pytest
from tests.handlers.frames import (
    ForgottenTopic,
    batch,
    fetch,
    fetch_request,
    list_offset,
    produce,
    produce_request,
    values,
)
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchPartition, FetchResponse, FetchTopic
from ottla.protocol.generated.produce import ProduceResponse
from ottla.storage.log.append import Origin


@pytest.fixture
def topic(running: BrokerThread, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name, 3)
    return name


@pytest.mark.parametrize("version", range(4, 13))
def test_every_version_reads_what_was_produced(peer: Peer, topic: str, version: int) -> None:
    produce(peer, batch(b"a", b"b"), topic=topic)
    produce(peer, batch(b"c"), topic=topic)
    answer = fetch(peer, topic=topic, version=version)
    assert (answer.error_code, answer.high_watermark, values(answer)) == (0, 3, [b"a", b"b", b"c"])


@pytest.mark.parametrize("version", [4, 5, 7, 9, 11, 12])
def test_bytes_behind_a_request_are_never_taken_for_its_offset(peer: Peer, topic: str, version: int) -> None:
    """They are passed over, as by Kafka, also where they look like the end of a request."""

    def ask(behind: int) -> list[bytes | None]:
        frames = [peer.frame(fetch_request(offset, topic=topic), version) for offset in (0, behind)]
        whole = struct.pack(">i", 2 * len(frames[0]) - 4) + frames[0][4:] + frames[1]
        # What is remembered is all but the offset: the correlation id of the copy must not tell them apart.
        peer.send(whole[: len(frames[0]) + 8] + bytes(4) + whole[len(frames[0]) + 12 :])
        return values(peer.answer(FetchResponse, version).responses[0].partitions[0])

    for value in (b"a", b"b"):
        produce(peer, batch(value), topic=topic)
    assert [ask(behind) for behind in (0, 0, 1, 1)] == [[b"a", b"b"]] * 4


def open_a_transaction(running: BrokerThread, topic: str) -> None:
    data = batch(b"open", producer_id=70, producer_epoch=0, base_sequence=-1, transactional=True)

    def begin(broker: Broker) -> None:
        services = broker.services
        assert services is not None
        leader = services.replicas.leaders[TopicPartition(topic, 0)]

        def stage() -> None:
            leader.log.stage(memoryview(bytearray(data)), leader.epoch, services.clock.wall_ms(), Origin.COORDINATOR)
            services.writes.staged(leader)

        services.round.within(stage)

    running.look(begin)


def test_a_repeated_fetch_is_told_the_last_stable_offset(running: BrokerThread, topic: str) -> None:
    """As by Kafka, which says it to those that read uncommitted, too."""
    with running.connect() as writer, running.connect() as reader:
        produce(writer, batch(b"a"), topic=topic)
        for _ in range(3):
            assert fetch(reader, topic=topic).last_stable_offset == 1
        open_a_transaction(running, topic)
        for _ in range(4):
            answer = fetch(reader, topic=topic)
            assert (answer.high_watermark, answer.last_stable_offset) == (2, 1)


@pytest.mark.parametrize("version", range(13, 19))
def test_topics_by_id(running: BrokerThread, peer: Peer, topic: str, version: int) -> None:
    produce(peer, batch(b"a"), topic=topic)
    topic_id = running.look(lambda broker: broker.metadata.topics[topic].id)
    request = fetch_request()
    request.topics[0].topic = ""
    request.topics[0].topic_id = topic_id
    response = peer.ask(request, version, FetchResponse)
    assert response.responses[0].topic_id == topic_id
    assert values(response.responses[0].partitions[0]) == [b"a"]
    request.topics[0].topic_id = b"\x01" * 16
    unknown = peer.ask(request, version, FetchResponse).responses[0].partitions[0]
    assert unknown.error_code == ErrorCode.UNKNOWN_TOPIC_ID


def test_a_fetch_in_the_middle_of_a_batch_returns_it_whole(peer: Peer, topic: str) -> None:
    produce(peer, batch(b"a", b"b", b"c"), topic=topic)
    assert values(fetch(peer, 2, topic=topic)) == [b"a", b"b", b"c"]


def test_fetch_at_high_watermark_waits_for_a_produce(running: BrokerThread, peer: Peer, topic: str) -> None:
    peer.send(peer.frame(fetch_request(topic=topic, max_wait_ms=60_000), 11))
    with running.connect() as producer:
        produce(producer, batch(b"now"), topic=topic)
    answer = peer.answer(FetchResponse, 11).responses[0].partitions[0]
    assert values(answer) == [b"now"]


def test_fetch_at_high_watermark_waits_no_longer_than_asked(peer: Peer, topic: str) -> None:
    started = time.monotonic()
    answer = fetch(peer, topic=topic, max_wait_ms=200)
    assert time.monotonic() - started >= 0.19
    assert (answer.error_code, values(answer)) == (0, [])


def test_min_bytes_are_waited_for(running: BrokerThread, peer: Peer, topic: str) -> None:
    peer.send(peer.frame(fetch_request(topic=topic, max_wait_ms=60_000, min_bytes=250), 11))
    with running.connect() as producer:
        for n in range(4):
            produce(producer, batch(b"%d" % n * 10), topic=topic)
    answer = peer.answer(FetchResponse, 11).responses[0].partitions[0]
    assert len(answer.records) >= 250


def test_offsets_outside_of_the_log(peer: Peer, topic: str) -> None:
    produce(peer, batch(b"a"), topic=topic)
    assert fetch(peer, 1, topic=topic).error_code == 0
    for offset in (2, 100, -1, 2**62):
        assert fetch(peer, offset, topic=topic).error_code == ErrorCode.OFFSET_OUT_OF_RANGE


def test_unknown_topics_and_partitions_are_answered_at_once(peer: Peer, topic: str) -> None:
    for options in ({"topic": "nowhere"}, {"topic": topic, "partition": 77}):
        answer = fetch(peer, max_wait_ms=20_000, **options)
        assert answer.error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_the_first_batch_is_whole_however_large(peer: Peer, topic: str) -> None:
    produce(peer, batch(b"x" * 50_000), topic=topic)
    produce(peer, batch(b"y"), topic=topic)
    answer = fetch(peer, topic=topic, partition_max_bytes=1, max_bytes=1)
    assert values(answer) == [b"x" * 50_000]


def test_the_requests_limit_is_shared_by_its_partitions(peer: Peer, topic: str) -> None:
    for partition in range(3):
        produce(peer, batch(b"%d" % partition * 1000), topic=topic, partition=partition)
    request = fetch_request(max_bytes=1500)
    request.topics = [FetchTopic(topic=topic, partitions=[])]
    for partition in range(3):
        request.topics[0].partitions.append(
            FetchPartition(partition=partition, fetch_offset=0, partition_max_bytes=1 << 20)
        )
    answers = peer.ask(request, 11, FetchResponse).responses[0].partitions
    assert [len(values(answer)) for answer in answers] == [1, 0, 0]
    assert sum(len(answer.records) for answer in answers) <= 1500
    assert [answer.high_watermark for answer in answers] == [1, 1, 1]


def test_large_reads_go_by_sendfile_and_small_ones_joined(peer: Peer, topic: str) -> None:
    written = [b"%03d" % n * 20_000 for n in range(40)]
    for value in written:
        produce(peer, batch(value), topic=topic)
    found: list[bytes | None] = []
    while len(found) < 40:
        found += values(fetch(peer, len(found), topic=topic, partition_max_bytes=1 << 20, max_bytes=50 << 20))
    assert found == written


@pytest.mark.parametrize("version", [11, 12])
def test_a_remembered_fetch_behind_a_large_produce(peer: Peer, topic: str, version: int) -> None:
    """They share a buffer, which is of another kind than those of small requests."""
    for value in (b"a", b"b", b"c"):
        produce(peer, batch(value), topic=topic)
    for offset in (0, 1):
        assert values(fetch(peer, offset, topic=topic, version=version))[0] == (b"a", b"b")[offset]
    large = peer.frame(produce_request(batch(b"x" * 200_000), topic=topic), 8)
    behind = [peer.frame(fetch_request(offset, topic=topic), version) for offset in (0, 1, 2)]
    peer.send(large + b"".join(behind))
    assert peer.answer(ProduceResponse, 8).responses[0].partition_responses[0].base_offset == 3
    for expected in (b"a", b"b", b"c"):
        answer = peer.answer(FetchResponse, version).responses[0].partitions[0]
        assert values(answer)[0] == expected


def test_leader_epochs_are_fenced(peer: Peer, topic: str) -> None:
    produce(peer, batch(b"a"), topic=topic)
    epoch = list_offset(peer, -1, topic=topic).leader_epoch
    assert fetch(peer, topic=topic, current_leader_epoch=epoch).error_code == 0
    newer = fetch(peer, topic=topic, current_leader_epoch=epoch + 1)
    assert newer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH
    if epoch > 0:
        assert fetch(peer, topic=topic, current_leader_epoch=epoch - 1).error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_who_claims_to_be_a_follower_and_is_none_is_refused(peer: Peer, topic: str) -> None:
    produce(peer, batch(b"a"), topic=topic)
    for replica in (1, 5, 1001):
        assert fetch(peer, topic=topic, replica_id=replica).error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        # It knows the leader's epoch, and may have been made a follower in one that the leader has yet to hear of.
        epoch = list_offset(peer, -1, topic=topic).leader_epoch
        answer = fetch(peer, topic=topic, replica_id=replica, current_leader_epoch=epoch)
        assert answer.error_code == ErrorCode.UNKNOWN_LEADER_EPOCH


def session(peer: Peer, session_id: int, epoch: int, topics: list[Any], **options: Any) -> Any:
    request = fetch_request(session_id=session_id, session_epoch=epoch, **options)
    request.topics = topics
    return peer.ask(request, 11, FetchResponse)


def test_an_incremental_session_tells_only_what_is_new(peer: Peer, topic: str) -> None:
    everything = fetch_request(topic=topic).topics
    everything[0].partitions = [FetchPartition(partition=n, fetch_offset=0, partition_max_bytes=1000) for n in range(3)]
    opened = session(peer, 0, 0, everything)
    assert opened.session_id > 0
    assert len(opened.responses[0].partitions) == 3
    assert session(peer, opened.session_id, 1, []).responses == []
    produce(peer, batch(b"a"), topic=topic, partition=1)
    news = session(peer, opened.session_id, 2, [])
    assert [(p.partition_index, values(p)) for p in news.responses[0].partitions] == [(1, [b"a"])]
    stale = session(peer, opened.session_id, 2, [])
    assert (stale.error_code, stale.session_id) == (ErrorCode.INVALID_FETCH_SESSION_EPOCH, 0)
    request = fetch_request(session_id=opened.session_id, session_epoch=3)
    request.topics = []
    request.forgotten_topics_data = [ForgottenTopic(topic=topic, partitions=[1])]
    assert peer.ask(request, 11, FetchResponse).responses == []
    unknown = session(peer, opened.session_id + 1, 1, [])
    assert (unknown.error_code, unknown.session_id) == (ErrorCode.FETCH_SESSION_ID_NOT_FOUND, 0)
    closed = session(peer, opened.session_id, -1, everything)
    assert closed.session_id == 0
    assert session(peer, opened.session_id, 4, []).error_code == ErrorCode.FETCH_SESSION_ID_NOT_FOUND


@pytest.mark.parametrize("version", [7, 12])
def test_a_request_that_opens_a_session_forgets_nothing(peer: Peer, topic: str, version: int) -> None:
    produce(peer, batch(b"a"), topic=topic)
    request = fetch_request(topic=topic, session_id=0, session_epoch=0)
    request.forgotten_topics_data = [ForgottenTopic(topic=topic, partitions=[0])]
    opened = peer.ask(request, version, FetchResponse)
    assert [values(one) for one in opened.responses[0].partitions] == [[b"a"]]
    produce(peer, batch(b"b"), topic=topic)
    news = session(peer, opened.session_id, 1, [])
    assert [values(one) for one in news.responses[0].partitions] == [[b"a", b"b"]]


def test_list_offsets_finds_first_last_and_by_time(peer: Peer, topic: str) -> None:
    assert list_offset(peer, 50, topic=topic).offset == -1
    for n in range(5):
        produce(peer, batch(b"%d" % n, timestamp=1000 + n * 10), topic=topic)
    assert list_offset(peer, -2, topic=topic).offset == 0
    assert list_offset(peer, -1, topic=topic).offset == 5
    found = list_offset(peer, 1015, topic=topic)
    assert (found.offset, found.timestamp) == (2, 1020)
    largest = list_offset(peer, -3, topic=topic)
    assert (largest.offset, largest.timestamp) == (4, 1040)
    assert list_offset(peer, 5000, topic=topic).offset == -1
    assert list_offset(peer, -4, topic=topic, version=8).offset == 0
    assert list_offset(peer, -3, topic=topic, version=6).error_code == ErrorCode.UNSUPPORTED_VERSION


@pytest.mark.parametrize("version", range(1, 12))
def test_list_offsets_answers_in_every_version(peer: Peer, topic: str, version: int) -> None:
    produce(peer, batch(b"a", timestamp=1000), topic=topic)
    for timestamp, offset in ((-1, 1), (-2, 0), (500, 0)):
        answer = list_offset(peer, timestamp, topic=topic, version=version)
        assert (answer.error_code, answer.offset) == (0, offset)


def test_a_negative_limit_of_a_partition_is_an_error_each_time(peer: Peer, topic: str) -> None:
    """A request that comes again is recognised, unless it is one that is refused."""
    produce(peer, batch(b"a"), topic=topic)
    for _ in range(3):
        answer = fetch(peer, topic=topic, partition_max_bytes=-1)
        assert (answer.error_code, values(answer)) == (ErrorCode.UNKNOWN_SERVER_ERROR, [])


def test_what_is_remembered_is_counted_on_when_another_partition_leaves_the_broker(
    running: BrokerThread, topic: str
) -> None:
    services = running.broker.services
    assert services is not None
    replicas = services.replicas

    def bytes_out() -> int:
        return running.look(lambda _: replicas.traffic.of(topic).bytes_out)

    with running.connect() as writer, running.connect() as reader:
        assert produce(writer, batch(b"v"), topic=topic).error_code == 0
        for _ in range(3):
            size = len(fetch(reader, topic=topic).records)
        running.run(replicas.change(replicas.give_up([TopicPartition(topic, 1)], delete=True)))
        before = bytes_out()
        for _ in range(3):
            fetch(reader, topic=topic)
        assert bytes_out() == before + 3 * size
