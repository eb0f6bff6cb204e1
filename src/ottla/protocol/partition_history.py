"""Where a partition's history stands on the wire: in a tagged field of our own, which others skip (KIP-482)."""

from __future__ import annotations

from typing import Final

from ottla.protocol.errors import DecodeError
from ottla.protocol.generated.partition_history import PartitionHistory

#: Far above Kafka's own tags, which are counted from 0 in each struct.
HISTORY_TAG: Final = 7001

__all__ = ["HISTORY_TAG", "PartitionHistory", "history_in"]


def history_in(tag: bytes) -> PartitionHistory:
    """Raises DecodeError."""
    found, end = PartitionHistory.decode(tag, 0, 0)
    if end != len(tag):
        raise DecodeError("bytes behind a partition's history")
    return found
