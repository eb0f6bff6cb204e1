"""Markers on their way: the ends of transactions that are decided, to the leaders of their partitions."""

from __future__ import annotations

from typing import NamedTuple, Protocol

from ottla.model import BrokerId, TopicPartition
from ottla.protocol.generated.write_txn_markers import WriteTxnMarkersRequest, WriteTxnMarkersResponse


class TransactionEnd(NamedTuple):
    """What the markers of one transaction say."""

    producer_id: int
    #: The epoch of the markers: from `transaction_version` 2 on the one behind that of the transaction's batches.
    producer_epoch: int
    #: The leader epoch of the coordinator's partition.
    coordinator_epoch: int
    committed: bool
    transaction_version: int
    partitions: frozenset[TopicPartition]


class MarkerWriter(Protocol):
    """How markers get to a broker: to this one by a call, to another by a request over a link.

    This broker's own is `handlers/write_txn_markers.py`:
    `async def write_markers(services: Services, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse`,
    which answers when all markers are committed, and asks nobody whether it may.
    """

    async def write(self, broker: BrokerId, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Raises LinkFault where there is no answer."""
        ...
