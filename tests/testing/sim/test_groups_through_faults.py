"""Committed offsets on a disk that is full, that fails, and that loses its power."""

from __future__ import annotations

import asyncio
import errno
from random import Random

import pytest
from tests.testing.sim.one_broker import OneBroker

from ottla.model import OFFSETS_TOPIC, ErrorCode
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
)
from ottla.protocol.generated.offset_fetch import (
    OffsetFetchRequest,
    OffsetFetchRequestGroup,
    OffsetFetchRequestTopics,
)
from ottla.testing.sim.wire import Unreachable

PROPERTIES = {
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "4",
    "log.dirs": "/data/a,/data/b",
}
FLUSHED = {"cleanup.policy": "compact", "flush.messages": "1"}
NONE = ErrorCode.NONE
AWAY = {ErrorCode.NOT_COORDINATOR, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.COORDINATOR_NOT_AVAILABLE}
GROUPS = [f"group-{number}" for number in range(8)]
SECONDS_MAX = 120


async def commit(one: OneBroker, group: str, offset: int) -> ErrorCode:
    part = OffsetCommitRequestPartition(partition_index=0, committed_offset=offset, committed_metadata="")
    topic = OffsetCommitRequestTopic(name="t", partitions=[part])
    answer = await one.client.ask(OffsetCommitRequest(group_id=group, topics=[topic]), 8)
    return ErrorCode(answer.topics[0].partitions[0].error_code)


async def committed(one: OneBroker, group: str) -> int:
    """Waits until the group's coordinator is loaded."""
    topics = [OffsetFetchRequestTopics(name="t", partition_indexes=[0])]
    request = OffsetFetchRequest(groups=[OffsetFetchRequestGroup(group_id=group, topics=topics)])
    for _ in range(SECONDS_MAX * 10):
        (answer,) = (await one.client.ask(request, 8)).groups
        if answer.error_code == NONE:
            return int(answer.topics[0].partitions[0].committed_offset)
        assert answer.error_code in AWAY, answer
        await asyncio.sleep(0.1)
    raise AssertionError(f"{group} was not loaded")


async def begin(one: OneBroker) -> None:
    await one.broker.started()
    assert await one.create() == NONE
    answer = await one.client.ask(FindCoordinatorRequest(key="any"), 3)
    assert answer.error_code == NONE
    for group in GROUPS:
        assert await committed(one, group) == -1


def test_a_full_disk_costs_no_committed_offset() -> None:
    with OneBroker(3, PROPERTIES) as one:
        one.run(_fill(one))


async def _fill(one: OneBroker) -> None:
    await begin(one)
    for group in GROUPS:
        assert await commit(one, group, 5) == NONE
    one.disk.fail("append", f"*/{OFFSETS_TOPIC}-*/*.log", errno.ENOSPC)
    for group in GROUPS:
        assert await commit(one, group, 6) in AWAY
        # What was refused was applied for a moment: it must not show.
        assert await committed(one, group) == 5
    one.disk.stop_failing()
    for group in GROUPS:
        assert await committed(one, group) == 5
        assert await commit(one, group, 7) == NONE
    await one.restart(power=False)
    assert [await committed(one, group) for group in GROUPS] == [7] * len(GROUPS)


def test_a_directory_that_fails_takes_its_coordinators_with_it_and_no_others() -> None:
    with OneBroker(4, PROPERTIES) as one:
        one.run(_fail(one))


async def _fail(one: OneBroker) -> None:
    await begin(one)
    for group in GROUPS:
        assert await commit(one, group, 5) == NONE
    one.disk.fail("append", f"/data/b/{OFFSETS_TOPIC}-*/*.log", errno.EIO)
    first = [await commit(one, group, 6) for group in GROUPS]
    assert set(first) == {NONE, ErrorCode.NOT_COORDINATOR}
    one.disk.stop_failing()
    # One fault takes the whole directory: nobody there is served any more, everybody elsewhere is.
    second = [await commit(one, group, 7) for group in GROUPS]
    assert all(again == NONE or again in AWAY for again in second)
    assert [again == NONE for again in second] == [
        one.disk.exists(f"/data/a/{OFFSETS_TOPIC}-{partition}") for partition in map(_partition, GROUPS)
    ]
    await one.restart(power=False)
    found = [await committed(one, group) for group in GROUPS]
    assert found == [7 if again == NONE else 5 for again in second]


def _partition(group: str) -> int:
    number = 0
    for character in group:
        number = (31 * number + ord(character)) & 0xFFFFFFFF
    return (number & 0x7FFFFFFF) % 4 if number != 0x80000000 else 0


@pytest.mark.parametrize("seed", range(5))
def test_power_cuts_cost_no_committed_offset_where_the_topic_flushes(seed: int) -> None:
    with OneBroker(seed, PROPERTIES) as one:
        one.run(_cut(one, Random(seed)))


async def _cut(one: OneBroker, rng: Random) -> None:
    await one.broker.started()
    assert await one.create(OFFSETS_TOPIC, 4, FLUSHED) == NONE
    assert await one.create() == NONE
    acknowledged, tried = dict.fromkeys(GROUPS, -1), dict.fromkeys(GROUPS, -1)
    for life in range(4):
        for group in GROUPS:
            found = await committed(one, group)
            assert acknowledged[group] <= found <= tried[group], (life, group)
            acknowledged[group] = found
        await _commit_until_the_cut(one, rng, acknowledged, tried)


async def _commit_until_the_cut(
    one: OneBroker, rng: Random, acknowledged: dict[str, int], tried: dict[str, int]
) -> None:
    async def commits() -> None:
        while True:
            group = rng.choice(GROUPS)
            tried[group] += 1
            if await commit(one, group, tried[group]) == NONE:
                acknowledged[group] = tried[group]

    one.broker.ports.workers.latency_ms = (0.0, 20.0)
    working = asyncio.ensure_future(commits())
    await asyncio.sleep(rng.uniform(0.1, 2.0))
    await one.restart()
    working.cancel()
    await asyncio.wait([working])
    assert working.cancelled() or isinstance(working.exception(), Unreachable)
