"""Raises or lowers the cluster's feature levels.

In steps; made from schemas/update_features.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.update_features import (
    UpdateFeaturesRequest,
    UpdateFeaturesResponse,
    _read_feature_update_key,
    _write_updatable_feature_result,
)
from ottla.protocol.message import Message
from ottla.protocol.primitives import (
    Buffer,
    NO_TAGS,
    put_compact_count,
    put_compact_nullable_string,
    put_tags,
    read_compact_count,
    read_tags,
    shortened,
)
from ottla.protocol.stepping import (
    DecodingAllowance,
    FEW,
    Pace,
    read_few,
    read_structs,
    write_structs,
)
from ottla.steps import Steps

_pack_ih = Struct(">ih").pack
_unpack_i = Struct(">i").unpack_from


def _read_update_features_request_held(buf: Buffer, pos: int, limit: int, version: int, allowance: DecodingAllowance) -> Steps[tuple[UpdateFeaturesRequest, int]]:
    m = object.__new__(UpdateFeaturesRequest)
    (m.timeout_ms,) = _unpack_i(buf, pos)
    pos += 4
    count, pos = read_compact_count(buf, pos, limit, 5)
    if count > FEW:
        allowance.take_array(count, 232)
        m.feature_updates, pos = yield from read_structs(_read_feature_update_key, buf, pos, limit, version, count, allowance, text=True)
    else:
        allowance.left -= count * 232
        m.feature_updates, pos = read_few(_read_feature_update_key, buf, pos, limit, version, count, allowance, text=True)
    if version >= 1:
        m.validate_only = buf[pos] != 0
        pos += 1
    else:
        m.validate_only = False
    if buf[pos] == 0:
        m.unknown_tags = NO_TAGS
        pos += 1
    else:
        m.unknown_tags, pos = read_tags(buf, pos, limit)
        allowance.take_tags(m.unknown_tags)
    return m, pos


def _write_update_features_response_steps(out: bytearray, m: UpdateFeaturesResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_ih(m.throttle_time_ms, m.error_code)
    put_compact_nullable_string(out, shortened(m.error_message))
    if version < 2:
        put_compact_count(out, len(m.results))
        if len(m.results) > FEW:
            yield from write_structs(out, m.results, _write_updatable_feature_result, version, pace)
        else:
            for results_item in m.results:
                _write_updatable_feature_result(out, results_item, version)
            pace.work -= len(m.results)
    if m.unknown_tags:
        put_tags(out, [], m.unknown_tags, NO_TAGS)
    else:
        out.append(0)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    UpdateFeaturesRequest: _read_update_features_request_held,
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    UpdateFeaturesResponse: _write_update_features_response_steps,
}
