"""Followers whose next offset their leader does not have: behind its log's end, or before its start."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world
from tests.storage.at_once import begin_anew_at

from ottla.model import ErrorCode
from ottla.replication.fetching.lookups import Lookups


@in_world()
async def test_a_follower_that_was_away_for_long_starts_over_where_its_leader_begins(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"old")
    await world.settled()
    world.kill(3)
    await world.lead_one(1, epoch=2, isr=(1, 2))
    for number in range(10):
        await world.produce(b"%d" % number)
    world.log(1, TP).advance_start(8)
    await world.start(3)
    await world.settled()
    assert (world.log(3, TP).start_offset, world.log(3, TP).end_offset) == (8, 11)
    assert world.values(3) == [b"7", b"8", b"9"]
    assert world.said("starts over there", "begins=8")


@in_world()
async def test_a_question_in_which_something_was_cancelled_is_asked_again(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"old")
    await world.settled()
    world.kill(3)
    await world.lead_one(1, epoch=2, isr=(1, 2))
    await world.produce(b"new")
    world.log(1, TP).advance_start(2)
    faults: list[BaseException] = [asyncio.CancelledError()]
    call = Lookups._call

    async def planted(self: Lookups, *given: Any) -> object:
        if faults:
            raise faults.pop()
        return await call(self, *given)

    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(Lookups, "_call", planted)
        await world.start(3)
        await world.settled()
    assert faults == []
    assert (world.log(3, TP).start_offset, world.log(3, TP).end_offset) == (2, 2)


@in_world()
async def test_a_new_replica_of_a_log_without_its_beginning(world: FetchingWorld) -> None:
    await world.give([world.state(TP, 1, 1, (1, 2), replicas=(1, 2))])
    for number in range(5):
        await world.produce(b"%d" % number)
    world.log(1, TP).advance_start(5)
    await world.give([world.state(TP, 1, 2, (1, 2), replicas=(1, 2, 3))._replace(is_new=True)])
    await world.produce(b"5")
    await world.settled()
    assert world.values(3) == [b"5"]


@in_world()
async def test_a_leader_that_begins_in_the_middle_of_a_batch_is_followed(world: FetchingWorld) -> None:
    """Records are deleted one by one, and what is read is whole batches: a follower begins with all of the first."""
    await world.give([world.state(TP, 1, 1, (1, 2), replicas=(1, 2))])
    await world.produce(b"0", b"1")
    await world.produce(b"2", b"3", b"4")
    world.log(1, TP).advance_start(3)
    await world.give([world.state(TP, 1, 2, (1, 2), replicas=(1, 2, 3))._replace(is_new=True)])
    await world.produce(b"5")
    await world.settled()
    assert (world.log(3, TP).start_offset, world.log(3, TP).end_offset) == (3, 6)
    world.kill(3)
    await world.start(3)
    await world.settled()
    assert world.log(3, TP).end_offset == 6


@in_world()
async def test_an_unclean_leader_has_less_and_its_followers_give_up_the_rest(world: FetchingWorld) -> None:
    """A replica that was not in sync is elected, and its log has lost even the leader epochs that others know."""
    await world.lead_one(1, epoch=1)
    await world.produce(b"0")
    await world.settled()
    for each in (2, 3):
        world.kill(each)
    for number in range(4):
        assert (await world.try_produce(b"%d" % number, to=1, acks=1))[0] == ErrorCode.NONE
    world.kill(1)
    await world.start(3)
    begin_anew_at(world.log(3, TP), 0)
    await world.lead_one(3, epoch=2, isr=(3,))
    await world.start(1, 2)
    await world.lead_one(3, epoch=3, isr=(3,))
    assert (await world.try_produce(b"new", to=3, acks=1))[0] == ErrorCode.NONE
    await world.settled()
    assert world.values(1) == [b"new"]
    assert len(world.logs()) == 1


@in_world()
async def test_a_replica_that_lost_its_folder_is_fetched_from_the_beginning(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    for number in range(10):
        await world.produce(b"%d" % number)
    await world.settled()
    await world.brokers[3].stop()
    disk = world.brokers[3].ports.disk
    for name in disk.names("/data/a/t-0"):
        disk.remove(f"/data/a/t-0/{name}")
    await world.start(3)
    await world.lead_one(1, epoch=2, isr=(1, 2))
    await world.settled()
    assert len(world.logs()) == 1
    assert world.values(3) == [b"%d" % number for number in range(10)]
