"""A leader that is cut off from its cluster, while clients still reach it, sends them elsewhere; one that has lost the
tree alone does not."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine, Mapping
from typing import Any

from tests.broker.simulated_cluster import SESSION_MS, SimulatedCluster, until

from ottla.broker.standing_aside import LOOK_MS
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.records.record import Record, encode_batch
from ottla.testing.sim.wire import Client

T, ALONE = TopicPartition("t", 0), TopicPartition("alone", 0)
#: As requests name kinds of resources.
TOPIC = 2
#: After it a broker that nobody is heard of has stood aside for long.
LONG_S = 3 * SESSION_MS / 1000


def cut_off(cluster: SimulatedCluster, number: int) -> None:
    """From the tree and all other brokers: clients reach it."""
    fabric, name = cluster.simulation.world.fabric, cluster.brokers[number].name
    for other in (cluster.tree, *cluster.brokers.values()):
        if other.name != name:
            fabric.cut(name, other.name)


def cut_from_tree(cluster: SimulatedCluster, *numbers: int) -> None:
    for number in numbers:
        cluster.simulation.world.fabric.cut(cluster.brokers[number].name, cluster.tree.name)


def asker(cluster: SimulatedCluster, number: int) -> Client:
    """A connection of its own: no other request's answer is waited for."""
    network = cluster.simulation.world.machine("clients").network
    return Client(network, "asker", *cluster.brokers[number].address)


async def fetched(cluster: SimulatedCluster, number: int) -> ErrorCode:
    """What a consumer is answered that asks for what is yet to be written."""
    asked = FetchPartition(partition=T.partition, current_leader_epoch=-1, fetch_offset=1, partition_max_bytes=1 << 20)
    topic = FetchTopic(topic=T.topic, partitions=[asked])
    request = FetchRequest(max_wait_ms=100, min_bytes=1, max_bytes=1 << 20, topics=[topic])
    answer = await asker(cluster, number).ask(request, 11)
    return ErrorCode(answer.responses[0].partitions[0].error_code)


