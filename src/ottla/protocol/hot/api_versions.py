"""ApiVersions, 0 to 4: the first request on a connection, and the one whose answer must be readable by anybody.

Its answer has header 0 in every version: the asker may not know which version was chosen. A request in a version that
is not served is answered in version 0 with error 35 and the range that is; the asker then tries again.
"""

from __future__ import annotations

from collections.abc import Sequence
from struct import Struct

from ottla.protocol.apis import APIS, ApiKey
from ottla.protocol.errors import DecodeError, EncodeError
from ottla.protocol.hot.framing import begin_answer, finish_answer, put_tag, skip_tags
from ottla.protocol.primitives import (
    DECODE_FAULTS,
    ENCODE_FAULTS,
    HotBuffer,
    put_compact_string,
    put_count,
    put_uvarint,
    read_compact_string,
)

#: (API key, first version, last version)
VersionRange = tuple[int, int, int]
#: (name, first level, last level)
Feature = tuple[str, int, int]

UNSUPPORTED_VERSION = 35

_INT16 = Struct(">h").pack
_INT32 = Struct(">i").pack
_INT64 = Struct(">q").pack
_RANGE = Struct(">hhh").pack
_LEVELS = Struct(">hh").pack


def parse_api_versions(buf: HotBuffer, pos: int, version: int, end: int | None = None) -> tuple[str, str]:
    """The client's software and its version, which are empty before version 3; the rest is passed over."""
    if not 0 <= version <= 4:
        raise DecodeError(f"ApiVersionsRequest has no version {version}")
    if end is None:
        end = len(buf)
    name = software_version = ""
    if version >= 3:
        try:
            name, pos = read_compact_string(buf, pos, end)
            software_version, pos = read_compact_string(buf, pos, end)
            pos = skip_tags(buf, pos, end)
        except DECODE_FAULTS as fault:
            raise DecodeError(f"these bytes are no ApiVersionsRequest of version {version}: {fault}") from fault
    if pos > end:
        raise DecodeError(f"an ApiVersionsRequest that ends at {pos} in a frame that ends at {end}")
    return name, software_version


def encode_api_versions_response(
    version: int,
    apis: Sequence[VersionRange],
    *,
    error: int = 0,
    throttle_ms: int = 0,
    supported_features: Sequence[Feature] = (),
    finalized_features_epoch: int = -1,
    finalized_features: Sequence[Feature] = (),
    zk_migration_ready: bool = False,
    correlation_id: int | None = None,
) -> bytes:
    """The answer's body; with a correlation id the whole frame. Finalized features are (name, last, first level)."""
    if not 0 <= version <= 4:
        raise EncodeError(f"ApiVersionsResponse has no version {version}")
    out = begin_answer(correlation_id, flexible=False)
    try:
        out += _INT16(error)
        if version < 3:
            put_count(out, len(apis))
            for row in apis:
                out += _RANGE(*row)
            if version >= 1:
                out += _INT32(throttle_ms)
            return finish_answer(out, correlation_id)
        put_uvarint(out, len(apis) + 1)
        for row in apis:
            out += _RANGE(*row)
            out.append(0)
        out += _INT32(throttle_ms)
        tags: list[tuple[int, bytes | bytearray]] = []
        if supported_features:
            tags.append((0, _features(supported_features)))
        if finalized_features_epoch != -1:
            tags.append((1, _INT64(finalized_features_epoch)))
        if finalized_features:
            tags.append((2, _features(finalized_features)))
        if zk_migration_ready:
            tags.append((3, b"\x01"))
        out.append(len(tags))
        for number, value in tags:
            put_tag(out, number, value)
    except ENCODE_FAULTS as fault:
        raise EncodeError(f"an answer that version {version} of ApiVersionsResponse cannot say: {fault}") from fault
    return finish_answer(out, correlation_id)


def encode_unsupported_version(correlation_id: int | None = None) -> bytes:
    """The answer to an ApiVersions request in a version that is not served: version 0, error 35, and what is."""
    row = APIS[ApiKey.API_VERSIONS]
    ranges = [(row.key, row.min, row.max)]
    return encode_api_versions_response(0, ranges, error=UNSUPPORTED_VERSION, correlation_id=correlation_id)


def _features(features: Sequence[Feature]) -> bytearray:
    out = bytearray()
    put_uvarint(out, len(features) + 1)
    for name, one, other in features:
        put_compact_string(out, name)
        out += _LEVELS(one, other)
        out.append(0)
    return out
