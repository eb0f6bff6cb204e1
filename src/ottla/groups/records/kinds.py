"""What a record of the offsets topic is about: the first two bytes of its key say it."""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT16
from ottla.protocol.hot.offset_records import OFFSET_KIND

#: A committed offset; 0 is how Kafka wrote it before 0.8.2 and reads to this day.
OFFSET_LEGACY: Final = 0
OFFSET: Final = OFFSET_KIND
#: A classic group.
GROUP: Final = 2
#: Groups of the newer protocol: their epochs, members, targets, assignments, and the topics of their expressions.
CONSUMER_GROUP_KINDS: Final = frozenset({3, 4, 5, 6, 7, 8, 16})

_unpack_kind: Final = INT16.unpack_from


class BadRecord(DecodeError):
    """A record of the offsets topic that is not what its key says. It is skipped, and named in a warning."""


def kind_of(key: bytes) -> int:
    if len(key) < 2:
        raise BadRecord(f"a key of {len(key)} bytes")
    kind: int = _unpack_kind(key)[0]
    return kind
