"""What a broker shows of its fetchers, of the requests that wait, and of its own life, in a cluster of three."""

from __future__ import annotations

import asyncio

from tests.broker.simulated_cluster import SimulatedCluster, until
from tests.broker.test_broker_metrics import numbers

from ottla.model import ErrorCode

STATE = "kafka_server_kafkaserver_brokerstate"
WAITING = 'kafka_server_delayedoperationpurgatory_purgatorysize{{delayedoperation="{}"}}'.format


def seen(cluster: SimulatedCluster, number: int) -> dict[str, float]:
    return numbers(cluster.broker(number).registry.render())


def of_fetchers(cluster: SimulatedCluster, number: int, what: str) -> dict[str, float]:
    stem = f"kafka_server_fetcherstats_{what}_total"
    return {name[len(stem) :]: value for name, value in seen(cluster, number).items() if name.startswith(stem)}


def test_each_fetcher_counts_its_fetches_and_what_it_has_taken_over() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2), 1: (3, 2)}) is ErrorCode.NONE
        for _ in range(3):
            assert await cluster.produce(1, "t") is ErrorCode.NONE
        size = cluster.broker(1).services.replicas.leaders["t", 0].log.size
        (endpoint,) = cluster.broker(1).endpoints
        labels = f'{{clientid="ReplicaFetcherThread-0-1",brokerhost="{endpoint.host}",brokerport="{endpoint.port}"}}'
        taken = of_fetchers(cluster, 2, "bytes")
        assert taken.pop(labels) == size
        assert list(taken.values()) == [0], "of the other leader"
        # Each of three writes came with an answer of its own, and one asks for the next.
        assert of_fetchers(cluster, 2, "requests")[labels] >= 4
        assert not of_fetchers(cluster, 1, "bytes")

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def test_requests_that_wait_are_counted_by_their_kind() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2)}) is ErrorCode.NONE
        assert await cluster.produce(1, "t") is ErrorCode.NONE
        # The follower's, which its leader keeps.
        await until(lambda: seen(cluster, 1)[WAITING("Fetch")] == 1)
        assert seen(cluster, 1)[WAITING("Produce")] == 0
        cluster.simulation.world.fabric.cut("b1", "b2")
        writes = [asyncio.ensure_future(cluster.produce(1, "t")) for _ in range(3)]
        await until(lambda: seen(cluster, 1)[WAITING("Produce")] == 3)
        cluster.simulation.world.fabric.heal()
        assert await asyncio.gather(*writes) == [ErrorCode.NONE] * 3
        assert seen(cluster, 1)[WAITING("Produce")] == 0

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def test_the_state_of_a_broker_is_kafkas_number() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2)}) is ErrorCode.NONE
        broker = cluster.broker(1)
        found = [seen(cluster, 1)[STATE]]
        stopping = asyncio.ensure_future(broker.stop())
        while not stopping.done():
            state = numbers(broker.registry.render())[STATE]
            if state != found[-1]:
                found.append(state)
            await asyncio.sleep(0.001)
        assert found == [3, 6]
        assert numbers(broker.registry.render())[STATE] == 7

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))
