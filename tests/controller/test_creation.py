"""CreateTopics and CreatePartitions: what is made, what is refused and in which words, and two at a time."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Awaitable
from typing import Any

import pytest
from tests.controller.cluster import Cluster
from tests.coordination.contract import until

from ottla.controller.announcing.queue import REPLICAS_AT_ONCE, SMALL_MAX
from ottla.controller.core import ControllerCore
from ottla.controller.deciding.rules import PARTITIONS_PER_REQUEST_MAX
from ottla.controller.interface import NewPartitions, TopicCreation, TopicRef, TopicToCreate
from ottla.coordination.znodes import decode_state, decode_topic, state_path, topic_path
from ottla.model import ZERO_TOPIC_ID, BrokerId, ErrorCode, TopicPartition

ONE = (BrokerId(1),)


def create(cluster: Cluster, *topics: TopicToCreate, **options: Any) -> list[TopicCreation]:
    return cluster.run(cluster.controller.create_topics(topics, **options))


def test_a_topic_is_in_the_tree_led_and_in_the_metadata(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.broker.calls.clear()
    (made,) = create(cluster, TopicToCreate("orders", 3, 1, configs={"retention.ms": "5"}))
    assert (made.error, made.message, made.partitions, made.replication_factor) == (ErrorCode.NONE, None, 3, 1)
    assert made.configs == {"retention.ms": "5"}
    assert len(made.topic_id) == 16
    assert made.topic_id != ZERO_TOPIC_ID
    topic = cluster.broker.cache.topic("orders")
    assert topic is not None
    assert topic.id == made.topic_id
    assert [(state.leader, state.isr, state.leader_epoch) for state in topic.partitions] == [(1, ONE, 0)] * 3
    assert cluster.broker.cache.topic_config("orders") == {"retention.ms": "5"}
    assert cluster.broker.created == {TopicPartition("orders", number) for number in range(3)}
    # Overrides first, then the leaders, then the clients.
    assert cluster.broker.calls == ["metadata", "leader_and_isr", "metadata"]

    async def look() -> None:
        data, _ = await cluster.session.get(topic_path("orders"))
        assert decode_topic("", data).topic_id == made.topic_id
        data, stat = await cluster.session.get(state_path("orders", 2))
        assert decode_state("", data).leader == 1
        assert stat.version == topic.partitions[2].partition_epoch == 0

    cluster.run(look())


def test_defaults_are_the_brokers(cluster: Cluster) -> None:
    cluster.run(cluster.start(num_partitions=4))
    (made,) = create(cluster, TopicToCreate("orders"))
    assert (made.partitions, made.replication_factor) == (4, 1)


def test_manual_assignments(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    (made,) = create(cluster, TopicToCreate("orders", assignments=((1, ONE), (0, ONE))))
    assert (made.error, made.partitions) == (ErrorCode.NONE, 2)


@pytest.mark.parametrize(
    ("topic", "error", "message"),
    [
        (
            TopicToCreate("a b"),
            "INVALID_TOPIC_EXCEPTION",
            "Topic name is invalid: 'a b' contains one or more characters",
        ),
        (TopicToCreate(""), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid: the empty string"),
        (TopicToCreate(".."), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid"),
        (TopicToCreate("x" * 250), "INVALID_TOPIC_EXCEPTION", "Topic name is invalid"),
        (TopicToCreate("there"), "TOPIC_ALREADY_EXISTS", "Topic 'there' already exists."),
        (TopicToCreate("a_b"), "INVALID_TOPIC_EXCEPTION", "Topic 'a_b' collides with existing topic: a.b"),
        (TopicToCreate("t", 0), "INVALID_PARTITIONS", "Number of partitions was set to an invalid non-positive value."),
        (TopicToCreate("t", -2), "INVALID_PARTITIONS", "Number of partitions was set to an invalid"),
        (TopicToCreate("t", 1, 0), "INVALID_REPLICATION_FACTOR", "Replication factor must be larger than 0, or -1"),
        (
            TopicToCreate("t", 1, 3),
            "INVALID_REPLICATION_FACTOR",
            (
                "Unable to replicate the partition 3 time(s): The target replication factor of 3 cannot be reached "
                "because only 1 broker(s) are registered."
            ),
        ),
        (TopicToCreate("t", configs={"no.such": "1"}), "INVALID_CONFIG", "Unknown topic config name: no.such"),
        (TopicToCreate("t", configs={"retention.ms": "soon"}), "INVALID_CONFIG", "retention.ms"),
        (TopicToCreate("t", configs={"retention.ms": None}), "INVALID_CONFIG", "Null value not supported"),
        (TopicToCreate("t", 1, assignments=((0, ONE),)), "INVALID_REQUEST", "numPartitions was not set to -1"),
        (TopicToCreate("t", -1, 1, ((0, ONE),)), "INVALID_REQUEST", "replication factor was not set to -1"),
        (
            TopicToCreate("t", assignments=((1, ONE),)),
            "INVALID_REPLICA_ASSIGNMENT",
            "partitions should be a consecutive 0-based integer sequence",
        ),
        (
            TopicToCreate("t", assignments=((0, ONE), (0, ONE))),
            "INVALID_REPLICA_ASSIGNMENT",
            "Found multiple manual partition assignments for partition 0",
        ),
        (TopicToCreate("t", assignments=((0, ()),)), "INVALID_REPLICA_ASSIGNMENT", "an empty replica list"),
        (
            TopicToCreate("t", assignments=((0, (BrokerId(9),)),)),
            "INVALID_REPLICA_ASSIGNMENT",
            "includes broker 9, but no such broker is registered.",
        ),
        (
            TopicToCreate("t", assignments=((0, ONE * 2),)),
            "INVALID_REPLICA_ASSIGNMENT",
            "includes the broker 1 more than once.",
        ),
    ],
)
def test_what_is_refused(cluster: Cluster, topic: TopicToCreate, error: str, message: str) -> None:
    cluster.run(cluster.start())
    create(cluster, TopicToCreate("there"), TopicToCreate("a.b"))
    before = sorted(cluster.session.store._tree.nodes)
    refused, made = create(cluster, topic, TopicToCreate("fine"))
    assert refused.error is ErrorCode[error]
    assert message in (refused.message or "")
    assert refused.topic_id == ZERO_TOPIC_ID
    # The others in the same request are made, and nothing of this one.
    assert made.error is ErrorCode.NONE
    added = set(cluster.session.store._tree.nodes) - set(before)
    assert all("fine" in path for path in added)


def test_one_request_that_names_a_topic_twice_or_two_that_collide(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    first, second, third, fourth = create(
        cluster, TopicToCreate("twice"), TopicToCreate("twice"), TopicToCreate("x.y"), TopicToCreate("x_y")
    )
    assert first.error is second.error is ErrorCode.INVALID_REQUEST
    assert (third.error, fourth.error) == (ErrorCode.NONE, ErrorCode.INVALID_TOPIC_EXCEPTION)
    assert list(cluster.broker.cache.topics) == ["x.y"]


def test_validate_only_answers_and_changes_nothing(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    zxid = cluster.session.store._tree.zxid
    good, bad = create(cluster, TopicToCreate("orders", 2), TopicToCreate(""), validate_only=True)
    assert (good.error, good.partitions, good.replication_factor) == (ErrorCode.NONE, 2, 1)
    assert bad.error is ErrorCode.INVALID_TOPIC_EXCEPTION
    assert cluster.session.store._tree.zxid == zxid
    assert not cluster.broker.cache.topics


def test_two_creations_of_one_topic_at_once(cluster: Cluster) -> None:
    cluster.run(cluster.start())

    async def both() -> list[list[TopicCreation]]:
        calls = (cluster.controller.create_topics([TopicToCreate("orders", number)]) for number in (1, 2, 3))
        return list(await asyncio.gather(*calls))

    results = [result for (result,) in cluster.run(both())]
    errors = sorted(result.error.name for result in results)
    assert errors == ["NONE", "TOPIC_ALREADY_EXISTS", "TOPIC_ALREADY_EXISTS"]
    (winner,) = (result for result in results if result.error is ErrorCode.NONE)
    topic = cluster.broker.cache.topic("orders")
    assert topic is not None
    assert (topic.id, len(topic.partitions)) == (winner.topic_id, winner.partitions)


def test_a_topic_that_somebody_else_put_into_the_tree_exists(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.session.create("/brokers/topics/orders", b'{"version":3,"partitions":{"0":[1]}}'))
    taken, made = create(cluster, TopicToCreate("orders"), TopicToCreate("fine"))
    assert (taken.error, made.error) == (ErrorCode.TOPIC_ALREADY_EXISTS, ErrorCode.NONE)
    # The controller has read the tree again before its next turn, and leads what it found.
    (again,) = create(cluster, TopicToCreate("orders"))
    assert again.error is ErrorCode.TOPIC_ALREADY_EXISTS
    topic = cluster.broker.cache.topic("orders")
    assert topic is not None
    assert topic.partitions[0].leader == 1
    # A topic from before there were ids gets one.
    assert topic.id != ZERO_TOPIC_ID


def test_a_large_topic_is_one_transaction_and_a_huge_request_is_cut(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    zxid = cluster.session.store._tree.zxid
    (made,) = create(cluster, TopicToCreate("large", 1500))
    assert made.error is ErrorCode.NONE
    assert cluster.session.store._tree.zxid == zxid + 1
    (huge,) = create(cluster, TopicToCreate("huge", PARTITIONS_PER_REQUEST_MAX))
    assert huge.error is ErrorCode.NONE
    assert zxid + 2 < cluster.session.store._tree.zxid <= zxid + 8
    many = create(cluster, *(TopicToCreate(f"t{number}") for number in range(1000)))
    assert {result.error for result in many} == {ErrorCode.NONE}
    assert len(cluster.broker.cache.topics) == 1002


def test_a_request_over_all_topics_is_bounded(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    half = PARTITIONS_PER_REQUEST_MAX // 2
    refused = TopicCreation("", ErrorCode.POLICY_VIOLATION, "Excessively large number of partitions per request.")
    for too_many in (
        [TopicToCreate("a", half), TopicToCreate("b", half), TopicToCreate("c")],
        [TopicToCreate("a"), TopicToCreate("b", 2**31 - 1)],
        # Kafka counts before it looks at anything else, those that would be refused for their names among them.
        [TopicToCreate("a b", PARTITIONS_PER_REQUEST_MAX), TopicToCreate("c")],
        [TopicToCreate("a", assignments=((0, ONE),) * PARTITIONS_PER_REQUEST_MAX), TopicToCreate("c")],
    ):
        results = create(cluster, *too_many)
        assert results == [refused._replace(name=topic.name) for topic in too_many]
    assert not cluster.broker.cache.topics
    results = create(cluster, TopicToCreate("a", half), TopicToCreate("b", half), TopicToCreate("c", -7))
    assert [result.error.name for result in results] == ["NONE", "NONE", "INVALID_PARTITIONS"]


def test_an_assignment_to_the_same_broker_a_million_times_is_refused_at_its_second(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    (refused,) = create(cluster, TopicToCreate("t", assignments=((0, ONE * 1_000_000),)))
    assert refused.message is not None
    assert refused.message.endswith("includes the broker 1 more than once.")


def test_a_turn_that_comes_too_late_changes_nothing(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    (late,) = create(cluster, TopicToCreate("late"), timeout_ms=0)
    assert late.error is ErrorCode.REQUEST_TIMED_OUT
    (made,) = create(cluster, TopicToCreate("in-time"), timeout_ms=30_000)
    assert made.error is ErrorCode.NONE
    assert list(cluster.broker.cache.topics) == ["in-time"]


def test_a_caller_that_goes_away_does_not_stop_what_has_begun(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.world.machine("m").workers.latency_ms = (50.0, 50.0)

    async def work() -> None:
        call = asyncio.ensure_future(cluster.controller.create_topics([TopicToCreate("orders")]))
        await until(lambda: cluster.controller.tenure.events._running)
        call.cancel()
        await cluster.controller.create_topics([TopicToCreate("next")])

    cluster.run(work())
    assert sorted(cluster.broker.cache.topics) == ["next", "orders"]


def test_a_partition_that_cannot_be_opened_is_led_by_nobody(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    create(cluster, TopicToCreate("orders", 1))
    cluster.broker.broken.add(TopicPartition("orders", 1))
    (grown,) = cluster.run(cluster.controller.create_partitions([NewPartitions("orders", 2)]))
    assert grown.error is ErrorCode.NONE
    good, bad = cluster.broker.cache.topics["orders"].partitions
    assert (good.leader, good.offline_replicas) == (1, ())
    assert (bad.leader, bad.leader_epoch, bad.isr, bad.offline_replicas) == (-1, 1, ONE, ONE)
    # At the next start the directory may be well again.
    cluster.run(cluster.stop())
    cluster.run(cluster.start())
    bad = cluster.broker.cache.topics["orders"].partitions[1]
    assert (bad.leader, bad.leader_epoch, bad.offline_replicas) == (1, 2, ())


def test_a_partition_that_there_is_room_for_after_all_is_led(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    create(cluster, TopicToCreate("orders", 1))
    late = TopicPartition("orders", 1)
    cluster.broker.no_room.add(late)
    cluster.run(cluster.controller.create_partitions([NewPartitions("orders", 3)]))
    leaders = [state.leader for state in cluster.broker.cache.topics["orders"].partitions]
    assert leaders == [1, -1, 1]
    # Still none; and then there is, which may be told twice.
    cluster.settle(cluster.controller.replicas_recovered(BrokerId(1), [late]))
    assert cluster.broker.cache.topics["orders"].partitions[1].leader == -1
    cluster.broker.no_room.clear()
    for _ in range(2):
        cluster.settle(cluster.controller.replicas_recovered(BrokerId(1), [late, TopicPartition("gone", 0)]))
        state = cluster.broker.cache.topics["orders"].partitions[1]
        assert (state.leader, state.isr, state.offline_replicas) == (1, ONE, ())
        assert cluster.broker.roles[late].leader == 1


@pytest.mark.parametrize("fault", [ValueError, asyncio.CancelledError])
@pytest.mark.parametrize("step", ["elect", "lead", "show"])
def test_replicas_that_were_recovered_in_vain_are_recovered_when_they_are_reported_again(
    cluster: Cluster, step: str, fault: type[BaseException], monkeypatch: pytest.MonkeyPatch
) -> None:
    cluster.run(cluster.start())
    create(cluster, TopicToCreate("orders", 1))
    late = TopicPartition("orders", 1)
    cluster.broker.no_room.add(late)
    cluster.run(cluster.controller.create_partitions([NewPartitions("orders", 3)]))
    cluster.broker.no_room.clear()
    with monkeypatch.context() as patch:

        def planted(*_: object, **__: object) -> None:
            raise fault

        patch.setattr(ControllerCore, step, planted)
        assert cluster.run(cluster.controller.replicas_recovered(BrokerId(1), [late])) != ErrorCode.NONE
    assert cluster.settle(cluster.controller.replicas_recovered(BrokerId(1), [late])) == ErrorCode.NONE
    assert cluster.broker.cache.topics["orders"].partitions[1].leader == 1
    assert cluster.broker.roles[late].leader == 1


@pytest.mark.parametrize("is_full", [False, True], ids=["the tree has room", "the tree has none"])
def test_a_topic_without_room_for_all_its_logs_is_taken_back(cluster: Cluster, is_full: bool) -> None:
    cluster.run(cluster.start())
    cluster.broker.no_room.add(TopicPartition("orders", 1))
    if is_full:
        cluster.broker.on_no_room = lambda: cluster.disk.fail("append", "*journal*", errno.ENOSPC)
    made, refused = create(cluster, TopicToCreate("before", 2), TopicToCreate("orders", 2))
    assert made.error is ErrorCode.NONE
    assert refused.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert refused.message is not None
    assert "no room" in refused.message
    assert list(cluster.broker.cache.topics) == ["before"]
    assert [state.leader for state in cluster.broker.cache.topics["before"].partitions] == [1, 1]
    # Nobody who asks about it is told where the broker keeps what.
    (again,) = create(cluster, TopicToCreate("orders", 2))
    assert again.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert again.message is not None
    assert "/" not in again.message
    cluster.disk.stop_failing()
    cluster.broker.on_no_room = lambda: None
    cluster.broker.no_room.clear()
    (made,) = create(cluster, TopicToCreate("orders", 3))
    assert made.error is ErrorCode.NONE
    assert [state.leader for state in cluster.broker.cache.topics["orders"].partitions] == [1, 1, 1]
    cluster.run(cluster.stop())
    cluster.run(cluster.start())
    assert {name: len(topic.partitions) for name, topic in cluster.broker.cache.topics.items()} == {
        "before": 2,
        "orders": 3,
    }


def test_a_full_disk_is_an_error_and_passes(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    create(cluster, TopicToCreate("before"))
    cluster.disk.fail("append", "*journal*", errno.ENOSPC)
    (refused,) = create(cluster, TopicToCreate("orders", 5))
    assert refused.error is ErrorCode.KAFKA_STORAGE_ERROR
    assert refused.message == "The controller has no room to write: nothing was changed."
    assert list(cluster.broker.cache.topics) == ["before"]
    cluster.disk.stop_failing()
    (made,) = create(cluster, TopicToCreate("orders", 5))
    assert made.error is ErrorCode.NONE


def test_a_lost_tree_ends_the_controller(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.disk.fail("sync", "*journal*", errno.EIO)
    (unknown,) = create(cluster, TopicToCreate("orders"))
    assert unknown.error is ErrorCode.REQUEST_TIMED_OUT
    (refused,) = create(cluster, TopicToCreate("more"))
    assert refused.error is ErrorCode.NOT_CONTROLLER
    assert not cluster.controller.active


def test_another_controller_in_the_tree_fences_this_one(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    cluster.run(cluster.session.set("/controller_epoch", b"7"))
    (refused,) = create(cluster, TopicToCreate("orders"))
    assert refused.error is ErrorCode.NOT_CONTROLLER
    assert cluster.run(cluster.session.exists("/brokers/topics/orders")) is None
    assert cluster.run(cluster.controller.delete_topics([TopicRef("x")]))[0].error is ErrorCode.NOT_CONTROLLER


# Growth.


def test_a_topic_grows(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    (made,) = create(cluster, TopicToCreate("orders", 2))
    cluster.broker.created.clear()
    (grown,) = cluster.run(cluster.controller.create_partitions([NewPartitions("orders", 5)]))
    assert grown.error is ErrorCode.NONE
    topic = cluster.broker.cache.topics["orders"]
    assert (topic.id, [state.partition for state in topic.partitions]) == (made.topic_id, [0, 1, 2, 3, 4])
    assert cluster.broker.created == {TopicPartition("orders", number) for number in (2, 3, 4)}
    data, _ = cluster.run(cluster.session.get(topic_path("orders")))
    assert sorted(decode_topic("", data).replicas) == [0, 1, 2, 3, 4]
    (manual,) = cluster.run(cluster.controller.create_partitions([NewPartitions("orders", 6, (ONE,))]))
    assert manual.error is ErrorCode.NONE


@pytest.mark.parametrize(
    ("request_", "error", "message"),
    [
        (NewPartitions("none", 5), "UNKNOWN_TOPIC_OR_PARTITION", None),
        (NewPartitions("orders", 3), "INVALID_PARTITIONS", "Topic already has 3 partition(s)."),
        (
            NewPartitions("orders", 2),
            "INVALID_PARTITIONS",
            "The topic orders currently has 3 partition(s); 2 would not be an increase.",
        ),
        (NewPartitions("orders", 2**31 - 1), "POLICY_VIOLATION", "Excessively large"),
        (
            NewPartitions("orders", 5, (ONE,)),
            "INVALID_REPLICA_ASSIGNMENT",
            "Attempted to add 2 additional partition(s), but only 1 assignment(s) were specified.",
        ),
        (NewPartitions("orders", 4, ((BrokerId(9),),)), "INVALID_REPLICA_ASSIGNMENT", "no such broker"),
        (NewPartitions("orders", 4, ((),)), "INVALID_REPLICA_ASSIGNMENT", "empty replica list"),
    ],
)
def test_growth_that_is_refused(cluster: Cluster, request_: NewPartitions, error: str, message: str | None) -> None:
    cluster.run(cluster.start())
    create(cluster, TopicToCreate("orders", 3))
    (refused,) = cluster.run(cluster.controller.create_partitions([request_]))
    assert refused.error is ErrorCode[error]
    assert refused.message is None if message is None else message in refused.message
    assert len(cluster.broker.cache.topics["orders"].partitions) == 3


def test_growth_may_be_validated_only_and_not_asked_for_twice(cluster: Cluster) -> None:
    cluster.run(cluster.start())
    create(cluster, TopicToCreate("orders", 3))
    request = NewPartitions("orders", 4)
    (checked,) = cluster.run(cluster.controller.create_partitions([request], validate_only=True))
    assert checked.error is ErrorCode.NONE
    twice = cluster.run(cluster.controller.create_partitions([request, request]))
    assert [result.error for result in twice] == [ErrorCode.INVALID_REQUEST] * 2
    assert len(cluster.broker.cache.topics["orders"].partitions) == 3


# -- small ones beside a large one

LARGE = REPLICAS_AT_ONCE + 1


def beside_a_large_one(
    cluster: Cluster, large: Awaitable[list[Any]], *others: tuple[str, Awaitable[list[Any]]]
) -> tuple[list[str], dict[str, ErrorCode]]:
    """Asks for the others while logs of the large one are made; returns the order of the answers, and what they say."""
    order: list[str] = []
    errors: dict[str, ErrorCode] = {}

    async def ask(name: str, request: Awaitable[list[Any]]) -> None:
        result, *_ = await request
        order.append(name)
        errors[name] = result.error

    async def all_of_them() -> None:
        broker = cluster.broker
        broker.may_make.clear()
        broker.calls.clear()
        asked = [asyncio.ensure_future(ask("large", large))]
        await until(lambda: "new_replicas" in broker.calls)
        for other in others:
            asked.append(asyncio.ensure_future(ask(*other)))
            # They have their turns, which wait for nobody.
            await asyncio.sleep(1)
        broker.may_make.set()
        await asyncio.gather(*asked)

    cluster.run(all_of_them())
    return order, errors


def test_a_small_creation_passes_a_large_one(cluster: Cluster) -> None:
    controller = cluster.run(cluster.start())
    order, errors = beside_a_large_one(
        cluster,
        controller.create_topics([TopicToCreate("large", LARGE, 1)]),
        ("larger", controller.create_topics([TopicToCreate("larger", LARGE + 1, 1)])),
        ("small", controller.create_topics([TopicToCreate("small", 1, 1)])),
    )
    assert order == ["small", "large", "larger"]
    assert set(errors.values()) == {ErrorCode.NONE}
    assert {name: len(topic.partitions) for name, topic in cluster.broker.cache.topics.items()} == {
        "small": 1,
        "large": LARGE,
        "larger": LARGE + 1,
    }
    assert len(cluster.broker.roles) == 2 * LARGE + 2


def test_a_small_creation_passes_a_large_growth(cluster: Cluster) -> None:
    controller = cluster.run(cluster.start())
    create(cluster, TopicToCreate("growing", 1, 1))
    order, _ = beside_a_large_one(
        cluster,
        controller.create_partitions([NewPartitions("growing", LARGE + 1)]),
        ("small", controller.create_topics([TopicToCreate("small", 1, 1)])),
    )
    assert order == ["small", "large"]


def test_what_changes_the_topic_that_is_being_made_waits(cluster: Cluster) -> None:
    controller = cluster.run(cluster.start())
    order, errors = beside_a_large_one(
        cluster,
        controller.create_topics([TopicToCreate("large", LARGE, 1)]),
        ("growth", controller.create_partitions([NewPartitions("large", LARGE + 1)])),
        ("deletion", controller.delete_topics([TopicRef("large")])),
    )
    assert order == ["large", "growth", "deletion"]
    assert set(errors.values()) == {ErrorCode.NONE}
    assert not cluster.broker.roles


def test_the_name_of_a_topic_that_is_being_made_is_taken(cluster: Cluster) -> None:
    controller = cluster.run(cluster.start())
    _, errors = beside_a_large_one(
        cluster,
        controller.create_topics([TopicToCreate("large", LARGE, 1)]),
        ("small", controller.create_topics([TopicToCreate("large", 1, 1)])),
    )
    assert errors == {"large": ErrorCode.NONE, "small": ErrorCode.TOPIC_ALREADY_EXISTS}


def test_a_stream_of_small_creations_holds_a_large_one_up_for_a_while_only(cluster: Cluster) -> None:
    controller = cluster.run(cluster.start())
    beside_a_large_one(
        cluster,
        controller.create_topics([TopicToCreate("large", LARGE, 1)]),
        *((f"t{number}", controller.create_topics([TopicToCreate(f"t{number}", 1, 1)])) for number in range(LARGE)),
    )
    # Its logs are made in two pieces, and no more than one call goes between two of its own.
    calls = [call for call in cluster.broker.calls if call != "metadata"]
    assert calls == ["new_replicas", "leader_and_isr", "new_replicas", *["leader_and_isr"] * 2]
    assert len(cluster.broker.cache.topics) == LARGE + 1


@pytest.mark.parametrize(
    "topics",
    [
        [TopicToCreate("wide", SMALL_MAX + 1, 1)],
        [TopicToCreate("wide", SMALL_MAX + 1, 1), TopicToCreate("minus", -SMALL_MAX, 1)],
        [TopicToCreate("assigned", assignments=tuple((number, ONE) for number in range(SMALL_MAX + 1)))],
        [TopicToCreate(f"t{number}", 1, 1) for number in range(SMALL_MAX + 1)],
    ],
)
def test_what_is_not_small_does_not_pass(cluster: Cluster, topics: list[TopicToCreate]) -> None:
    controller = cluster.run(cluster.start())
    order, _ = beside_a_large_one(
        cluster,
        controller.create_topics([TopicToCreate("large", LARGE, 1)]),
        ("other", controller.create_topics(topics)),
    )
    assert order == ["large", "other"]


def test_a_large_topic_without_room_for_all_of_its_logs_is_undone_and_those_that_pass_it_stay(cluster: Cluster) -> None:
    controller = cluster.run(cluster.start())
    cluster.broker.no_room = {TopicPartition("large", LARGE - 1)}
    _, errors = beside_a_large_one(
        cluster,
        controller.create_topics([TopicToCreate("large", LARGE, 1)]),
        ("small", controller.create_topics([TopicToCreate("small", 1, 1)])),
    )
    assert errors == {"large": ErrorCode.KAFKA_STORAGE_ERROR, "small": ErrorCode.NONE}
    assert set(cluster.broker.cache.topics) == {"small"}
    assert set(cluster.broker.roles) == {TopicPartition("small", 0)}


def test_a_large_topic_is_made_though_the_tree_is_read_again_meanwhile(cluster: Cluster) -> None:
    controller = cluster.run(cluster.start())
    large = controller.create_topics([TopicToCreate("large", 2 * LARGE, 1)])

    async def fills_the_disk() -> None:
        await until(lambda: "new_replicas" in cluster.broker.calls)
        cluster.disk.fail("append", "*", errno.ENOSPC, times=1)

    async def both() -> list[TopicCreation]:
        made, _ = await asyncio.gather(large, fills_the_disk())
        return made

    order, errors = beside_a_large_one(
        cluster,
        both(),
        ("refused", controller.create_topics([TopicToCreate("refused", 1, 1)])),
        ("later", controller.create_topics([TopicToCreate("later", 1, 1)])),
    )
    assert order == ["refused", "later", "large"]
    assert errors == {"refused": ErrorCode.KAFKA_STORAGE_ERROR, "large": ErrorCode.NONE, "later": ErrorCode.NONE}
    assert set(cluster.broker.cache.topics) == {"large", "later"}
