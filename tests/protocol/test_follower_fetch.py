"""The follower's side of Fetch, against the generated codec: what either writes, the other reads as the same."""

from __future__ import annotations

from random import Random

import pytest

from ottla.protocol.apis import ApiKey
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT32, LENGTH_BYTES
from ottla.protocol.generated.fetch import (
    AbortedTransaction,
    EpochEndOffset,
    FetchableTopicResponse,
    FetchRequest,
    FetchResponse,
    LeaderIdAndEpoch,
    NodeEndpoint,
    PartitionData,
)
from ottla.protocol.header import decode_request_header, encode_response
from ottla.protocol.hot.fetch import parse_fetch
from ottla.protocol.hot.follower_fetch import BY_ID, CORRELATION_AT, REPLICA_STATE, AnswerRow, FetchRequests

VERSIONS = range(12, 19)
LIMITS = (500, 1, 10_000_000)


def requests(version: int) -> FetchRequests:
    return FetchRequests(version, "broker-7-fetcher-0", 7, 99)


def decoded(frame: bytearray, version: int) -> FetchRequest:
    assert INT32.unpack_from(frame)[0] == len(frame) - LENGTH_BYTES
    INT32.pack_into(frame, CORRELATION_AT, 1234)
    header, at = decode_request_header(bytes(frame), LENGTH_BYTES)
    assert (header.api_key, header.api_version) == (ApiKey.FETCH, version)
    assert (header.correlation_id, header.client_id) == (1234, "broker-7-fetcher-0")
    request, end = FetchRequest.decode(bytes(frame), version, at)
    assert end == len(frame)
    parsed = parse_fetch(bytes(frame), at, version)
    assert (parsed.replica_id, parsed.session_id, parsed.session_epoch) == (
        7,
        request.session_id,
        request.session_epoch,
    )
    return request


def topic(version: int, number: int) -> str | bytes:
    return bytes([number]) * 16 if version >= BY_ID else f"topic-{number}"


@pytest.mark.parametrize("version", VERSIONS)
def test_a_request_in_which_nothing_changed(version: int) -> None:
    made = requests(version)
    for session, epoch in ((5, 1), (6, 2**31 - 1)):
        request = decoded(made.nothing_new(*LIMITS, session, epoch), version)
        assert (request.max_wait_ms, request.min_bytes, request.max_bytes) == LIMITS
        assert (request.session_id, request.session_epoch, request.isolation_level) == (session, epoch, 0)
        assert (request.topics, request.forgotten_topics_data, request.rack_id) == ([], [], "")
        if version >= REPLICA_STATE:
            assert (request.replica_state.replica_id, request.replica_state.replica_epoch) == (7, 99)
        else:
            assert request.replica_id == 7


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize(("topics", "partitions"), [(0, 0), (1, 1), (3, 2), (2, 200), (130, 1)])
def test_a_request_with_changes(version: int, topics: int, partitions: int) -> None:
    rows = {
        topic(version, number): [(p, 3, 2**40 + p, 2, 17, 1_048_576) for p in range(partitions)]
        for number in range(topics)
    }
    forgotten = {topic(version, number + 1): list(range(partitions)) for number in range(topics)}
    request = decoded(requests(version).with_changes(*LIMITS, 5, 0, rows, forgotten), version)
    by_id = version >= BY_ID
    found = {
        bytes(each.topic_id) if by_id else each.topic: [
            (
                p.partition,
                p.current_leader_epoch,
                p.fetch_offset,
                p.last_fetched_epoch,
                p.log_start_offset,
                p.partition_max_bytes,
            )
            for p in each.partitions
        ]
        for each in request.topics
    }
    assert found == rows
    assert {
        bytes(each.topic_id) if by_id else each.topic: each.partitions for each in request.forgotten_topics_data
    } == forgotten


