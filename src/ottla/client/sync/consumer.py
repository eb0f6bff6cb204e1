"""The consumer for a thread: one thread at a time."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from types import TracebackType
from typing import Any, Self

from ottla.client.consumer import Consumer as AsyncConsumer
from ottla.client.records import ConsumerRecord, OffsetAndTimestamp
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.world import World
from ottla.model import TopicPartition


class Consumer:
    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: World | None = None, **keywords: Any
    ) -> None:
        self._inner = AsyncConsumer(settings, world=world, **keywords)
        self.settings = self._inner.settings
        self._thread = LoopThread("ottla-consumer")
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def close(self) -> None:
        if not self._closed:
            self._closed = True
            try:
                self._thread.run(self._inner.close)
            finally:
                self._thread.end()

    def assign(self, partitions: Iterable[TopicPartition | tuple[str, int]]) -> None:
        self._thread.call(lambda: self._inner.assign(partitions))

    def assignment(self) -> list[TopicPartition]:
        return self._thread.call(self._inner.assignment)

    def seek(self, partition: TopicPartition, offset: int) -> None:
        self._thread.call(lambda: self._inner.seek(partition, offset))

    def seek_to_beginning(self, *partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._inner.seek_to_beginning(*partitions))

    def seek_to_end(self, *partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._inner.seek_to_end(*partitions))

    def pause(self, *partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._inner.pause(*partitions))

    def resume(self, *partitions: TopicPartition) -> None:
        self._thread.call(lambda: self._inner.resume(*partitions))

    def paused(self) -> list[TopicPartition]:
        return self._thread.call(self._inner.paused)

    def position(self, partition: TopicPartition, *, timeout_ms: int | None = None) -> int:
        return self._thread.run(lambda: self._inner.position(partition, timeout_ms=timeout_ms))

    def high_watermark(self, partition: TopicPartition) -> int | None:
        return self._thread.call(lambda: self._inner.high_watermark(partition))

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(lambda: self._inner.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(lambda: self._inner.end_offsets(partitions))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._thread.run(lambda: self._inner.offsets_for_times(times))

    def partitions_for(self, topic: str) -> list[TopicPartition]:
        return self._thread.run(lambda: self._inner.partitions_for(topic))

    def poll(self, *, max_records: int | None = None, timeout_ms: int | None = None) -> list[ConsumerRecord]:
        return self._thread.run(lambda: self._inner.poll(max_records=max_records, timeout_ms=timeout_ms))

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """All records, for ever."""
        while True:
            record = self._inner.next_ahead()
            if record is None:
                self._thread.run(self._inner.read_ahead)
            else:
                yield record
