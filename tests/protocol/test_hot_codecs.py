"""The hand-written codecs read and say the same bytes as the generated ones, and refuse the same garbage."""

from __future__ import annotations

import random
from collections.abc import Callable
from typing import Any

import pytest
from hypothesis import given, strategies
from tests.protocol.random_messages import Kind, kinds, random_message
from tests.protocol.test_hostile_bytes import mutation, noise
from tests.searches import examples

from ottla.model import ZERO_TOPIC_ID
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.generated import fetch, metadata, produce
from ottla.protocol.header import encode_response
from ottla.protocol.hot.fetch import parse_fetch
from ottla.protocol.hot.fetch_answer import RecordsGap, encode_fetch_response
from ottla.protocol.hot.metadata import encode_metadata_response, encode_metadata_topic
from ottla.protocol.hot.produce import encode_produce_response, parse_produce

_BY_NAME: dict[str, list[Kind]] = {}
for _kind in kinds():
    _BY_NAME.setdefault(_kind.struct.name, []).append(_kind)

Seeds = strategies.integers(0, 1 << 32)


def versions_of(name: str) -> strategies.SearchStrategy[Kind]:
    return strategies.sampled_from(_BY_NAME[name])


many = examples(150)


def endpoints(message: Any) -> list[tuple[int, str, int, str | None]]:
    return [(node.node_id, node.host, node.port, node.rack) for node in message.node_endpoints]


# Produce.


@many
@given(versions_of("ProduceRequest"), Seeds)
def test_produce_requests_are_read_alike(kind: Kind, seed: int) -> None:
    message = random_message(kind, seed)
    raw = bytearray(b"??" + message.encode(kind.version))
    for buffer, end in ((raw, None), (memoryview(raw + b"\xff" * 9), len(raw))):
        transactional_id, acks, timeout_ms, topics = parse_produce(buffer, 2, kind.version, end)
        assert (transactional_id, acks, timeout_ms) == (message.transactional_id, message.acks, message.timeout_ms)
        assert [
            (topic, [(index, None if start < 0 else raw[start:stop]) for index, start, stop in partitions])
            for topic, partitions in topics
        ] == [
            (
                topic.topic_id if kind.version >= 13 else topic.name,
                [(partition.index, partition.records) for partition in topic.partition_data],
            )
            for topic in message.topic_data
        ]


@many
@given(versions_of("ProduceResponse"), Seeds)
def test_produce_responses_are_said_alike(kind: Kind, seed: int) -> None:
    message: produce.ProduceResponse = random_message(kind, seed, tags=False)
    topics: list[tuple[str | bytes, list[tuple[Any, ...]]]] = [
        (
            topic.topic_id if kind.version >= 13 else topic.name,
            [
                (
                    one.index,
                    one.error_code,
                    one.base_offset,
                    one.log_append_time_ms,
                    one.log_start_offset,
                    [(error.batch_index, error.batch_index_error_message) for error in one.record_errors],
                    one.error_message,
                    (one.current_leader.leader_id, one.current_leader.leader_epoch),
                )
                for one in topic.partition_responses
            ],
        )
        for topic in message.responses
    ]
    throttle_ms = message.throttle_time_ms
    assert encode_produce_response(kind.version, topics, throttle_ms, endpoints(message)) == message.encode(
        kind.version
    )
    framed = encode_produce_response(kind.version, topics, throttle_ms, endpoints(message), 42)
    assert framed == encode_response(0, kind.version, 42, message)
    short = [(topic, [row[:7] for row in rows]) for topic, rows in topics]
    for response in message.responses:
        for one in response.partition_responses:
            one.current_leader = produce.LeaderIdAndEpoch()
    assert encode_produce_response(kind.version, short, throttle_ms, endpoints(message)) == message.encode(kind.version)


# Fetch.


