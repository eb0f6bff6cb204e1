"""What stands before a message: the frame's length, and the header of a request or a response.

    request   int32 length | int16 key | int16 version | int32 correlation id [| client id [| tagged fields]]
    response  int32 length | int32 correlation id [| tagged fields]

The client id keeps its int16 length in every header version, so that a broker can read it before it knows more. Which
header a message has follows from its API and version: see `apis.request_header_version`.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.protocol.apis import APIS, request_header_version, response_header_version
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.fields import INT16, INT32, LENGTH_BYTES, REQUEST_FIELDS, REQUEST_FIELDS_BYTES
from ottla.protocol.generated.catalogue import ApiKey
from ottla.protocol.message import Message, Structure
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    ENCODE_FAULTS,
    NO_TAGS,
    TAGS_MAX,
    HotBuffer,
    put_nullable_string,
    put_tags,
    read_nullable_string,
    read_tags,
    read_uvarint,
    skip_tags,
)
from ottla.steps import Steps

#: The longest frame that is decoded in one piece: an element takes a byte at least and a tenth of a microsecond, so
#: that is a millisecond at the most; and some ten microseconds for the two hundred partitions of an honest request.
PLAIN_FRAME_BYTES_MAX: Final = 8192

#: A plain dict of the first flexible versions: this is read once a request.
_FLEXIBLE_FROM = {key: 1 << 15 if row.flexible_from is None else row.flexible_from for key, row in APIS.items()}
_CONTROLLED_SHUTDOWN = int(ApiKey.CONTROLLED_SHUTDOWN)


class RequestHeader(Structure):
    __slots__ = ("api_key", "api_version", "client_id", "correlation_id", "unknown_tags")

    def __init__(
        self,
        *,
        api_key: int,
        api_version: int,
        correlation_id: int,
        client_id: str | None = None,
        unknown_tags: Mapping[int, bytes] = NO_TAGS,
    ) -> None:
        self.api_key = api_key
        self.api_version = api_version
        self.correlation_id = correlation_id
        self.client_id = client_id
        self.unknown_tags = unknown_tags


def decode_request_header(buf: HotBuffer, pos: int = 0) -> tuple[RequestHeader, int]:
    """Reads a request's header; returns it and where the body begins.

    The version may be one that we do not serve: that is for the caller to judge, since ApiVersions answers it.
    """
    try:
        key, version, correlation_id = REQUEST_FIELDS.unpack_from(buf, pos)
        flexible_from = _FLEXIBLE_FROM.get(key)
        if flexible_from is None:
            raise DecodeError(f"there is no API with key {key}")
        pos += REQUEST_FIELDS_BYTES
        header = object.__new__(RequestHeader)
        header.api_key = key
        header.api_version = version
        header.correlation_id = correlation_id
        header.client_id = None
        header.unknown_tags = NO_TAGS
        if key != _CONTROLLED_SHUTDOWN or version != 0:
            header.client_id, pos = read_nullable_string(buf, pos, len(buf))
        if version >= flexible_from:
            header.unknown_tags, pos = _read_header_tags(buf, pos, len(buf))
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no request header: {fault}") from fault
    return header, pos


def request_body_start(buf: HotBuffer, pos: int = 0, end: int | None = None) -> int:
    """Where a request's body begins: for a handler that needs no more of the header than its fixed part."""
    try:
        key, version, _ = REQUEST_FIELDS.unpack_from(buf, pos)
        flexible_from = _FLEXIBLE_FROM.get(key)
        if flexible_from is None:
            raise DecodeError(f"there is no API with key {key}")
        pos += REQUEST_FIELDS_BYTES
        if key != _CONTROLLED_SHUTDOWN or version != 0:
            (length,) = INT16.unpack_from(buf, pos)
            pos += 2 + max(length, 0)
        if version >= flexible_from:
            pos = pos + 1 if buf[pos] == 0 else _skip_header_tags(buf, pos, len(buf) if end is None else end)
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no request header: {fault}") from fault
    if pos > (len(buf) if end is None else end):
        raise DecodeError("a request header is cut short")
    return pos


