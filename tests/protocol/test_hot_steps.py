"""Produce and Fetch in steps: results and errors as in one piece, small steps, and an allowance."""

from __future__ import annotations

import random
import tracemalloc
from typing import Any

import pytest
from hypothesis import given, strategies
from tests.protocol.random_messages import Kind, kinds, random_message
from tests.protocol.test_hostile_bytes import mutation, noise
from tests.protocol.test_hot_codecs import endpoints, fetch_topics
from tests.protocol.test_steps import CALLS_A_STEP_MAX, SLACK, UNBOUNDED, Outcome, most_calls, outcome
from tests.searches import examples

from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.generated import fetch, produce
from ottla.protocol.hot.fetch import FetchRequest, parse_fetch
from ottla.protocol.hot.fetch_answer import RecordsGap, encode_fetch_response
from ottla.protocol.hot.fetch_answer_steps import encode_fetch_response_steps
from ottla.protocol.hot.fetch_steps import parse_fetch_steps
from ottla.protocol.hot.produce import PLAIN_PARTS_MAX, TooManyParts, encode_produce_response, parse_produce
from ottla.protocol.hot.produce_steps import encode_produce_response_steps, parse_produce_steps
from ottla.protocol.stepping import DecodingAllowance
from ottla.steps import at_once

FRAME_BYTES_MAX = 1 << 30

Seeds = strategies.integers(0, 1 << 32)
many = examples(120)


def of(name: str) -> list[Kind]:
    return [kind for kind in kinds() if kind.struct.name == name]


def fields(result: Outcome) -> Outcome:
    if isinstance(result[1], FetchRequest):
        return "value", [getattr(result[1], name) for name in FetchRequest.__slots__]
    return result


def judge(kind: Kind, buf: Any, end: int) -> None:
    plain, steps = {"P": (parse_produce, parse_produce_steps), "F": (parse_fetch, parse_fetch_steps)}[
        kind.struct.name[0]
    ]
    allowance = DecodingAllowance(UNBOUNDED)
    expected = fields(outcome(lambda: plain(buf, 0, kind.version, end)))
    assert fields(outcome(lambda: at_once(steps(buf, 0, kind.version, end, allowance)))) == expected, kind.id  # type: ignore[arg-type]


@pytest.mark.parametrize("name", ["ProduceRequest", "FetchRequest"])
@many
@given(seed=Seeds)
def test_requests_are_parsed_alike(name: str, seed: int) -> None:
    rng = random.Random(seed)
    kind = rng.choice(of(name))
    raw = random_message(kind, seed, long=4).encode(kind.version)
    for _ in range(4):
        for wrong in (
            raw,
            mutation(rng, raw),
            mutation(rng, raw[:300]),
            raw[: rng.randrange(len(raw) + 1)],
            noise(rng, 60),
        ):
            judge(kind, wrong, len(wrong))
            judge(kind, memoryview(bytearray(wrong + raw)), len(wrong))  # the next frame in the same buffer
            judge(kind, bytearray(wrong), max(0, len(wrong) - rng.randrange(9)))


@pytest.mark.slow
@pytest.mark.parametrize("kind", [*of("ProduceRequest"), *of("FetchRequest")], ids=lambda kind: kind.id)
def test_requests_are_parsed_alike_often(kind: Kind) -> None:
    rng = random.Random(kind.id)
    for seed in range(100):
        raw = random_message(kind, seed, long=4).encode(kind.version)
        for _ in range(20):
            wrong = mutation(rng, raw)
            judge(kind, wrong, len(wrong))


def test_versions_out_of_range_are_refused_alike() -> None:
    for name in ("ProduceRequest", "FetchRequest"):
        for version in (-1, 3, 14, 19, 99):
            judge(of(name)[0]._replace(version=version), b"\0" * 50, 50)


def produce_request(topics: int, partitions: int, version: int, records: bytes = b"") -> bytes:
    rows = [produce.PartitionProduceData(index=index, records=records) for index in range(partitions)]
    return produce.ProduceRequest(
        topic_data=[
            produce.TopicProduceData(name="topic", partition_data=rows)
            if version < 13
            else produce.TopicProduceData(topic_id=bytes(16), partition_data=rows)
            for _ in range(topics)
        ]
    ).encode(version)


def fetch_request(topics: int, partitions: int, version: int, *, forgets: bool = True) -> bytes:
    rows = [fetch.FetchPartition(partition=index, fetch_offset=1 << 40) for index in range(partitions)]
    forgotten = [fetch.ForgottenTopic(partitions=list(range(partitions)))] * topics
    return fetch.FetchRequest(
        topics=[fetch.FetchTopic(partitions=rows)] * topics,
        forgotten_topics_data=forgotten if forgets and version >= 7 else [],
    ).encode(version)


