"""What the hand-written codecs share: skipping what is not needed, and the frame around an answer."""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ottla.protocol.primitives import (
    put_compact_nullable_string,
    put_compact_string,
    put_uvarint,
)

_INT32 = Struct(">i")

#: (node id, host, port, rack) of the leaders that an answer's error codes point to.
NodeEndpoint = tuple[int, str, int, str | None]


def begin_answer(correlation_id: int | None, *, flexible: bool) -> bytearray:
    """An answer's start: the room for its length and its header, or nothing where only the body is wanted."""
    if correlation_id is None:
        return bytearray()
    out = bytearray(4)
    out += _INT32.pack(correlation_id)
    if flexible:
        out.append(0)
    return out


def finish_answer(out: bytearray, correlation_id: int | None) -> bytes:
    if correlation_id is not None:
        _INT32.pack_into(out, 0, len(out) - 4)
    return bytes(out)


def put_tag(out: bytearray, number: int, value: bytes | bytearray) -> None:
    put_uvarint(out, number)
    put_uvarint(out, len(value))
    out += value


def put_node_endpoints_tag(out: bytearray, endpoints: Sequence[NodeEndpoint]) -> None:
    """The closing tagged fields of an answer whose tag 0 is the list of endpoints."""
    if not endpoints:
        out.append(0)
        return
    value = bytearray()
    put_uvarint(value, len(endpoints) + 1)
    for node_id, host, port, rack in endpoints:
        value += _INT32.pack(node_id)
        put_compact_string(value, host)
        value += _INT32.pack(port)
        put_compact_nullable_string(value, rack)
        value.append(0)
    out.append(1)
    put_tag(out, 0, value)
