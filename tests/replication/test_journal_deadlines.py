"""How long a write may take is counted from when it was handed in, however many wait before it."""

from __future__ import annotations

import asyncio

from tests.replication.journal_world import CONFIG, DIRECTORIES, TP, JournalWorld

from ottla.replication.journals import RECORDS_A_ROUND_MAX
from ottla.steps import done_at_once

#: As much as one round takes, so that with two of them one is always left for the next round.
FULL = [(b"k%d" % number, b"v") for number in range(RECORDS_A_ROUND_MAX)]
ROUNDS = 12


def test_writes_behind_what_earlier_rounds_have_left_have_their_own_time() -> None:
    world = JournalWorld(replicas=(1, 2))
    clock, timeline = world.ports.clock, world.ports.loop.timeline

    async def load() -> None:
        for number in range(ROUNDS):
            with world.round():
                world.write(str(number), *FULL)
                if not number:
                    world.write("more", *FULL)
            assert (world.leader.log.end_offset, len(world.journal._gathered)) == (len(FULL) * (number + 1), 1)
            # Before the follower can have it the timer goes off, where a time is up.
            world.replicas.waiters.expire(clock.monotonic_ms())
            timeline.move_to(timeline.seconds + 1)
            world.leader.follower_fetched(2, world.leader.log.end_offset)
            world.replicas.waiters.changed(TP)
            world.replicas.waiters.settle(clock.monotonic_ms())

    world.run(load())
    names = ["0", "more", *map(str, range(1, ROUNDS))]
    assert world.told_names() == names[:ROUNDS]


def test_writes_behind_one_that_waits_for_its_log_have_their_own_time() -> None:
    """A change-over takes as long as its disks do, and commits go on coming."""
    world = JournalWorld(CONFIG, replicas=(1, 2))
    world.ports.workers.latency_ms = (2_000, 2_000)
    target = next(path for path in DIRECTORIES if path != world.replicas.directories.directory_of(TP))

    async def write(name: str) -> int:
        with world.round():
            world.write(name, (b"k", b"v"))
        return world.ports.clock.monotonic_ms()

    async def move() -> None:
        done_at_once(world.replicas.moves.starting(TP, target))
        for _ in range(10_000):
            if world.leader.changing_over is not None:
                break
            await asyncio.sleep(0.001)
        assert world.leader.changing_over is not None
        await write("first")
        await asyncio.sleep(1.5)
        assert world.leader.changing_over is not None
        began_ms = await write("later")
        await world.leader.changing_over
        await asyncio.sleep(0)
        assert [each.deadline_ms for each in world.journal._unsettled] == [began_ms + 3_500, began_ms + 5_000]

    world.run(move())