@many
@given(versions_of("FetchRequest"), Seeds)
def test_fetch_requests_are_read_alike(kind: Kind, seed: int) -> None:
    message: fetch.FetchRequest = random_message(kind, seed)
    raw = b"??" + message.encode(kind.version)
    for buffer, end in ((raw, None), (memoryview(bytearray(raw + b"\xff" * 9)), len(raw))):
        request = parse_fetch(buffer, 2, kind.version, end)
        if kind.version >= 15:
            assert request.replica_id == message.replica_state.replica_id
            assert request.replica_epoch == message.replica_state.replica_epoch
        else:
            assert (request.replica_id, request.replica_epoch) == (message.replica_id, -1)
        for name in ("cluster_id", "max_wait_ms", "min_bytes", "max_bytes", "isolation_level", "rack_id"):
            assert getattr(request, name) == getattr(message, name), name
        assert (request.session_id, request.session_epoch) == (message.session_id, message.session_epoch)
        by_id = kind.version >= 13
        directories = {}
        high_watermarks = {}
        topics = []
        for topic in message.topics:
            key = topic.topic_id if by_id else topic.topic
            rows = []
            for one in topic.partitions:
                rows.append(
                    (
                        one.partition,
                        one.current_leader_epoch,
                        one.fetch_offset,
                        one.last_fetched_epoch,
                        one.log_start_offset,
                        one.partition_max_bytes,
                    )
                )
                if one.replica_directory_id != ZERO_TOPIC_ID:
                    directories[(key, one.partition)] = one.replica_directory_id
                if one.high_watermark != 0x7FFF_FFFF_FFFF_FFFF:
                    high_watermarks[(key, one.partition)] = one.high_watermark
            topics.append((key, rows))
        assert request.topics == topics
        assert (request.directories or {}, request.high_watermarks or {}) == (directories, high_watermarks)
        assert request.forgotten == [
            (topic.topic_id if by_id else topic.topic, topic.partitions) for topic in message.forgotten_topics_data
        ]


def fetch_topics(message: fetch.FetchResponse, version: int) -> list[tuple[str | bytes, list[tuple[Any, ...]]]]:
    return [
        (
            topic.topic_id if version >= 13 else topic.topic,
            [
                (
                    one.partition_index,
                    one.error_code,
                    one.high_watermark,
                    one.last_stable_offset,
                    one.log_start_offset,
                    None
                    if one.aborted_transactions is None
                    else [(row.producer_id, row.first_offset) for row in one.aborted_transactions],
                    one.preferred_read_replica,
                    one.records,
                    (one.diverging_epoch.epoch, one.diverging_epoch.end_offset),
                    (one.current_leader.leader_id, one.current_leader.leader_epoch),
                    (one.snapshot_id.end_offset, one.snapshot_id.epoch),
                )
                for one in topic.partitions
            ],
        )
        for topic in message.responses
    ]


@many
@given(versions_of("FetchResponse"), Seeds, strategies.booleans())
def test_fetch_responses_are_said_alike(kind: Kind, seed: int, framed: bool) -> None:
    message: fetch.FetchResponse = random_message(kind, seed, tags=False)
    rng = random.Random(seed)
    gaps = 0
    topics = fetch_topics(message, kind.version)
    for _, rows in topics:
        for index, row in enumerate(rows):
            if row[7] is not None and rng.random() < 0.5:
                gaps += 1
                rows[index] = (*row[:7], RecordsGap(len(row[7]), row[7]), *row[8:])
            elif row[8:] == ((-1, -1), (-1, -1), (-1, -1)):
                rows[index] = row[:8]
    pieces = encode_fetch_response(
        kind.version,
        topics,
        throttle_ms=message.throttle_time_ms,
        error=message.error_code,
        session_id=message.session_id,
        node_endpoints=endpoints(message),
        correlation_id=42 if framed else None,
    )
    assert sum(isinstance(piece, RecordsGap) for piece in pieces) == gaps
    assert gaps > 0 or len(pieces) == 1
    said = b"".join(piece.source if isinstance(piece, RecordsGap) else piece for piece in pieces)
    assert said == (encode_response(1, kind.version, 42, message) if framed else message.encode(kind.version))


# Metadata.


