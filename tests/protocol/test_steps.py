"""Messages in steps: the same results and errors as in one piece, small steps, and no more memory than is allowed."""

from __future__ import annotations

import gc
import random
import sys
import tracemalloc
from collections.abc import Callable, Iterator
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.protocol.random_messages import Kind, kinds, random_message
from tests.protocol.test_hostile_bytes import mutation
from tests.searches import examples, some, spread

from ottla.protocol.apis import APIS
from ottla.protocol.errors import DecodeError, EncodeError, ProtocolError
from ottla.protocol.fields import LENGTH_BYTES
from ottla.protocol.generated import (
    api_versions,
    create_topics,
    delete_topics,
    describe_groups,
    elect_leaders,
    find_coordinator,
    list_offsets,
    metadata,
    offset_commit,
    sync_group,
    write_txn_markers,
)
from ottla.protocol.header import (
    PLAIN_FRAME_BYTES_MAX,
    RequestHeader,
    encode_request,
    encode_response,
    encode_response_steps,
    is_long,
    request_body_start,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import TAG_BYTES_MAX, TAGS_MAX
from ottla.protocol.stepping import HELD_BYTES_MAX, DecodingAllowance
from ottla.steps import Steps, at_once

UNBOUNDED = 1 << 50
#: Calls, of Python and of C, in one step: 32 elements, each of which takes up to seventy where it has tagged fields.
CALLS_A_STEP_MAX = 2500
#: What a message holds besides its elements.
SLACK = 4096

Outcome = tuple[str, Any]


def outcome(work: Callable[[], Any]) -> Outcome:
    try:
        return "value", work()
    except ProtocolError as error:
        return error.__class__.__name__, str(error)


def judge_bytes(kind: Kind, raw: bytes) -> None:
    for buf in (raw, memoryview(raw)):
        plain = outcome(lambda buf=buf: kind.type.decode(buf, kind.version))  # type: ignore[misc]
        stepped = outcome(
            lambda buf=buf: at_once(kind.type.decode_steps(buf, kind.version, 0, DecodingAllowance(UNBOUNDED)))  # type: ignore[misc]
        )
        # What is no number is not equal to itself.
        assert stepped == plain or repr(stepped) == repr(plain), kind.id


def judge_message(kind: Kind, message: Message) -> None:
    out = bytearray(b"before")
    plain = outcome(lambda: b"before" + message.encode(kind.version))
    stepped = outcome(lambda: at_once(message.encode_steps(out, kind.version)))
    assert (stepped if stepped[0] != "value" else ("value", bytes(out))) == plain, kind.id


def fight(kind: Kind, seed: int, mutations: int) -> None:
    message = random_message(kind, seed, long=3)
    judge_message(kind, message)
    raw = message.encode(kind.version)
    judge_bytes(kind, raw)
    rng = random.Random(seed)
    for _ in range(mutations):
        judge_bytes(kind, mutation(rng, raw))
        judge_bytes(kind, raw[: rng.randrange(len(raw) + 1)])
        judge_bytes(kind, mutation(rng, raw[:400]))


@pytest.mark.parametrize("name", spread(30, sorted({kind.schema.name for kind in kinds()})))
def test_steps_and_one_piece_agree(name: str) -> None:
    for kind in kinds():
        if kind.schema.name == name:
            for seed in range(2):
                fight(kind, seed, mutations=2)


@examples(60)
@given(st.sampled_from(kinds()), st.integers(0, 1 << 32))
def test_steps_and_one_piece_agree_anywhere(kind: Kind, seed: int) -> None:
    fight(kind, seed, mutations=3)


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.id)
def test_steps_and_one_piece_agree_often(kind: Kind) -> None:
    for seed in range(50, 80):
        fight(kind, seed, mutations=10)


def test_wrong_values_are_the_same_errors() -> None:
    rng = random.Random(9)
    for kind in kinds():
        message = random_message(kind, rng.randrange(1 << 30), long=1)
        slots = [name for name in message.__slots__ if name != "unknown_tags"]
        setattr(message, rng.choice(slots), rng.choice((None, 5, "text", 1 << 70, [None], [5, "a"], object)))
        judge_message(kind, message)
        for version in (kind.schema.versions.first - 1, kind.schema.versions.last + 1):
            judge_message(kind._replace(version=version), message)
            judge_bytes(kind._replace(version=version), b"\0" * 20)


# How much a step does.


