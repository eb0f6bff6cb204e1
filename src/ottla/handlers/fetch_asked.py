"""What a Fetch asks for: each partition once, however often it is named.

Kafka puts the partitions of a request into a map: the last entry of one counts, and stands where its first one stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple

from ottla.protocol.hot.fetch import FetchRequest

#: Topic name or id as the client wrote it, and partition.
Key = tuple[str | bytes, int]


class Asked(NamedTuple):
    """One partition of a fetch, as the client asks for it."""

    topic: str | bytes
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


def merged(request: FetchRequest) -> list[Asked]:
    topics = request.topics
    asked = [Asked(topic, *each) for topic, partitions in topics for each in partitions]
    if len(asked) == 1 or _are_distinct(request):
        return asked
    return list({one[:2]: one for one in asked}.values())


def _are_distinct(request: FetchRequest) -> bool:
    topics = request.topics
    if len(topics) > 1 and len({topic for topic, _ in topics}) < len(topics):
        return False
    for _, partitions in topics:
        if len(partitions) > 1 and len({each[0] for each in partitions}) < len(partitions):
            return False
    return True


def each_asked(request: FetchRequest) -> Iterator[Asked]:
    """All entries, repeated ones too. The request gives them away, since both together would take twice the memory,
    and nobody is to wait until all of them are freed at once."""
    topics = request.topics
    topics.reverse()
    while topics:
        topic, partitions = topics.pop()
        partitions.reverse()
        while partitions:
            yield Asked(topic, *partitions.pop())


def each_forgotten(request: FetchRequest) -> Iterator[Key]:
    return ((topic, partition) for topic, partitions in request.forgotten for partition in partitions)
