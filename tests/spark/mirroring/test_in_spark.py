"""A mirror's flow as one streaming query: what a replayed batch and killed workers do to the copies."""

from __future__ import annotations

import asyncio
import os
import re
import signal
import time
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from typing import Any

import pytest
from tests.mirror.flows import SECONDS_MAX, Clusters, contents, create, limits, produce, records_of
from tests.searches import some
from tests.spark.processes import python_workers

import ottla.spark
from ottla.client.admin.admin import Admin
from ottla.client.wire.listed_offset import LATEST
from ottla.model import TopicPartition
from ottla.testing.in_process import InProcessBroker

pytestmark = [pytest.mark.xdist_group("spark"), pytest.mark.timeout(1200)]

PAGE = Path(__file__).resolve().parents[3] / "docs" / "mirror.md"
(EXAMPLE,) = re.findall(r"^```python\n(.*?)^```", PAGE.read_text(), re.DOTALL | re.MULTILINE)
TOPICS = ("clicks", "orders")
PARTITIONS = 2
PLACES = [TopicPartition(topic, number) for topic in TOPICS for number in range(PARTITIONS)]
COMMITTED = {TopicPartition("orders", 0): 12}
#: The records are years old, and retention looks half a minute behind a broker's start, and five minutes later.
KEPT = {"log.retention.ms": "-1"}
#: In so small steps that workers are killed in the middle.
RECORDS = 3_000
SMALL_STEPS = {"A.consumer.max.partition.fetch.bytes": "500"}


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    properties = {"group.initial.rebalance.delay.ms": "0", "auto.create.topics.enable": "false", **KEPT}
    with InProcessBroker(properties=properties) as source, InProcessBroker(properties=properties) as target:
        yield Clusters(source.bootstrap, target.bootstrap)


def copy_all(spark: Any, clusters: Clusters, folder: Path, topics: str = "clicks, orders") -> list[Any]:
    """The rows of a run to the end."""
    rows: list[Any] = []
    more = {"topics": topics, "groups": "readers", "sync.group.offsets.enabled": "true"}
    frame = ottla.spark.mirror(spark, clusters.properties(**more), tasks=2)
    writing = frame.writeStream.foreachBatch(lambda batch, _: rows.extend(batch.collect()))
    query = writing.option("checkpointLocation", str(folder / "checkpoint")).trigger(availableNow=True).start()
    query.awaitTermination()
    return rows


async def fill(clusters: Clusters, run: int, count: int = 30) -> None:
    for tp in PLACES:
        await produce(clusters.source, tp.topic, [b"%d of %d" % (n, run) for n in range(count)], tp.partition, "lz4")


async def check(clusters: Clusters) -> None:
    for tp in PLACES:
        original = await records_of(clusters.source, *tp)
        copy = await records_of(clusters.target, f"A.{tp.topic}", tp.partition)
        assert contents(copy)[-len(original) :] == contents(original), tp


async def offsets(bootstrap: str, group: str) -> dict[TopicPartition, int]:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        return {tp: one.offset for tp, one in (await admin.list_group_offsets(group)).items()}


async def prepared(clusters: Clusters) -> None:
    for topic in TOPICS:
        await create(clusters.source, topic, PARTITIONS)
    await fill(clusters, 0)
    async with Admin(bootstrap_servers=clusters.source) as admin:
        await admin.alter_group_offsets("readers", COMMITTED)


async def removed(clusters: Clusters, tp: TopicPartition, below: int) -> None:
    async with Admin(bootstrap_servers=clusters.source) as admin:
        await admin.delete_records({tp: below})


@pytest.mark.parametrize("kills", some((1, 5), 1))
def test_many_topics_in_one_query(
    spark: Any, clusters: Clusters, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kills: int
) -> None:
    asyncio.run(prepared(clusters))
    run_example(clusters, tmp_path, monkeypatch)
    asyncio.run(check(clusters))
    assert asyncio.run(offsets(clusters.source, "ottla-mirror.A->B")) == dict.fromkeys(PLACES, 30)

    # Retention takes ten of one partition before they are copied; and the batch that copies the rest is replayed.
    asyncio.run(fill(clusters, 1))
    asyncio.run(removed(clusters, PLACES[0], 40))
    rows = copy_all(spark, clusters, tmp_path)
    assert sorted((row.topic, row.partition, row.copied, row.end, row.records, row.stopped) for row in rows) == [
        (*PLACES[0], 60, 50, 20, None),
        *((*tp, 60, 60, 30, None) for tp in PLACES[1:]),
    ]
    commits = tmp_path / "checkpoint" / "commits"
    last = max(int(one.name) for one in commits.iterdir() if one.name.isdigit())
    for name in (str(last), f".{last}.crc"):
        (commits / name).unlink()
    assert [row.records for row in copy_all(spark, clusters, tmp_path)] == [0] * len(PLACES)
    asyncio.run(check(clusters))
    assert asyncio.run(limits(clusters.target, f"A.{PLACES[0].topic}")) == (0, 50)
    assert asyncio.run(offsets(clusters.target, "readers")) == {TopicPartition("A.orders", 0): 12}

    # Workers die while they copy, again and again; nothing is lost, and nothing comes twice.
    asyncio.run(fill(clusters, 2, RECORDS))
    copied = [asyncio.run(copies(clusters))]
    for _ in range(kills):
        kill_workers_at_work(spark, clusters, tmp_path, copied[-1])
        copied.append(asyncio.run(copies(clusters)))
    everything = copied[0] + len(PLACES) * RECORDS
    assert copied == sorted(set(copied)), "each had begun"
    assert copied[-1] < everything, "and had something left"
    assert all(row.stopped is None for row in copy_all_in_the_end(spark, clusters, tmp_path))
    asyncio.run(check(clusters))
    assert asyncio.run(copies(clusters)) == everything
    assert asyncio.run(limits(clusters.target, "A.orders")) == (0, 60 + RECORDS)


