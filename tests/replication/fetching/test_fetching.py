"""Followers fetch from real leaders over real frames, in a virtual world; a test gives the roles."""

from __future__ import annotations

from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world


@in_world()
async def test_followers_get_what_the_leader_has_byte_for_byte(world: FetchingWorld) -> None:
    await world.lead_one(1, epoch=1)
    for number in range(20):
        assert await world.produce(b"%d" % number, acks=-1) == number
    await world.settled()
    assert world.values(2) == [b"%d" % number for number in range(20)]
    assert world.logs() == {world.bytes_of(1, TP)}
    assert world.high_watermarks() == {1: 20, 2: 20, 3: 20}
