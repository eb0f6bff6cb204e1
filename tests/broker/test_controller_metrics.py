"""The controller's numbers, over a cluster of three in which brokers die and come back."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator

import pytest
from tests.controller.several import Brokers

from ottla.broker.controller_metrics import register_controller_metrics
from ottla.controller.interface import ElectionKind, TopicRef, TopicToCreate
from ottla.metrics import Registry
from ottla.model import BrokerId


@pytest.fixture
def brokers() -> Iterator[Brokers]:
    made = Brokers(auto_leader_rebalance=False)
    made.settle(made.begin())
    yield made
    made.close()


def readings(brokers: Brokers) -> dict[int, dict[str, float]]:
    """Of each broker, by the last part of their names."""
    found: dict[int, dict[str, float]] = {}
    for number in brokers.controllers:
        registry = Registry()
        clock = brokers.world.machine("m").clock
        register_controller_metrics(registry, lambda number=number: brokers.controllers[number], clock)  # type: ignore[misc]
        lines = [line.split(" ") for line in registry.render().splitlines() if line and not line.startswith("#")]
        found[number] = {name.split("_", 3)[-1]: float(value) for name, value in lines}
    return found


def test_the_controller_counts_and_the_others_show_nothing(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(3, 2), (2, 3), (3, 2)]))
    brokers.settle(brokers.create("alone", 3))
    seen = readings(brokers)
    assert [seen[number]["activecontrollercount"] for number in (1, 2, 3)] == [1, 0, 0]
    assert [seen[number]["globaltopiccount"] for number in (1, 2, 3)] == [2, 0, 0]
    assert [seen[number]["globalpartitioncount"] for number in (1, 2, 3)] == [4, 0, 0]
    assert seen[1]["offlinepartitionscount"] == seen[1]["preferredreplicaimbalancecount"] == 0
    assert seen[1]["leaderelectionrateandtimems_count"] == 0

    brokers.settle(brokers.die(3))
    after = readings(brokers)[1]
    assert after["offlinepartitionscount"] == 1
    assert after["preferredreplicaimbalancecount"] == 3
    # One set of elections.
    assert after["leaderelectionrateandtimems_count"] == 1
    assert after["uncleanleaderelections_total"] == 0

    brokers.settle(brokers.change_isr("orders", 2))
    brokers.settle(brokers.start(3))
    brokers.settle(brokers.die(2))
    brokers.settle(brokers.controller.elect_leaders(ElectionKind.UNCLEAN, None))
    last = readings(brokers)[1]
    assert last["offlinepartitionscount"] == 0
    assert last["uncleanleaderelections_total"] == 3


def test_a_deletion_that_waits_for_a_broker_is_counted_and_a_new_controller_counts_the_same(brokers: Brokers) -> None:
    brokers.settle(brokers.create_all("orders", [(2, 3)] * 5))
    brokers.settle(brokers.die(3))
    brokers.settle(brokers.controller.delete_topics([TopicRef("orders")]))
    first = readings(brokers)[1]
    assert first["topicstodeletecount"] == first["topicsineligibletodeletecount"] == 1
    assert (first["replicastodeletecount"], first["replicasineligibletodeletecount"]) == (10, 5)
    brokers.settle(brokers.person.delete("/controller"))
    seen = readings(brokers)
    assert sum(each["activecontrollercount"] for each in seen.values()) == 1
    assert sum(each["topicstodeletecount"] for each in seen.values()) == 1


def test_what_a_broker_has_not_answered_and_events_that_wait_are_counted(brokers: Brokers) -> None:
    slow = brokers.all[3]
    slow.hangs_in = "metadata"
    asked = TopicToCreate("orders", assignments=((0, (BrokerId(2),)),))
    brokers.run(brokers.controller.create_topics([asked]))
    seen = readings(brokers)[1]
    waiting = {name: value for name, value in seen.items() if "queuesize{" in name}
    assert waiting['queuesize{broker_id="3"}'] > 0
    assert waiting['queuesize{broker_id="1"}'] == waiting['queuesize{broker_id="2"}'] == 0
    assert seen["totalqueuesize"] == sum(waiting.values())
    assert seen["eventqueuetimems_count"] > 0
    slow.hangs_in = None
    brokers.run(brokers.controller.create_topics([asked._replace(name="payments")]))
    brokers.run(asyncio.sleep(2))
    slow.go_on()
    brokers.settle()
    last = readings(brokers)[1]
    assert last["totalqueuesize"] == 0
    assert (
        last['requestrateandqueuetimems_sum{broker_id="3"}']
        >= 2_000
        > last['requestrateandqueuetimems_sum{broker_id="2"}']
    )
    assert not any("queuesize{" in name for name in readings(brokers)[2])
