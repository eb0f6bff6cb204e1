"""Deletion, starts on what an earlier life left, and crashes in the middle of either."""

from __future__ import annotations

import asyncio
from contextlib import suppress

import pytest
from tests.controller.cluster import Cluster
from tests.coordination.contract import until
from tests.searches import seeds

from ottla.controller import identity
from ottla.controller.deciding.refusal import Refusal
from ottla.controller.interface import NewPartitions, TopicRef, TopicToCreate
from ottla.controller.loading import below
from ottla.coordination import Create
from ottla.coordination.errors import CoordinationError
from ottla.coordination.interface import NO_DATA
from ottla.coordination.znode_json import DamagedZnode
from ottla.coordination.znodes import PERSISTENT_PATHS, decode_broker, decode_controller
from ottla.model import ZERO_TOPIC_ID, ErrorCode, TopicId, TopicPartition, topic_id_from_text
from ottla.ports.memory import SimulatedCrash

# Deletion.


def test_a_deleted_topic_leaves_nothing(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    before = sorted(cluster.session.store._tree.nodes)
    created = cluster.run(
        cluster.controller.create_topics([TopicToCreate("a", 3), TopicToCreate("b"), TopicToCreate("c")])
    )
    cluster.broker.calls.clear()
    by_id = TopicRef(None, created[1].topic_id)
    deleted = cluster.run(cluster.controller.delete_topics([TopicRef("a"), by_id]))
    assert [(done.name, done.id, done.error) for done in deleted] == [
        ("a", created[0].topic_id, ErrorCode.NONE),
        ("b", created[1].topic_id, ErrorCode.NONE),
    ]
    assert cluster.broker.calls == ["metadata", "stop_replicas"]
    assert list(cluster.broker.cache.topics) == ["c"]
    assert list(cluster.broker.roles) == [("c", 0)]
    cluster.run(cluster.controller.delete_topics([TopicRef("c")]))
    assert sorted(cluster.session.store._tree.nodes) == before
    # The name is free, and the new topic is another one.
    (again,) = cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))
    assert again.error is ErrorCode.NONE
    assert again.topic_id != created[0].topic_id


def test_what_cannot_be_deleted(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    (made,) = cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))
    refs = [TopicRef("none"), TopicRef(None, TopicId(b"x" * 16)), TopicRef("a"), TopicRef(None, made.topic_id)]
    results = cluster.run(cluster.controller.delete_topics(refs))
    assert [result.error.name for result in results] == [
        "UNKNOWN_TOPIC_OR_PARTITION",
        "UNKNOWN_TOPIC_ID",
        "INVALID_REQUEST",
        "INVALID_REQUEST",
    ], "what is meant twice is meant otherwise"
    assert results[1].name is None
    (deleted,) = cluster.run(cluster.controller.delete_topics([TopicRef("a")]))
    assert deleted.error is ErrorCode.NONE
    (gone,) = cluster.run(cluster.controller.delete_topics([TopicRef("a")]))
    assert gone.error is ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


def test_deletion_can_be_disabled(cluster: Cluster) -> None:
    cluster.run(cluster.start(delete_topics=False))
    cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))
    (refused,) = cluster.run(cluster.controller.delete_topics([TopicRef("a")]))
    assert refused.error is ErrorCode.TOPIC_DELETION_DISABLED
    assert list(cluster.broker.cache.topics) == ["a"]


def test_a_start_takes_marks_away_where_deletion_is_disabled(cluster: Cluster) -> None:
    """As Kafka's controller does: marks may be of a time when deletion was not disabled, or of a tool's."""
    cluster.run(cluster.start(delete_topics=False))
    (made,) = cluster.run(cluster.controller.create_topics([TopicToCreate("a", 2)]))
    cluster.run(cluster.stop())
    session = cluster.run(cluster.open())
    for name in ("a", "none"):
        cluster.run(session.create(f"/admin/delete_topics/{name}"))
    cluster.run(session.close())
    cluster.settle(cluster.start(delete_topics=False))
    assert cluster.run(cluster.session.children("/admin/delete_topics"))[0] == []
    assert cluster.run(cluster.session.children("/brokers/topics"))[0] == ["a"]
    assert cluster.broker.cache.topics["a"].id == made.topic_id
    assert set(cluster.broker.roles) == {("a", 0), ("a", 1)}
    assert not cluster.broker.stops


