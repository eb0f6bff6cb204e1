"""The partitions of one fetcher: which of them may be asked for now, which wait, and for how long.

The fetcher sends when it likes and asks here what to say; an answer's errors come here as times to wait.
"""

from __future__ import annotations

import asyncio
import heapq
import traceback
from collections.abc import Callable
from contextlib import suppress
from itertools import count
from typing import Final, TypeVar

from ottla import logs
from ottla.model import TopicPartition
from ottla.protocol.hot.follower_fetch import AskedRow
from ottla.replication.fetching.partition import FetchedPartition, FetchState, Key
from ottla.replication.fetching.surroundings import Surroundings
from ottla.replication.throttles import names
from ottla.steps import DiskSteps
from ottla.storage.errors import FaultKind, RollDue, StorageFault

log_event = logs.logger("replication")

T = TypeVar("T")

#: How long a partition rests after an error that the next news of its role ends: both brokers hear of a new leader
#: within milliseconds of each other, and acks=all waits for the first fetch.
NEWS_MS: Final = 50


class AskedPartitions:
    def __init__(self, around: Surroundings) -> None:
        self._around = around
        self.by_partition: dict[TopicPartition, FetchedPartition] = {}
        self._by_key: dict[Key, FetchedPartition] = {}
        self._by_id = True
        #: Those of which the leader may have to be asked something else than before.
        self.changed: dict[Key, None] = {}
        #: (due, order, partition) of those that wait; one that is gone stays until its time.
        self._waiting: list[tuple[int, int, FetchedPartition]] = []
        self._order = count()
        #: Those that were written and are not on the disk yet, where their topic asks for that.
        self.flushing: dict[FetchedPartition, None] = {}
        self._on_changed: dict[FetchedPartition, Callable[[], None]] = {}
        #: Of record batches that were taken over, since the beginning.
        self.bytes_taken = 0
        #: Those that were left out for the throttle.
        self._throttled: dict[Key, None] = {}

    def __len__(self) -> int:
        return len(self.by_partition)

    def add(self, partition: FetchedPartition, on_changed: Callable[[], None]) -> None:
        """`on_changed` is called where it may be asked for again, outside of any answer."""
        assert partition.tp not in self.by_partition, f"{partition.tp} is fetched twice"
        self.by_partition[partition.tp] = partition
        key = partition.name(by_id=self._by_id)
        self._by_key[key] = partition
        self.changed[key] = None
        if partition.state is FetchState.WAITING:
            heapq.heappush(self._waiting, (partition.due_ms, next(self._order), partition))

        def flushed() -> None:
            if self.flushing.pop(partition, False) is not False:
                self.touch(partition)
                on_changed()

        partition.follower.on_may_ask = flushed
        self._on_changed[partition] = on_changed

    def remove(self, tp: TopicPartition) -> FetchedPartition | None:
        partition = self.by_partition.pop(tp, None)
        if partition is not None:
            if self._by_key.get(partition.key) is partition:
                del self._by_key[partition.key]
            self.touch(partition)
            self.flushing.pop(partition, None)
            partition.follower.on_may_ask = None
            self._on_changed.pop(partition, None)
        return partition

    def name(self, *, by_id: bool) -> None:
        """All are named so from now on, to a leader that has been asked nothing yet."""
        self._by_id = by_id
        self._by_key = {one.name(by_id=by_id): one for one in self.by_partition.values()}
        self.flushing.clear()
        self._throttled.clear()
        self.changed = dict.fromkeys(self._by_key)

    @property
    def have_ids(self) -> bool:
        """Whether each can be named by its topic's id."""
        return all(any(one.follower.log.topic_id) for one in self.by_partition.values())

    def of(self, key: Key) -> FetchedPartition | None:
        return self._by_key.get(key)

    def take_changed(self) -> dict[Key, None]:
        changed, self.changed = self.changed, {}
        return changed

    def all_keys(self) -> dict[Key, None]:
        return dict.fromkeys(self._by_key)

    def row(self, key: Key) -> AskedRow | None:
        """What is asked of this one now; None where nothing is."""
        one = self._by_key.get(key)
        if one is None or one.state is not FetchState.FETCHING or not one.is_current:
            return None
        if one.follower.log.unfinished:
            # Its files are yet to be what the log is: a full disk has kept them from that.
            self.cut(one, one.follower.log.following(), _nothing)
            return None
        if not one.follower.may_ask:
            self.flushing[one] = None
            return None
        if self._is_throttled(one):
            self._throttled[key] = None
            return None
        try:
            return one.row(self._around.config.fetch_bytes_max)
        except StorageFault as fault:
            self.storage_failed(one, fault)
            return None

    def _is_throttled(self, one: FetchedPartition) -> bool:
        throttled = one.follower.log.config.follower_throttled_replicas
        return (
            bool(throttled)
            and one.lag != 0
            and names(throttled, one.tp.partition, self._around.broker_id)
            and self._around.quota.is_exceeded
        )

    # -- those that wait

    def touch(self, one: FetchedPartition) -> None:
        """It stands elsewhere now than its leader was asked."""
        self.changed[one.key] = None

    def wait(self, one: FetchedPartition, pause_ms: int) -> None:
        one.state = FetchState.WAITING
        one.failures += 1
        one.due_ms = self._around.now_ms() + pause_ms
        heapq.heappush(self._waiting, (one.due_ms, next(self._order), one))
        self.touch(one)

    def wait_for_news(self, one: FetchedPartition) -> None:
        self.wait(one, NEWS_MS)

    def wait_longer(self, one: FetchedPartition) -> None:
        """As `wait`, from a short pause to `replica.fetch.backoff.ms`, twice as long each time."""
        longest = self._around.config.fetch_backoff_ms
        self.wait(one, min(longest, NEWS_MS << min(one.failures, 16)))

    def back_off(self, one: FetchedPartition) -> None:
        self.wait(one, self._around.config.fetch_backoff_ms)

    def wait_for_roll(self, one: FetchedPartition) -> None:
        """A worker makes the log's next segment, or a flush is to end before the log is cut."""
        log = one.follower.log

        def rolled(fault: StorageFault | None) -> None:
            if one.state is not FetchState.WAITING or self.by_partition.get(one.tp) is not one:
                return
            if fault is not None:
                self.storage_failed(one, fault)
                return
            one.state = FetchState.FETCHING
            self.touch(one)
            self._on_changed[one]()

        one.state = FetchState.WAITING
        one.due_ms = self._around.now_ms() + self._around.config.fetch_backoff_ms
        heapq.heappush(self._waiting, (one.due_ms, next(self._order), one))
        self.touch(one)
        self._around.replicas.files.roll_log(log, rolled)

    def cut(
        self,
        one: FetchedPartition,
        cutting: DiskSteps[T],
        then: Callable[[T], None],
        again: Callable[[], None] | None = None,
    ) -> None:
        """Has its log cut. It is asked for nothing until the files are; `then` is called first, with what came of it.

        `again`: what else is to be asked where it could not be cut for now.
        """

        def ended(done: asyncio.Future[T | None]) -> None:
            # Looked at in any case: the loop takes a fault that nobody has seen for one of the broker's own.
            fault = None if done.cancelled() else done.exception()
            if done.cancelled() or self.by_partition.get(one.tp) is not one or one.state is not FetchState.CUTTING:
                if fault is not None:
                    log_event.warning_limited(
                        "a log was not cut, and has another role", key=str(one.tp), partition=one.tp, reason=fault
                    )
                return
            one.state = FetchState.FETCHING
            self.touch(one)
            if fault is None:
                result = done.result()
                if result is not None:
                    then(result)
            elif again is not None and isinstance(fault, RollDue):
                again()
            elif isinstance(fault, StorageFault):
                self.storage_failed(one, fault)
            else:
                self.broke(one, fault)
            self._on_changed[one]()
            if one.when_cut is not None and one.state is not FetchState.CUTTING:
                one.when_cut()

        one.state = FetchState.CUTTING
        self.touch(one)
        self._around.replicas.files.cut(one.follower, cutting).add_done_callback(ended)

    def broke(self, one: FetchedPartition, fault: BaseException) -> None:
        """A fault of ours: the partition is not fetched until its role changes, the others go on."""
        log_event.error(
            "a partition cannot be fetched for a fault of the broker",
            partition=one.tp,
            error="".join(traceback.format_exception(fault)),
        )
        self.take_out(one)
        try:
            one.follower.log.discard_staged()
        except Exception as second:
            # Nobody knows what would be written next. A start reads the log again from its files.
            with suppress(Exception):
                self._around.replicas.fail_directory_of(one.tp, f"what was staged cannot be taken back: {second!r}")

    def take_out(self, one: FetchedPartition) -> None:
        one.state = FetchState.OUT
        self.touch(one)

    def revive(self, now_ms: int) -> None:
        """Those whose time has come are asked for again."""
        waiting = self._waiting
        while waiting and waiting[0][0] <= now_ms:
            one = heapq.heappop(waiting)[2]
            if one.state is FetchState.WAITING and one.due_ms <= now_ms:
                one.state = FetchState.FETCHING
                if self.by_partition.get(one.tp) is one:
                    self.touch(one)
        if self._throttled:
            self.changed.update(self._throttled)
            self._throttled.clear()
        for one in list(self.flushing):
            if one.follower.may_ask:  # another way than by its call-back: its topic is flushed later from now on
                del self.flushing[one]
                self.touch(one)

    def due_ms(self) -> int | None:
        """When the next one is to be asked for again."""
        while self._waiting and self.by_partition.get(self._waiting[0][2].tp) is not self._waiting[0][2]:
            heapq.heappop(self._waiting)
        return self._waiting[0][0] if self._waiting else None

    @property
    def has_throttled(self) -> bool:
        return bool(self._throttled)

    # -- faults here

    def storage_failed(self, one: FetchedPartition, fault: StorageFault) -> None:
        """Of a full disk the rest is fetched again; with a directory that failed all of its partitions go."""
        if isinstance(fault, RollDue):
            self.wait_for_roll(one)
            return
        if fault.directory_failed:
            self.take_out(one)
            self._around.replicas.fail_directory_of(one.tp, str(fault))
            return
        log_event.warning_limited("a fetched batch was not appended", key=str(one.tp), partition=one.tp, reason=fault)
        if fault.kind is FaultKind.LOG_DAMAGED:
            self.take_out(one)
        else:
            self.back_off(one)


def _nothing(_: object) -> None:
    """There is nothing to do with it."""
