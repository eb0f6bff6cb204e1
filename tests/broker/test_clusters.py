"""Brokers of one cluster: who is the controller, what all of them know, and what a broker outlives."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from contextlib import suppress
from typing import Any

import pytest
from tests.broker.simulated_cluster import SESSION_MS, SimulatedCluster, until

from ottla.metadata import MetadataUpdate
from ottla.model import ErrorCode
from ottla.protocol.generated import alter_partition_reassignments as moving
from ottla.protocol.generated import elect_leaders as electing
from ottla.protocol.generated.create_partitions import CreatePartitionsRequest, CreatePartitionsTopic
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicState
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.incremental_alter_configs import (
    AlterableConfig,
    AlterConfigsResource,
    IncrementalAlterConfigsRequest,
)
from ottla.protocol.message import Message
from ottla.testing.sim.wire import Client, Unreachable


def seen(cluster: SimulatedCluster, number: int) -> object:
    """All that a broker says of the cluster, as its clients see it."""
    metadata = cluster.broker(number).metadata
    topics = {
        name: [(state.partition, state.leader, state.isr, state.replicas) for state in topic.partitions]
        for name, topic in metadata.topics.items()
    }
    return metadata.cluster_id, metadata.controller_id, sorted(metadata.brokers), topics


@pytest.mark.parametrize("seed", range(3))
def test_a_topic_made_through_any_broker_is_led_and_known_everywhere(seed: int) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert len(cluster.controllers) == 1
        (controller,) = cluster.controllers
        other = next(number for number in cluster.brokers if number != controller)
        placed = {0: (1, 2, 3), 1: (2, 3, 1), 2: (3, 1, 2)}
        assert await cluster.create(other, "t", placed, {"retention.ms": "123456"}) is ErrorCode.NONE
        assert await cluster.create(controller, "u", {0: (other,)}) is ErrorCode.NONE
        await until(lambda: len({repr(seen(cluster, number)) for number in cluster.brokers}) == 1)
        for partition, (leader, *followers) in placed.items():
            assert await cluster.produce(leader, "t", partition) is ErrorCode.NONE
            assert await cluster.produce(followers[0], "t", partition) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        for number in cluster.brokers:
            answer = await cluster.metadata(number, "t")
            assert [broker.node_id for broker in answer.brokers] == [1, 2, 3]
            assert answer.controller_id == controller
            assert [(each.partition_index, each.leader_id) for each in answer.topics[0].partitions] == [
                (0, 1),
                (1, 2),
                (2, 3),
            ]
            # What UpdateMetadata does not carry.
            assert cluster.broker(number).metadata.topic_config("t") == {"retention.ms": "123456"}
            for log in cluster.broker(number).logs():
                assert log.config.retention_ms == (123456 if log.tp.topic == "t" else 604800000)

    with SimulatedCluster(3, seed) as cluster:
        cluster.run(scenario(cluster))


@pytest.mark.parametrize("seed", range(3))
def test_the_controller_moves_when_its_session_ends_and_its_broker_goes_on(seed: int) -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (former,) = cluster.controllers
        assert await cluster.create(former, "t", {0: (1, 2), 1: (2, 1)}) is ErrorCode.NONE
        epoch = cluster.epoch(former)
        await cluster.expire(former)
        await until(lambda: cluster.epoch(former) > epoch)
        await until(lambda: len(cluster.controllers) == 1)
        (present,) = cluster.controllers
        # Both lead something again, under whichever controller, and both know the same.
        await until(lambda: {cluster.leader("t", index, present) for index in (0, 1)} <= {1, 2})
        await until(lambda: seen(cluster, 1) == seen(cluster, 2))
        for index in (0, 1):
            leader = cluster.leader("t", index, 1)
            assert leader is not None
            assert await cluster.produce(leader, "t", index) is ErrorCode.NONE
        for number in cluster.brokers:
            assert await cluster.create(number, f"from-{number}", {0: (number,)}) is ErrorCode.NONE
        assert cluster.brokers[former].lives == 1
        assert not cluster.said("gives up")

    with SimulatedCluster(2, seed) as cluster:
        cluster.run(scenario(cluster))


@pytest.mark.parametrize(
    ("asked", "version", "codes"),
    [
        (
            CreateTopicsRequest(topics=[CreatableTopic(name="n", num_partitions=1, replication_factor=1)]),
            7,
            lambda answer: [topic.error_code for topic in answer.topics],
        ),
        (
            CreatePartitionsRequest(topics=[CreatePartitionsTopic(name="t", count=2)], timeout_ms=1_000),
            3,
            lambda answer: [topic.error_code for topic in answer.results],
        ),
        (
            DeleteTopicsRequest(topics=[DeleteTopicState(name="t")], timeout_ms=1_000),
            6,
            lambda answer: [topic.error_code for topic in answer.responses],
        ),
        (
            IncrementalAlterConfigsRequest(
                resources=[
                    AlterConfigsResource(
                        resource_type=2,
                        resource_name="t",
                        configs=[AlterableConfig(name="retention.ms", config_operation=0, value="1")],
                    )
                ]
            ),
            1,
            lambda answer: [each.error_code for each in answer.responses],
        ),
        (
            moving.AlterPartitionReassignmentsRequest(
                topics=[
                    moving.ReassignableTopic(
                        name="t", partitions=[moving.ReassignablePartition(partition_index=0, replicas=[2])]
                    )
                ]
            ),
            0,
            lambda answer: [answer.error_code],
        ),
        (electing.ElectLeadersRequest(election_type=0), 2, lambda answer: [answer.error_code]),
    ],
    ids=lambda each: type(each).__name__ if isinstance(each, Message) else "",
)
def test_what_another_broker_passes_on_is_not_passed_on_again(
    asked: Message, version: int, codes: Callable[[Any], list[int]]
) -> None:
    """That broker asks the next controller itself: what it has given up here would be done behind later things."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        assert await cluster.create(other, "t", {0: (1,)}) is ErrorCode.NONE
        network = cluster.simulation.world.machine("clients").network
        passing_on = Client(network, "broker-1-to-controller", *cluster.brokers[other].address)
        assert codes(await passing_on.ask(asked, version)) == [ErrorCode.NOT_CONTROLLER]
        assert codes(await cluster.client(other).ask(asked, version)) != [ErrorCode.NOT_CONTROLLER]

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_a_broker_whose_session_has_ended_hears_of_later_controllers() -> None:
    """What it watched ended with the session, and nobody calls that."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        others = [number for number in cluster.brokers if number != controller]
        for number in others:
            epoch = cluster.epoch(number)
            cluster.brokers[number].pause()
            await asyncio.sleep(2 * SESSION_MS / 1000)
            cluster.brokers[number].wake()
            await until(lambda number=number, epoch=epoch: cluster.epoch(number) > epoch)  # type: ignore[misc]
        cluster.brokers[controller].kill()
        await until(lambda: bool(set(cluster.controllers) & set(others)))
        for number in others:
            assert await cluster.create(number, f"from-{number}", {0: (number,)}) is ErrorCode.NONE

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def test_of_a_topic_that_a_broker_has_not_heard_of_the_controller_decides() -> None:
    """What is to be changed by its clients is not refused for that: another broker's clients made it just now."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        assert await cluster.create(controller, "t", {0: (controller,)}) is ErrorCode.NONE
        metadata = cluster.broker(other).metadata
        await until(lambda: "t" in metadata.topics)
        topic_id = metadata.topics["t"].id

        async def ask_unheard(request: Message, version: int) -> Any:
            metadata.apply(MetadataUpdate(controller_epoch=metadata.controller_epoch, topics_deleted=["t"]))
            return await cluster.client(other).ask(request, version)

        grown = CreatePartitionsTopic(name="t", count=2, assignments=None)
        answer = await ask_unheard(CreatePartitionsRequest(topics=[grown], timeout_ms=2_000), 3)
        assert answer.results[0].error_code == ErrorCode.NONE
        settings = AlterConfigsResource(
            resource_type=2,
            resource_name="t",
            configs=[AlterableConfig(name="retention.ms", config_operation=0, value="5")],
        )
        answer = await ask_unheard(IncrementalAlterConfigsRequest(resources=[settings]), 1)
        assert answer.responses[0].error_code == ErrorCode.NONE
        chosen = electing.TopicPartitions(topic="t", partitions=[0])
        answer = await ask_unheard(electing.ElectLeadersRequest(topic_partitions=[chosen], timeout_ms=2_000), 2)
        (elected,) = answer.replica_election_results
        assert elected.partition_result[0].error_code == ErrorCode.ELECTION_NOT_NEEDED
        gone = DeleteTopicState(name=None, topic_id=topic_id)
        answer = await ask_unheard(DeleteTopicsRequest(topics=[gone], timeout_ms=2_000), 6)
        assert answer.responses[0].error_code == ErrorCode.NONE

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_behind_a_failed_write_the_controller_is_asked_again() -> None:
    """It reads the tree anew with the next turn, and there is none if it sends away whoever asks."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        cluster.broker(controller).services.own_controller.tenure.core.stale = True
        assert cluster.controllers == [controller]
        assert await cluster.create(3 - controller, "t", {0: (1, 2)}) is ErrorCode.NONE

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_a_killed_broker_comes_back_under_its_id_when_its_session_is_over() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        assert await cluster.create(controller, "t", {0: (other, controller)}) is ErrorCode.NONE
        assert await cluster.produce(other, "t") is ErrorCode.NONE
        before = cluster.epoch(other)
        cluster.brokers[other].kill()
        await until(lambda: cluster.leader("t", 0, controller) == controller)
        assert await cluster.produce(controller, "t") is ErrorCode.NONE
        await cluster.brokers[other].started()
        assert cluster.epoch(other) > before
        await until(lambda: seen(cluster, 1) == seen(cluster, 2))
        # It follows, and is in sync again.
        await until(lambda: set(cluster.broker(controller).metadata.partition("t", 0).isr) == {1, 2})

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_an_id_that_another_live_broker_has_is_refused_with_one_line() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        second = cluster.simulation.broker("second", cluster.properties(1, {}))
        await second.start()
        assert "a live broker is registered as 1 already" in str(second.refusal)
        assert await cluster.create(1, "t", {0: (1,)}) is ErrorCode.NONE

    with SimulatedCluster(1) as cluster:
        cluster.run(scenario(cluster))


def test_a_broker_of_another_cluster_is_refused() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        stranger = cluster.simulation.broker("stranger", {"broker.id": "7"})
        await stranger.started()
        await stranger.stop()
        stranger.properties.update(cluster.properties(7, {}))
        await stranger.start()
        assert "belong to cluster" in str(stranger.refusal)

    with SimulatedCluster(1) as cluster:
        cluster.run(scenario(cluster))


def test_a_stopping_broker_hands_its_partitions_over_first() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        placed = {index: (1 + index % 3, 1 + (index + 1) % 3, 1 + (index + 2) % 3) for index in range(6)}
        assert await cluster.create(1, "t", placed) is ErrorCode.NONE
        for index, (leader, *_) in placed.items():
            assert await cluster.produce(leader, "t", index) is ErrorCode.NONE
        await cluster.brokers[2].stop()
        # Nobody had to find out that it is gone.
        assert cluster.said("others lead this broker's partitions")
        for index in placed:
            leader = cluster.leader("t", index, 1)
            assert leader in (1, 3)
            assert await cluster.produce(leader, "t", index) is ErrorCode.NONE

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def test_a_broker_that_is_registered_anew_while_it_stops_hands_over_all_the_same() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (2, 3, 1)}) is ErrorCode.NONE
        before = cluster.epoch(2)
        stop = asyncio.ensure_future(cluster.brokers[2].stop())
        await cluster.expire(2)
        await until(lambda: cluster.epoch_or_none(2) not in (None, before))
        await stop
        assert cluster.said("others lead this broker's partitions")
        assert not cluster.said("stops although it leads")

    with SimulatedCluster(3, properties={"controlled.shutdown.retry.backoff.ms": "1000"}) as cluster:
        cluster.run(scenario(cluster))


def test_a_client_that_knows_one_broker_learns_of_the_new_leader_before_that_one_hangs_up() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (2, 3, 1)}) is ErrorCode.NONE
        assert await cluster.produce(2, "t") is ErrorCode.NONE
        stop = asyncio.ensure_future(cluster.brokers[2].stop())
        while await cluster.produce(2, "t") is ErrorCode.NONE:
            await cluster.pause(0.001)
        # Clients pause so long before they ask again.
        await asyncio.sleep(0.1)
        answer = await cluster.metadata(2, "t")
        assert answer.topics[0].partitions[0].leader_id == 3
        await stop

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def test_clients_wait_until_a_broker_knows_the_cluster() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.tree.started()
        await cluster.brokers[1].started()
        assert await cluster.create(1, "t", {0: (1,)}) is ErrorCode.NONE
        # The controller cannot reach the second one: it registers, and knows nothing yet.
        cluster.simulation.world.fabric.cut("b1", "b2")
        start = cluster.brokers[2].start()
        await until(lambda: cluster.brokers[2].broker is not None and cluster.epoch_or_none(2) is not None)
        asked = asyncio.create_task(cluster.metadata(2, "t"))
        await asyncio.sleep(1)
        assert not asked.done()
        assert not start.done()
        cluster.simulation.world.fabric.heal("b1", "b2")
        answer = await asked
        assert answer.topics[0].error_code == ErrorCode.NONE
        await start

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_changed_settings_reach_every_broker_by_the_tree() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        assert await cluster.create(1, "t", {0: (1,), 1: (2,)}) is ErrorCode.NONE
        await cluster.alter(other, 2, "t", "retention.ms", "4242")
        await cluster.alter(other, 4, "", "log.retention.bytes", "777")
        for number in cluster.brokers:
            broker = cluster.broker(number)
            await until(lambda broker=broker: [log.config.retention_ms for log in broker.logs()] == [4242])  # type: ignore[misc]
            await until(lambda broker=broker: [log.config.retention_bytes for log in broker.logs()] == [777])  # type: ignore[misc]

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_each_broker_takes_settings_of_itself_and_of_no_other() -> None:
    """All but the controller pass them on to it; Kafka's tools ask each broker for its own throttles."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        for number in (1, 2, 3):
            await cluster.alter(number, 4, str(number), "leader.replication.throttled.rate", "1000")
            with pytest.raises(AssertionError, match=f"Unexpected broker id, expected {number}, but received"):
                await cluster.alter(number, 4, str(1 + number % 3), "leader.replication.throttled.rate", "1000")
        await until(
            lambda: all(
                cluster.broker(number).services.live.current.replication.leader_throttled_rate == 1000
                for number in (1, 2, 3)
            )
        )

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def test_the_coordinator_of_a_group_is_found_from_any_broker() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        found = set()
        for number in (1, 2, 1, 2):
            request = FindCoordinatorRequest(key="g", key_type=0)
            answer = await cluster.client(number).ask(request, 3)
            assert answer.error_code == ErrorCode.NONE, answer
            found.add((answer.node_id, answer.host))
        assert len(found) == 1

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_a_produce_and_a_fetch_that_come_too_early_wait_as_well() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (2, 1)}) is ErrorCode.NONE
        assert await cluster.produce(2, "t") is ErrorCode.NONE
        await cluster.leave(2, "kill")
        await until(lambda: cluster.leader("t", 0, 1) == 1)
        cluster.simulation.world.fabric.cut("b1", "b2", one_way=False)
        start = cluster.brokers[2].start()
        await until(lambda: cluster.epoch_or_none(2) is not None and cluster.listens(2))
        asked = [asyncio.create_task(cluster.produce(2, "t")) for _ in range(3)]
        await asyncio.sleep(1)
        assert not any(task.done() for task in asked)
        cluster.simulation.world.fabric.heal("b1", "b2")
        # It follows now: so it says, and not that it knows no such topic.
        assert {await task for task in asked} == {ErrorCode.NOT_LEADER_OR_FOLLOWER}
        await start

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_a_controller_that_was_cut_off_from_the_tree_changes_nothing_more() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (former,) = cluster.controllers
        others = [number for number in cluster.brokers if number != former]
        assert await cluster.create(others[0], "t", {0: (others[0], others[1])}) is ErrorCode.NONE
        cluster.simulation.world.fabric.cut(f"b{former}", "tree")
        await until(lambda: any(number in cluster.controllers for number in others))
        (present,) = [number for number in cluster.controllers if number != former]
        # By the brokers' links it would reach them still.
        assert await cluster.create(others[0], "later", {0: (others[1],)}) is ErrorCode.NONE
        assert await cluster.produce(others[0], "t") is ErrorCode.NONE
        # It does not know yet, as with ZooKeeper: what it decides is written nowhere, and obeyed by nobody.
        doomed = asyncio.create_task(cluster.create(former, "doomed", {0: (former,)}))
        await asyncio.sleep(1)
        assert not doomed.done()
        cluster.simulation.world.fabric.heal(f"b{former}", "tree")
        await until(lambda: cluster.said("the broker is registered again") != [])
        with suppress(Unreachable):
            assert await doomed in {ErrorCode.NOT_CONTROLLER, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NONE}
        await until(lambda: len({repr(seen(cluster, number)) for number in cluster.brokers}) == 1)
        assert cluster.broker(former).metadata.controller_id == present
        assert await cluster.create(former, "last", {0: (former,)}) is ErrorCode.NONE

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def test_a_broker_serves_while_the_tree_is_away() -> None:
    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2), 1: (2, 1)}) is ErrorCode.NONE
        cluster.tree.kill()
        for _ in range(30):
            assert await cluster.produce(1, "t", 0) is ErrorCode.NONE
            assert await cluster.produce(2, "t", 1) is ErrorCode.NONE
            await asyncio.sleep(0.1)
        await cluster.tree.started()
        await until(lambda: len(cluster.controllers) == 1)
        assert await cluster.create(2, "u", {0: (1,)}) is ErrorCode.NONE
        assert [broker.lives for broker in cluster.brokers.values()] == [1, 1]

    with SimulatedCluster(2) as cluster:
        cluster.run(scenario(cluster))


