"""What groups want to know of topics: which of them exist, how many partitions they have, and whether that changed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b
from struct import Struct
from typing import Final

from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId

_PARTITIONS: Final = Struct(">i")
_HASH: Final = Struct(">q")


def topic_ids(names: Iterable[str], metadata: MetadataCache) -> frozenset[TopicId]:
    """Of those topics that exist."""
    found = (metadata.topic(name) for name in names)
    return frozenset(topic.id for topic in found if topic is not None)


def metadata_hash(names: Iterable[str], metadata: MetadataCache) -> int:
    """Changes when a topic among these is created, deleted, created anew, or grows. 0 where none exists.

    It is stored with the group's epoch, so that a coordinator that takes over knows whether to compute again. Kafka
    computes another number from the same facts: a group that goes from one to the other is computed again once.
    """
    hashed = blake2b(digest_size=_HASH.size)
    some = False
    for name in sorted(names):
        topic = metadata.topic(name)
        if topic is not None:
            some = True
            hashed.update(topic.id)
            hashed.update(_PARTITIONS.pack(len(topic.partitions)))
    return int(_HASH.unpack(hashed.digest())[0]) if some else 0
