"""What the sticky assignors write beside the topics, as Java's do.

    sticky:              previous assignment [topic string, partitions [int32]], then since Kafka 2.3 generation int32
    cooperative-sticky:  generation int32 (the partitions stand in the subscription itself)

No version stands before them: what is too short for the newer form is read as the older.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import error
from typing import Final

from ottla.client.consuming.group.wire import NO_GENERATION
from ottla.model import TopicPartition
from ottla.protocol.errors import DecodeError
from ottla.protocol.fields import INT32
from ottla.protocol.primitives import DECODE_FAULTS, put_count, put_string, read_count, read_string

#: The least that a topic takes: the length of its name and the count of its partitions.
_TOPIC_BYTES_MIN: Final = 6


def encode_previous(partitions: Iterable[TopicPartition], generation: int) -> bytes:
    topics: dict[str, list[int]] = {}
    for topic, number in partitions:
        topics.setdefault(topic, []).append(number)
    out = bytearray()
    put_count(out, len(topics))
    for topic, numbers in topics.items():
        put_string(out, topic)
        put_count(out, len(numbers))
        for number in numbers:
            out += INT32.pack(number)
    return bytes(out + INT32.pack(generation))


def decode_previous(data: bytes | None) -> tuple[tuple[TopicPartition, ...], int]:
    """Nothing where there are no bytes, or bytes of another kind: another maker's sticky assignor may write its own."""
    if not data:
        return (), NO_GENERATION
    try:
        return _previous(data)
    except (*DECODE_FAULTS, DecodeError):
        return (), NO_GENERATION


def _previous(data: bytes) -> tuple[tuple[TopicPartition, ...], int]:
    limit = len(data)
    found: list[TopicPartition] = []
    count, pos = read_count(data, 0, limit, _TOPIC_BYTES_MIN)
    for _ in range(count):
        topic, pos = read_string(data, pos, limit)
        numbers, pos = read_count(data, pos, limit, INT32.size)
        found += [TopicPartition(topic, *INT32.unpack_from(data, pos + INT32.size * at)) for at in range(numbers)]
        pos += INT32.size * numbers
    return tuple(found), decode_generation(data[pos:])


def encode_generation(generation: int) -> bytes:
    return INT32.pack(generation)


def decode_generation(data: bytes | None) -> int:
    try:
        return int(INT32.unpack_from(data or b"")[0])
    except error:
        return NO_GENERATION
