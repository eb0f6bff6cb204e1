"""What was listed, and has gone when it is asked about: nobody has named it, so that the others are shown."""

from __future__ import annotations

from collections.abc import Awaitable, Mapping
from typing import TypeVar

from ottla.client.errors import KafkaError, SomeFailed
from ottla.model import ErrorCode

K = TypeVar("K")
V = TypeVar("V")

#: What brokers say of a topic, or of a group, that is not there.
_NOT_THERE = frozenset({ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.GROUP_ID_NOT_FOUND})


async def still_there(asked: Awaitable[Mapping[K, V]], *, listed: bool = True) -> Mapping[K, V]:
    """What is answered about all, or where they were `listed` about those that are there. Raises what else failed."""
    try:
        return await asked
    except SomeFailed as failed:
        if not listed or any(error.code not in _NOT_THERE for error in failed.errors.values()):
            raise
        return failed.results
    except KafkaError as error:
        if not listed or error.code not in _NOT_THERE:
            raise
        return {}