def partition_data(random: Random, number: int, version: int) -> PartitionData:
    one = PartitionData(
        partition_index=number,
        error_code=random.choice((0, 0, 1, 74, 6)),
        high_watermark=random.randrange(2**50),
        last_stable_offset=random.randrange(2**50),
        log_start_offset=random.randrange(2**50),
        records=random.choice((None, b"", random.randbytes(random.randrange(1, 300)))),
        preferred_read_replica=-1,
    )
    if random.random() < 0.3:
        one.aborted_transactions = [
            AbortedTransaction(producer_id=each, first_offset=each) for each in range(random.randrange(3))
        ]
    if random.random() < 0.3:
        one.diverging_epoch = EpochEndOffset(epoch=random.randrange(9), end_offset=random.randrange(99))
    if random.random() < 0.3:
        one.current_leader = LeaderIdAndEpoch(leader_id=3, leader_epoch=4)
    return one


def answer(random: Random, version: int) -> FetchResponse:
    made = FetchResponse(error_code=0, session_id=random.randrange(2**31))
    for number in range(random.randrange(4)):
        data = [partition_data(random, each, version) for each in range(random.randrange(4))]
        one = FetchableTopicResponse(partitions=data)
        if version >= BY_ID:
            one.topic_id = bytes([number]) * 16
        else:
            one.topic = f"topic-{number}"
        made.responses.append(one)
    if version >= 16 and random.random() < 0.5:
        made.node_endpoints = [NodeEndpoint(node_id=1, host="h", port=1)]
    return made


def read(frame: bytes, version: int) -> tuple[int, int, list[AnswerRow]]:
    error, session, rows = requests(version).read(memoryview(frame))
    return error, session, list(rows)


@pytest.mark.parametrize("version", VERSIONS)
def test_random_answers(version: int) -> None:
    random = Random(version)
    for _ in range(200):
        made = answer(random, version)
        frame = encode_response(ApiKey.FETCH, version, 1, made)[LENGTH_BYTES:]
        error, session, rows = read(frame, version)
        assert (error, session) == (made.error_code, made.session_id)
        wanted = [
            (each.topic_id if version >= BY_ID else each.topic, p) for each in made.responses for p in each.partitions
        ]
        assert len(rows) == len(wanted)
        for row, (name, data) in zip(rows, wanted, strict=True):
            assert (row.topic, row.partition, row.error) == (name, data.partition_index, data.error_code)
            assert (row.high_watermark, row.log_start) == (data.high_watermark, data.log_start_offset)
            assert bytes(row.records) == bytes(data.records or b"")
            epoch = data.diverging_epoch
            assert row.diverging == (None if epoch.epoch < 0 else (epoch.epoch, epoch.end_offset))
            leader = data.current_leader
            assert row.leader == (None if leader.leader_id < 0 else (leader.leader_id, leader.leader_epoch))


@pytest.mark.parametrize("version", VERSIONS)
def test_no_bytes_are_read_as_something_else_than_the_generated_codec_does(version: int) -> None:
    """Cut and broken answers end with a DecodeError or are read, and are never read past their end."""
    random = Random(version)
    refused = 0
    for _ in range(400):
        frame = bytearray(encode_response(ApiKey.FETCH, version, 1, answer(random, version))[LENGTH_BYTES:])
        if random.random() < 0.5:
            del frame[random.randrange(4, len(frame)) :]
        else:
            for _ in range(random.randrange(1, 4)):
                frame[random.randrange(4, len(frame))] = random.choice((0, 1, 0x7F, 0x80, 0xFF, random.randrange(256)))
        try:
            _, _, rows = read(bytes(frame), version)
        except DecodeError:
            refused += 1
        else:
            assert sum(len(row.records) for row in rows) <= len(frame)
    assert refused > 100


def test_records_are_views_on_the_frame_that_was_received() -> None:
    data = PartitionData(partition_index=0, records=b"x" * 1000)
    made = FetchResponse(responses=[FetchableTopicResponse(topic_id=b"t" * 16, partitions=[data])])
    frame = bytearray(encode_response(ApiKey.FETCH, 17, 1, made)[LENGTH_BYTES:])
    ((row,),) = (list(requests(17).read(memoryview(frame))[2]),)
    assert row.records.obj is frame
