"""Which APIs and versions a broker serves; its answer never has a flexible header.

In steps; made from schemas/api_versions.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.api_versions import (
    ApiVersionsResponse,
    _TAGS_API_VERSIONS_RESPONSE,
    _write_api_version,
    _write_finalized_feature_key,
    _write_supported_feature_key,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    put_compact_count,
    put_count,
    put_tags,
)
from ottla.protocol.stepping import (
    FEW,
    Pace,
    write_structs,
)
from ottla.steps import Steps

_pack_h = Struct(">h").pack
_pack_i = Struct(">i").pack
_pack_q = Struct(">q").pack


def _write_api_versions_response_steps(out: bytearray, m: ApiVersionsResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 3:
        put_compact_count(out, len(m.api_keys))
    else:
        put_count(out, len(m.api_keys))
    if len(m.api_keys) > FEW:
        yield from write_structs(out, m.api_keys, _write_api_version, version, pace)
    else:
        for api_keys_item in m.api_keys:
            _write_api_version(out, api_keys_item, version)
        pace.work -= len(m.api_keys)
    if version >= 1:
        out += _pack_i(m.throttle_time_ms)
    if version >= 3:
        tags: list[tuple[int, bytearray]] = []
        if m.supported_features != []:
            tag = bytearray()
            put_compact_count(tag, len(m.supported_features))
            if len(m.supported_features) > FEW:
                yield from write_structs(tag, m.supported_features, _write_supported_feature_key, version, pace)
            else:
                for supported_features_item in m.supported_features:
                    _write_supported_feature_key(tag, supported_features_item, version)
                pace.work -= len(m.supported_features)
            tags.append((0, tag))
        if m.finalized_features_epoch != -1:
            tag = bytearray()
            tag += _pack_q(m.finalized_features_epoch)
            tags.append((1, tag))
        if m.finalized_features != []:
            tag = bytearray()
            put_compact_count(tag, len(m.finalized_features))
            if len(m.finalized_features) > FEW:
                yield from write_structs(tag, m.finalized_features, _write_finalized_feature_key, version, pace)
            else:
                for finalized_features_item in m.finalized_features:
                    _write_finalized_feature_key(tag, finalized_features_item, version)
                pace.work -= len(m.finalized_features)
            tags.append((2, tag))
        if m.zk_migration_ready:
            tag = bytearray()
            tag.append(1 if m.zk_migration_ready else 0)
            tags.append((3, tag))
        if tags or m.unknown_tags:
            put_tags(out, tags, m.unknown_tags, _TAGS_API_VERSIONS_RESPONSE)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ApiVersionsResponse: _write_api_versions_response_steps,
}
