"""The partitions of a coordinator's topic that this broker leads: their shards, how these are loaded, and one alarm.

A partition has a shard from the end of its loading to its resignation. Which kind of shard that is only `make_shard`
knows: groups have one, and transactions will have another.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from typing import Final, Generic, TypeVar

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import Journal
from ottla.coordinators.load_times import LoadTimes
from ottla.coordinators.loading import load
from ottla.coordinators.shard import Shard
from ottla.coordinators.timers import DUE_AT_ONCE_MAX
from ottla.model import ErrorCode
from ottla.ports.clock import Clock
from ottla.steps import is_stray

log_event = logs.logger("coordinators")

S = TypeVar("S", bound=Shard)

#: Partitions that are loaded side by side: one reads while the other applies.
LOADS_AT_ONCE_MAX: Final = 2
#: After a load that has failed. A disk may answer again; what is damaged is read in vain once in a while.
LOAD_RETRY_S: Final = 30.0
#: Before a load behind a second write that was lost: a shard may write as soon as it is loaded, and lose that as well.
LOST_WRITES_RETRY_S: Final = 1.0
#: Timers that are due go off for so long, by a clock of milliseconds; the rest does in the next turn of the loop.
TIMERS_AT_ONCE_MS_MAX: Final = 2
_NEVER: Final = 2**63


class LedPartition(Generic[S]):
    """One partition, from its election to its resignation."""

    __slots__ = ("deleted_topics", "failed", "journal", "loading", "lost_ms", "shard")

    def __init__(self, journal: Journal) -> None:
        self.journal = journal
        #: Set once it is loaded.
        self.shard: S | None = None
        self.loading: asyncio.Task[None] | None = None
        #: When its journal last lost a write, by the monotonic clock.
        self.lost_ms: int | None = None
        #: It could not be loaded, and will be tried again: others may look for another coordinator meanwhile.
        self.failed = False
        #: Since the load began; and before, where what was written of that may be lost: these with the time of it.
        self.deleted_topics: dict[str, int | None] = {}


class LedPartitions(Generic[S]):
    def __init__(self, what: str, make_shard: Callable[[int, Journal], S], clock: Clock) -> None:
        #: What shards hold, as the log says it: `groups`.
        self._what = what
        self._make_shard = make_shard
        self._clock = clock
        self._led: dict[int, LedPartition[S]] = {}
        self.load_times = LoadTimes()
        self._load_places: asyncio.Semaphore | None = None
        self._alarm: asyncio.TimerHandle | None = None
        #: When the alarm rings.
        self._alarm_ms = _NEVER

    # Roles.

    def elected(self, partition: int, journal: Journal) -> None:
        """This broker leads the partition: its shard is loaded beside everything else."""
        self.resigned(partition)
        led = self._led[partition] = LedPartition[S](journal)
        self._load(partition, led)

    def resigned(self, partition: int) -> None:
        """Another broker leads it, or none does: all requests that wait get NOT_COORDINATOR."""
        led = self._led.pop(partition, None)
        if led is not None:
            self._unload(led)

    def journal_failed(self, partition: int) -> None:
        """A write that was applied did not reach the log: what the log holds is loaded again."""
        led = self._led.get(partition)
        if led is not None:
            log_event.warning(f"{self._what} are loaded again: their journal lost a write", partition=partition)
            if led.shard is not None:
                led.deleted_topics.update(led.shard.unsettled_deletions)
            self._unload(led)
            before_ms, led.lost_ms = led.lost_ms, self._clock.monotonic_ms()
            is_again = before_ms is not None and led.lost_ms - before_ms <= LOST_WRITES_RETRY_S * 1000
            self._load(partition, led, LOST_WRITES_RETRY_S if is_again else 0.0)

    async def close(self) -> None:
        """Answers all requests that wait, and does nothing from then on."""
        loads = [led.loading for led in self._led.values() if led.loading is not None]
        for partition in list(self._led):
            self.resigned(partition)
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
            self._alarm_ms = _NEVER
        await asyncio.gather(*loads, return_exceptions=True)

    # Shards.

    def find(self, partition: int) -> S | ErrorCode:
        """The shard, or why there is none: it is loaded, could not be, or another broker leads the partition."""
        led = self._led.get(partition)
        if led is None:
            return ErrorCode.NOT_COORDINATOR
        if led.shard is not None:
            return led.shard
        return ErrorCode.NOT_COORDINATOR if led.failed else ErrorCode.COORDINATOR_LOAD_IN_PROGRESS

    def shards(self) -> Iterator[S]:
        return (led.shard for led in list(self._led.values()) if led.shard is not None)

    @property
    def some_are_loaded(self) -> bool:
        """Whether a shard is on its way, which will have an answer soon."""
        return any(led.shard is None and not led.failed for led in self._led.values())

    def topics_deleted(self, names: Iterable[str]) -> None:
        for led in self._led.values():
            if led.shard is not None:
                led.shard.topics_deleted(names, self.now(), {})
            else:
                led.deleted_topics.update(dict.fromkeys(names))

    def _unload(self, led: LedPartition[S]) -> None:
        if led.loading is not None:
            led.loading.cancel()
            led.loading = None
        shard, led.shard = led.shard, None
        if shard is not None:
            shard.timers.on_sooner = _ignored
            shard.unload(ErrorCode.NOT_COORDINATOR, self.now())

    def _load(self, partition: int, led: LedPartition[S], pause_s: float = 0.0) -> None:
        led.failed = False
        name = f"load {self._what} of partition {partition}"
        led.loading = asyncio.get_running_loop().create_task(self._load_until_done(partition, led, pause_s), name=name)

    async def _load_until_done(self, partition: int, led: LedPartition[S], pause_s: float) -> None:
        if pause_s:
            await asyncio.sleep(pause_s)
        while True:
            if await self._try_to_load(partition, led):
                return
            await asyncio.sleep(LOAD_RETRY_S)

    async def _try_to_load(self, partition: int, led: LedPartition[S]) -> bool:
        if self._load_places is None:
            self._load_places = asyncio.Semaphore(LOADS_AT_ONCE_MAX)
        shard = self._make_shard(partition, led.journal)
        started_ms = self._clock.monotonic_ms()
        try:
            async with self._load_places:
                records = await load(led.journal, shard, self._clock)
        except (Exception, asyncio.CancelledError) as fault:
            # What it has found is in its broker's counts, and the next try finds it once more.
            shard.unload(ErrorCode.NOT_COORDINATOR, self.now())
            if isinstance(fault, asyncio.CancelledError) and not is_stray(fault):
                raise
            # Whatever it is, the other partitions' shards go on, and this one's clients are answered at once.
            message = f"{self._what} cannot be loaded"
            log_event.error(message, partition=partition, error=repr(fault), again_s=LOAD_RETRY_S)
            led.failed = True
            return False
        led.shard, led.loading, led.failed = shard, None, False
        shard.timers.on_sooner = self._arm
        if (deadline_ms := shard.timers.next_deadline_ms()) is not None:
            self._arm(deadline_ms)
        if led.deleted_topics:
            known_ms = {name: when_ms for name, when_ms in led.deleted_topics.items() if when_ms is not None}
            shard.topics_deleted(sorted(led.deleted_topics), self.now(), known_ms)
            led.deleted_topics.clear()
        took_ms = self._clock.monotonic_ms() - started_ms
        self.load_times.add(started_ms + took_ms, took_ms)
        if records:
            log_event.info(f"{self._what} loaded", partition=partition, records=records, **shard.held(), ms=took_ms)
        return True

    # Time.

    def now(self) -> Now:
        return Now(self._clock.wall_ms(), self._clock.monotonic_ms())

    def _arm(self, when_ms: int) -> None:
        if when_ms >= self._alarm_ms:
            return
        if self._alarm is not None:
            self._alarm.cancel()
        self._alarm_ms = when_ms
        delay_ms = max(0, when_ms - self._clock.monotonic_ms())
        self._alarm = asyncio.get_running_loop().call_later(delay_ms / 1000, self.tick)

    def tick(self) -> None:
        """Does what is due by the clock. The alarm calls it, and so does a caller that has moved the clock by hand."""
        if self._alarm is not None:
            self._alarm.cancel()
            self._alarm = None
        now = self.now()
        # Held high while timers run: they set others, and one look at the end is enough.
        self._alarm_ms = -1
        shards = list(self.shards())
        # By the clock too: a timer of a group of ten thousand takes a millisecond. That of a simulation stands still.
        room, ends_ms = DUE_AT_ONCE_MAX, now.monotonic_ms + TIMERS_AT_ONCE_MS_MAX
        try:
            for shard in shards:
                while room and shard.timers.expire(now, 1):
                    room -= 1
                    if self._clock.monotonic_ms() >= ends_ms:
                        room = 0
        finally:
            self._alarm_ms = _NEVER
            for shard in shards:
                if (deadline_ms := shard.timers.next_deadline_ms()) is not None:
                    self._arm(deadline_ms)


def _ignored(_: int) -> None:
    """A shard that was given up has no time."""
