"""A broker's session with the tree in numbers: its state, and how long the tree takes to answer."""

from __future__ import annotations

from tests.broker.simulated_cluster import SimulatedCluster, until
from tests.broker.test_broker_metrics import numbers

from ottla import testing

_LATENCY = "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms"
_LISTENER = "kafka_server_sessionexpirelistener_"


def scraped(cluster: SimulatedCluster, number: int) -> dict[str, float]:
    return numbers(cluster.broker(number).registry.render())


def state(seen: dict[str, float]) -> str:
    """The only one of which it says 1."""
    stem = f"{_LISTENER}sessionstate{{state="
    values = {name.removeprefix(stem).strip('"}'): value for name, value in seen.items() if name.startswith(stem)}
    assert values.keys() == {"CONNECTING", "CONNECTED", "CLOSED"}
    (present,) = (name for name, value in values.items() if value == 1)
    assert sum(values.values()) == 1
    return present


def test_a_tree_that_cannot_be_reached_is_connected_to_again() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        before = scraped(cluster, 1)
        assert state(before) == "CONNECTED"
        assert before[f"{_LATENCY}_count"] > 0
        cluster.simulation.world.fabric.cut("b1", "tree")
        await until(lambda: state(scraped(cluster, 1)) == "CONNECTING")
        assert state(scraped(cluster, 2)) == "CONNECTED"
        cluster.simulation.world.fabric.heal()
        await until(lambda: state(scraped(cluster, 1)) == "CONNECTED")
        after = scraped(cluster, 1)
        assert after[f"{_LISTENER}zookeeperdisconnects_total"] >= 1

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_answers_are_counted_through_all_sessions() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (former,) = cluster.controllers  # which asks the tree for something, and so hears that its session is over
        before, epoch = scraped(cluster, former), cluster.epoch(former)
        await cluster.expire(former)
        await until(lambda: cluster.epoch(former) > epoch)
        after = scraped(cluster, former)
        # The next session has registered the broker at least.
        assert after[f"{_LATENCY}_count"] > before[f"{_LATENCY}_count"]
        assert after[f"{_LATENCY}_sum"] >= before[f"{_LATENCY}_sum"]
        assert state(after) == "CONNECTED"

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_requests_take_as_long_as_the_tree_does() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        before = scraped(cluster, 1)
        cluster.tree.pause()
        asked = cluster.brokers[1].carry_out(cluster.broker(1).tree.get("/cluster/id"))
        await cluster.pause(0.4)
        cluster.tree.wake()
        await asked
        after = scraped(cluster, 1)
        assert after[f"{_LATENCY}_sum"] >= before[f"{_LATENCY}_sum"] + 400
        assert after[f'{_LATENCY}{{quantile="0.999"}}'] >= 200

    with SimulatedCluster(1) as cluster:
        cluster.run(scenario(cluster))


def test_a_tree_in_this_process_is_connected_and_asked_for_nothing() -> None:
    with testing.broker() as broker:
        seen = numbers(broker.metrics())
    assert state(seen) == "CONNECTED"
    assert seen[f"{_LATENCY}_count"] == 0