def most_calls(steps: Steps[Any]) -> int:
    """The calls of the longest step: what a time would say, but the same on every machine."""
    calls = [0]

    def count(frame: object, event: str, argument: object) -> None:
        if event in {"call", "c_call"}:
            calls[-1] += 1

    sys.setprofile(count)
    try:
        calls.extend(0 for _ in steps)
    finally:
        sys.setprofile(None)
    return max(calls)


def widest(kind: Kind, count: int) -> Iterator[Message]:
    """Messages that have `count` elements in arrays at each depth, and one in all others."""
    for depth in range(4):
        wide = _Wide(kind, depth, count)
        message = wide.structure(kind.struct.name, 0)
        if wide.deepest >= depth:
            yield message


class _Wide:
    def __init__(self, kind: Kind, depth: int, count: int) -> None:
        self.kind = kind
        self.depth = depth
        self.count = count
        #: The depth of the innermost array that the version has.
        self.deepest = -1

    def structure(self, name: str, depth: int) -> Any:
        random_one = random_message
        struct = self.kind.schema.structs[name]
        shell = self.kind._replace(struct=struct)
        made = random_one(shell, 1)
        for one in struct.fields:
            if one.versions is None or self.kind.version not in one.versions:
                continue
            if one.array:
                self.deepest = max(self.deepest, depth)
                times = self.count if depth == self.depth else 1
                if one.struct:
                    element = self.structure(one.base, depth + 1)
                    value: Any = [element] * times
                else:
                    value = (getattr(made, one.name) or [{"string": "", "uuid": bytes(16)}.get(one.base, 0)])[
                        :1
                    ] * times
                setattr(made, one.name, value)
            elif one.struct and getattr(made, one.name) is not None:
                setattr(made, one.name, self.structure(one.base, depth))
        return made


@pytest.mark.parametrize("name", spread(20, sorted({kind.schema.name for kind in kinds()})))
def test_steps_are_small_however_wide_a_message_is(name: str) -> None:
    found = [kind for kind in kinds() if kind.schema.name == name]
    for kind in {one.struct.name: one for one in found}.values():  # each message in its last version
        reads = kind.schema.api_key < 0 or kind.struct.name.endswith("Request")
        writes = kind.schema.api_key < 0 or not reads
        for message in widest(kind, 1500):
            if reads:
                raw = message.encode(kind.version)
                steps = kind.type.decode_steps(raw, kind.version, 0, DecodingAllowance(UNBOUNDED))
                assert most_calls(steps) <= CALLS_A_STEP_MAX, kind.id
            if writes:
                assert most_calls(message.encode_steps(bytearray(), kind.version)) <= CALLS_A_STEP_MAX, kind.id


def test_long_text_ends_a_step() -> None:
    names = describe_groups.DescribeGroupsRequest(groups=["\u65e5" * 9000] * 100)
    steps = describe_groups.DescribeGroupsRequest.decode_steps(names.encode(5), 5, 0, DecodingAllowance())
    assert len(list(steps)) >= 100


def test_tagged_fields_of_one_place_have_a_bound() -> None:
    def tagged(count: int) -> bytes:
        raw = create_topics.CreateTopicsRequest().encode(7)
        # Twice the same number is taken as once, and needs no longer varints.
        varint = bytes((count,)) if count < 0x80 else bytes((count & 0x7F | 0x80, count >> 7))
        return raw[:-1] + varint + b"\x09\x00" * count

    assert create_topics.CreateTopicsRequest.decode(tagged(TAGS_MAX), 7)[0].unknown_tags == {9: b""}
    for count in (TAGS_MAX + 1, 1000):
        with pytest.raises(DecodeError, match=f"{count} tagged fields in one place, which holds 64 at most"):
            create_topics.CreateTopicsRequest.decode(tagged(count), 7)
    many = create_topics.CreateTopicsRequest(unknown_tags=dict.fromkeys(range(TAGS_MAX + 1), b""))
    with pytest.raises(EncodeError, match="65 tagged fields"):
        many.encode(7)


def test_a_tagged_field_has_a_bound() -> None:
    def tagged(size: int) -> bytes:
        raw = create_topics.CreateTopicsRequest().encode(7)
        return raw[:-1] + b"\x01\x09" + bytes((size & 0x7F | 0x80, size >> 7 & 0x7F | 0x80, size >> 14)) + bytes(size)

    longest = create_topics.CreateTopicsRequest.decode(tagged(TAG_BYTES_MAX), 7)[0]
    assert longest.unknown_tags == {9: bytes(TAG_BYTES_MAX)}
    with pytest.raises(DecodeError, match="a tagged field of 1048577 bytes, which has 1048576 at most"):
        create_topics.CreateTopicsRequest.decode(tagged(TAG_BYTES_MAX + 1), 7)


