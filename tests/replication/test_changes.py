"""Roles that come and go with their logs, while workers make and delete these: one change at a time."""

from __future__ import annotations

import asyncio
import errno

from tests.replication.roles_world import DIRECTORIES, TP, RolesWorld

from ottla.metadata import PartitionState
from ottla.model import ErrorCode, TopicPartition

A, B = DIRECTORIES


def tp(number: int) -> TopicPartition:
    return TP._replace(partition=number)


def states(world: RolesWorld, count: int) -> list[PartitionState]:
    return [world.state(1, partition=number) for number in range(count)]


def run(world: RolesWorld, *changes: object) -> list[object]:
    """Several at once, with workers that take their time."""
    world.ports.workers.latency_ms = (10, 10)

    async def all_of_them() -> list[object]:
        return list(await asyncio.gather(*(world.replicas.change(change) for change in changes)))  # type: ignore[arg-type]

    return world.ports.loop.run_until_complete(all_of_them())


def test_nobody_is_served_by_a_partition_that_is_being_made() -> None:
    world = RolesWorld()
    world.ports.workers.latency_ms = (10, 10)
    seen: set[ErrorCode] = set()

    async def look(change: asyncio.Future[object]) -> None:
        while not change.done():
            if TP not in world.replicas.leaders:
                seen.add(world.replicas.why_not_leader(TP))
            await asyncio.sleep(0.001)

    async def both() -> None:
        change = asyncio.ensure_future(
            world.replicas.change(world.replicas.take_on(states(world, 4), lambda _: world.config))
        )
        await look(change)

    world.ports.loop.run_until_complete(both())
    assert seen == {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION}
    assert len(world.replicas.leaders) == 4


def test_deletion_and_creation_of_the_same_partitions_follow_one_another() -> None:
    world = RolesWorld()
    replicas = world.replicas
    first, deleted, again = run(
        world,
        replicas.take_on(states(world, 4), lambda _: world.config),
        replicas.give_up([tp(number) for number in range(4)], delete=True),
        replicas.take_on(states(world, 4), lambda _: world.config),
    )
    assert first == again == dict.fromkeys(map(tp, range(4)), ErrorCode.NONE)
    assert deleted == {}
    assert set(replicas.leaders) == set(map(tp, range(4)))
    names = [name for path in DIRECTORIES for name in world.ports.disk.names(path)]
    assert sum(name.endswith("-delete") for name in names) == 4


def test_the_traffic_of_a_topic_is_forgotten_with_the_last_of_its_partitions() -> None:
    """What is remembered of a client's last request adds to it for as long as its partition is here."""
    world = RolesWorld()
    replicas = world.replicas
    run(world, replicas.take_on(states(world, 3), lambda _: world.config))
    traffic = replicas.traffic.of(TP.topic)
    run(world, replicas.give_up([tp(0), tp(2)], delete=True))
    traffic.bytes_out += 7
    assert replicas.traffic.of(TP.topic) is traffic
    run(world, replicas.give_up([tp(1)], delete=True))
    assert list(replicas.traffic) == []
    assert replicas.traffic.gone.bytes_out == 7


def test_a_directory_that_fails_in_the_middle_fails_its_partitions_and_no_other() -> None:
    world = RolesWorld()
    world.ports.workers.latency_ms = (10, 10)

    async def both() -> dict[TopicPartition, ErrorCode]:
        change = asyncio.ensure_future(
            world.replicas.change(world.replicas.take_on(states(world, 4), lambda _: world.config))
        )
        await asyncio.sleep(0.005)
        world.replicas.fail_directory(A, "pulled out")
        return await change

    answers = world.ports.loop.run_until_complete(both())
    assert [answers[tp(number)] for number in range(4)] == [
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NONE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.NONE,
    ]
    assert set(world.replicas.leaders) == {tp(1), tp(3)}
    assert world.replicas.why_not_leader(TP) == ErrorCode.KAFKA_STORAGE_ERROR
    # None of them had been served: the controller has its answer, and need not be told again.
    assert world.failed == []


def test_what_had_no_room_is_made_later_unless_it_was_deleted_meanwhile() -> None:
    world = RolesWorld()
    replicas = world.replicas
    for path in DIRECTORIES:
        world.ports.disk.fail("make_directory", f"{path}/t-*", errno.ENOSPC, times=1)
    (answers,) = run(world, replicas.take_on(states(world, 2), lambda _: world.config))
    assert answers == dict.fromkeys((tp(0), tp(1)), ErrorCode.KAFKA_STORAGE_ERROR)
    assert replicas.lacks_some
    run(world, replicas.give_up([tp(0)], delete=True), replicas.make_missing())
    assert world.made == [tp(1)]
    assert set(replicas.directories.logs) == {tp(1)}


def test_a_deletion_that_the_disk_refuses_is_answered_by_itself() -> None:
    world = RolesWorld()
    replicas = world.replicas
    run(world, replicas.take_on(states(world, 4), lambda _: world.config))
    world.ports.disk.fail("rename", f"{A}/t-2*", errno.EIO)
    (answers,) = run(world, replicas.give_up([tp(number) for number in range(4)], delete=True))
    assert answers == {tp(2): ErrorCode.KAFKA_STORAGE_ERROR}
    assert replicas.leaders == {}