def test_replicas_of_a_failed_directory_are_led_elsewhere() -> None:
    """A broker that is not the controller tells by the tree; here it has two directories."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (controller,) = cluster.controllers
        other = 3 - controller
        placed = dict.fromkeys(range(4), (other, controller))
        assert await cluster.create(1, "t", placed) is ErrorCode.NONE
        broker = cluster.broker(other)
        failed = [tp for tp, log in broker._directories.logs.items() if log.directory.startswith("/data/b")]
        assert 0 < len(failed) < 4
        broker.services.replicas.fail_directory("/data/b", "planted")
        await until(lambda: all(cluster.leader("t", tp.partition, controller) == controller for tp in failed))
        for index in placed:
            assert (
                await cluster.produce(controller if (("t", index) in failed) else other, "t", index) is ErrorCode.NONE
            )

    with SimulatedCluster(2, properties={"log.dirs": "/data/a,/data/b"}) as cluster:
        cluster.run(scenario(cluster))


def test_a_follower_whose_log_is_damaged_at_its_start_is_filled_from_the_leader() -> None:
    """Alone it would be offline until somebody comes; what is damaged is set aside for whoever wants to look at it."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        assert await cluster.create(1, "t", {0: (1, 2)}) is ErrorCode.NONE
        for _ in range(5):
            assert await cluster.produce(1, "t") is ErrorCode.NONE
        log = _log_of(cluster, 2)
        await cluster.leave(2, "stop")
        disk = cluster.brokers[2].ports.disk
        file = disk.open(log)
        file.truncate(file.size() - 10)
        file.close()
        await cluster.brokers[2].started()

        def is_whole() -> bool:
            state = cluster.broker(1).metadata.partition("t", 0)
            return state is not None and sorted(state.isr) == [1, 2]

        await until(is_whole)
        assert await cluster.produce(1, "t") is ErrorCode.NONE
        first, second = (
            cluster.brokers[number].ports.disk.read_file(_log_of(cluster, number)) for number in cluster.brokers
        )
        assert first == second
        aside = [name for path in ("/data/a", "/data/b") for name in disk.names(path) if name.endswith("-stray")]
        assert len(aside) == 1

    with SimulatedCluster(2, properties={"log.dirs": "/data/a,/data/b"}) as cluster:
        cluster.run(scenario(cluster))