def test_the_tagged_fields_of_a_requests_header_are_gone_over_and_not_copied() -> None:
    tags = {1: bytes(TAG_BYTES_MAX)}
    header = RequestHeader(api_key=18, api_version=3, correlation_id=1, unknown_tags=tags)
    frame = encode_request(header, api_versions.ApiVersionsRequest())[LENGTH_BYTES:]
    tracemalloc.start()
    start = request_body_start(frame)
    _, most = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    assert api_versions.ApiVersionsRequest.decode(frame, 3, start)[1] == len(frame)
    assert most < TAG_BYTES_MAX // 2


# What a request holds.


def held_and_taken(cls: type[Message], raw: bytes, version: int) -> tuple[int, int]:
    """The memory that a decoded message really takes, and what its allowance says."""
    at_once(cls.decode_steps(raw, version, 0, DecodingAllowance(UNBOUNDED)))  # loads what has to be loaded
    gc.collect()
    allowance = DecodingAllowance(UNBOUNDED)
    tracemalloc.start()
    try:
        before = tracemalloc.get_traced_memory()[0]
        message = at_once(cls.decode_steps(raw, version, 0, allowance))
        held = tracemalloc.get_traced_memory()[0] - before
        del message
    finally:
        tracemalloc.stop()
    return held, allowance.most - allowance.left


@pytest.mark.parametrize("name", spread(20, [api.name for api in APIS.values()]))
def test_allowance_counts_at_least_what_is_held(name: str) -> None:
    found = [kind for kind in kinds() if kind.schema.name == name and kind.struct.name.endswith("Request")]
    for kind in (found[0], found[-1]) if found[0].type.HAS_ARRAYS else ():
        for message in widest(kind, 200):
            held, taken = held_and_taken(kind.type, message.encode(kind.version), kind.version)
            assert held <= taken + SLACK, kind.id


@pytest.mark.parametrize("character", some(["a", "\u00e9", "\u65e5", "\U0001f600"], "a", "\u65e5"))
def test_allowance_knows_how_wide_text_is(character: str) -> None:
    """One wide character makes all others of its string as wide."""
    for length in (1, 10, 90, 5000):
        text = character + "a" * length
        request: Message = describe_groups.DescribeGroupsRequest(groups=[text] * 300)
        held, taken = held_and_taken(type(request), request.encode(5), 5)
        assert held <= taken + SLACK
        topics = [create_topics.CreatableTopic(name=text)] * 300
        request = create_topics.CreateTopicsRequest(topics=topics)
        held, taken = held_and_taken(type(request), request.encode(7), 7)
        assert held <= taken + SLACK


def test_tagged_fields_count_as_what_they_hold() -> None:
    tags = dict.fromkeys(range(60), b"x")
    request = metadata.MetadataRequest(
        topics=[metadata.MetadataRequestTopic(name="t", unknown_tags=tags) for _ in range(300)]
    )
    held, taken = held_and_taken(metadata.MetadataRequest, request.encode(12), 12)
    assert held <= taken + SLACK
    with pytest.raises(DecodeError, match="memory"):
        at_once(metadata.MetadataRequest.decode_steps(request.encode(12), 12, 0, DecodingAllowance(taken - 1)))
    at_once(metadata.MetadataRequest.decode_steps(request.encode(12), 12, 0, DecodingAllowance(taken)))


def test_array_that_is_not_allowed_is_refused_before_it_is_read() -> None:
    """Twenty million empty names, in a frame of as many bytes twice."""
    raw = b"\x81\xda\xc4\x09" + b"\x01\x00" * 20_000_000
    allowance = DecodingAllowance()
    tracemalloc.start()
    try:
        with pytest.raises(DecodeError, match="an array of 20000000 elements takes the request beyond 67108864 bytes"):
            at_once(metadata.MetadataRequest.decode_steps(raw, 9, 0, allowance))
        assert tracemalloc.get_traced_memory()[1] < 1 << 20
    finally:
        tracemalloc.stop()


def test_small_arrays_together_are_refused_as_well() -> None:
    """Each of many topics has a few partitions: none of the arrays is long."""
    topic = list_offsets.ListOffsetsTopic(name="t", partitions=[list_offsets.ListOffsetsPartition()] * 4)
    raw = list_offsets.ListOffsetsRequest(topics=[topic] * 3000).encode(11)
    with pytest.raises(DecodeError, match="a request of more than 1000000 bytes of memory"):
        at_once(list_offsets.ListOffsetsRequest.decode_steps(raw, 11, 0, DecodingAllowance(1_000_000)))


