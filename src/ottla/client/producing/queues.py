"""The batches of one partition that wait for their turn to be sent."""

from __future__ import annotations

from collections import deque
from typing import TYPE_CHECKING

from ottla.client.producing.sequences import PartitionSequences

if TYPE_CHECKING:
    from ottla.client.producing.batches import ProducerBatch


class PartitionQueue:
    __slots__ = ("newest_ordinal", "on_wire", "open", "partition", "sequences", "topic", "waiting")

    def __init__(self, topic: str, partition: int) -> None:
        self.topic = topic
        self.partition = partition
        #: In the order of their ordinals; those on the wire are not here.
        self.waiting: deque[ProducerBatch] = deque()
        #: The last of `waiting` while records can be added to it.
        self.open: ProducerBatch | None = None
        #: Batches sent and not answered.
        self.on_wire = 0
        self.newest_ordinal = 0
        self.sequences = PartitionSequences()

    def __str__(self) -> str:
        return f"{self.topic}-{self.partition}"

    def insert(self, batch: ProducerBatch) -> None:
        """Puts a batch back in its place: before all newer ones."""
        waiting = self.waiting
        place = 0
        while place < len(waiting) and waiting[place].ordinal < batch.ordinal:
            place += 1
        waiting.insert(place, batch)
