"""The consumer for a thread: one thread at a time."""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import partial
from types import TracebackType
from typing import Any, Self

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.assignment import FetchedBatches
from ottla.client.consuming.consumer import ARROW_ROWS_MAX, Committable
from ottla.client.consuming.consumer import Consumer as AsyncConsumer
from ottla.client.consuming.group.commits import OnCommitted
from ottla.client.consuming.group.membership import GroupMetadata
from ottla.client.records import ConsumerRecord, OffsetAndTimestamp
from ottla.client.sync.call_backs import CallBacks
from ottla.client.sync.described import described_by
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.wire.world import ClientPorts
from ottla.model import TopicPartition


@described_by(AsyncConsumer)
class Consumer:
    """The methods and results of `ottla.client.Consumer`. Heartbeats go on in a thread of their own, whatever the
    caller does."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self._inner = AsyncConsumer(settings, world=world, **keywords)
        self.settings = self._inner.settings
        self._thread = LoopThread("ottla-consumer")
        self._calls = CallBacks(self._thread)
        self._closed = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close(commit=kind is None)

    def close(self, *, commit: bool = True) -> None:
        if self._closed:
            return
        self._thread.check_may_wait()
        self._calls.run(lambda: self._inner.close(commit=commit), finally_=self._end)

    def _end(self) -> None:
        self._closed = True
        self._thread.end()

    def subscribe(
        self,
        topics: Iterable[str] | None = None,
        *,
        pattern: str | re.Pattern[str] | None = None,
        listener: object = None,
    ) -> None:
        """The listener's methods are plain ones, and are called in the thread that polls."""
        relayed = self._calls.relayed(listener)
        self._thread.call(lambda: self._inner.subscribe(topics, pattern=pattern, listener=relayed))

    def unsubscribe(self) -> None:
        self._calls.run(self._inner.unsubscribe)

    def subscription(self) -> list[str]:
        return self._thread.call(self._inner.subscription)

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

    def commit(
        self, offsets: Mapping[TopicPartition, Committable] | None = None, *, timeout_ms: int | None = None
    ) -> None:
        self._thread.run(lambda: self._inner.commit(offsets, timeout_ms=timeout_ms))

    def commit_async(
        self, offsets: Mapping[TopicPartition, Committable] | None = None, on_committed: OnCommitted | None = None
    ) -> None:
        """The call-back runs in the client's own thread and must not wait in it."""
        self._thread.call(lambda: self._inner.commit_async(offsets, on_committed))

    def committed(
        self, partitions: Iterable[TopicPartition], *, timeout_ms: int | None = None
    ) -> dict[TopicPartition, CommittedOffset | None]:
        return self._thread.run(lambda: self._inner.committed(partitions, timeout_ms=timeout_ms))

    def group_metadata(self) -> GroupMetadata:
        return self._thread.call(self._inner.group_metadata)

    def beginning_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(lambda: self._inner.beginning_offsets(partitions))

    def end_offsets(self, partitions: Iterable[TopicPartition]) -> dict[TopicPartition, int]:
        return self._thread.run(lambda: self._inner.end_offsets(partitions))

    def offsets_for_times(self, times: Mapping[TopicPartition, int]) -> dict[TopicPartition, OffsetAndTimestamp | None]:
        return self._thread.run(lambda: self._inner.offsets_for_times(times))

    def partitions_for(self, topic: str) -> list[TopicPartition]:
        return self._thread.run(lambda: self._inner.partitions_for(topic))

    def poll(self, *, max_records: int | None = None, timeout_ms: int | None = None) -> list[ConsumerRecord]:
        work = partial(self._inner.poll, max_records=max_records, timeout_ms=timeout_ms)
        records: list[ConsumerRecord] = self._calls.run(work, self._inner.take_back)
        return records

    def poll_arrow(
        self, *, columns: Iterable[str] | None = None, max_rows: int = ARROW_ROWS_MAX, timeout_ms: int | None = None
    ) -> Any:
        work = partial(self._inner.poll_arrow, columns=columns, max_rows=max_rows, timeout_ms=timeout_ms)
        return self._calls.run(work, self._inner.take_back)

    def poll_batches(self, *, timeout_ms: int | None = None) -> FetchedBatches | None:
        work = partial(self._inner.poll_batches, timeout_ms=timeout_ms)
        fetched: FetchedBatches | None = self._calls.run(work, self._inner.take_back)
        return fetched

    def arrow(
        self, *, columns: Iterable[str] | None = None, max_rows: int = ARROW_ROWS_MAX, timeout_ms: int | None = None
    ) -> Iterator[Any]:
        chosen = None if columns is None else list(columns)
        while True:
            batch = self.poll_arrow(columns=chosen, max_rows=max_rows, timeout_ms=timeout_ms)
            if batch is None:
                return
            yield batch

    def __iter__(self) -> Iterator[ConsumerRecord]:
        """All records, for ever."""
        while True:
            record = self._inner.next_ahead()
            if record is None:
                self._calls.run(self._inner.read_ahead, _lies_ready)
            else:
                yield record


def _lies_ready(_: None) -> None:
    """What was read ahead lies where the next look finds it, whether a Ctrl-C came or not."""
