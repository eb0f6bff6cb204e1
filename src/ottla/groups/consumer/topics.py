"""What groups want to know of topics: which of them exist, how many partitions they have, and whether that changed."""

from __future__ import annotations

from collections.abc import Iterable
from hashlib import blake2b

from ottla.metadata.cache import MetadataCache
from ottla.model import TopicId
from ottla.protocol.fields import INT32, INT64


def topic_ids(names: Iterable[str], metadata: MetadataCache) -> frozenset[TopicId]:
    """Of those topics that exist."""
    found = (metadata.topic(name) for name in names)
    return frozenset(topic.id for topic in found if topic is not None)


def metadata_hash(names: Iterable[str], metadata: MetadataCache) -> int:
    """Changes when a topic among these is created, deleted, created anew, or grows. 0 where none exists.

    It is stored with the group's epoch, so that a coordinator that takes over knows whether to compute again. Kafka
    computes another number from the same facts: a group that goes from one to the other is computed again once.
    """
    hashed = blake2b(digest_size=INT64.size)
    some = False
    for name in sorted(names):
        topic = metadata.topic(name)
        if topic is not None:
            some = True
            hashed.update(topic.id)
            hashed.update(INT32.pack(len(topic.partitions)))
    return int(INT64.unpack(hashed.digest())[0]) if some else 0
