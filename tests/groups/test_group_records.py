"""Keys and values of offsets and classic groups: byte for byte those of the generated codecs, whatever bytes come."""

from __future__ import annotations

from contextlib import suppress
from struct import pack

import pytest
from hypothesis import given
from hypothesis import strategies as st
from tests.searches import examples

from ottla.groups.records.group_records import (
    group_key,
    group_value,
    read_group_key,
    read_group_value,
)
from ottla.groups.records.kinds import kind_of
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.generated.group_metadata_value import GroupMetadataValue, MemberMetadata
from ottla.protocol.generated.offset_commit_key import OffsetCommitKey
from ottla.protocol.generated.offset_commit_value import OffsetCommitValue
from ottla.protocol.hot.offset_records import (
    OffsetRecord,
    check_offset_value,
    group_prefix,
    offset_key,
    offset_value,
    offset_value_parts,
    read_offset_key,
    read_offset_value,
    topic_prefix,
)
from ottla.steps import at_once

INT64 = st.integers(-(2**63), 2**63 - 1)
INT32 = st.integers(-(2**31), 2**31 - 1)
TEXT = st.text(max_size=300).filter(lambda text: text.isprintable() or not text)
IDS = st.one_of(st.just(bytes(16)), st.binary(min_size=16, max_size=16))


@given(TEXT, TEXT, INT32)
def test_offset_keys(group: str, topic: str, partition: int) -> None:
    key = offset_key(group, topic, partition)
    assert key == b"\0\1" + OffsetCommitKey(group=group, topic=topic, partition=partition).encode(1)
    assert read_offset_key(key) == (group, topic, partition)
    assert read_offset_key(b"\0\0" + key[2:]) == (group, topic, partition)
    assert kind_of(key) == 1


@given(INT64, INT32, TEXT, INT64, st.one_of(st.just(-1), st.integers(0, 2**63 - 1)), IDS)
def test_offset_values(offset: int, epoch: int, metadata: str, commit: int, expire: int, topic_id: bytes) -> None:
    value = offset_value(offset, epoch, metadata, commit, expire, topic_id)
    if expire == -1:
        message = OffsetCommitValue(
            offset=offset, leader_epoch=epoch, metadata=metadata, commit_timestamp=commit, topic_id=topic_id
        )
        assert value == b"\0\4" + message.encode(4)
        expected = OffsetRecord(offset, epoch, metadata, commit, -1, topic_id)
    else:
        message = OffsetCommitValue(offset=offset, metadata=metadata, commit_timestamp=commit, expire_timestamp=expire)
        assert value == b"\0\1" + message.encode(1)
        expected = OffsetRecord(offset, -1, metadata, commit, expire, bytes(16))
    assert read_offset_value(value) == expected
    check_offset_value(value)
    if expire == -1:
        head, middle, tail = offset_value_parts(epoch, metadata, topic_id)
        assert value == head + pack(">q", offset) + middle + pack(">q", commit) + tail


@pytest.mark.parametrize("version", range(5))
def test_values_of_all_versions_are_read(version: int) -> None:
    message = OffsetCommitValue(offset=7, metadata="seven", commit_timestamp=11)
    if version == 1:
        message.expire_timestamp = 13
    if version >= 3:
        message.leader_epoch = 5
    read = read_offset_value(pack(">h", version) + message.encode(version))
    assert read[:4] == (7, 5 if version >= 3 else -1, "seven", 11)
    assert read.expire_ms == (13 if version == 1 else -1)


@examples(300)
@given(st.binary(max_size=80))
def test_any_bytes_are_read_or_refused(data: bytes) -> None:
    for read in (
        read_offset_key,
        read_offset_value,
        read_group_key,
        lambda data: at_once(read_group_value(data)),
        kind_of,
    ):
        with suppress(DecodeError):
            read(data)


@given(st.integers(0, 200), st.binary(min_size=1, max_size=3))
def test_a_damaged_value_is_refused_or_says_something_else(at: int, noise: bytes) -> None:
    value = offset_value(5, 3, "note", 99, -1, b"7" * 16)
    damaged = value[: at % len(value)] + noise + value[at % len(value) :]
    with suppress(DecodeError):
        check_offset_value(damaged)
        read_offset_value(damaged)


def test_what_is_checked_is_what_can_be_read() -> None:
    value = bytearray(offset_value(5, 3, "", 99, -1, b"7" * 16))
    for at in range(len(value)):
        for byte in (0, 1, 2, 0x80, 0xFF):
            damaged = bytes(value[:at]) + bytes([byte]) + bytes(value[at + 1 :])
            try:
                check_offset_value(damaged)
            except DecodeError:
                with pytest.raises(DecodeError):
                    read_offset_value(damaged)
            else:
                read_offset_value(damaged)


@pytest.mark.parametrize("tail", [b"\0", b"more"])
def test_bytes_behind_a_record_are_refused(tail: bytes) -> None:
    with pytest.raises(DecodeError):
        read_offset_key(offset_key("g", "t", 1) + tail)
    with pytest.raises(DecodeError):
        read_offset_value(offset_value(1, 1, "", 1, -1, bytes(16)) + tail)
    with pytest.raises(DecodeError):
        read_group_key(group_key("g") + tail)


def test_names_that_no_record_can_hold() -> None:
    with pytest.raises(EncodeError):
        group_prefix("g" * 32_768)
    with pytest.raises(EncodeError):
        topic_prefix(b"", "ö" * 16_384)
    with pytest.raises(EncodeError):
        group_key("g" * 65_000)


@pytest.mark.parametrize("version", range(5))
def test_group_values_of_all_versions_are_read(version: int) -> None:
    member = MemberMetadata(
        member_id="m",
        client_id="c",
        client_host="/10.0.0.1",
        session_timeout=10_000,
        subscription=b"sub",
        assignment=b"ass",
    )
    if version >= 1:
        member.rebalance_timeout = 60_000
    if version >= 3:
        member.group_instance_id = "one"
    value = GroupMetadataValue(protocol_type="consumer", generation=4, protocol="range", leader="m", members=[member])
    if version >= 2:
        value.current_state_timestamp = 77
    read = at_once(read_group_value(pack(">h", version) + value.encode(version)))
    assert (read.generation, read.protocol, read.leader) == (4, "range", "m")
    assert read.members[0].rebalance_timeout == (60_000 if version >= 1 else -1)
    assert read.members[0].group_instance_id == ("one" if version >= 3 else None)
    assert at_once(read_group_value(at_once(group_value(read)))) == read


@given(TEXT)
def test_group_keys(group: str) -> None:
    assert group_key(group)[:2] == b"\0\2"
    assert read_group_key(group_key(group)) == group
