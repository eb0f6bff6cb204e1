"""Requests that wait: a fetch for bytes, a produce for the in-sync replicas or for the disk.

A waiter stands under the partitions that it waits for. A change of a partition marks its waiters once, however many
changes one round brings, and `settle` then asks each marked one whether it is done. Time-outs are one heap, so that ten
thousand long polls cost one timer. Ten thousand may also be woken by one record, or expire together: `settle` and
`expire` do so many of them, and the others in the loop's next turns.
"""

from __future__ import annotations

import heapq
import traceback
from collections.abc import Callable, Iterable
from itertools import count
from typing import Final, Protocol

from ottla import logs
from ottla.model import TopicPartition

log_event = logs.logger("replication")


#: How long those who wait are asked in one turn of the loop, and how many are where the clock stands still.
TURN_MS: Final = 5
ASKED_A_TURN: Final = 512


class Waiter(Protocol):
    def try_complete(self, now_ms: int) -> bool:
        """Answers its client if what it waits for is there; True when it has answered."""
        ...

    def expire(self, now_ms: int) -> None:
        """Answers with what is there at its deadline."""
        ...

    def failed(self, fault: Exception) -> None:
        """One of the two has raised: gives up, and is not asked again."""
        ...


class Watcher(Protocol):
    def changed(self) -> None:
        """Called inside the change, once for each `watch`: it takes a note and does no more."""
        ...


#: A partition; or a topic's id that nobody knows, for those who asked for it by that.
Watched = TopicPartition | bytes


