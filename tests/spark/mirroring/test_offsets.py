"""The offsets that a mirror's query plans with, by the calls that Spark makes; the copying is real, and Spark away."""

from __future__ import annotations

import asyncio
import json
import pickle
import time
from collections.abc import Iterator
from typing import Any

import pytest
from pyspark.sql.streaming.datasource import ReadAllAvailable
from tests.mirror.flows import SECONDS_MAX, Clusters, contents, create, produce, records_of

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import ConfigChange, ConfigResource
from ottla.model import TopicPartition
from ottla.spark.mirroring.source import Ends, MirrorReader
from ottla.spark.source.offsets import TOPIC_IDS
from ottla.testing.in_process import InProcessBroker


@pytest.fixture
def clusters() -> Iterator[Clusters]:
    properties = {"auto.create.topics.enable": "false", "log.retention.ms": "-1"}  # the records are years old
    with InProcessBroker(properties=properties) as source, InProcessBroker(properties=properties) as target:
        yield Clusters(source.bootstrap, target.bootstrap)


def reader(clusters: Clusters, topics: str, **more: str) -> MirrorReader:
    properties = clusters.properties(topics=topics, sync_topic_configs_enabled="false", **more)
    return MirrorReader(json.dumps(properties), "A->B", 2)


def run(clusters: Clusters, topics: str, start: Ends, replayed: Ends | None = None) -> tuple[Ends, list[list[Any]]]:
    """One run with `availableNow` from a checkpoint on: where it ends, and the rows of each of its batches.

    `replayed` is the end of a batch that was planned and not committed.
    """
    planning = reader(clusters, topics)
    batches: list[list[Any]] = []
    try:
        planning.prepareForTriggerAvailableNow()
        end = replayed or planning.latestOffset(start, ReadAllAvailable())
        while end != start:
            pieces = planning.partitions(start, end)
            copying = pickle.loads(pickle.dumps(planning))
            batches.append(sorted(row for piece in pieces for row in copying.read(piece)))
            start = json.loads(json.dumps(end))
            end = planning.latestOffset(start, ReadAllAvailable())
    finally:
        planning.stop()
    return start, batches


def test_a_partition_that_was_mended_is_copied_on_by_the_next_run(clusters: Clusters) -> None:
    small, large = [b"%d" % n for n in range(50)], [b"%2000d" % n for n in range(50)]

    async def prepared() -> None:
        await create(clusters.source, "orders")
        await create(clusters.target, "A.orders", max_message_bytes="1000")
        await produce(clusters.source, "orders", small)
        await produce(clusters.source, "orders", large)

    async def mended() -> None:
        async with Admin(bootstrap_servers=clusters.target) as admin:
            await admin.incremental_alter_configs(
                {ConfigResource.topic("A.orders"): [ConfigChange("max.message.bytes", "100000")]}
            )

    asyncio.run(prepared())
    checkpoint, ((row,),) = run(clusters, "orders", {})
    assert row[2:5] == (50, 50, 50)
    assert "the target refuses what follows 50 of orders-0" in row[-1]

    asyncio.run(mended())
    checkpoint, ((row,),) = run(clusters, "orders", checkpoint)
    assert row == ("orders", 0, 100, 100, 50, row[5], None)
    original = asyncio.run(records_of(clusters.source, "orders"))
    assert contents(asyncio.run(records_of(clusters.target, "A.orders"))) == contents(original)


def test_each_run_looks_at_every_partition_once(clusters: Clusters) -> None:
    asyncio.run(create(clusters.source, "looked", 2))
    asyncio.run(produce(clusters.source, "looked", [b"x"] * 3))
    both = [("looked", 0, 3, 3, 0, 0, None), ("looked", 1, 0, 0, 0, 0, None)]

    first, batches = run(clusters, "looked", {})
    assert [[row[:5] for row in rows] for rows in batches] == [[("looked", 0, 3, 3, 3), ("looked", 1, 0, 0, 0)]]
    second, batches = run(clusters, "looked", first)
    assert batches == [both]
    third, batches = run(clusters, "looked", second)
    assert batches == [both]
    assert run(clusters, "looked", second, replayed=third) == (third, [both]), "what is replayed was looked at"

    asyncio.run(produce(clusters.source, "looked", [b"x"], 1))
    _, batches = run(clusters, "looked", third)
    assert [[row[4] for row in rows] for rows in batches] == [[0, 1]]