def test_a_mark_that_a_reading_of_the_tree_finds_is_taken_away_where_deletion_is_disabled(cluster: Cluster) -> None:
    cluster.run(cluster.start(delete_topics=False))
    cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))

    async def work() -> None:
        # Before the look at marks has its turn, another turn reads the tree anew.
        cluster.controller.tenure.core.stale = True
        turn = asyncio.ensure_future(cluster.controller.create_topics([TopicToCreate("b")]))
        await cluster.session.create("/admin/delete_topics/a")
        await turn

    cluster.settle(work())
    assert cluster.run(cluster.session.children("/admin/delete_topics"))[0] == []
    assert sorted(cluster.broker.cache.topics) == ["a", "b"]
    assert not cluster.broker.stops


def test_a_topic_that_is_taken_back_goes_also_where_deletion_is_disabled(cluster: Cluster) -> None:
    cluster.run(cluster.start(delete_topics=False))
    lost = TopicPartition("a", 0)
    cluster.broker.no_room.add(lost)
    # Its log lies in a directory that cannot be read: the mark stays.
    cluster.broker.broken.add(lost)
    (refused,) = cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))
    assert refused.error is ErrorCode.KAFKA_STORAGE_ERROR
    for _ in range(2):
        cluster.controller.tenure.core.stale = True
        cluster.settle(cluster.controller.create_topics([TopicToCreate("a")]))
        assert cluster.run(cluster.session.children("/admin/delete_topics"))[0] == ["a"]
        assert "a" not in cluster.broker.cache.topics
        # As where a turn over answers fails: whoever waits is answered, and the tree is read.
        cluster.controller.tenure._answer_all(Refusal(ErrorCode.UNKNOWN_SERVER_ERROR, ""))


def test_a_topic_whose_logs_cannot_be_deleted_is_gone_for_clients_and_its_name_stays_taken(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.controller.create_topics([TopicToCreate("a", 2), TopicToCreate("b")]))
    cluster.broker.broken.add(TopicPartition("a", 1))
    deleted = cluster.run(cluster.controller.delete_topics([TopicRef("a"), TopicRef("b")]))
    assert [done.error for done in deleted] == [ErrorCode.NONE] * 2
    assert not cluster.broker.cache.topics
    (taken,) = cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))
    (free,) = cluster.run(cluster.controller.create_topics([TopicToCreate("b")]))
    assert (taken.error, free.error) == (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE)
    assert taken.message == "Topic 'a' is marked for deletion."
    assert cluster.run(cluster.controller.create_partitions([NewPartitions("a", 9)]))[0].error is (
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    )
    cluster.run(cluster.stop())
    # With the directory well again the start finishes it.
    cluster.run(cluster.start())
    (made,) = cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))
    assert made.error is ErrorCode.NONE


@pytest.mark.parametrize("where", ["metadata", "stop_replicas"])
def test_a_start_goes_on_with_a_deletion_that_was_cut_short(cluster: Cluster, where: str) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.controller.create_topics([TopicToCreate("a", 4), TopicToCreate("b")]))
    broker = cluster.broker
    broker.calls.clear()
    broker.hangs_in = where

    async def begin() -> None:
        asked = asyncio.ensure_future(cluster.controller.delete_topics([TopicRef("a")]))
        await until(lambda: where in broker.calls)
        assert not asked.done()

    cluster.run(begin())
    cluster.kill()
    cluster.run(cluster.start())
    assert list(cluster.broker.cache.topics) == ["b"]
    assert set(cluster.broker.roles) == {("b", 0)}
    assert cluster.run(cluster.session.children("/admin/delete_topics"))[0] == []
    assert cluster.run(cluster.session.children("/brokers/topics"))[0] == ["b"]
    assert cluster.run(cluster.session.children("/config/topics"))[0] == ["b"]


