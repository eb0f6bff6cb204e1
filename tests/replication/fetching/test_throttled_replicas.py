"""Replicas that are copied at a bounded rate (KIP-73), on the side of the leader and on that of the follower."""

from __future__ import annotations

import pytest
from tests.replication.fetching.fetching_world import TP, FetchingWorld, run_in_world

from ottla.model import ErrorCode
from ottla.ports.memory import World
from ottla.replication.throttles import ReplicationQuota, names

BUFFERED = {"log.flush.interval.messages": "9223372036854775807"}
RATE = 10_000


@pytest.mark.parametrize(("side", "broker"), [("leader", 1), ("follower", 3)])
@pytest.mark.parametrize("throttled", ["*", "0:{broker}", "1:{broker},0:9"])
def test_a_throttled_replica_is_copied_at_its_rate(side: str, broker: int, throttled: str) -> None:
    holds = throttled.startswith(("*", "0:"))

    async def scenario(world: FetchingWorld) -> None:
        world.configs["t"] = {f"{side}.replication.throttled.replicas": throttled.format(broker=broker)}
        await world.give([world.state(TP, 1, 1, (1, 2), replicas=(1, 2, 3))])
        await world.settled()
        world.kill(3)
        for _ in range(20):
            await world.produce(b"x" * 10_000)
        world.reconfigure(broker, {f"{side}.replication.throttled.rate": str(RATE)}) if side == "leader" else None
        await world.start(3)
        if side == "follower":
            world.reconfigure(broker, {f"{side}.replication.throttled.rate": str(RATE)})
        began = world.loop.time()
        await world.until(lambda: world.log(3, TP).end_offset == 20, within_s=60)
        took = world.loop.time() - began
        if holds:
            # The first fetches come before anything is counted: a burst of one answer, as with Kafka.
            assert 8 < took < 40
        else:
            assert took < 2

    run_in_world(scenario, properties={**BUFFERED, "replica.fetch.max.bytes": "10000"})


def test_one_that_is_in_sync_is_never_throttled() -> None:
    async def scenario(world: FetchingWorld) -> None:
        world.configs["t"] = {f"{side}.replication.throttled.replicas": "*" for side in ("leader", "follower")}
        await world.lead_one(1, epoch=1)
        for each in (1, 2, 3):
            world.reconfigure(each, {f"{side}.replication.throttled.rate": "1" for side in ("leader", "follower")})
        for _ in range(20):
            began = world.loop.time()
            assert (await world.try_produce(b"x" * 10_000, to=1, acks=-1))[0] == ErrorCode.NONE
            assert world.loop.time() - began < 1.0
        await world.settled()

    run_in_world(scenario, properties=BUFFERED)


def test_the_rate_is_over_the_samples_of_the_last_seconds() -> None:
    world = World(1)
    clock = world.machine("here").clock
    quota = ReplicationQuota(clock, lambda: 100)

    def passes(seconds: float) -> None:
        async def wait() -> None:
            import asyncio

            await asyncio.sleep(seconds)

        world.loop.run_until_complete(wait())

    assert not quota.is_exceeded
    quota.record(100)
    assert not quota.is_exceeded
    quota.record(1)
    assert quota.is_exceeded
    passes(1.5)
    assert not quota.is_exceeded
    quota.record(10_000)
    assert quota.is_exceeded
    passes(9)
    assert quota.is_exceeded, "it is still among the last eleven seconds"
    passes(3)
    assert not quota.is_exceeded
    world.loop.close()


def test_samples_are_as_many_and_as_long_as_configured() -> None:
    world = World(1)
    clock = world.machine("here").clock
    quota = ReplicationQuota(clock, lambda: 100, samples=2, sample_ms=3_000)

    def after(seconds: float) -> bool:
        async def wait() -> None:
            import asyncio

            await asyncio.sleep(seconds)

        world.loop.run_until_complete(wait())
        return quota.is_exceeded

    quota.record(301)
    assert after(0)
    assert not after(3.1), "301 bytes in more than three seconds"
    quota.record(100_000)
    assert after(2.9)
    assert not after(3.2), "both are forgotten after six seconds"
    world.loop.close()


@pytest.mark.parametrize(
    ("replicas", "wanted"),
    [((), False), (("*",), True), (("3:7",), True), (("3:8", "4:7"), False), (("4:7", "3:7"), True)],
)
def test_which_replicas_are_throttled(replicas: tuple[str, ...], wanted: bool) -> None:
    assert names(replicas, 3, 7) is wanted
