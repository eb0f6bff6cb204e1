"""What groups want to know of topics: which of them exist, how many partitions they have, and whether that changed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from typing import Final

from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId
from ottla.protocol.fields import INT32, INT64
from ottla.steps import Steps, pieces

#: Topics whose part of the number is remembered: some hundred bytes each.
HASHES_KNOWN_MAX: Final = 50_000


def topic_ids(names: Iterable[str], metadata: MetadataCache) -> frozenset[TopicId]:
    """Of those topics that exist."""
    found = (metadata.topic(name) for name in names)
    return frozenset(topic.id for topic in found if topic is not None)


class TopicHashes:
    """Says in one number which topics there are of those that a group wants, and how many partitions they have.

    The number changes when a topic among these is created, deleted, created anew, or grows; it is 0 where none exists.
    It is stored with the group's epoch, so that a coordinator that takes over knows whether to compute again. Kafka
    computes another number from the same facts: a group that goes from one to the other is computed again once.

    It is a sum over the topics, so that what comes and goes changes it. What a topic adds is remembered: it takes a
    microsecond, and there are groups of ten thousand topics.
    """

    __slots__ = ("_known", "_metadata")

    def __init__(self, metadata: MetadataCache) -> None:
        self._metadata = metadata
        #: Each with the id and the count that it was taken from.
        self._known: dict[str, tuple[bytes, int, int]] = {}

    def of(self, names: Iterable[str]) -> int:
        return _as_int64(self._sum(names))

    def changed(self, hashed: int, added: Iterable[str], removed: Iterable[str]) -> int:
        """Of the topics of `hashed`, with these and without those."""
        return _as_int64(hashed + self._sum(added) - self._sum(removed))

    def of_many(self, names: Iterable[str]) -> Steps[int]:
        """As `of`, step by step. The caller looks whether the metadata has changed meanwhile."""
        total = 0
        for piece in pieces(names):
            total += self._sum(piece)
            yield
        return _as_int64(total)

    def _sum(self, names: Iterable[str]) -> int:
        total = 0
        known, find = self._known.get, self._metadata.topic
        for name in names:
            topic = find(name)
            if topic is not None:
                found, count = known(name), len(topic.partitions)
                if found is not None and found[0] == topic.id and found[1] == count:
                    total += found[2]
                else:
                    total += self._look(name, topic.id, count)
        return total

    def _look(self, name: str, topic_id: bytes, count: int) -> int:
        if len(self._known) >= HASHES_KNOWN_MAX:
            self._known.clear()
        found: int = INT64.unpack(blake2b(topic_id + INT32.pack(count), digest_size=INT64.size).digest())[0]
        self._known[name] = topic_id, count, found
        return found


def _as_int64(total: int) -> int:
    return (total + 2**63) % 2**64 - 2**63
