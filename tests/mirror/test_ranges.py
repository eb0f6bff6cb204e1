"""Pieces of a copy: they may be done again, or by two at once."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

import pytest

from ottla.client.admin.admin import Admin
from ottla.client.producing.producer import Producer
from ottla.client.wire.world import real_world
from ottla.mirror.clients import FlowClients
from ottla.mirror.partition import PartitionCopy
from ottla.mirror.ranges import copy_ranges
from ottla.model import TopicPartition
from tests.mirror.flows import SECONDS_MAX, Clusters, contents, create, limits, mirror, produce, records_of, until


@asynccontextmanager
async def clients(clusters: Clusters, topic: str) -> AsyncIterator[FlowClients]:
    opened = await FlowClients.opened(clusters.flow(topics=topic), real_world(), group=None)
    try:
        yield opened
    finally:
        await opened.close()


async def test_a_piece_ends_where_it_is_to_and_counts_what_it_copied(clusters: Clusters) -> None:
    await create(clusters.source, "pieces", 2)
    first, second = TopicPartition("pieces", 0), TopicPartition("pieces", 1)
    await produce(clusters.source, "pieces", [b"x"] * 40)
    async with clients(clusters, "pieces") as one:
        (copied, empty) = await copy_ranges(one, {first: 40, second: 0})
    assert (copied.copied, copied.end, copied.records, copied.stopped) == (40, 40, 40, None)
    assert (empty.copied, empty.records, empty.stopped) == (0, 0, None)
    async with clients(clusters, "pieces") as one:
        (again,) = await copy_ranges(one, {first: 40})
    assert (again.copied, again.records) == (40, 0)
    async with Admin(bootstrap_servers=clusters.source) as admin:
        places = await admin.list_group_offsets("ottla-mirror.A->B")
    assert places[first].offset == 40


async def test_two_at_the_same_piece_copy_it_once(clusters: Clusters) -> None:
    await create(clusters.source, "both")
    tp = TopicPartition("both", 0)
    await produce(clusters.source, "both", [b"%d" % n for n in range(2_000)])
    async with clients(clusters, "both") as one, clients(clusters, "both") as other:
        found = await asyncio.gather(copy_ranges(one, {tp: 2_000}), copy_ranges(other, {tp: 2_000}))
    assert [(done.copied, done.stopped) for (done,) in found] == [(2_000, None)] * 2
    original = await records_of(clusters.source, "both")
    assert contents(await records_of(clusters.target, "A.both")) == contents(original)


async def test_a_copy_that_another_has_gone_on_with_learns_of_its_gaps(clusters: Clusters) -> None:
    """Retention has taken what the first of them was to read next, and the other one knows where it went on."""
    await create(clusters.source, "overtaken")
    tp = TopicPartition("overtaken", 0)
    await produce(clusters.source, "overtaken", [b"%d" % n for n in range(10)])
    async with clients(clusters, "overtaken") as one:
        one.reader.assign([tp])
        one.reader.seek(tp, 0)
        one.reader.pause(tp)
        journal = (await one.journal.read([tp]))[tp]
        copy = PartitionCopy(tp, one.copy_of(tp), journal, one.copy_world)
        running = asyncio.ensure_future(copy.run())
        try:
            while copy.copied < 10:
                await one.feed({tp: copy})
            await produce(clusters.source, "overtaken", [b"%d" % n for n in range(10, 20)])
            async with Admin(bootstrap_servers=clusters.source) as admin:
                await admin.delete_records({tp: 15})
            assert (await mirror(clusters, topics="overtaken")).stopped == []
            assert await limits(clusters.target, "A.overtaken") == (0, 15)
            while copy.copied < 20 and copy.stopped is None:
                await one.feed({tp: copy})
        finally:
            running.cancel()
            await asyncio.gather(running, return_exceptions=True)
    assert copy.stopped is None
    copied = await records_of(clusters.target, "A.overtaken")
    assert [one.value for one in copied] == [b"%d" % n for n in (*range(10), *range(15, 20))]


class Attempt:
    """A copy of one partition by a process of its own, which is given only what the test hands to it."""

    def __init__(self, one: FlowClients, tp: TopicPartition) -> None:
        self._clients, self._tp = one, tp
        self.copy: PartitionCopy

    async def placed(self) -> asyncio.Task[None]:
        reader, tp = self._clients.reader, self._tp
        reader.assign([tp])
        reader.seek(tp, 0)
        reader.pause(tp)
        journal = (await self._clients.journal.read([tp]))[tp]
        self.copy = PartitionCopy(tp, self._clients.copy_of(tp), journal, self._clients.copy_world)
        running = asyncio.ensure_future(self.copy.run())
        await until(lambda: self.copy.copied >= 0, "placed")
        return running

    async def copied(self, end: int) -> None:
        async with asyncio.timeout(SECONDS_MAX):
            while self.copy.copied < end and self.copy.stopped is None:
                await self._clients.feed({self._tp: self.copy})


async def with_a_gap(clusters: Clusters, topic: str) -> None:
    """0 to 9, a transaction's marker at 10, and a record at 11."""
    await create(clusters.source, topic)
    await produce(clusters.source, topic, [b"%d" % n for n in range(9)])
    async with Producer(bootstrap_servers=clusters.source, transactional_id=topic) as producer, producer.transaction():
        await producer.send(topic, b"9", partition=0)
    await produce(clusters.source, topic, [b"11"])


