"""A broker asks the controller to move its leaderships away (Kafka 3.9, ZooKeeper mode).

In steps; made from schemas/controlled_shutdown.schema by `python -m ottla.protocol.compile`.
"""

from __future__ import annotations

from collections.abc import Callable
from struct import Struct
from typing import Any

from ottla.protocol.generated.controlled_shutdown import (
    ControlledShutdownResponse,
    _write_remaining_partition,
)
from ottla.protocol.message import Message, not_tagged
from ottla.protocol.primitives import (
    NO_TAGS,
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


def _write_controlled_shutdown_response_steps(out: bytearray, m: ControlledShutdownResponse, version: int, pace: Pace) -> Steps[None]:
    out += _pack_h(m.error_code)
    if version >= 3:
        put_compact_count(out, len(m.remaining_partitions))
    else:
        put_count(out, len(m.remaining_partitions))
    if len(m.remaining_partitions) > FEW:
        yield from write_structs(out, m.remaining_partitions, _write_remaining_partition, version, pace)
    else:
        for remaining_partitions_item in m.remaining_partitions:
            _write_remaining_partition(out, remaining_partitions_item, version)
        pace.work -= len(m.remaining_partitions)
    if version >= 3:
        if m.unknown_tags:
            put_tags(out, [], m.unknown_tags, NO_TAGS)
        else:
            out.append(0)
    elif m.unknown_tags:
        raise not_tagged(m, version)


READERS: dict[type[Message], Callable[..., Steps[Any]]] = {
}

WRITERS: dict[type[Message], Callable[..., Steps[Any]]] = {
    ControlledShutdownResponse: _write_controlled_shutdown_response_steps,
}