@pytest.mark.parametrize("operation", [2, 5, *(pytest.param(number, marks=pytest.mark.slow) for number in (4, 6))])
def test_a_deletion_too_large_for_one_transaction_is_finished_or_never_begun(cluster: Cluster, operation: int) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.controller.create_topics([TopicToCreate("large", 5200)]))
    cluster.disk.crash_at(operation)
    with suppress(SimulatedCrash):
        cluster.run(cluster.controller.delete_topics([TopicRef("large")]))
    cluster.crash()
    cluster.run(cluster.start())
    left = cluster.run(below(cluster.session, "/brokers/topics"))
    topic = cluster.broker.cache.topic("large")
    assert len(left) == (1 if topic is None else 3 + 2 * 5200)
    assert topic is None or operation <= 2


def test_a_mark_for_a_topic_that_is_not_there_is_taken_away(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.session.create("/admin/delete_topics/ghost"))
    cluster.run(cluster.stop())
    cluster.run(cluster.start())
    assert cluster.run(cluster.session.children("/admin/delete_topics"))[0] == []


# Starts.


def test_a_first_start_lays_the_tree_out_as_kafka_does(cluster: Cluster) -> None:
    cluster.run(cluster.start(rack="r1"))
    nodes = cluster.session.store._tree.nodes
    assert set(PERSISTENT_PATHS) <= set(nodes)
    assert all(nodes[path].data is NO_DATA for path in PERSISTENT_PATHS)
    broker = nodes["/brokers/ids/1"]
    assert broker.ephemeral_owner == nodes["/controller"].ephemeral_owner == cluster.session.session.id
    registration = decode_broker("", broker.data)
    assert (registration.rack, registration.endpoints[0].port) == ("r1", 9092)
    assert decode_controller("", nodes["/controller"].data).broker_id == 1
    assert nodes["/controller_epoch"].data == b"1"
    assert nodes["/feature"].data == b'{"features":{},"version":2,"status":1}'
    cache = cluster.broker.cache
    assert cache.brokers[1].epoch == broker.czxid  # type: ignore[index]
    assert (cache.controller_id, cache.controller_epoch) == (1, 1)
    assert cache.cluster_id is not None
    assert len(topic_id_from_text(cache.cluster_id)) == 16


@pytest.mark.parametrize("end", ["stop", "kill", "crash"])
def test_everything_is_there_after_a_restart(cluster: Cluster, end: str) -> None:
    cluster.run(cluster.start())
    made = cluster.run(cluster.controller.create_topics([TopicToCreate("a", 3, configs={"retention.ms": "7"})]))
    cluster.run(cluster.controller.create_partitions([NewPartitions("a", 5)]))
    before = cluster.broker.cache
    epoch = before.brokers[1].epoch  # type: ignore[index]
    if end == "stop":
        cluster.run(cluster.stop())
    elif end == "kill":
        cluster.kill()
    else:
        cluster.crash()
    cluster.run(cluster.start())
    after = cluster.broker.cache
    assert (after.cluster_id, after.controller_epoch) == (before.cluster_id, 2)
    assert after.brokers[1].epoch > epoch  # type: ignore[index]
    assert after.topics["a"].id == made[0].topic_id
    assert [(state.leader, state.leader_epoch, state.is_new) for state in after.topics["a"].partitions] == [
        (1, 0, False)
    ] * 5
    assert after.topic_config("a") == {"retention.ms": "7"}
    assert set(cluster.broker.roles) == {("a", number) for number in range(5)}


def test_leaders_may_be_given_new_epochs_after_a_crash(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.controller.create_topics([TopicToCreate("a", 2)]))
    cluster.kill()
    cluster.run(cluster.start(new_leader_epochs=True))
    states = cluster.broker.cache.topics["a"].partitions
    assert [(state.leader, state.leader_epoch, state.partition_epoch) for state in states] == [(1, 1, 1)] * 2
    assert cluster.broker.roles[TopicPartition("a", 0)].leader_epoch == 1


def test_a_broker_under_another_id_leads_nothing_and_the_topic_stays(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.controller.create_topics([TopicToCreate("a", 2)]))
    cluster.run(cluster.stop())
    cluster.broker.roles.clear()
    cluster.run(cluster.start(broker_id=2))
    states = cluster.broker.cache.topics["a"].partitions
    assert [(state.leader, state.isr, state.offline_replicas) for state in states] == [(-1, (1,), (1,))] * 2
    assert not cluster.broker.roles
    cluster.run(cluster.stop())
    cluster.run(cluster.start(broker_id=1))
    assert [state.leader for state in cluster.broker.cache.topics["a"].partitions] == [1, 1]