@pytest.mark.parametrize("version", [3, 9, 13])
def test_produce_of_many_partitions_is_given_up(version: int) -> None:
    """A long frame with few partitions is parsed at once; a short one with many is not."""
    whole = produce_request(1, PLAIN_PARTS_MAX, version, b"x" * 100)
    parse_produce(whole, 0, version, len(whole), PLAIN_PARTS_MAX)
    large = produce_request(2, 2, version, b"x" * 1_000_000)
    parse_produce(large, 0, version, len(large), PLAIN_PARTS_MAX)
    for topics, partitions in ((1, PLAIN_PARTS_MAX + 1), (PLAIN_PARTS_MAX + 1, 0), (PLAIN_PARTS_MAX + 1, 1), (60, 60)):
        raw = produce_request(topics, partitions, version)
        with pytest.raises(TooManyParts):
            parse_produce(raw, 0, version, len(raw), PLAIN_PARTS_MAX)
        assert len(parse_produce(raw, 0, version)[3]) == topics


def test_produce_of_many_tagged_fields_is_given_up() -> None:
    tags = dict.fromkeys(range(10, 70), b"")
    for message in (
        [produce.TopicProduceData(partition_data=[], unknown_tags=tags)] * 40,
        [produce.TopicProduceData(partition_data=[produce.PartitionProduceData(records=b"", unknown_tags=tags)])] * 40,
    ):
        raw = produce.ProduceRequest(topic_data=message).encode(9)
        with pytest.raises(TooManyParts):
            parse_produce(raw, 0, 9, len(raw), PLAIN_PARTS_MAX)
        assert most_calls(parse_produce_steps(raw, 0, 9, len(raw), DecodingAllowance())) <= CALLS_A_STEP_MAX


@pytest.mark.parametrize(("topics", "partitions"), [(3000, 0), (3000, 1), (1, 3000), (60, 60), (100, 31)])
def test_requests_are_parsed_in_small_steps(topics: int, partitions: int) -> None:
    for version in (3, 9, 13):
        raw = produce_request(topics, partitions, version)
        assert most_calls(parse_produce_steps(raw, 0, version, len(raw), DecodingAllowance())) <= CALLS_A_STEP_MAX
    for version in (4, 9, 13, 18):
        raw = fetch_request(topics, partitions, version)
        assert most_calls(parse_fetch_steps(raw, 0, version, len(raw), DecodingAllowance())) <= CALLS_A_STEP_MAX


@pytest.mark.parametrize(("topics", "partitions"), [(400, 0), (400, 1), (1, 400), (20, 20)])
def test_allowance_counts_at_least_what_is_held(topics: int, partitions: int) -> None:
    for version in (3, 9, 13, 5, 11, 18):
        produced = version in {3, 9, 13}
        raw = (produce_request if produced else fetch_request)(topics, partitions, version)
        steps = parse_produce_steps if produced else parse_fetch_steps
        allowance = DecodingAllowance(UNBOUNDED)
        tracemalloc.start()
        before = tracemalloc.get_traced_memory()[0]
        held = at_once(steps(raw, 0, version, len(raw), allowance))  # type: ignore[arg-type, var-annotated]
        taken = tracemalloc.get_traced_memory()[0] - before
        tracemalloc.stop()
        del held
        assert taken <= allowance.most - allowance.left + SLACK, version


def test_client_with_200_000_partitions_passes_and_one_with_a_million_does_not() -> None:
    for raw, parse in (
        (produce_request(200, 1000, 13), parse_produce_steps),
        (fetch_request(200, 1000, 13, forgets=False), parse_fetch_steps),
    ):
        at_once(parse(raw, 0, 13, len(raw), DecodingAllowance()))  # type: ignore[arg-type]
    raw = fetch_request(1000, 1000, 13)
    with pytest.raises(DecodeError, match="memory"):
        at_once(parse_fetch_steps(raw, 0, 13, len(raw), DecodingAllowance()))
    raw = produce_request(1000, 1000, 13)
    with pytest.raises(DecodeError, match="memory"):
        at_once(parse_produce_steps(raw, 0, 13, len(raw), DecodingAllowance()))


# Answers.


def joined(pieces: list[bytes | RecordsGap]) -> bytes:
    return b"".join(piece.source if isinstance(piece, RecordsGap) else piece for piece in pieces)


