"""Mirrors that are killed, or stopped for a while and waked: the copy is the original all the same.

The value of each record is its offset in the source, so that the copy itself says what it is a copy of.
"""

from __future__ import annotations

import asyncio
import random
import signal
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from pathlib import Path

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.producing.producer import Producer
from ottla.client.wire.listed_offset import LATEST
from ottla.model import TopicPartition
from ottla.testing.in_process import InProcessBroker
from tests.mirror.flows import SECONDS_MAX, Clusters, contents, create, mirror, mirroring, records_of, until
from tests.mirror.processes import mirror_process

#: Consumers of the source are missed soon, and what stops an answer is asked again soon.
QUICK = {
    "A.consumer.session.timeout.ms": "1500",
    "A.consumer.heartbeat.interval.ms": "300",
    "A.consumer.max.partition.fetch.bytes": "20000",
}


@asynccontextmanager
async def producing(bootstrap: str, topic: str, keys: int) -> AsyncIterator[asyncio.Task[int]]:
    """Writes records, small batches of them, until it is cancelled; the value is the offset."""

    async def produce() -> int:
        number = 0
        async with Producer(bootstrap_servers=bootstrap, batch_size=2_000, linger_ms=1) as producer:
            while True:
                for _ in range(20):
                    value = b"%08d" % number + bytes(100)
                    await producer.send(topic, value, b"k%d" % (number % keys), partition=0)
                    number += 1
                await asyncio.sleep(0.004)

    task = asyncio.ensure_future(produce())
    try:
        yield task
    finally:
        task.cancel()
        await asyncio.gather(task, return_exceptions=True)


async def end_of(admin: Admin, topic: str, partition: int = 0) -> int:
    tp = TopicPartition(topic, partition)
    return (await admin.list_offsets({tp: LATEST}))[tp].offset


async def until_end(admin: Admin, topic: str, end: int, partition: int = 0) -> None:
    async with asyncio.timeout(SECONDS_MAX):
        while await end_of(admin, topic, partition) < end:  # noqa: ASYNC110 - another process brings it about
            await asyncio.sleep(0.005)


async def check(clusters: Clusters, topic: str, *, whole: bool) -> None:
    """The copy, and every offset's place in it."""
    original = await records_of(clusters.source, topic)
    copy = await records_of(clusters.target, f"A.{topic}")
    origins = [int(one.value[:8]) for one in copy]
    assert origins == sorted(set(origins)), "nothing twice, and in order"
    if whole:
        assert contents(copy) == contents(original)
    latest = {one.key: one.value for one in original}
    assert {one.key: one.value for one in copy} == latest
    tp = TopicPartition(topic, 0)
    async with mirroring(clusters, topics=topic) as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].copied > original[-1].offset, "placed")
        one = flow.copies[tp]
        at = {record.offset: origin for record, origin in zip(copy, origins, strict=True)}
        assert all(one.pairs.source_of(target) == origin for target, origin in at.items())
        # By what the target still has: its cleaner may have taken some, too.
        for target, origin in at.items():
            assert one.pairs.target_of(origin, one.copied, one.end) == target


async def killed(clusters: Clusters, folder: Path, topic: str, rounds: int, seed: int, keys: int) -> None:
    chance = random.Random(seed)
    properties = {**clusters.properties(topics=topic), **QUICK}
    async with Admin(bootstrap_servers=clusters.target) as admin, producing(clusters.source, topic, keys):
        await mirror(clusters, topics=topic)
        for number in range(rounds):
            begun = await end_of(admin, f"A.{topic}")
            with mirror_process(folder / str(number), properties) as running:
                await until_end(admin, f"A.{topic}", begun + chance.randrange(1, 600))
                running.signal(signal.SIGKILL)
    assert (await mirror(clusters, topics=topic)).stopped == []


@pytest.mark.slow
async def test_a_mirror_that_is_killed_copies_everything_once(clusters: Clusters, tmp_path: Path) -> None:
    await create(clusters.source, "killed")
    await killed(clusters, tmp_path, "killed", 3, 1, keys=10**9)
    await check(clusters, "killed", whole=True)


async def test_a_mirror_that_is_killed_while_the_source_is_compacted(clusters: Clusters, tmp_path: Path) -> None:
    """Records go from the source meanwhile, copied or not; and from the copy, which is compacted as well."""
    await create(
        clusters.source, "cleaned", cleanup_policy="compact", segment_bytes="40000", min_cleanable_dirty_ratio="0.01"
    )
    await killed(clusters, tmp_path, "cleaned", 3, 2, keys=50)
    await check(clusters, "cleaned", whole=False)
    original = await records_of(clusters.source, "cleaned")
    assert len(original) < original[-1].offset, "there was something to clean"


async def test_brokers_that_go_and_come_back_cost_nothing(
    clusters: Clusters, source_broker: InProcessBroker, target_broker: InProcessBroker
) -> None:
    await create(clusters.source, "restarts")
    tp = TopicPartition("restarts", 0)
    async with producing(clusters.source, "restarts", 10**9), mirroring(clusters, topics="restarts") as flow:
        for broker in (target_broker, source_broker):
            at = flow.copies[tp].end if tp in flow.copies else 0
            await until(lambda at=at: tp in flow.copies and flow.copies[tp].end > at + 100, "it copies")
            await asyncio.to_thread(broker.restart)
            # The group may have given the partition up and back meanwhile.
            at = flow.copies[tp].end if tp in flow.copies else 0
            await until(lambda at=at: tp in flow.copies and flow.copies[tp].end > at + 100, "it goes on")
    assert (await mirror(clusters, topics="restarts")).stopped == []
    await check(clusters, "restarts", whole=True)


@pytest.mark.slow
@pytest.mark.parametrize("seed", range(5))
async def test_fifty_kills(clusters: Clusters, tmp_path: Path, seed: int) -> None:
    topic = f"fifty-{seed}"
    compacted = {"cleanup_policy": "compact", "segment_bytes": "40000", "min_cleanable_dirty_ratio": "0.01"}
    await create(clusters.source, topic, **(compacted if seed % 2 else {}))
    await killed(clusters, tmp_path, topic, 10, seed, keys=50 if seed % 2 else 10**9)
    await check(clusters, topic, whole=seed % 2 == 0)


async def test_a_mirror_that_was_stopped_and_wakes_writes_nothing_twice(clusters: Clusters, tmp_path: Path) -> None:
    """Another one has taken its partitions over, and it does not know."""
    await create(clusters.source, "paused")
    properties = {**clusters.properties(topics="paused"), **QUICK}
    async with Admin(bootstrap_servers=clusters.target) as admin, producing(clusters.source, "paused", 10**9):
        with mirror_process(tmp_path / "first", properties) as first:
            first.started()
            await until_end(admin, "A.paused", 300)
            for number in range(2):
                first.signal(signal.SIGSTOP)
                begun = await end_of(admin, "A.paused")
                with mirror_process(tmp_path / f"second-{number}", properties):
                    await until_end(admin, "A.paused", begun + 500)
                    first.signal(signal.SIGCONT)
                    await until_end(admin, "A.paused", begun + 1_000)
                await until_end(admin, "A.paused", begun + 1_200)
    assert (await mirror(clusters, topics="paused")).stopped == []
    await check(clusters, "paused", whole=True)
