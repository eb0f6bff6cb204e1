"""Subscriptions and assignments as Kafka writes them, checked against an implementation of somebody else."""

from __future__ import annotations

import io
import struct

import pytest
from hypothesis import given
from hypothesis import strategies as st
from kio.schema.consumer_protocol_assignment.v0 import data as assignment_v0
from kio.schema.consumer_protocol_assignment.v3 import data as assignment_v3
from kio.schema.consumer_protocol_subscription.v0 import data as subscription_v0
from kio.schema.consumer_protocol_subscription.v1 import data as subscription_v1
from kio.schema.consumer_protocol_subscription.v2 import data as subscription_v2
from kio.schema.consumer_protocol_subscription.v3 import data as subscription_v3
from kio.serial import entity_reader, entity_writer

from ottla.client.consuming.group.assignors.user_data import (
    decode_generation,
    decode_previous,
    encode_generation,
    encode_previous,
)
from ottla.client.consuming.group.wire import (
    Assignment,
    Subscription,
    decode_assignment,
    decode_subscription,
    encode_assignment,
    encode_subscription,
)
from ottla.model import TopicPartition
from ottla.protocol.errors import DecodeError

names = st.text(st.characters(exclude_categories=["Cs"]), max_size=20)
partitions = st.lists(st.builds(TopicPartition, names, st.integers(0, 2**31 - 1)), max_size=8, unique=True).map(
    lambda found: tuple(sorted(found))
)
some_bytes = st.none() | st.binary(max_size=30)
subscriptions = st.builds(
    Subscription,
    st.frozensets(names, max_size=5),
    some_bytes,
    partitions,
    st.integers(-1, 2**31 - 1),
    st.none() | names,
    st.none(),
)

KIO = {0: subscription_v0, 1: subscription_v1, 2: subscription_v2, 3: subscription_v3}


@given(subscriptions, st.integers(0, 3))
def test_a_subscription_there_and_back(told: Subscription, version: int) -> None:
    known = told
    if version < 3:
        known = known._replace(rack=None)
    if version < 2:
        known = known._replace(generation=-1)
    if version < 1:
        known = known._replace(owned=())
    found = decode_subscription(encode_subscription(told, version))
    assert found._replace(owned=tuple(sorted(found.owned))) == known


@given(st.builds(Assignment, partitions, some_bytes), st.integers(0, 3))
def test_an_assignment_there_and_back(told: Assignment, version: int) -> None:
    assert decode_assignment(encode_assignment(told, version)) == told


@given(subscriptions, st.integers(0, 3))
def test_subscriptions_are_what_kafka_writes(told: Subscription, version: int) -> None:
    written = encode_subscription(told, version)
    kind = KIO[version].ConsumerProtocolSubscription
    found, _ = entity_reader(kind)(memoryview(written), 2)
    assert sorted(found.topics) == sorted(told.topics)
    assert found.user_data == told.user_data
    if version >= 1:
        owned = {(one.topic, number) for one in found.owned_partitions for number in one.partitions}
        assert owned == set(told.owned)
    assert struct.unpack_from(">h", written) == (version,)
    again = io.BytesIO()
    entity_writer(kind)(again, found)
    assert again.getvalue() == written[2:]


@given(st.builds(Assignment, partitions, some_bytes))
def test_assignments_are_what_kafka_writes(told: Assignment) -> None:
    for version, module in (0, assignment_v0), (3, assignment_v3):
        found, _ = entity_reader(module.ConsumerProtocolAssignment)(memoryview(encode_assignment(told, version)), 2)
        assert {(one.topic, n) for one in found.assigned_partitions for n in one.partitions} == set(told.partitions)


def test_the_bytes_of_a_subscription() -> None:
    told = Subscription(frozenset({"b", "a"}), None, (TopicPartition("a", 1),), 7, "r")
    assert encode_subscription(told) == (
        b"\x00\x03" + b"\x00\x00\x00\x02\x00\x01a\x00\x01b" + b"\xff\xff\xff\xff"
        b"\x00\x00\x00\x01\x00\x01a\x00\x00\x00\x01\x00\x00\x00\x01" + b"\x00\x00\x00\x07" + b"\x00\x01r"
    )


def test_a_newer_version_is_read_as_far_as_it_is_known() -> None:
    told = Subscription(frozenset({"t"}), b"u", (), 3, "rack")
    newer = b"\x00\x09" + encode_subscription(told)[2:] + b"what is new"
    assert decode_subscription(newer) == told
    given = Assignment((TopicPartition("t", 0),), b"u")
    assert decode_assignment(b"\x00\x04" + encode_assignment(given)[2:] + b"new") == given


def test_no_bytes_assign_nothing() -> None:
    assert decode_assignment(b"") == Assignment()


@pytest.mark.parametrize("data", [b"", b"\x00", b"\xff\xff", b"\x00\x00\x7f\xff\xff\xff"])
def test_what_is_no_subscription(data: bytes) -> None:
    with pytest.raises(DecodeError):
        decode_subscription(data)


@given(st.binary(max_size=60))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in decode_subscription, decode_assignment:
        try:
            read(data)
        except DecodeError:
            continue
    found, _ = decode_previous(data)
    assert len(found) <= len(data) // 4
    decode_generation(data)


@given(partitions, st.integers(-1, 2**31 - 1))
def test_what_sticky_members_had(had: tuple[TopicPartition, ...], generation: int) -> None:
    written = encode_previous(had, generation)
    found, told = decode_previous(written)
    assert (tuple(sorted(found)), told) == (had, generation)
    # As members before Kafka 2.3 wrote it, without the generation.
    assert decode_previous(written[:-4])[1] == -1
    assert tuple(sorted(decode_previous(written[:-4])[0])) == had
    assert decode_generation(encode_generation(generation)) == generation
    assert decode_previous(None) == ((), -1)
    assert decode_generation(None) == -1
