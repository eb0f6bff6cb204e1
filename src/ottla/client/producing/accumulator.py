"""Where records wait to become batches: a queue a partition, under one bound of memory.

Synchronous and without a clock. A queue holds its batches in the order of their records; only the last may be open.
A queue is `ready` when its first batch may go: it is full, its linger is over, it is being retried, or someone waits
for it (a flush, or a caller for whose record there is no room).
"""

from __future__ import annotations

from typing import Final

from ottla.client.producing.batches import Delivery, EncodedRecords, ProducerBatch
from ottla.client.producing.queues import PartitionQueue
from ottla.records.batch import HEADER_SIZE
from ottla.records.builder import BatchBuilder, Headers
from ottla.records.record import decode_batch

#: What a record costs in memory beside its bytes: its delivery and its place in lists.
RECORD_OVERHEAD: Final = 160
#: More than a record's frame can take: lengths, offset, time.
RECORD_FRAME_MAX: Final = 32


class Accumulator:
    def __init__(self, *, batch_bytes: int, linger_ms: int, delivery_timeout_ms: int, memory_bytes: int) -> None:
        self._batch_bytes = batch_bytes
        self._linger_ms = linger_ms
        self._delivery_timeout_ms = delivery_timeout_ms
        #: So much may be used before a record of no bytes has no room.
        self._room = memory_bytes - RECORD_OVERHEAD
        self.memory_used = 0
        #: Someone waits for room: nothing lingers.
        self.pressed = False
        self._queues: dict[tuple[str, int], PartitionQueue] = {}
        #: Queues whose first batch may go, the longest waiting first.
        self.ready: dict[PartitionQueue, None] = {}
        #: Open batches and when their linger is over: all linger equally long, so the first is due first.
        self._lingering: dict[ProducerBatch, int] = {}
        #: Every batch whose outcome is not known, the oldest first.
        self.live: dict[ProducerBatch, None] = {}

    def queue(self, topic: str, partition: int) -> PartitionQueue:
        key = (topic, partition)
        found = self._queues.get(key)
        if found is None:
            found = self._queues[key] = PartitionQueue(topic, partition)
        return found

    @staticmethod
    def cost(key: bytes | None, value: bytes | None, headers: Headers) -> int:
        """The most that a record can take of a batch."""
        size = RECORD_FRAME_MAX + (len(key) if key is not None else 0) + (len(value) if value is not None else 0)
        if headers:
            for name, content in headers:
                size += 10 + 3 * len(name) + (len(content) if content is not None else 0)
        return size

    def has_room(self, cost: int) -> bool:
        return self.memory_used + cost <= self._room

    def add(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        cost: int,
    ) -> Delivery | None:
        """Adds a record to the batch that is open; None where there is none, or no room for the record."""
        batch = queue.open
        if batch is None or self.memory_used + cost > self._room:
            return None
        builder: BatchBuilder = batch.builder  # type: ignore[assignment]  # a finished batch is never open
        before = builder.size
        if before + cost > self._batch_bytes:
            return None
        delivery = Delivery(batch, builder.count, timestamp)
        taken = builder.append(timestamp, key, value, headers) - before + RECORD_OVERHEAD
        batch.memory += taken
        self.memory_used += taken
        return delivery

    def append(
        self,
        queue: PartitionQueue,
        timestamp: int,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        cost: int,
        now_ms: int,
    ) -> Delivery:
        """Begins the queue's next batch with a record, in place of the one that has no room for it."""
        if queue.open is not None:
            self.shut(queue.open)
        batch = self._new_batch(queue, now_ms)
        delivery = Delivery(batch, 0, timestamp)
        try:
            builder: BatchBuilder = batch.builder  # type: ignore[assignment]  # a finished batch is never open
            size = builder.append(timestamp, key, value, headers)
        except BaseException:  # a batch without records would be nobody's, and could not be sent
            self.remove_waiting(batch)
            self.release(batch)
            raise
        batch.memory = size - HEADER_SIZE + RECORD_OVERHEAD
        self.memory_used += batch.memory
        if size >= self._batch_bytes:
            self.shut(batch)
        return delivery

    def _new_batch(self, queue: PartitionQueue, now_ms: int) -> ProducerBatch:
        queue.newest_ordinal += 1
        deadline_ms = now_ms + self._delivery_timeout_ms
        batch = queue.open = ProducerBatch(queue, (queue.newest_ordinal,), deadline_ms, BatchBuilder())
        queue.waiting.append(batch)
        self.live[batch] = None
        if self._linger_ms and not self.pressed:
            self._lingering[batch] = now_ms + self._linger_ms
        else:
            self.ready[queue] = None
        return batch

    def enter(self, queue: PartitionQueue, encoded: EncodedRecords, now_ms: int) -> ProducerBatch:
        """A batch that was finished elsewhere goes behind all that is there, at once."""
        if queue.open is not None:
            self.shut(queue.open)
        queue.newest_ordinal += 1
        batch = ProducerBatch(queue, (queue.newest_ordinal,), now_ms + self._delivery_timeout_ms, encoded)
        batch.closed = True
        batch.memory = encoded.size + RECORD_OVERHEAD
        self.memory_used += batch.memory
        queue.waiting.append(batch)
        self.live[batch] = None
        self.ready[queue] = None
        return batch

    def shut(self, batch: ProducerBatch) -> None:
        """No more records: the batch goes as soon as it can."""
        batch.closed = True
        if batch.queue.open is batch:
            batch.queue.open = None
        self._lingering.pop(batch, None)
        self.ready[batch.queue] = None

    def hurry(self) -> None:
        """What is open goes as it is, for a flush or for room. It may grow until it does."""
        for batch in self._lingering:
            self.ready[batch.queue] = None
        self._lingering.clear()

    def take_due(self, now_ms: int) -> int | None:
        """Makes ready what has lingered long enough; returns when the next will have."""
        while self._lingering:
            batch, due_ms = next(iter(self._lingering.items()))
            if due_ms > now_ms:
                return due_ms
            del self._lingering[batch]
            self.ready[batch.queue] = None
        return None

    def take(self, queue: PartitionQueue) -> ProducerBatch:
        """Takes the queue's first batch to be sent; the queue goes behind the others."""
        batch = queue.waiting.popleft()
        if not batch.closed:
            self.shut(batch)
        self.ready.pop(queue, None)
        self.look_again(queue)
        return batch

    def look_again(self, queue: PartitionQueue) -> None:
        """Whether the queue is ready after its first batch has changed."""
        if not queue.waiting:
            self.ready.pop(queue, None)
            return
        first = queue.waiting[0]
        if first in self._lingering:
            self.ready.pop(queue, None)
        else:
            self.ready[queue] = None

    def put_back(self, batch: ProducerBatch, not_before_ms: int) -> None:
        """A batch that is to be tried again stands before all newer ones."""
        batch.not_before_ms = not_before_ms
        batch.queue.insert(batch)
        self.ready[batch.queue] = None

    def split(self, batch: ProducerBatch) -> list[ProducerBatch]:
        """Two halves in place of a batch that is too large for the broker; their records keep their deliveries."""
        records = decode_batch(batch.builder.build(), check_crcs=False)
        middle = len(records) // 2
        overhead = batch.memory // len(records)
        sequence = batch.sequence
        parts: list[ProducerBatch] = []
        for which, (start, end) in enumerate(((0, middle), (middle, len(records)))):
            builder = BatchBuilder()
            part = ProducerBatch(batch.queue, (*batch.ordinal, which), batch.deadline_ms, builder)
            part.closed = True
            part.attempts = batch.attempts
            part.last_fault = batch.last_fault
            part.sequence, part.identity = sequence, batch.identity
            for record in records[start:end]:
                builder.append(record.timestamp, record.key, record.value, record.headers)
            part.memory = overhead * (end - start)
            if sequence is not None:
                sequence = (sequence + part.count) & 0x7FFF_FFFF
            parts.append(part)
        self._put_in_place(batch, parts)
        self.memory_used -= batch.memory - sum(part.memory for part in parts)
        batch.parts = parts
        callbacks, batch.callbacks = batch.callbacks, []
        for delivery, call in callbacks:
            delivery.batch.callbacks.append((delivery, call))
        batch.wake()
        return batch.parts

    def _put_in_place(self, batch: ProducerBatch, parts: list[ProducerBatch]) -> None:
        """In `live`, whose first is the next whose time is over."""
        before = list(self.live)
        self.live.clear()
        for one in before:
            self.live.update(dict.fromkeys(parts if one is batch else (one,)))

    def remove_waiting(self, batch: ProducerBatch) -> None:
        """Takes a batch out that will not be sent."""
        batch.queue.waiting.remove(batch)
        if batch.queue.open is batch:
            batch.queue.open = None
        self._lingering.pop(batch, None)
        self.look_again(batch.queue)

    def release(self, batch: ProducerBatch) -> None:
        """The batch is over, and its memory free."""
        self.live.pop(batch, None)
        if batch.queue.open is batch:
            batch.queue.open = None
        self.memory_used -= batch.memory
        batch.memory = 0


assert RECORD_FRAME_MAX < HEADER_SIZE
