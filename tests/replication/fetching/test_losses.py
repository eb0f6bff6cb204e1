"""How records were lost, and logs parted, where followers cut their logs at their own high watermark: the two losses
that led to leader epochs (KIP-101), and the ones behind them (KIP-279), over real frames."""

from __future__ import annotations

import asyncio

from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world

from ottla.model import ErrorCode

#: Two brokers, and min.insync.replicas is 1: what the ISR has is committed.
A, B = 1, 2
BUFFERED = {"log.flush.interval.messages": "9223372036854775807"}


def checkpoint(world: FetchingWorld, broker: int) -> int:
    """What its start will take for the high watermark."""
    life = world.brokers[broker].broker
    assert life is not None
    assert life.services is not None
    return life.services.replicas.directories.high_watermark(TP) or 0


@in_world(brokers=2)
async def test_a_follower_that_restarts_and_leads_at_once_has_lost_nothing(world: FetchingWorld) -> None:
    """The first loss. The follower has record 1, and has not heard that it is committed, when it restarts. Cut at its
    own watermark it would lack that record; then the leader dies, and the follower leads."""
    await world.lead_one(A, epoch=1)
    await world.produce(b"0")
    await world.settled()
    follower = world.follower(B, TP)
    # What the follower hears of the watermark comes one fetch later, and it is killed before.
    committed = asyncio.ensure_future(world.produce(b"1"))
    while follower.log.end_offset < 2 or world.leader(A, TP).high_watermark < 2:
        assert follower.high_watermark < 2
        await asyncio.sleep(0)
    assert follower.high_watermark == 1
    world.kill(B)
    await committed
    await world.brokers[B].started()
    assert checkpoint(world, B) < 2
    await world.announce()
    assert world.log(B, TP).end_offset == 2, "a log is not cut by its own watermark"
    world.kill(A)
    await world.lead_one(B, epoch=2, isr=(B,))
    assert world.values(B) == [b"0", b"1"]
    await world.start(A)
    await world.settled()
    assert world.logs() == {world.bytes_of(B, TP)}


@in_world(brokers=2, properties=BUFFERED)
async def test_logs_that_parted_at_a_power_cut_do_not_stay_parted(world: FetchingWorld) -> None:
    """The second. Both lose their power; the follower, which had less, comes back first, leads, and writes another
    record at the same offset. Cut at watermarks, the former leader would keep its own record there for ever."""
    await world.lead_one(A, epoch=1)
    await world.produce(b"0")
    await world.settled()
    world.kill(B)
    assert await world.try_produce(b"only A has it", to=A, acks=1) == (ErrorCode.NONE, 1)
    world.kill(A)
    await world.start(B)
    await world.lead_one(B, epoch=2, isr=(B,))
    assert await world.produce(b"only B has it") == 1
    await world.start(A)
    await world.lead_one(B, epoch=3, isr=(A, B))
    await world.settled()
    assert world.values(A) == [b"0", b"only B has it"]
    assert len(world.logs()) == 1


@in_world(brokers=2, properties=BUFFERED)
async def test_the_end_of_a_leader_epoch_is_asked_for_and_not_that_of_the_log(world: FetchingWorld) -> None:
    """KIP-279: leaders change fast, and a replica whose last leader epoch nobody else knows is asked for the one before
    it. The leader's log is longer by then than the one that is to be cut."""
    await world.lead_one(A, epoch=1)
    await world.produce(b"0")
    await world.settled()
    world.kill(B)
    await world.lead_one(A, epoch=2, isr=(A,))
    assert (await world.try_produce(b"A in 2", to=A, acks=1))[0] == ErrorCode.NONE
    world.kill(A)
    await world.start(B)
    await world.lead_one(B, epoch=3, isr=(B,))
    for number in range(5):
        await world.produce(b"B in 3, %d" % number)
    await world.start(A)
    await world.lead_one(B, epoch=4, isr=(A, B))
    await world.settled()
    assert world.values(A) == [b"0", *(b"B in 3, %d" % number for number in range(5))]
    assert len(world.logs()) == 1


@in_world(brokers=3)
async def test_a_leader_that_was_asleep_gives_up_what_it_took_meanwhile(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    await world.produce(b"0")
    await world.settled()
    fabric = world.simulation.world.fabric
    for each in (2, 3):
        fabric.cut(world.brokers[1].name, world.brokers[each].name)
    await world.lead_one(2, epoch=2, isr=(2, 3), to=(2, 3))
    assert await world.try_produce(b"nobody gets it", to=1, acks=1) == (ErrorCode.NONE, 1)
    assert await world.produce(b"1") == 1
    fabric.heal()
    await world.lead_one(2, epoch=3, isr=(2, 3))
    await world.settled()
    assert world.values(1) == [b"0", b"1"]
    assert len(world.logs()) == 1
