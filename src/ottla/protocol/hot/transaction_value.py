"""The record of a transactional id: three of them are written in each transaction, and nearly all of a hundred thousand
that a coordinator loads are at rest.
"""

from __future__ import annotations

from functools import lru_cache
from struct import Struct
from typing import Final

from ottla.model import TopicPartition
from ottla.protocol.primitives import put_compact_string

#: A value of version 1 without partitions (null or empty), with the producer's former id as its only tag: version,
#: producer's id and epoch, time-out, state, partitions, both times; how many tags, its number and size, the former id.
AT_REST: Final = Struct(">hqhibBqqBBBq")
#: The same with the version of the client's transactions as a second tag.
AT_REST_NEW: Final = Struct(">hqhibBqqBBBqBBh")

# The same, apart where partitions stand between them.
BEFORE_PARTITIONS: Final = Struct(">hqhib")
BEHIND_PARTITIONS: Final = Struct(">qqBBBq")
BEHIND_PARTITIONS_NEW: Final = Struct(">qqBBBqBBh")
#: No array, and one of nothing.
NULL_PARTITIONS: Final = b"\0"
NO_PARTITIONS: Final = b"\x01"

_NUMBER: Final = Struct(">BiB")


# A topic of some hundred partitions takes a few hundred kilobytes.
@lru_cache(maxsize=1_024)
def one_partition(tp: TopicPartition) -> bytes:
    """An array of one topic with one partition."""
    out = bytearray(b"\x02")
    put_compact_string(out, tp.topic)
    out += _NUMBER.pack(2, tp.partition, 0)
    return bytes(out)