def test_a_controller_that_dies_behind_a_move_leaves_no_replica_behind() -> None:
    """The tree says that the move has ended, and its StopReplica was never sent."""

    async def scenario(cluster: SimulatedCluster) -> None:
        await cluster.start()
        (former,) = cluster.controllers
        left, gained = (number for number in cluster.brokers if number != former)
        assert await cluster.create(former, "t", {0: (former, left)}) is ErrorCode.NONE
        assert await cluster.produce(former, "t") is ErrorCode.NONE
        fabric = cluster.simulation.world.fabric
        fabric.cut(f"b{former}", f"b{left}")
        moved = moving.ReassignablePartition(partition_index=0, replicas=[former, gained])
        request = moving.AlterPartitionReassignmentsRequest(
            topics=[moving.ReassignableTopic(name="t", partitions=[moved])], timeout_ms=2_000
        )
        answer = await cluster.client(former).ask(request, 0)
        assert answer.responses[0].partitions[0].error_code == ErrorCode.NONE
        state = cluster.broker(former).metadata.partition
        await until(lambda: state("t", 0).replicas == (former, gained))
        await cluster.leave(former, "kill")
        fabric.heal()
        assert cluster.broker(left)._directories.get(("t", 0)) is not None
        await until(lambda: bool(cluster.controllers))
        await until(lambda: cluster.broker(left)._directories.get(("t", 0)) is None)
        assert cluster.broker(gained)._directories.get(("t", 0)) is not None

    with SimulatedCluster(3) as cluster:
        cluster.run(scenario(cluster))


def _log_of(cluster: SimulatedCluster, number: int) -> str:
    (log,) = [log for log in cluster.broker(number).logs() if log.tp == ("t", 0)]
    return f"{log.directory}/00000000000000000000.log"