class Waiters:
    def __init__(self) -> None:
        #: Looked at between two waiters, and called when some are left for the next turn. Without the two all are asked
        #: at once.
        self.now_ms: Callable[[], int] | None = None
        self.on_left: Callable[[], None] = _nobody_goes_on
        #: Settles, and sees to it that those who are parked meanwhile expire in time. Of `Deadlines`.
        self.on_settle: Callable[[], None] | None = None
        #: One watcher stands by itself, which nearly all do: a dict takes 200 bytes.
        self._watchers: dict[Watched, Watcher | dict[Watcher, None]] = {}
        #: Those that are called at each change, until they leave: followers' sessions, whose partitions change with
        #: nearly each of their fetches.
        self._standing: dict[TopicPartition, dict[Watcher, None]] = {}
        self._by_partition: dict[TopicPartition, dict[Waiter, None]] = {}
        #: What it waits for, and the order of its entry among the deadlines: another entry is of an earlier wait.
        self._keys: dict[Waiter, tuple[int, tuple[TopicPartition, ...]]] = {}
        #: Those whose partition changed since the last `settle`, in the order of the changes.
        self._marked: dict[Waiter, None] = {}
        #: (deadline, order, waiter). A wait that is over stays until its time: removal from a heap costs more.
        self._deadlines: list[tuple[int, int, Waiter]] = []
        self._order = count()

    def __len__(self) -> int:
        return len(self._keys)

    def parked(self) -> list[Waiter]:
        return list(self._keys)

    def park(self, waiter: Waiter, partitions: Iterable[TopicPartition], deadline_ms: int) -> None:
        keys = tuple(partitions)
        order = next(self._order)
        self._keys[waiter] = order, keys
        for key in keys:
            standing = self._by_partition.get(key)
            if standing is None:
                standing = self._by_partition[key] = {}
            standing[waiter] = None
        heapq.heappush(self._deadlines, (deadline_ms, order, waiter))

    def wait_until(self, waiter: Waiter, deadline_ms: int) -> None:
        """Gives one that waits another deadline. A change that it was not asked about yet stays noted."""
        order = next(self._order)
        self._keys[waiter] = order, self._keys[waiter][1]
        heapq.heappush(self._deadlines, (deadline_ms, order, waiter))
        self._drop_what_is_over()

    def forget(self, waiter: Waiter) -> None:
        """Drops a waiter that needs no answer, or has given it; unknown ones are fine."""
        parked = self._keys.pop(waiter, None)
        if parked is None:
            return
        self._marked.pop(waiter, None)
        for key in parked[1]:
            standing = self._by_partition.get(key)
            if standing is not None:
                standing.pop(waiter, None)
                if not standing:
                    del self._by_partition[key]
        self._drop_what_is_over()

    def _drop_what_is_over(self) -> None:
        """Clients that come and go must not fill the heap with the dead until their deadlines."""
        if len(self._deadlines) > 64 and len(self._deadlines) > 4 * len(self._keys):
            self._deadlines = [entry for entry in self._deadlines if self._is_waited_for(entry)]
            heapq.heapify(self._deadlines)

    def changed(self, partition: TopicPartition) -> None:
        standing = self._by_partition.get(partition)
        if standing:
            self._marked.update(standing)
        if self._watchers:
            self._call_watchers(partition)
        if self._standing and (watchers := self._standing.get(partition)):
            for watcher in watchers:
                watcher.changed()

    def changed_between_rounds(self, partition: TopicPartition) -> None:
        """The same where no round follows by itself, which would ask those that wait: a role or an in-sync set."""
        self.changed(partition)
        if self._marked:
            self.on_left()

    def wake(self, waiter: Waiter) -> None:
        """Lets one waiter try, whatever has changed for it; the next `settle` asks it."""
        if waiter in self._keys:
            self._marked[waiter] = None

    # -- watchers

    @property
    def watched_count(self) -> int:
        """Partitions that somebody watches; for tests."""
        return len(self._watchers) + len(self._standing)

    def stand(self, key: TopicPartition, watcher: Watcher) -> None:
        """As `watch`, at each change from now on."""
        self._standing.setdefault(key, {})[watcher] = None

    def stand_no_more(self, key: TopicPartition, watcher: Watcher) -> None:
        standing = self._standing.get(key)
        if standing is not None:
            standing.pop(watcher, None)
            if not standing:
                del self._standing[key]

    def watch(self, key: Watched, watcher: Watcher) -> None:
        standing = self._watchers.get(key)
        if standing is None:
            self._watchers[key] = watcher
        elif isinstance(standing, dict):
            standing[watcher] = None
        else:
            self._watchers[key] = {standing: None, watcher: None}

    def unwatch(self, key: Watched, watcher: Watcher) -> None:
        standing = self._watchers.get(key)
        if isinstance(standing, dict):
            standing.pop(watcher, None)
            if not standing:
                del self._watchers[key]
        elif standing is watcher:
            del self._watchers[key]

    def topic_is_known(self, topic_id: bytes) -> None:
        """There is a topic with this id from now on."""
        self._call_watchers(topic_id)

    def _call_watchers(self, key: Watched) -> None:
        standing = self._watchers.pop(key, None)
        if isinstance(standing, dict):
            for watcher in standing:
                watcher.changed()
        elif standing is not None:
            standing.changed()

    # -- ends

    def give_up(self, partition: TopicPartition, fault: Exception) -> None:
        """After a fault of ours with a partition: nobody waits for it any more, and its clients ask again."""
        for waiter in list(self._by_partition.get(partition, ())):
            self.forget(waiter)
            _give_up(waiter, fault)

    def settle(self, now_ms: int) -> None:
        """Lets those whose partition changed try; a waiter that answers may cause further changes."""
        asked = 0
        while self._marked:
            marked, self._marked = self._marked, {}
            those = iter(marked)
            try:
                for waiter in those:
                    if asked and self._is_turn_over(asked, now_ms):
                        # In their order, before those that were marked meanwhile.
                        self._marked = {waiter: None, **dict.fromkeys(those), **self._marked}
                        self.on_left()
                        return
                    asked += 1
                    if waiter in self._keys and self._is_done(waiter, now_ms):
                        self.forget(waiter)
            except Exception:
                # The others are asked the next time.
                self._marked = dict.fromkeys(those) | self._marked
                raise

    def settle_outside(self, now_ms: int) -> None:
        """The same where no round ends that would do it: something else than a request has changed a partition."""
        if not self._marked:
            return
        if self.on_settle is not None:
            self.on_settle()
        else:
            self.settle(now_ms)

    def settle_all(self, now_ms: int) -> None:
        """The same, however long it takes: no next turn comes."""
        while self._marked:
            self.settle(now_ms if self.now_ms is None else self.now_ms())

    def _is_turn_over(self, asked: int, began_ms: int) -> bool:
        return self.now_ms is not None and (asked >= ASKED_A_TURN or self.now_ms() >= began_ms + TURN_MS)

    def _is_done(self, waiter: Waiter, now_ms: int) -> bool:
        try:
            return waiter.try_complete(now_ms)
        except Exception as fault:
            _give_up(waiter, fault)
            return True

    def expire(self, now_ms: int) -> None:
        """Some of those whose time has come; `next_deadline_ms` says whether others are left."""
        expired = 0
        while self._deadlines and self._deadlines[0][0] <= now_ms:
            if expired and self._is_turn_over(expired, now_ms):
                return
            entry = heapq.heappop(self._deadlines)
            if self._is_waited_for(entry):
                waiter = entry[2]
                expired += 1
                try:
                    self.forget(waiter)
                    waiter.expire(now_ms)
                except Exception as fault:
                    _give_up(waiter, fault)

    def next_deadline_ms(self) -> int | None:
        while self._deadlines and not self._is_waited_for(self._deadlines[0]):
            heapq.heappop(self._deadlines)
        return self._deadlines[0][0] if self._deadlines else None

    def _is_waited_for(self, entry: tuple[int, int, Waiter]) -> bool:
        parked = self._keys.get(entry[2])
        return parked is not None and parked[0] == entry[1]


def _nobody_goes_on() -> None:
    """Before somebody does, and in tests."""


def _give_up(waiter: Waiter, fault: Exception) -> None:
    log_event.error(
        "a request that waited failed",
        key=type(waiter).__name__,
        waiter=type(waiter).__name__,
        error="".join(traceback.format_exception(fault)),
    )
    try:
        waiter.failed(fault)
    except Exception as second:
        # Others wait for the same: they are asked all the same.
        log_event.error(
            "a request that waited could not be given up",
            key=type(waiter).__name__,
            waiter=type(waiter).__name__,
            error="".join(traceback.format_exception(second)),
        )
