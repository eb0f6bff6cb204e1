"""What the copies of a flow's partitions share: both clusters, the source's reader, and what was asked for."""

from __future__ import annotations

from collections.abc import Awaitable, Callable
from typing import NamedTuple, Protocol

from ottla.client.wire.cluster import Cluster
from ottla.model import TopicPartition


class Reader(Protocol):
    """What a copy needs of the source's consumer: to read on at a place, to stop reading, and to go on with that."""

    def go_on(self, tp: TopicPartition, offset: int) -> None: ...

    def hold(self, tp: TopicPartition) -> None: ...

    def release(self, tp: TopicPartition) -> None: ...


class CopyWorld(NamedTuple):
    """What all partitions of a flow share."""

    source: Cluster
    target: Cluster
    reader: Reader
    producer_id: int
    isolation: int
    #: From where a partition is copied that never was.
    begin_at: int
    #: Whether a copy goes on behind what the source removed before it was copied.
    passes_gaps: bool
    check_crcs: bool
    nonce: int
    #: Has the target's topic there, with so many partitions as the source's.
    follow: Callable[[str], Awaitable[None]]
    #: How long to wait after so many failures in a row.
    pause_ms: Callable[[int], int]