async def waited_for(cluster: SimulatedCluster, number: int, timeout_ms: int) -> ErrorCode:
    """What a producer with acks=all is answered that gives the replicas so much time."""
    batch = encode_batch([Record(0, cluster.brokers[number].ports.clock.wall_ms(), None, b"waits")])
    data = [TopicProduceData(name=T.topic, partition_data=[PartitionProduceData(index=T.partition, records=batch)])]
    wire = await asker(cluster, number).connected()
    answer = await wire.send(ProduceRequest(acks=-1, timeout_ms=timeout_ms, topic_data=data), 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


async def shown_leader(cluster: SimulatedCluster, number: int, topic: str = T.topic) -> int:
    """By the Metadata of this broker."""
    (found,) = (await cluster.metadata(number, topic)).topics
    (partition,) = found.partitions
    assert (partition.error_code == ErrorCode.LEADER_NOT_AVAILABLE) is (partition.leader_id < 0)
    return int(partition.leader_id)


async def named_brokers(cluster: SimulatedCluster, number: int, *topics: str) -> list[int]:
    return [int(broker.node_id) for broker in (await cluster.metadata(number, *topics)).brokers]


def stands_aside(cluster: SimulatedCluster, number: int) -> bool:
    return T in cluster.broker(number).services.replicas.aside


async def begin(cluster: SimulatedCluster) -> None:
    """Broker 1 leads both topics, of one of which it alone has a replica."""
    await cluster.start()
    configs = {"min.insync.replicas": "2"}
    assert await cluster.create(1, T.topic, {0: (1, 2, 3)}, configs) is ErrorCode.NONE
    assert await cluster.create(1, ALONE.topic, {0: (1,)}) is ErrorCode.NONE
    for number in cluster.brokers:
        await until(lambda number=number: cluster.leader(*T, number) == cluster.leader(*ALONE, number) == 1)  # type: ignore[misc]
    await until(lambda: len(cluster.broker(1).services.replicas.leaders[T].isr.members) == 3)
    assert await cluster.produce(1, T.topic) is ErrorCode.NONE


def run(scenario: Coroutine[Any, Any, None], cluster: SimulatedCluster) -> None:
    with cluster:
        cluster.run(scenario)


def three(properties: Mapping[str, str] | None = None) -> SimulatedCluster:
    return SimulatedCluster(3, properties=properties)


async def out_of_order(cluster: SimulatedCluster, number: int) -> ErrorCode:
    """What a producer is answered whose batches before this one the broker does not have."""
    data = []
    for tp, sequence in ((T, 0), (T, 5)):
        record = Record(0, cluster.brokers[number].ports.clock.wall_ms(), None, b"numbered")
        batch = encode_batch([record], producer_id=77, producer_epoch=0, base_sequence=sequence)
        data.append([TopicProduceData(name=tp.topic, partition_data=[PartitionProduceData(index=0, records=batch)])])
    wire = await asker(cluster, number).connected()
    for each in data:
        answer = await wire.send(ProduceRequest(acks=1, timeout_ms=1000, topic_data=each), 9)
    return ErrorCode(answer.responses[0].partition_responses[0].error_code)


def test_one_that_may_have_been_replaced_does_not_judge_sequences() -> None:
    """What comes before the batch may be with the new leader. Found by the schedule 962000121."""

    async def scenario() -> None:
        await begin(cluster)
        assert await out_of_order(cluster, 1) is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER
        replicas = cluster.broker(1).services.replicas
        cut_from_tree(cluster, 1)
        await until(replicas.may_be_replaced)
        assert T in replicas.leaders
        assert await out_of_order(cluster, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER

    cluster = three()
    run(scenario(), cluster)


def test_a_leader_that_is_cut_off_sends_its_clients_elsewhere() -> None:
    async def scenario() -> None:
        await begin(cluster)
        cut_off(cluster, 1)
        waiting = asyncio.ensure_future(asyncio.gather(cluster.produce(1, T.topic), fetched(cluster, 1)))
        await until(lambda: stands_aside(cluster, 1))
        # Neither the one that waited for replicas nor a later one waits as long as the cut.
        assert (await waiting)[0] is ErrorCode.NOT_LEADER_OR_FOLLOWER
        for acks in (-1, 1):
            assert await cluster.produce(1, T.topic, acks=acks) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await fetched(cluster, 1) is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert await shown_leader(cluster, 1) == -1
        # A client that is connected to it alone would ask nobody else.
        assert await named_brokers(cluster, 1, T.topic) == [2, 3]
        # Nobody else may lead what it alone has.
        assert await shown_leader(cluster, 1, ALONE.topic) == 1
        assert await named_brokers(cluster, 1, ALONE.topic) == await named_brokers(cluster, 1) == [1, 2, 3]
        assert await cluster.produce(1, ALONE.topic) is ErrorCode.NONE
        await until(lambda: cluster.leader(*T, 2) in (2, 3))
        other = cluster.leader(*T, 2)
        assert other is not None
        assert await cluster.produce(other, T.topic) is ErrorCode.NONE

        cluster.simulation.world.fabric.heal()
        await until(lambda: len(cluster.broker(other).services.replicas.leaders[T].isr.members) == 3)
        assert not stands_aside(cluster, 1)
        assert await shown_leader(cluster, 1) == other
        assert await named_brokers(cluster, 1, T.topic) == [1, 2, 3]

    cluster = three()
    run(scenario(), cluster)


def test_one_that_is_below_the_minimum_answers_who_waits_and_stands_aside() -> None:
    """Two of three are in sync, three are asked for: the request would wait for its time, and its client asks another
    broker. What was written stays with whoever leads next, below the watermark once there are enough again."""

    async def scenario() -> None:
        await begin(cluster)
        await cluster.alter(1, TOPIC, T.topic, "min.insync.replicas", "3")
        await until(lambda: cluster.broker(1).services.replicas.leaders[T].log.config.min_insync_replicas == 3)
        cluster.brokers[3].kill()
        # It is written while all three are members, and two have it when the third is taken out.
        waiting = asyncio.ensure_future(waited_for(cluster, 1, 60_000))
        await until(lambda: cluster.broker(1).services.replicas.leaders[T].isr.members == {1, 2})
        assert await cluster.produce(1, T.topic) is ErrorCode.NOT_ENOUGH_REPLICAS
        await asyncio.sleep(LONG_S)
        leader = cluster.broker(1).services.replicas.leaders[T]
        assert (leader.high_watermark, leader.log.end_offset) == (1, 2)
        assert not waiting.done()

        cut_off(cluster, 1)
        assert await waiting is ErrorCode.NOT_LEADER_OR_FOLLOWER
        assert stands_aside(cluster, 1)
        await until(lambda: cluster.leader(*T, 2) == 2)
        new = cluster.broker(2).services.replicas.leaders[T]
        assert (new.high_watermark, new.log.end_offset) == (1, 2)
        assert await cluster.produce(2, T.topic) is ErrorCode.NOT_ENOUGH_REPLICAS

        cluster.simulation.world.fabric.heal()
        await cluster.brokers[3].started()
        await until(lambda: new.high_watermark == 2)
        assert await cluster.produce(2, T.topic) is ErrorCode.NONE

    cluster = three()
    run(scenario(), cluster)


def test_the_last_member_below_the_minimum_is_led_on_and_its_waiter_times_out() -> None:
    """Nobody else may lead: there is no other broker that its client could be sent to."""

    async def scenario() -> None:
        await begin(cluster)
        for number in (2, 3):
            cluster.brokers[number].kill()
        waiting = asyncio.ensure_future(waited_for(cluster, 1, 60_000))
        await until(lambda: cluster.broker(1).services.replicas.leaders[T].isr.members == {1})
        cut_off(cluster, 1)
        await asyncio.sleep(LONG_S)
        assert not stands_aside(cluster, 1)
        assert not waiting.done()
        assert await waiting is ErrorCode.REQUEST_TIMED_OUT

    cluster = three()
    run(scenario(), cluster)


def test_its_coordinators_resign() -> None:
    async def coordinator(number: int) -> tuple[ErrorCode, int]:
        answer = await asker(cluster, number).ask(FindCoordinatorRequest(key_type=0, coordinator_keys=["g"]), 4)
        (found,) = answer.coordinators
        return ErrorCode(found.error_code), int(found.node_id)

    async def scenario() -> None:
        await cluster.start()
        await coordinator(1)  # which has the topic made
        await asyncio.sleep(LONG_S)
        found = await coordinator(1)
        assert found[0] is ErrorCode.NONE
        cut_off(cluster, found[1])
        others = [number for number in cluster.brokers if number != found[1]]
        await asyncio.sleep(LONG_S)
        assert await coordinator(found[1]) == (ErrorCode.COORDINATOR_NOT_AVAILABLE, -1)
        for number in others:
            error, elsewhere = await coordinator(number)
            assert error is ErrorCode.NONE
            assert elsewhere in others

    cluster = three()
    run(scenario(), cluster)


def test_the_death_of_the_tree_moves_no_leader() -> None:
    async def scenario() -> None:
        await begin(cluster)
        cluster.tree.kill()
        for _ in range(10):
            await asyncio.sleep(LONG_S / 3)
            assert await cluster.produce(1, T.topic) is ErrorCode.NONE
            assert await shown_leader(cluster, 2) == await shown_leader(cluster, 1) == 1
        assert not cluster.said("nobody is heard of")

    cluster = three()
    run(scenario(), cluster)


def test_one_follower_that_fetches_is_enough() -> None:
    """Nobody takes the other one out of the in-sync set without the tree: acks=all waits, acks=1 and readers do not."""

    async def scenario() -> None:
        await begin(cluster)
        cluster.tree.kill()
        cluster.brokers[2].kill()
        await asyncio.sleep(LONG_S)
        assert await cluster.produce(1, T.topic, acks=1) is ErrorCode.NONE
        assert await fetched(cluster, 1) is ErrorCode.NONE
        assert await shown_leader(cluster, 3) == 1
        assert not cluster.said("nobody is heard of")

    cluster = three()
    run(scenario(), cluster)


def test_a_leader_that_fetches_from_others_is_in_touch() -> None:
    """Nobody follows it but the dead, and the tree is away: whoever it follows itself has heard of nothing."""

    async def scenario() -> None:
        await cluster.start()
        assert await cluster.create(1, T.topic, {0: (1, 2)}) is ErrorCode.NONE
        assert await cluster.create(1, "of-3", {0: (3, 1)}) is ErrorCode.NONE
        for number in cluster.brokers:
            await until(lambda number=number: cluster.leader(*T, number) == 1)  # type: ignore[misc]
            await until(lambda number=number: cluster.leader("of-3", 0, number) == 3)  # type: ignore[misc]
        cluster.tree.kill()
        cluster.brokers[2].kill()
        await asyncio.sleep(LONG_S)
        assert await cluster.produce(1, T.topic, acks=1) is ErrorCode.NONE
        assert not cluster.said("nobody is heard of")
        cluster.brokers[3].kill()
        await until(lambda: stands_aside(cluster, 1))

    cluster = three()
    run(scenario(), cluster)


def test_the_last_one_leads_on_while_the_tree_answers() -> None:
    async def scenario() -> None:
        await begin(cluster)
        for number in (2, 3):
            cluster.brokers[number].kill()
        await until(lambda: len(cluster.broker(1).services.replicas.leaders[T].isr.members) == 1)
        await asyncio.sleep(LONG_S)
        assert await cluster.produce(1, T.topic, acks=1) is ErrorCode.NONE
        # And when the tree goes as well: nobody else is in sync, nobody else may lead.
        cluster.tree.kill()
        await asyncio.sleep(LONG_S)
        assert await cluster.produce(1, T.topic, acks=1) is ErrorCode.NONE
        assert not cluster.said("nobody is heard of")

    cluster = three()
    run(scenario(), cluster)


def test_where_an_unclean_election_is_allowed_others_may_lead() -> None:
    async def scenario() -> None:
        await cluster.start()
        configs = {"unclean.leader.election.enable": "true"}
        assert await cluster.create(1, T.topic, {0: (1, 2, 3)}, configs) is ErrorCode.NONE
        await until(lambda: T in cluster.broker(1).services.replicas.leaders)
        for number in (2, 3):
            cluster.brokers[number].kill()
        await until(lambda: len(cluster.broker(1).services.replicas.leaders[T].isr.members) == 1)
        cluster.tree.kill()
        await until(lambda: stands_aside(cluster, 1))

    cluster = three()
    run(scenario(), cluster)


def test_it_leads_again_when_a_follower_fetches_again() -> None:
    """The tree is dead all the while."""

    async def scenario() -> None:
        await begin(cluster)
        epoch = cluster.broker(1).services.replicas.leaders[T].epoch
        cluster.tree.kill()
        for number in (2, 3):
            cluster.brokers[number].pause()
        await until(lambda: stands_aside(cluster, 1))
        # So long that followers are connected anew, in sessions that the leader does not know.
        await asyncio.sleep(60)
        for number in (2, 3):
            cluster.brokers[number].wake()
        await until(lambda: not stands_aside(cluster, 1))
        assert await cluster.produce(1, T.topic) is ErrorCode.NONE
        assert await shown_leader(cluster, 1) == 1
        assert cluster.broker(1).services.replicas.leaders[T].epoch == epoch

    cluster = three()
    run(scenario(), cluster)


def test_it_leads_again_when_its_session_has_outlived_the_silence() -> None:
    """A tree that stood still adds that to every session: nobody was elected."""

    async def scenario() -> None:
        await begin(cluster)
        cluster.tree.pause()
        for number in (2, 3):
            cluster.brokers[number].pause()
        await until(lambda: stands_aside(cluster, 1))
        cut_from_tree(cluster, 2, 3)
        cluster.tree.wake()
        await until(lambda: not stands_aside(cluster, 1))
        assert cluster.leader(*T, 1) == 1
        assert await cluster.produce(1, T.topic, acks=1) is ErrorCode.NONE

    cluster = three()
    run(scenario(), cluster)


def test_a_broker_that_stood_still_reads_first_what_others_have_sent() -> None:
    async def scenario() -> None:
        await begin(cluster)
        cut_from_tree(cluster, 1, 2, 3)
        await asyncio.sleep(LONG_S)
        cluster.brokers[1].pause()
        await asyncio.sleep(LONG_S)
        cluster.brokers[1].wake()
        await asyncio.sleep(20 * LOOK_MS / 1000)
        assert not cluster.said("nobody is heard of")
        assert await cluster.produce(1, T.topic) is ErrorCode.NONE

    cluster = three()
    run(scenario(), cluster)


def test_its_watermark_does_not_fall_and_what_it_asked_for_is_asked_again() -> None:
    """A follower was about to join: the controller may have taken it, and this broker has not heard of that."""

    async def scenario() -> None:
        await begin(cluster)
        replicas = cluster.broker(1).services.replicas
        leader = replicas.leaders[T]
        leader.isr.confirmed({1, 2})
        leader.isr.propose(frozenset({1, 2, 3}))
        watermark = leader.high_watermark
        assert watermark == 1
        replicas.stand_aside(T)
        assert replicas.followers[T].high_watermark == watermark
        assert replicas.high_watermarks()[T] == watermark
        replicas.lead_again(T)
        again = replicas.leaders[T]
        assert (again.high_watermark, again.epoch) == (watermark, leader.epoch)
        assert again.isr.maximal == {1, 2, 3}
        assert replicas.isr_changes.has_asks
        await until(lambda: again.isr.members == {1, 2, 3} and again.isr.pending is None)

    cluster = three()
    run(scenario(), cluster)


def test_a_state_of_the_controller_ends_it() -> None:
    """Whatever it says: that another one leads, or this one in a later leader epoch."""

    async def scenario() -> None:
        await begin(cluster)
        replicas = cluster.broker(1).services.replicas
        for leader in (1, 2):
            replicas.stand_aside(T)
            state = cluster.broker(1).metadata.partition(*T)
            state = state._replace(leader=leader, leader_epoch=state.leader_epoch + leader)
            replicas.apply([state], cluster.broker(1).services.announced.log_config)
            assert not replicas.aside
            assert (T in replicas.leaders) is (leader == 1)

    cluster = three()
    run(scenario(), cluster)


def test_a_partition_that_is_given_up_stands_aside_no_more() -> None:
    async def scenario() -> None:
        await begin(cluster)
        replicas = cluster.broker(1).services.replicas
        replicas.stand_aside(T)
        replicas.stop(T, delete=False)
        assert not replicas.aside
        replicas.lead_again(T)
        assert T not in replicas.leaders

    cluster = three()
    run(scenario(), cluster)