@many
@given(strategies.sampled_from(of("FetchResponse")), Seeds)
def test_fetch_responses_are_said_alike(kind: Kind, seed: int) -> None:
    message: fetch.FetchResponse = random_message(kind, seed, tags=False, long=4)
    rng = random.Random(seed)
    topics = fetch_topics(message, kind.version)
    for _, rows in topics:
        for index, row in enumerate(rows):
            if row[7] is not None and rng.random() < 0.3:
                rows[index] = (*row[:7], RecordsGap(len(row[7]), row[7]), *row[8:])
    words: dict[str, Any] = {
        "throttle_ms": message.throttle_time_ms,
        "error": message.error_code,
        "session_id": message.session_id,
        "node_endpoints": endpoints(message),
        "correlation_id": 42,
    }
    expected = joined(encode_fetch_response(kind.version, topics, **words))
    assert joined(at_once(encode_fetch_response_steps(kind.version, topics, **words, limit=len(expected)))) == expected
    with pytest.raises(EncodeError, match="an answer to FETCH of more than"):
        at_once(encode_fetch_response_steps(kind.version, topics, **words, limit=len(expected) - 1))


@many
@given(strategies.sampled_from(of("ProduceResponse")), Seeds)
def test_produce_responses_are_said_alike(kind: Kind, seed: int) -> None:
    rng = random.Random(seed)

    def row(index: int) -> tuple[Any, ...]:
        errors = [(0, "why")] if rng.random() < 0.1 else []
        plain = (index, 0, rng.randrange(1 << 40), -1, 0, errors, rng.choice((None, None, "text")))
        return rng.choice((plain, (*plain, (3, 4)), (*plain, None)))

    topics: list[tuple[str | bytes, list[tuple[Any, ...]]]] = [
        (
            bytes(16) if kind.version >= 13 else f"topic-{n}",
            [row(index) for index in range(rng.choice((0, 1, 5, 33, 90)))],
        )
        for n in range(rng.choice((0, 1, 3, 40)))
    ]
    nodes = [(1, "host", 9092, None)]
    expected = encode_produce_response(kind.version, topics, 7, nodes, 42)
    steps = encode_produce_response_steps(kind.version, topics, 7, nodes, correlation_id=42, limit=len(expected))
    assert at_once(steps) == expected
    with pytest.raises(EncodeError, match="an answer to PRODUCE of more than"):
        at_once(
            encode_produce_response_steps(kind.version, topics, 7, nodes, correlation_id=42, limit=len(expected) - 1)
        )


@pytest.mark.parametrize(("topics", "partitions"), [(3000, 0), (3000, 1), (1, 3000), (60, 60), (100, 31)])
def test_answers_are_encoded_in_small_steps(topics: int, partitions: int) -> None:
    for version in (4, 11, 12, 18):
        name: str | bytes = bytes(16) if version >= 13 else "t"
        gap = RecordsGap(5, b"12345")
        fetched = [(index, 0, 5, 5, 0, None, -1, gap if index % 2 else b"records") for index in range(partitions)]
        steps = encode_fetch_response_steps(
            version, [(name, fetched)] * topics, correlation_id=1, limit=FRAME_BYTES_MAX
        )
        assert most_calls(steps) <= CALLS_A_STEP_MAX
    for version in (0, 8, 9, 13):
        name = bytes(16) if version >= 13 else "t"
        produced = [(index, 0, 5, -1, 0, [], None) for index in range(partitions)]
        written = encode_produce_response_steps(
            version, [(name, produced)] * topics, correlation_id=1, limit=FRAME_BYTES_MAX
        )
        assert most_calls(written) <= CALLS_A_STEP_MAX


def test_what_a_version_cannot_say_is_refused_alike() -> None:
    for version, topic, row in (
        (13, "name", (0, 0, 0, 0, 0, None, -1, None)),
        (12, bytes(16), (0, 0, 0, 0, 0, None, -1, None)),
        (4, bytes(16), (0, 0, 0, 0, 0, None, -1, None)),
        (12, "name", (1 << 40, 0, 0, 0, 0, None, -1, None)),
        (99, "name", (0, 0, 0, 0, 0, None, -1, None)),
    ):
        for count in (1, 100):
            topics: Any = [(topic, [row] * count)]
            expected = outcome(lambda version=version, topics=topics: encode_fetch_response(version, topics))  # type: ignore[misc]
            assert expected[0] == "EncodeError"
            stepped = outcome(
                lambda version=version, topics=topics: at_once(  # type: ignore[misc]
                    encode_fetch_response_steps(version, topics, correlation_id=1, limit=FRAME_BYTES_MAX)
                )
            )
            assert stepped == expected
    for version, name in ((13, "name"), (9, bytes(16)), (3, bytes(16)), (9, "x" * 40_000), (99, "name")):
        rows: Any = [(name, [(0, 0, 0, 0, 0, [], None)] * 100)]
        expected = outcome(lambda version=version, rows=rows: encode_produce_response(version, rows))  # type: ignore[misc]
        assert expected[0] == "EncodeError"
        stepped = outcome(
            lambda version=version, rows=rows: at_once(  # type: ignore[misc]
                encode_produce_response_steps(version, rows, correlation_id=1, limit=FRAME_BYTES_MAX)
            )
        )
        assert stepped == expected