def test_client_with_200_000_partitions_passes() -> None:
    offsets = [list_offsets.ListOffsetsPartition(partition_index=index, timestamp=-1) for index in range(1000)]
    commits = [
        offset_commit.OffsetCommitRequestPartition(
            partition_index=index, committed_offset=1 << 40, committed_metadata=""
        )
        for index in range(1000)
    ]
    for request, version in (
        (
            list_offsets.ListOffsetsRequest(
                topics=[list_offsets.ListOffsetsTopic(name=f"topic-{n}", partitions=offsets) for n in range(200)]
            ),
            11,
        ),
        (
            offset_commit.OffsetCommitRequest(
                topics=[
                    offset_commit.OffsetCommitRequestTopic(name=f"topic-{n}", partitions=commits) for n in range(200)
                ]
            ),
            9,
        ),
        (delete_topics.DeleteTopicsRequest(topic_names=[f"topic-{n}" for n in range(200_000)]), 5),
    ):
        raw = request.encode(version)
        at_once(type(request).decode_steps(raw, version, 0, DecodingAllowance(HELD_BYTES_MAX)))


@pytest.mark.parametrize("count", [200_000, 300_000])
def test_what_a_request_names_is_charged_for_what_is_made_of_it(count: int) -> None:
    """A number of four bytes became a partition, a set's entry and an answer: 400 MB of a frame of 6 MB."""
    numbers = list(range(count))
    partitions = elect_leaders.TopicPartitions(topic="t", partitions=numbers)
    markers = write_txn_markers.WritableTxnMarkerTopic(name="t", partition_indexes=numbers)
    for request, version in (
        (elect_leaders.ElectLeadersRequest(topic_partitions=[partitions]), 2),
        (
            write_txn_markers.WriteTxnMarkersRequest(markers=[write_txn_markers.WritableTxnMarker(topics=[markers])]),
            2,
        ),
        (find_coordinator.FindCoordinatorRequest(coordinator_keys=["g"] * count), 6),
    ):
        raw = request.encode(version)
        steps = type(request).decode_steps(raw, version, 0, DecodingAllowance(HELD_BYTES_MAX))
        if count > 220_000:
            with pytest.raises(DecodeError):
                at_once(steps)
        else:
            at_once(steps)


# Answers.


def test_frames_in_steps_are_the_same() -> None:
    for kind in kinds():
        if not kind.struct.name.endswith("Response"):
            continue
        message = random_message(kind, 5, long=2)
        expected = encode_response(kind.schema.api_key, kind.version, 7, message)
        steps = encode_response_steps(kind.schema.api_key, kind.version, 7, message, len(expected))
        assert at_once(steps) == expected
        with pytest.raises(EncodeError, match=f"of more than {len(expected) - 1} bytes"):
            at_once(encode_response_steps(kind.schema.api_key, kind.version, 7, message, len(expected) - 1))


def test_answer_that_is_too_long_is_found_while_it_is_encoded() -> None:
    rows = [list_offsets.ListOffsetsPartitionResponse(partition_index=index) for index in range(100_000)]
    topics = [list_offsets.ListOffsetsTopicResponse(name="t", partitions=rows)]
    answer = list_offsets.ListOffsetsResponse(topics=topics)
    steps = encode_response_steps(2, 11, 7, answer, 10_000)
    taken: list[None] = []
    with pytest.raises(EncodeError, match="an answer to LIST_OFFSETS of more than 10000 bytes"):
        taken.extend(steps)
    assert 5 < len(taken) < 50


def test_long_frames_are_those_that_take_long() -> None:
    assert not is_long(PLAIN_FRAME_BYTES_MAX)
    assert is_long(PLAIN_FRAME_BYTES_MAX + 1)


def test_byte_string_of_a_view_is_not_copied() -> None:
    rows = [sync_group.SyncGroupRequestAssignment(member_id="m", assignment=b"x" * 100)]
    buffer = bytearray(sync_group.SyncGroupRequest(assignments=rows).encode(5))
    request, _ = at_once(sync_group.SyncGroupRequest.decode_steps(memoryview(buffer), 5, 0, DecodingAllowance()))
    assert isinstance(request.assignments[0].assignment, memoryview)
