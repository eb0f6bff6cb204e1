"""Partitions of a coordinator whose shards hold something else than groups: roles, loading and timers are the same."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Iterable, Iterator, Mapping

from tests.groups.journal import MemoryJournal

from ottla.coordinators.caller import Now
from ottla.coordinators.journal import Journal
from ottla.coordinators.led_partitions import LOST_WRITES_RETRY_S, LedPartitions
from ottla.coordinators.timers import DUE_AT_ONCE_MAX, Timers
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.memory.loop import VirtualLoop
from ottla.steps import Steps
from ottla.storage.errors import CorruptLog

LOADING, NOT_COORDINATOR = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR


class NumberShard:
    """Keeps numbers by name, as a transaction coordinator would keep transactions by their ids."""

    topic = "numbers"

    def __init__(self, partition: int) -> None:
        self.partition = partition
        self.timers = Timers()
        self.numbers: dict[bytes, bytes] = {}
        self.loaded_at: Now | None = None
        self.unloaded_with: ErrorCode | None = None
        self.deleted: list[str] = []
        self.known_ms: Mapping[str, int] = {}

    def replay(self, key: bytes | None, value: bytes | None, offset: int, producer_id: int) -> None:
        assert self.loaded_at is None
        if key is not None and value is not None:
            self.numbers[key] = value
        elif key is not None:
            self.numbers.pop(key, None)

    def replay_long(self, key: bytes | None, value: bytes, offset: int) -> Steps[None]:
        yield
        self.replay(key, value, offset, -1)

    def end_transaction(self, producer_id: int, *, committed: bool) -> None: ...

    def loaded(self, now: Now) -> Iterator[None]:
        yield
        self.loaded_at = now

    def held(self) -> dict[str, int]:
        return {"numbers": len(self.numbers)}

    def topics_deleted(self, names: Iterable[str], now: Now, known_ms: Mapping[str, int]) -> None:
        self.deleted += names
        self.known_ms = known_ms

    @property
    def unsettled_deletions(self) -> dict[str, int]:
        return dict.fromkeys(self.deleted, 5)

    def unload(self, error: ErrorCode, now: Now) -> None:
        assert self.unloaded_with is None
        self.unloaded_with = error


class House:
    def __init__(self, timeline: Timeline) -> None:
        self.timeline = timeline
        self.clock = VirtualClock(self.timeline)
        self.made: list[NumberShard] = []
        self.led = LedPartitions("numbers", self._make, self.clock)

    def _make(self, partition: int, _journal: Journal) -> NumberShard:
        self.made.append(NumberShard(partition))
        return self.made[-1]


def run(scene: Callable[[House], Awaitable[None]]) -> None:
    loop = VirtualLoop()

    async def main() -> None:
        house = House(loop.timeline)
        await scene(house)
        await house.led.close()
        assert all(shard.unloaded_with in {None, NOT_COORDINATOR} for shard in house.made)

    asyncio.set_event_loop(loop)
    try:
        loop.run_until_complete(main())
    finally:
        asyncio.set_event_loop(None)
        loop.close()


async def turns() -> None:
    for _ in range(10):
        await asyncio.sleep(0)


def journal() -> MemoryJournal:
    made = MemoryJournal()
    made.add((b"one", b"1"), (b"two", b"2"), (b"one", None), (b"long", bytes(10_000)))
    return made


def test_a_partition_from_its_election_to_its_resignation() -> None:
    async def scene(house: House) -> None:
        assert house.led.find(3) is NOT_COORDINATOR
        house.led.elected(3, journal())
        assert house.led.find(3) is LOADING
        assert house.led.some_are_loaded
        house.led.topics_deleted(["t"])
        await turns()
        found = house.led.find(3)
        assert isinstance(found, NumberShard)
        assert set(found.numbers) == {b"two", b"long"}
        assert found.deleted == ["t"]
        assert not house.led.some_are_loaded
        assert list(house.led.shards()) == [found]
        house.led.resigned(3)
        assert house.led.find(3) is NOT_COORDINATOR
        assert found.unloaded_with is NOT_COORDINATOR

    run(scene)


def test_a_journal_that_lost_a_write_gives_another_shard() -> None:
    async def scene(house: House) -> None:
        house.led.elected(3, journal())
        await turns()
        house.led.journal_failed(3)
        house.led.journal_failed(4)
        assert house.led.find(3) is LOADING
        await turns()
        assert house.led.find(3) is house.made[1]
        assert house.made[0].unloaded_with is NOT_COORDINATOR

    run(scene)


def test_deleted_topics_are_heard_of_once_more_after_a_lost_write() -> None:
    async def scene(house: House) -> None:
        house.led.elected(3, journal())
        await turns()
        house.led.topics_deleted(["t"])
        house.led.journal_failed(3)
        house.led.topics_deleted(["u"])
        house.led.journal_failed(3)
        await asyncio.sleep(2 * LOST_WRITES_RETRY_S)
        assert house.made[-1].deleted == ["t", "u"]
        assert house.made[-1].known_ms == {"t": 5}
        assert len(house.made) > 1
        house.led.elected(3, journal())
        await turns()
        assert house.made[-1].deleted == []

    run(scene)


class BrokenJournal(MemoryJournal):
    """What it has is read, and then nothing more: the rest is damaged, or hangs."""

    def __init__(self, *, hangs: bool) -> None:
        super().__init__()
        self.add((b"one", b"1"))
        self._hangs = hangs

    async def replay(self) -> AsyncIterator[bytes]:
        async for chunk in super().replay():
            yield chunk
        if self._hangs:
            await asyncio.get_running_loop().create_future()
        raise CorruptLog(TopicPartition("numbers", 3), "/data", 0, "a test")


def test_what_a_load_in_vain_has_found_is_given_up() -> None:
    """It is in the counts of its broker, and the next try finds it once more."""

    async def scene(house: House) -> None:
        house.led.elected(3, BrokenJournal(hangs=False))
        await turns()
        assert house.led.find(3) is NOT_COORDINATOR
        assert [(shard.numbers, shard.unloaded_with) for shard in house.made] == [({b"one": b"1"}, NOT_COORDINATOR)]

    run(scene)


def test_what_a_load_has_found_before_the_resignation_is_given_up() -> None:
    async def scene(house: House) -> None:
        house.led.elected(3, BrokenJournal(hangs=True))
        await turns()
        assert house.made[0].numbers
        house.led.resigned(3)
        await turns()
        assert [shard.unloaded_with for shard in house.made] == [NOT_COORDINATOR]

    run(scene)


def test_what_loses_its_writes_again_and_again_is_loaded_after_pauses() -> None:
    """Its disk is full, and it writes as soon as it is loaded: without a pause nothing else would be done."""

    async def scene(house: House) -> None:
        house.led.elected(3, journal())
        await turns()
        for shards in (2, 3, 4):
            house.led.journal_failed(3)
            await turns()
            if shards > 2:
                assert (house.led.find(3), len(house.made)) == (LOADING, shards - 1)
                await asyncio.sleep(LOST_WRITES_RETRY_S)
                await turns()
            assert (house.led.find(3), len(house.made)) == (house.made[-1], shards)

    run(scene)


def test_timers_of_all_shards_go_off_some_at_a_time() -> None:
    async def scene(house: House) -> None:
        called: list[int] = []
        for partition in (0, 1):
            house.led.elected(partition, journal())
        await turns()
        for number in range(2 * DUE_AT_ONCE_MAX):
            house.made[number % 2].timers.set(number, 1_000, lambda _, number=number: called.append(number))
        house.timeline.move_to(2.0)
        house.led.tick()
        assert len(called) == DUE_AT_ONCE_MAX
        house.led.tick()
        assert sorted(called) == list(range(2 * DUE_AT_ONCE_MAX))

    run(scene)