def test_an_unclean_election_takes_a_live_replica_where_the_topic_allows_it(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    allow = {"unclean.leader.election.enable": "true"}
    cluster.run(cluster.controller.create_topics([TopicToCreate("a", configs=allow), TopicToCreate("b")]))
    state = b'{"controller_epoch":1,"leader":9,"version":1,"leader_epoch":4,"isr":[9]}'
    for topic in "ab":
        cluster.run(cluster.session.set(f"/brokers/topics/{topic}/partitions/0/state", state))
    cluster.run(cluster.stop())
    cluster.run(cluster.start())
    states = [cluster.broker.cache.topics[topic].partitions[0] for topic in "ab"]
    assert [(state.leader, state.leader_epoch, state.isr) for state in states] == [(1, 5, (1,)), (-1, 5, (9,))]


def test_a_topic_that_a_crash_cut_short_is_completed(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    data = b'{"partitions":{"0":[1],"1":[1],"2":[1]},"topic_id":"gf4U0uiLT_S_rrKHSCmwug","version":3}'
    cluster.run(
        cluster.session.multi(
            [
                Create("/brokers/topics/a", data),
                Create("/brokers/topics/a/partitions"),
                Create("/brokers/topics/a/partitions/0"),
                Create("/brokers/topics/b", b'{"partitions":{"0":[1]},"version":1}'),
            ]
        )
    )
    cluster.kill()
    cluster.run(cluster.start())
    for name, count in (("a", 3), ("b", 1)):
        topic = cluster.broker.cache.topics[name]
        assert [state.leader for state in topic.partitions] == [1] * count
        assert topic.id != ZERO_TOPIC_ID
    cluster.run(cluster.stop())
    ids = {name: topic.id for name, topic in cluster.broker.cache.topics.items()}
    cluster.run(cluster.start())
    assert {name: topic.id for name, topic in cluster.broker.cache.topics.items()} == ids


def test_a_tree_that_kafka_wrote_is_taken_over(cluster: Cluster) -> None:
    async def lay_out() -> None:
        session = await cluster.open()
        await identity.make_persistent_paths(session)
        await session.create("/cluster/id", b'{"version":"1","id":"f1QaDVOrQkOTImXhFnZACg"}')
        await session.create("/controller_epoch", b"41")
        await session.create(
            "/brokers/topics/golden",
            b'{"partitions":{"0":[1]},"topic_id":"gf4U0uiLT_S_rrKHSCmwug","adding_replicas":{},'
            b'"removing_replicas":{},"version":3}',
        )
        await session.create("/brokers/topics/golden/partitions")
        await session.create("/brokers/topics/golden/partitions/0")
        state = b'{"controller_epoch":40,"leader":1,"version":1,"leader_epoch":6,"isr":[1]}'
        await session.create("/brokers/topics/golden/partitions/0/state", state)
        await session.create("/config/topics/golden", b'{"version":1,"config":{"cleanup.policy":"compact"}}')
        await session.create("/config/brokers/<default>", b'{"version":1,"config":{"log.retention.ms":"5"}}')
        await session.set("/latest_producer_id_block", b'{"version":1,"broker":1,"block_start":"0","block_end":"999"}')
        await session.close()

    cluster.run(lay_out())
    cluster.run(cluster.start())
    cache = cluster.broker.cache
    assert (cache.cluster_id, cache.controller_epoch) == ("f1QaDVOrQkOTImXhFnZACg", 42)
    assert cache.topics["golden"].id == topic_id_from_text("gf4U0uiLT_S_rrKHSCmwug")
    assert cache.topics["golden"].partitions[0].leader_epoch == 6
    assert cache.topic_config("golden") == {"cleanup.policy": "compact"}
    assert cache.default_broker_config() == {"log.retention.ms": "5"}
    ids = cluster.run(cluster.controller.allocate_producer_ids(cluster.broker.id))  # type: ignore[arg-type]
    assert (ids.first, ids.length) == (1000, 1000)


@pytest.mark.parametrize(
    ("path", "data"),
    [
        ("/brokers/topics/a", b"{"),
        ("/brokers/topics/a/partitions/0/state", b'{"leader":1}'),
        ("/config/topics/a", b'{"config":{"x":1}}'),
        ("/cluster/id", b"[]"),
        ("/controller_epoch", b"one"),
    ],
)
def test_a_damaged_node_stops_the_start_with_one_line(cluster: Cluster, path: str, data: bytes) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.controller.create_topics([TopicToCreate("a")]))
    cluster.run(cluster.session.set(path, data))
    cluster.run(cluster.stop())
    with pytest.raises(DamagedZnode) as caught:
        cluster.run(cluster.start())
    assert path in str(caught.value)
    assert "\n" not in str(caught.value)


def test_cluster_ids_are_made_once_and_must_agree(cluster: Cluster) -> None:
    async def work() -> None:
        session = await cluster.open()
        entropy = cluster.world.machine("m").entropy
        made = await identity.cluster_id(session, entropy)
        assert await identity.cluster_id(session, entropy) == made
        assert await identity.cluster_id(session, entropy, made) == made
        with pytest.raises(identity.WrongCluster, match="belong to cluster other"):
            await identity.cluster_id(session, entropy, "other")

    cluster.run(work())


def test_a_new_tree_takes_the_id_that_the_directories_know(cluster: Cluster) -> None:
    async def work() -> None:
        session = await cluster.open()
        entropy = cluster.world.machine("m").entropy
        assert await identity.cluster_id(session, entropy, "known") == "known"

    cluster.run(work())


def test_broker_ids_are_generated_above_the_reserved_ones(cluster: Cluster) -> None:
    async def work() -> None:
        session = await cluster.open()
        ids = [await identity.generated_broker_id(session) for _ in range(3)]
        assert ids == [1001, 1002, 1003]
        assert await identity.generated_broker_id(session, 5) == 9

    cluster.run(work())


# Crashes anywhere.


@pytest.mark.parametrize("seed", seeds(1, 3))
def test_what_was_answered_survives_a_power_cut_at_every_operation_of_the_disk(seed: int) -> None:
    operation = 0
    crashes = 0
    while True:
        operation += 1
        cluster = Cluster(seed * 1000 + operation)
        made: dict[str, tuple[bytes, int]] = {}
        deleted: set[str] = set()
        asked: set[str] = set()

        async def life(
            cluster: Cluster, made: dict[str, tuple[bytes, int]], deleted: set[str], asked: set[str]
        ) -> None:
            controller = await cluster.start()
            for number in range(4):
                names = [f"t{number}-{index}" for index in range(3)]
                for result in await controller.create_topics([TopicToCreate(name, 1 + number) for name in names]):
                    if result.error is not ErrorCode.NONE:
                        raise SimulatedCrash
                    made[result.name] = (result.topic_id, result.partitions)
                asked.add(names[0])
                (gone,) = await controller.delete_topics([TopicRef(names[0])])
                if gone.error is not ErrorCode.NONE:
                    raise SimulatedCrash
                deleted.add(names[0])
                asked.add(names[1])
                (grown,) = await controller.create_partitions([NewPartitions(names[1], 9)])
                if grown.error is not ErrorCode.NONE:
                    raise SimulatedCrash
                made[names[1]] = (made[names[1]][0], 9)
            await cluster.stop()

        cluster.disk.crash_at(operation)
        ended = False
        with suppress(SimulatedCrash, CoordinationError):
            cluster.run(life(cluster, made, deleted, asked))
            ended = True
        crashes += not ended
        cluster.crash()
        cluster.run(cluster.start())
        topics = cluster.broker.cache.topics
        for name, (topic_id, partitions) in made.items():
            if name in deleted:
                assert name not in topics
            elif name in topics or name not in asked:
                assert topics[name].id == topic_id
                assert len(topics[name].partitions) >= partitions
                assert all(state.leader == 1 for state in topics[name].partitions)
        for name in topics:
            # Nothing is left half made: every partition has its nodes.
            paths = cluster.run(below(cluster.session, f"/brokers/topics/{name}"))
            assert len(paths) == 2 + 2 * len(topics[name].partitions)
        assert set(cluster.run(cluster.session.children("/config/topics"))[0]) == set(topics)
        cluster.close()
        if ended:
            assert crashes > 30
            return