@pytest.mark.parametrize("goes_on", [0, 1], ids=["the first", "the second"])
async def test_a_gap_that_one_of_two_attempts_has_passed_is_known_to_the_next(clusters: Clusters, goes_on: int) -> None:
    """Spark runs a task twice at once, and ends both."""
    topic = f"attempts-{goes_on}"
    await with_a_gap(clusters, topic)
    tp = TopicPartition(topic, 0)
    async with clients(clusters, topic) as one, clients(clusters, topic) as other:
        attempts = [Attempt(one, tp), Attempt(other, tp)]
        running = [await attempt.placed() for attempt in attempts]
        await attempts[goes_on].copied(12)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
    async with clients(clusters, topic) as third:
        (done,) = await copy_ranges(third, {tp: 12})
    assert (done.stopped, done.records) == (None, 0)
    original = await records_of(clusters.source, topic)
    assert contents(await records_of(clusters.target, f"A.{topic}")) == contents(original)


async def test_two_attempts_in_turn_copy_each_record_once(clusters: Clusters) -> None:
    topic = "in-turn"
    await with_a_gap(clusters, topic)
    tp = TopicPartition(topic, 0)
    async with clients(clusters, topic) as one, clients(clusters, topic) as other:
        attempts = [Attempt(one, tp), Attempt(other, tp)]
        running = [await attempt.placed() for attempt in attempts]
        for attempt in attempts:
            await attempt.copied(12)
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)
        assert [attempt.copy.stopped for attempt in attempts] == [None, None]
    original = await records_of(clusters.source, topic)
    assert contents(await records_of(clusters.target, f"A.{topic}")) == contents(original)


async def test_a_piece_that_begins_late_knows_of_which_topic_the_copy_is(clusters: Clusters) -> None:
    """It has read that there is no copy. Then another makes one, the source is made again, and retention has taken the
    record that the copy's last one could be compared with."""
    await create(clusters.source, "begins-late")
    tp = TopicPartition("begins-late", 0)
    await produce(clusters.source, "begins-late", [b"old"] * 10)
    async with clients(clusters, "begins-late") as one:
        one.reader.assign([tp])
        one.reader.seek(tp, 0)
        one.reader.pause(tp)
        copy = PartitionCopy(tp, one.copy_of(tp), (await one.journal.read([tp]))[tp], one.copy_world)
        assert (await mirror(clusters, topics="begins-late")).stopped == []
        async with Admin(bootstrap_servers=clusters.source) as admin:
            await admin.delete_topic("begins-late")
            await create(clusters.source, "begins-late")
            await produce(clusters.source, "begins-late", [b"new"] * 30)
            await admin.delete_records({tp: 15})
        running = asyncio.ensure_future(copy.run())
        try:
            while copy.copied < 30 and copy.stopped is None:
                await one.feed({tp: copy})
        finally:
            running.cancel()
    assert "begins-late-0 was deleted and made again since it was copied" in str(copy.stopped)
    assert await limits(clusters.target, "A.begins-late") == (0, 10)
