"""How a record becomes committed, step by step: each step's log ends and high watermarks, over real Fetch frames.

The follower is the test itself, which sends one fetch after the other; the leader is a broker. `remote` is how far the
leader knows the follower to be.
"""

from __future__ import annotations

import asyncio
from typing import NamedTuple

from tests.replication.fetching.fetching_world import TP, FetchingWorld, in_world

from ottla.protocol.generated.fetch import (
    FetchPartition,
    FetchRequest,
    FetchResponse,
    FetchTopic,
    PartitionData,
    ReplicaState,
)
from ottla.records.batch import iterate
from ottla.testing.sim.given_roles import topic_id

BUFFERED = {"log.flush.interval.messages": "9223372036854775807"}
FOLLOWER = 2
#: replica.fetch.wait.max.ms
WAIT_MS = 500


class Step(NamedTuple):
    leader_end: int
    remote_end: int
    leader_watermark: int
    follower_end: int
    follower_watermark: int


class HandMadeFollower:
    def __init__(self, world: FetchingWorld) -> None:
        self.world = world
        self.end = 0
        self.watermark = 0

    def fetch(self) -> asyncio.Future[FetchResponse]:
        partition = FetchPartition(
            partition=0, current_leader_epoch=1, fetch_offset=self.end, partition_max_bytes=1_048_576
        )
        request = FetchRequest(
            max_wait_ms=WAIT_MS,
            min_bytes=1,
            max_bytes=10_485_760,
            session_epoch=-1,
            replica_state=ReplicaState(replica_id=FOLLOWER, replica_epoch=self.world.brokers[FOLLOWER].lives),
            topics=[FetchTopic(topic_id=topic_id("t"), partitions=[partition])],
        )
        return asyncio.ensure_future(self.world.client(1).ask(request, 17))

    def take(self, answer: FetchResponse) -> PartitionData:
        """Writes what came, and takes the lesser of its own end and the leader's watermark."""
        found = answer.responses[0].partitions[0]
        records = found.records or b""
        for _, header in iterate(records, 0, len(records)):
            self.end = header.next_offset
        self.watermark = min(self.end, found.high_watermark)
        return found

    @property
    def now(self) -> Step:
        leader = self.world.leader(1, TP)
        remote = leader.isr.followers[FOLLOWER].end
        return Step(leader.log.end_offset, remote, leader.high_watermark, self.end, self.watermark)


async def led(world: FetchingWorld) -> HandMadeFollower:
    """Broker 2 is assigned and in sync, and does not run: the test speaks for it."""
    world.kill(FOLLOWER)
    await world.give([world.state(TP, 1, 1, (1, FOLLOWER), replicas=(1, FOLLOWER))])
    return HandMadeFollower(world)


async def produced(world: FetchingWorld) -> asyncio.Future[tuple[int, int]]:
    """Through a connection of its own: a broker serves one request of a connection after the other."""
    waits = asyncio.ensure_future(world.try_produce(b"record", to=1, acks=-1, lane="producer"))
    await asyncio.sleep(0.01)
    return waits


@in_world(brokers=2, properties=BUFFERED)
async def test_a_fetch_that_comes_behind_the_record(world: FetchingWorld) -> None:
    follower = await led(world)
    assert follower.now == Step(0, 0, 0, 0, 0)
    answer = await produced(world)
    assert follower.now == Step(1, 0, 0, 0, 0), "the leader has it, and nobody knows of another that has"
    found = follower.take(await follower.fetch())
    assert (found.high_watermark, follower.now) == (0, Step(1, 0, 0, 1, 0))
    assert not answer.done()
    found = follower.take(await follower.fetch())
    assert (found.high_watermark, follower.now) == (1, Step(1, 1, 1, 1, 1))
    assert await answer == (0, 0)


@in_world(brokers=2, properties=BUFFERED)
async def test_a_fetch_that_its_leader_keeps_until_the_record_comes(world: FetchingWorld) -> None:
    follower = await led(world)
    fetch = follower.fetch()
    await asyncio.sleep(0.2)
    assert not fetch.done()
    answer = await produced(world)
    assert fetch.done(), "the record wakes it"
    found = follower.take(fetch.result())
    assert (found.high_watermark, follower.now) == (0, Step(1, 0, 0, 1, 0))
    assert not answer.done()
    found = follower.take(await follower.fetch())
    assert (found.high_watermark, follower.now) == (1, Step(1, 1, 1, 1, 1))
    assert await answer == (0, 0)


@in_world(brokers=2, properties=BUFFERED)
async def test_a_fetch_that_nothing_comes_for_is_kept_for_so_long_and_no_longer(world: FetchingWorld) -> None:
    follower = await led(world)
    began = world.loop.time()
    found = follower.take(await follower.fetch())
    assert abs(world.loop.time() - began - WAIT_MS / 1000) < 0.01
    assert (found.records or b"", follower.now) == (b"", Step(0, 0, 0, 0, 0))