@many
@given(versions_of("MetadataResponse"), Seeds)
def test_metadata_responses_are_said_alike(kind: Kind, seed: int) -> None:
    message: metadata.MetadataResponse = random_message(kind, seed, tags=False)
    topics = [
        encode_metadata_topic(
            kind.version,
            topic.error_code,
            topic.name,
            topic.topic_id,
            [
                (
                    one.error_code,
                    one.partition_index,
                    one.leader_id,
                    one.leader_epoch,
                    one.replica_nodes,
                    one.isr_nodes,
                    one.offline_replicas,
                )
                for one in topic.partitions
            ],
            internal=topic.is_internal,
            operations=topic.topic_authorized_operations,
        )
        for topic in message.topics
    ]
    for correlation_id in (None, 42):
        said = encode_metadata_response(
            kind.version,
            [(broker.node_id, broker.host, broker.port, broker.rack) for broker in message.brokers],
            message.cluster_id,
            message.controller_id,
            topics,
            throttle_ms=message.throttle_time_ms,
            operations=message.cluster_authorized_operations,
            error=message.error_code,
            correlation_id=correlation_id,
        )
        assert said == (
            message.encode(kind.version) if correlation_id is None else encode_response(3, kind.version, 42, message)
        )


# Garbage.

Parse = Callable[[bytes, int, int], object]

PARSERS: dict[str, Parse] = {
    "ProduceRequest": parse_produce,
    "FetchRequest": parse_fetch,
}


def judge(parse: Parse, kind: Kind, raw: bytes) -> None:
    """Both decoders take `raw`, or both refuse it."""
    try:
        kind.type.decode(raw, kind.version)
        generated = True
    except DecodeError:
        generated = False
    try:
        parse(raw, 0, kind.version)
        ours = True
    except DecodeError:
        ours = False
    assert ours == generated, (kind.id, raw)


def fight(name: str, rounds: int, seed: int) -> None:
    rng = random.Random(seed)
    for kind in _BY_NAME[name]:
        for _ in range(rounds):
            good = random_message(kind, rng.randrange(1 << 30)).encode(kind.version)
            judge(PARSERS[name], kind, good)
            judge(PARSERS[name], kind, good[: rng.randrange(len(good) + 1)])
            for _ in range(5):
                judge(PARSERS[name], kind, mutation(rng, good[:600]))
                judge(PARSERS[name], kind, noise(rng, rng.randrange(60)))


@pytest.mark.parametrize("name", sorted(PARSERS))
def test_the_same_garbage_is_refused(name: str) -> None:
    fight(name, rounds=20, seed=1)


@pytest.mark.slow
@pytest.mark.parametrize("name", sorted(PARSERS))
@pytest.mark.parametrize("seed", range(20))
def test_much_of_the_same_garbage_is_refused(name: str, seed: int) -> None:
    fight(name, rounds=300, seed=100 + seed)


def test_reading_past_the_frame_in_a_pooled_buffer_is_refused() -> None:
    """The next frame's bytes lie behind this one's in the same buffer: a length that reaches into them is a lie."""
    for name, parse in PARSERS.items():
        for kind in _BY_NAME[name]:
            raw = random_message(kind, 3).encode(kind.version)
            buffer = bytearray(raw + raw)
            for end in range(max(0, len(raw) - 40), len(raw)):
                with pytest.raises(DecodeError):
                    parse(buffer, 0, kind.version, end)  # type: ignore[call-arg, arg-type]


def test_hot_encoders_refuse_what_a_version_cannot_say() -> None:
    with pytest.raises(EncodeError, match="by id"):
        encode_produce_response(13, [("name", [])])
    with pytest.raises(EncodeError, match="by name"):
        encode_produce_response(9, [(bytes(16), [])])
    with pytest.raises(EncodeError, match="by name"):
        encode_produce_response(3, [(bytes(16), [])])
    with pytest.raises(EncodeError, match="cannot say"):
        encode_produce_response(9, [("name", [(1 << 40, 0, 0, 0, 0, (), None)])])
    with pytest.raises(EncodeError, match="by id"):
        encode_fetch_response(13, [("name", [])])
    with pytest.raises(EncodeError, match="by name"):
        encode_fetch_response(12, [(bytes(16), [])])
    with pytest.raises(EncodeError, match="by name"):
        encode_fetch_response(4, [(bytes(16), [])])
    gap = RecordsGap(0x7FFF_FFFE)
    with pytest.raises(EncodeError, match="too long"):
        encode_fetch_response(13, [(bytes(16), [(0, 0, 0, 0, 0, None, -1, gap)])], correlation_id=1)
    for version in (9, 11):
        with pytest.raises(EncodeError, match="needs a topic's name"):
            encode_metadata_topic(version, 0, None, bytes(16), [])
    with pytest.raises(EncodeError, match="no version 99"):
        encode_produce_response(99, [])