def _read_header_tags(buf: HotBuffer, pos: int, limit: int) -> tuple[Mapping[int, bytes], int]:
    if buf[pos] == 0:
        return NO_TAGS, pos + 1
    _check_tag_count(buf, pos)
    return read_tags(buf, pos, limit)


def _skip_header_tags(buf: HotBuffer, pos: int, limit: int) -> int:
    _check_tag_count(buf, pos)
    return skip_tags(buf, pos, limit)


def _check_tag_count(buf: HotBuffer, pos: int) -> None:
    if read_uvarint(buf, pos)[0] > TAGS_MAX:
        raise DecodeError(f"a request header with more than {TAGS_MAX} tagged fields")


def encode_request(header: RequestHeader, message: Message) -> bytes:
    """A whole frame: length, header, body."""
    out = bytearray(LENGTH_BYTES)
    put_request_header(out, header)
    message.encode_into(out, header.api_version)
    return _framed(out)


def put_request_header(out: bytearray, header: RequestHeader) -> None:
    version = request_header_version(header.api_key, header.api_version)
    try:
        out += REQUEST_FIELDS.pack(header.api_key, header.api_version, header.correlation_id)
        if version >= 1:
            put_nullable_string(out, header.client_id)
        if version >= 2:
            put_tags(out, [], header.unknown_tags, ())
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"{header!r} cannot be said: {fault}") from fault
    if version < 2 and header.unknown_tags:
        raise EncodeError(f"request header {version} has no tagged fields")


def decode_response_header(
    buf: HotBuffer, api_key: int, version: int, pos: int = 0
) -> tuple[int, Mapping[int, bytes], int]:
    """Reads a response's header; returns correlation id, tagged fields, and where the body begins."""
    try:
        (correlation_id,) = INT32.unpack_from(buf, pos)
        pos += 4
        if response_header_version(api_key, version) == 0:
            return correlation_id, NO_TAGS, pos
        tags, pos = read_tags(buf, pos, len(buf))
    except DECODE_FAULTS as fault:
        raise DecodeError(f"these bytes are no response header: {fault}") from fault
    return correlation_id, tags, pos


def encode_response(
    api_key: int, version: int, correlation_id: int, message: Message, unknown_tags: Mapping[int, bytes] = NO_TAGS
) -> bytes:
    """A whole frame: length, header, body."""
    out = bytearray(LENGTH_BYTES)
    put_response_header(out, api_key, version, correlation_id, unknown_tags)
    message.encode_into(out, version)
    return _framed(out)


def encode_response_steps(
    api_key: int, version: int, correlation_id: int, message: Message, limit: int
) -> Steps[bytes | bytearray]:
    """What `encode_response` does, in steps; EncodeError as soon as the frame is longer than `limit` bytes.

    A frame is found too long at the end of a step, and a step writes few kilobytes: that is what goes beyond `limit`
    in memory, and one byte string at the most.
    """
    out = bytearray(LENGTH_BYTES)
    put_response_header(out, api_key, version, correlation_id)
    for _ in message.encode_steps(out, version):
        if len(out) > limit:
            break
        yield
    if len(out) > limit:
        raise EncodeError(f"an answer to {ApiKey(api_key).name} of more than {limit} bytes")
    out[0:LENGTH_BYTES] = INT32.pack(len(out) - LENGTH_BYTES)
    return out


def is_long(frame_size: int) -> bool:
    """Whether a request of so many bytes is decoded in steps. Produce is not asked: records are not decoded."""
    return frame_size > PLAIN_FRAME_BYTES_MAX


def put_response_header(
    out: bytearray, api_key: int, version: int, correlation_id: int, unknown_tags: Mapping[int, bytes] = NO_TAGS
) -> None:
    try:
        out += INT32.pack(correlation_id)
        if response_header_version(api_key, version) == 1:
            put_tags(out, [], unknown_tags, ())
        elif unknown_tags:
            raise EncodeError("response header 0 has no tagged fields")
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"a response header cannot be said: {fault}") from fault


def _framed(out: bytearray) -> bytes:
    out[0:LENGTH_BYTES] = INT32.pack(len(out) - LENGTH_BYTES)
    return bytes(out)
