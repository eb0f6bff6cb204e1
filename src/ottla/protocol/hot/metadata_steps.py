"""The answer to Metadata in steps: topics of many partitions, and many topics. The same bytes as `metadata` says.

The plain encoders say what stands around the partitions, or the topics: they are called with none, and with some.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from struct import Struct

from ottla.protocol.errors import EncodeError
from ottla.protocol.hot.metadata import (
    OPERATIONS_UNKNOWN,
    Broker,
    Partition,
    encode_metadata_response,
    encode_metadata_topic,
)
from ottla.protocol.primitives import put_compact_count, put_count
from ottla.protocol.stepping import PIECE
from ottla.steps import Steps, pieces

_INT32 = Struct(">i").pack


def encode_metadata_topic_steps(
    version: int,
    error: int,
    name: str | None,
    topic_id: bytes,
    partitions: Sequence[Partition],
    *,
    internal: bool = False,
    operations: int = OPERATIONS_UNKNOWN,
) -> Steps[bytes | bytearray]:
    """One topic's part of the answer."""

    def topic(rows: Iterable[Partition]) -> bytes:
        return encode_metadata_topic(version, error, name, topic_id, rows, internal=internal, operations=operations)

    if len(partitions) <= PIECE:
        return topic(partitions)
    flexible = version >= 9
    bare = topic(())
    end = (4 if version >= 8 else 0) + (1 if flexible else 0)
    start = len(bare) - end
    out = bytearray(bare[: start - (1 if flexible else 4)])
    (put_compact_count if flexible else put_count)(out, len(partitions))
    for piece in pieces(partitions, PIECE):
        some = topic(piece)
        out += some[start : len(some) - end]
        yield
    out += bare[start:]
    return out


def encode_metadata_response_steps(
    version: int,
    brokers: Sequence[Broker],
    cluster_id: str | None,
    controller_id: int,
    topics: Sequence[bytes | bytearray],
    *,
    throttle_ms: int = 0,
    operations: int = OPERATIONS_UNKNOWN,
    error: int = 0,
    correlation_id: int,
    limit: int,
) -> Steps[bytes | bytearray]:
    """The whole frame; EncodeError as soon as it is longer than `limit` bytes."""
    bare = encode_metadata_response(
        version,
        brokers,
        cluster_id,
        controller_id,
        (),
        throttle_ms=throttle_ms,
        operations=operations,
        error=error,
        correlation_id=correlation_id,
    )
    flexible = version >= 9
    end = (4 if 8 <= version <= 10 else 0) + (2 if version >= 13 else 0) + (1 if flexible else 0)
    start = len(bare) - end
    out = bytearray(bare[: start - (1 if flexible else 4)])
    (put_compact_count if flexible else put_count)(out, len(topics))
    for piece in pieces(topics, PIECE):
        for topic in piece:
            out += topic
        if len(out) > limit:
            break
        yield
    out += bare[start:]
    if len(out) > limit:
        raise EncodeError(f"an answer to METADATA of more than {limit} bytes")
    out[0:4] = _INT32(len(out) - 4)
    return out