def test_what_the_target_does_not_take_is_said_in_each_run_until_it_does(clusters: Clusters) -> None:
    """A topic is there under another name that differs in dots alone, and another one has fewer partitions."""

    async def prepared() -> None:
        for name, count in (("taken", 1), ("two.words", 2)):
            await create(clusters.source, name, count)
            await produce(clusters.source, name, [b"x"] * 3)
        await create(clusters.target, "A.two_words")

    async def mended() -> None:
        async with Admin(bootstrap_servers=clusters.target) as admin:
            await admin.delete_topics(["A.two_words"])

    asyncio.run(prepared())
    first, (rows,) = run(clusters, "taken, two.words", {})
    assert [row[:5] for row in rows if row[6] is None] == [("taken", 0, 3, 3, 3)]
    stopped = [row for row in rows if row[6] is not None]
    assert [row[:6] for row in stopped] == [("two.words", number, None, None, 0, 0) for number in range(2)]
    assert all(f"two.words-{row[1]}: the target does not take it, as A.two.words: " in row[6] for row in stopped)

    second, (rows,) = run(clusters, "taken, two.words", first)
    assert [row[6] for row in rows if row[0] == "two.words"] == [row[6] for row in stopped]

    asyncio.run(mended())
    third, batches = run(clusters, "taken, two.words", second)
    (copied,) = [row for rows in batches for row in rows if row[:2] == ("two.words", 0)]
    assert (copied[2:5], copied[6]) == ((3, 3, 3), None)
    end, (replayed, rows) = run(clusters, "taken, two.words", {}, replayed=first)
    assert [row[6] for row in replayed if row[0] == "two.words"] == [
        f"two.words-{number}: the target did not take it" for number in range(2)
    ]
    assert [(row[:5], row[6]) for row in rows] == [(("two.words", n, 3 - 3 * n, 3 - 3 * n, 0), None) for n in range(2)]
    assert end["two.words"] == third["two.words"]


def test_a_topic_that_is_deleted_between_two_looks_at_topics_ends_no_query(clusters: Clusters) -> None:
    async def prepared() -> None:
        for name in ("kept", "gone"):
            await create(clusters.source, name, 2)
            await produce(clusters.source, name, [b"x"] * 3)

    async def deleted() -> None:
        async with Admin(bootstrap_servers=clusters.source) as admin:
            await admin.delete_topics(["gone"])

    asyncio.run(prepared())
    planning = reader(clusters, "kept, gone")
    try:
        first = planning.latestOffset({}, ReadAllAvailable())
        assert plain(first) == {"gone": {"0": 3, "1": 0}, "kept": {"0": 3, "1": 0}}
        asyncio.run(deleted())
        assert plain(planning.latestOffset(first, ReadAllAvailable())) == {"kept": {"0": 3, "1": 0}}
    finally:
        planning.stop()


def plain(ends: Ends) -> Ends:
    """Without topics' ids."""
    return {topic: numbers for topic, numbers in ends.items() if topic != TOPIC_IDS}


def test_a_topic_that_was_made_again_and_ends_where_it_did_is_looked_at(clusters: Clusters) -> None:
    """A query goes on for weeks; nothing of the new topic's records was copied, and nothing said, until more came."""

    async def made_again(*names: str) -> None:
        async with Admin(bootstrap_servers=clusters.source) as admin:
            await admin.delete_topics(list(names))
        for name in names:
            await create(clusters.source, name)
            await produce(clusters.source, name, [b"new"] * 3)

    for name in ("kept", "orders"):
        asyncio.run(create(clusters.source, name))
        asyncio.run(produce(clusters.source, name, [b"x"] * 3))
    planning = reader(clusters, "kept, orders", refresh_topics_interval_seconds="1")
    try:
        first = planning.latestOffset({}, ReadAllAvailable())
        assert len([row for piece in planning.partitions({}, first) for row in planning.read(piece)]) == 2
        asyncio.run(made_again("orders"))
        give_up = time.monotonic() + SECONDS_MAX
        while (end := planning.latestOffset(first, ReadAllAvailable())) == first:
            assert time.monotonic() < give_up
            time.sleep(0.05)
        assert plain(end) == plain(first)
        (row,) = [row for piece in planning.partitions(first, end) for row in planning.read(piece)]
        assert row[:2] == ("orders", 0)
        assert "orders-0 was deleted and made again since it was copied: delete A.orders on the target" in row[6]
        # An offset of before ids stood there says nothing of them.
        assert planning.partitions(plain(end), end) == []
    finally:
        planning.stop()


def test_offsets_are_the_same_text_in_whatever_order_brokers_answer(clusters: Clusters) -> None:
    ends = {TopicPartition("b", 0): 1, TopicPartition("a", 1): 2, TopicPartition("a", 0): 3}

    class Planner:
        def __init__(self, *answers: dict[TopicPartition, int]) -> None:
            self._answers = iter(answers)

        def ends(self) -> dict[TopicPartition, int]:
            return next(self._answers)

        def ids(self) -> dict[str, str]:
            return {}

    planning = reader(clusters, "a, b")
    planning._planner = Planner(ends, dict(reversed(ends.items())))  # type: ignore[assignment]
    first = planning.latestOffset({}, ReadAllAvailable())
    assert json.dumps(planning.latestOffset(first, ReadAllAvailable())) == json.dumps(first)
