"""Where the offsets of a commit stand, as the generated codec reads it."""

from __future__ import annotations

import random
from typing import Any

import pytest
from hypothesis import given, strategies
from tests.protocol.random_messages import Kind, kinds, random_message
from tests.protocol.test_hostile_bytes import mutation
from tests.searches import examples

from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.offset_commit import OffsetCommitRequest
from ottla.protocol.header import RequestHeader, decode_request_header, encode_request
from ottla.protocol.hot.commit import shape_of

KINDS = [kind for kind in kinds() if kind.struct.name == "OffsetCommitRequest"]
Seeds = strategies.integers(0, 1 << 32)
many = examples(200)


def framed(kind: Kind, message: Any, correlation: int = 1, client: str | None = "c") -> bytes:
    """Without its length."""
    header = RequestHeader(api_key=8, api_version=kind.version, correlation_id=correlation, client_id=client)
    return encode_request(header, message)[4:]


def parts(message: Any) -> list[Any]:
    return [part for topic in message.topics for part in topic.partitions]


@many
@given(strategies.sampled_from(KINDS), Seeds)
def test_offsets_are_found_and_nothing_else(kind: Kind, seed: int) -> None:
    message = random_message(kind, seed)
    frame = framed(kind, message)
    shape = shape_of(frame, kind.version)
    if not parts(message):
        assert shape is None
        return
    assert shape is not None
    rng = random.Random(seed)
    for part in parts(message):
        part.committed_offset = rng.randrange(-(1 << 63), 1 << 63)
    other = framed(kind, message, correlation=rng.getrandbits(31))
    expected = tuple(part.committed_offset.to_bytes(8, "big", signed=True) for part in parts(message))
    assert len(other) == shape.size
    assert shape.offsets(other, 0) == shape.offsets(bytearray(b"head" + other + b"tail"), 4) == expected


@many
@given(strategies.sampled_from(KINDS), Seeds)
def test_whatever_else_changes_is_seen(kind: Kind, seed: int) -> None:
    message = random_message(kind, seed)
    frame = framed(kind, message)
    shape = shape_of(frame, kind.version)
    if shape is None:
        return
    rng = random.Random(seed)
    other = bytearray(frame)
    # Key and version are the caller's.
    other[rng.randrange(8, len(frame))] ^= 1 << rng.randrange(8)
    found = shape.offsets(other, 0)
    if found is not None:
        assert found != shape.offsets(frame, 0)
        _, position = decode_request_header(bytes(other))
        decoded, _ = OffsetCommitRequest.decode(bytes(other), kind.version, position)
        for one, part in zip(parts(message), parts(decoded), strict=True):
            one.committed_offset = part.committed_offset
        assert framed(kind, message) == other


@many
@given(strategies.sampled_from(KINDS), Seeds)
def test_what_cannot_be_read_has_no_shape(kind: Kind, seed: int) -> None:
    frame = mutation(random.Random(seed), framed(kind, random_message(kind, seed)))
    shape = shape_of(bytes(frame), kind.version)
    if shape is None or int.from_bytes(frame[:4], "big") != 8 << 16 | kind.version:
        return
    try:
        _, position = decode_request_header(bytes(frame))
        decoded, _ = OffsetCommitRequest.decode(bytes(frame), kind.version, position)
    except DecodeError:
        return  # who has a shape is still decoded before anything is remembered of it
    found = shape.offsets(bytes(frame), 0)
    assert found == tuple(part.committed_offset.to_bytes(8, "big", signed=True) for part in parts(decoded))


@pytest.mark.parametrize("frame", [b"", b"\0\x08\0\x08", b"\0\x08\0\x08\0\0\0\1", bytes(12)])
def test_a_frame_that_is_cut_short(frame: bytes) -> None:
    assert shape_of(frame, 8) is None
