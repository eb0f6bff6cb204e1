"""What a Fetch asks for: each partition once, however often it is named.

Kafka puts the partitions of a request into a map: the last entry of one counts, and stands where its first one stood.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import NamedTuple, TypeVar

from ottla.protocol.hot.fetch import FetchRequest
from ottla.steps import PIECE, Steps, pieces, taken

T = TypeVar("T")

#: Topic name or id as the client wrote it, and partition.
Key = tuple[str | bytes, int]


class AskedPartition(NamedTuple):
    """One partition of a fetch, as the client asks for it."""

    topic: str | bytes
    partition: int
    current_leader_epoch: int
    fetch_offset: int
    last_fetched_epoch: int
    log_start_offset: int
    max_bytes: int


def merged(request: FetchRequest) -> list[AskedPartition]:
    topics = request.topics
    asked = [AskedPartition(topic, *each) for topic, partitions in topics for each in partitions]
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


def each_asked(request: FetchRequest) -> Iterator[AskedPartition]:
    """All entries, repeated ones too. The request gives them away, since both together would take twice the memory,
    and nobody is to wait until all of them are freed at once."""
    topics = request.topics
    topics.reverse()
    while topics:
        topic, partitions = topics.pop()
        partitions.reverse()
        while partitions:
            yield AskedPartition(topic, *partitions.pop())


def each_forgotten(request: FetchRequest) -> Iterator[Key]:
    """As `each_asked`."""
    topics = request.forgotten
    topics.reverse()
    while topics:
        topic, partitions = topics.pop()
        partitions.reverse()
        while partitions:
            yield (topic, partitions.pop())


def without_empty(request: FetchRequest) -> Steps[None]:
    """Takes topics out of a request that name no partition: among those there would be no step until the next one."""
    yield from _without_empty(request.topics)
    yield from _without_empty(request.forgotten)


def _without_empty(topics: list[tuple[str | bytes, list[T]]]) -> Steps[None]:
    if len(topics) <= PIECE:
        return
    kept: list[tuple[str | bytes, list[T]]] = []
    for some in taken(topics):
        kept += [entry for entry in some if entry[1]]
        yield
    topics += kept


def let_go(request: FetchRequest) -> Steps[None]:
    """Frees what nobody is going to look at."""
    yield from without_empty(request)
    for _ in pieces(each_asked(request)):
        yield
    for _ in pieces(each_forgotten(request)):
        yield