async def copies(clusters: Clusters) -> int:
    """Where the copies end, all of them together."""
    return sum([(await limits(clusters.target, f"A.{tp.topic}", tp.partition))[1] for tp in PLACES])


def copy_all_in_the_end(spark: Any, clusters: Clusters, folder: Path) -> list[Any]:
    """Spark keeps idle workers, and notices that one of them was killed when it gives it something to do."""
    for _ in range(10):
        try:
            return copy_all(spark, clusters, folder)
        except Exception as error:
            if "Python worker exited unexpectedly" not in str(error):
                raise
    raise AssertionError("no worker of Spark's lives")


def run_example(clusters: Clusters, folder: Path, patch: pytest.MonkeyPatch) -> None:
    """The page's, in a folder that has its file."""
    more = {"topics": "clicks, orders"}
    lines = [f"{name} = {value}\n" for name, value in clusters.properties(**more).items()]
    (folder / "mm2.properties").write_text("".join(lines))
    patch.chdir(folder)
    exec(EXAMPLE.replace("/tmp/east-west", str(folder / "checkpoint")), {})


def kill_workers_at_work(spark: Any, clusters: Clusters, folder: Path, copied: int) -> None:
    """When more is copied than was."""
    frame = ottla.spark.mirror(spark, clusters.properties(topics="clicks, orders", **SMALL_STEPS), tasks=4)
    writing = frame.writeStream.format("noop").option("checkpointLocation", str(folder / "checkpoint"))
    query = writing.start()
    try:

        async def until_more_is_copied() -> None:
            """Over one connection: a look that takes long would find all of it copied."""
            nonlocal query
            deadline = time.monotonic() + SECONDS_MAX
            places = {TopicPartition(f"A.{tp.topic}", tp.partition): LATEST for tp in PLACES}
            async with Admin(bootstrap_servers=clusters.target) as admin:
                while sum(one.offset for one in (await admin.list_offsets(places)).values()) <= copied:
                    # One that was killed before is noticed when it is given something to do.
                    if not query.isActive:
                        query = writing.start()
                    assert time.monotonic() < deadline
                    await asyncio.sleep(0.005)  # the brokers are in this process

        asyncio.run(until_more_is_copied())
        workers = python_workers(spark.sparkContext._gateway.proc.pid)
        assert workers
        for worker in workers:
            with suppress(ProcessLookupError):
                os.kill(worker, signal.SIGKILL)
    finally:
        query.stop()


def test_what_is_wrong_is_said_before_a_query_starts(spark: Any, clusters: Clusters, tmp_path: Path) -> None:
    with pytest.raises(ottla.spark.OptionError, match=r"there is no property topics\.exlude"):
        ottla.spark.mirror(spark, {**clusters.properties(), "topics.exlude": "x"})
    with pytest.raises(ottla.spark.OptionError, match="name one of A->B, not B->A"):
        ottla.spark.mirror(spark, clusters.properties(), "B->A")
    with pytest.raises(ottla.spark.OptionError, match=r"cannot read .*: No such file"):
        ottla.spark.mirror(spark, tmp_path / "mm2.properties")
    with pytest.raises(ottla.spark.OptionError, match="tasks must be from 1"):
        ottla.spark.mirror(spark, clusters.properties(), tasks=0)


def test_a_topic_that_the_target_does_not_take_has_rows_that_say_so(
    spark: Any, clusters: Clusters, tmp_path: Path
) -> None:
    asyncio.run(create(clusters.source, "two.words"))
    asyncio.run(create(clusters.target, "A.two_words"))
    (row,) = copy_all(spark, clusters, tmp_path, "two.words")
    assert (row.topic, row.partition, row.copied, row.end, row.records, row.bytes) == ("two.words", 0, None, None, 0, 0)
    assert "collides with existing topic" in row.stopped
