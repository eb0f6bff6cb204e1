"""What no mirror may pass over in silence: it stops the partition and says what is wrong, or goes on and says what is
missing."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from contextlib import contextmanager
from typing import Any

from ottla.client.admin.admin import Admin
from ottla.client.producing.producer import Producer
from ottla.mirror.flow import Flow
from ottla.mirror.pairs import Pair
from ottla.mirror.record_forms import decode_page, decode_page_key
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder
from tests.mirror.flows import (
    Clusters,
    append,
    contents,
    create,
    limits,
    mirror,
    mirroring,
    produce,
    records_of,
    until,
)

JOURNAL = "ottla-offset-pairs.A.internal"


def one_record(value: bytes) -> bytes:
    builder = BatchBuilder()
    builder.append(5, None, value)
    return builder.build()


async def copied(clusters: Clusters, topic: str, count: int = 30) -> None:
    await create(clusters.source, topic)
    await produce(clusters.source, topic, [b"%d" % n for n in range(count)])
    assert (await mirror(clusters, topics=topic)).stopped == []


async def delete(bootstrap: str, topic: str) -> None:
    async with Admin(bootstrap_servers=bootstrap) as admin:
        await admin.delete_topic(topic)


async def recorded_otherwise(clusters: Clusters, topic: str, **changed: Any) -> None:
    """Has the journal say something else of a topic's copy."""
    journal = await records_of(clusters.target, JOURNAL)
    own = [one for one in journal if one.value is not None and decode_page_key(one.key).topic == topic]
    page = decode_page(own[-1].value)._replace(**changed)
    async with Producer(bootstrap_servers=clusters.target) as producer:
        await producer.send_and_wait(JOURNAL, page.encoded(), own[-1].key)


async def test_a_record_of_a_stranger_in_the_copy_stops_it(clusters: Clusters) -> None:
    await copied(clusters, "stranger")
    await append(clusters.target, "A.stranger", one_record(b"mine"))
    await produce(clusters.source, "stranger", [b"more"])
    (why,) = (await mirror(clusters, topics="stranger")).stopped
    assert "A.stranger-0: the batch at 30 was not written by this mirror" in why
    assert await limits(clusters.target, "A.stranger") == (0, 31), "nothing was added to it"


async def test_a_stranger_is_noticed_while_a_copy_goes_on(clusters: Clusters) -> None:
    await create(clusters.source, "beside")
    async with mirroring(clusters, topics="beside") as flow:
        await produce(clusters.source, "beside", [b"1"])
        tp = TopicPartition("beside", 0)
        await until(lambda: tp in flow.copies and flow.copies[tp].end == 1, "the first record was copied")
        await append(clusters.target, "A.beside", one_record(b"mine"))
        await produce(clusters.source, "beside", [b"2"])
        await until(lambda: flow.copies[tp].stopped, "the copy stopped")
        assert "somebody else writes there" in str(flow.copies[tp].stopped)


async def test_a_partition_that_stops_again_when_it_comes_back_is_one(clusters: Clusters) -> None:
    await create(clusters.source, "back-again")
    await create(clusters.target, "A.back-again")
    await produce(clusters.target, "A.back-again", [b"old"])
    tp = TopicPartition("back-again", 0)
    async with mirroring(clusters, topics="back-again") as flow:
        for _ in range(2):
            await until(lambda: tp in flow.copies and flow.copies[tp].stopped, "the copy stopped")
            await flow.end([tp])
            flow.begin([tp])
    assert len(flow.stopped) == 1


async def test_a_topic_that_was_there_before_is_not_written_to(clusters: Clusters) -> None:
    await create(clusters.source, "before")
    await create(clusters.target, "A.before")
    await produce(clusters.target, "A.before", [b"old"])
    (why,) = (await mirror(clusters, topics="before")).stopped
    assert "no pair says that the mirror has written any of that" in why


async def test_a_source_that_was_made_again_stops_the_copy_until_that_goes(clusters: Clusters) -> None:
    await copied(clusters, "again")
    await delete(clusters.source, "again")
    await create(clusters.source, "again")
    await produce(clusters.source, "again", [b"new %d" % n for n in range(40)])
    (why,) = (await mirror(clusters, topics="again")).stopped
    assert "again-0 was deleted and made again since it was copied" in why

    await delete(clusters.target, "A.again")
    assert (await mirror(clusters, topics="again")).stopped == []
    original = await records_of(clusters.source, "again")
    assert contents(await records_of(clusters.target, "A.again")) == contents(original)


async def test_a_source_that_is_made_again_while_it_is_copied_stops_the_copy(clusters: Clusters) -> None:
    await create(clusters.source, "under-way")
    await produce(clusters.source, "under-way", [b"1"])
    tp = TopicPartition("under-way", 0)
    async with mirroring(clusters, topics="under-way") as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].end == 1, "it was copied")
        await delete(clusters.source, "under-way")
        await create(clusters.source, "under-way")
        await produce(clusters.source, "under-way", [b"1", b"2", b"3"])
        # The group may have given the partition up and back meanwhile.
        await until(lambda: tp in flow.copies and flow.copies[tp].stopped, "the copy stopped")
        assert "deleted and made again" in str(flow.copies[tp].stopped)
    assert await limits(clusters.target, "A.under-way") == (0, 1)


async def test_records_of_a_topic_that_was_made_again_are_known_by_its_id(clusters: Clusters) -> None:
    """What is known of the source may be older than what is read of it: two clients ask two brokers."""
    await create(clusters.source, "by-id")
    await produce(clusters.source, "by-id", [b"1"])
    tp = TopicPartition("by-id", 0)
    async with mirroring(clusters, topics="by-id") as flow:
        await until(lambda: tp in flow.copies and flow.copies[tp].end == 1, "it was copied")
        with flow_knows_no_news(flow) as asked:
            await delete(clusters.source, "by-id")
            await create(clusters.source, "by-id")
            await produce(clusters.source, "by-id", [b"1", b"2", b"3"])
            await until(lambda: asked.is_set() or any(copy.copied > 1 for copy in flow.copies.values()), "it was read")
            assert await limits(clusters.target, "A.by-id") == (0, 1)
        await until(lambda: tp in flow.copies and flow.copies[tp].stopped, "the copy stopped")


@contextmanager
def flow_knows_no_news(flow: Flow) -> Iterator[asyncio.Event]:
    """No round of metadata of the source comes to its end; gives whether one was begun."""
    cluster, asked, over = flow.source.cluster, asyncio.Event(), asyncio.Event()
    one_round = cluster._one_round

    async def held() -> None:
        asked.set()
        await over.wait()
        await one_round()

    cluster._one_round = held  # type: ignore[method-assign]
    yield asked
    over.set()


async def test_what_retention_took_before_it_was_copied_is_said(clusters: Clusters, log_lines: list[str]) -> None:
    await copied(clusters, "late")
    await produce(clusters.source, "late", [b"%d" % n for n in range(30, 60)])
    async with Admin(bootstrap_servers=clusters.source) as admin:
        await admin.delete_records({TopicPartition("late", 0): 45})
    assert (await mirror(clusters, topics="late")).stopped == []
    copy = await records_of(clusters.target, "A.late")
    assert [record.value for record in copy] == [b"%d" % n for n in (*range(30), *range(45, 60))]
    (said,) = [line for line in log_lines if "removed at the source" in line]
    assert "partition=late-0 first=30 behind=45" in said


async def test_a_copy_that_somebody_else_made_stops(clusters: Clusters) -> None:
    await copied(clusters, "other")
    await delete(clusters.target, "A.other")
    await create(clusters.target, "A.other")
    await produce(clusters.target, "A.other", [b"0"])
    (why,) = (await mirror(clusters, topics="other")).stopped
    assert "no pair says" in why


async def test_a_copy_that_lost_records_stops(clusters: Clusters) -> None:
    """As after an unclean election on the target: its log ends before what it had acknowledged."""
    await copied(clusters, "cut")
    await recorded_otherwise(clusters, "cut", reached=1_000)
    (why,) = (await mirror(clusters, topics="cut")).stopped
    assert "A.cut-0 ends at 30, and ended at 1000 before" in why


async def test_a_source_that_lost_what_the_copy_has_stops_it(clusters: Clusters) -> None:
    await copied(clusters, "shorter")
    await recorded_otherwise(clusters, "shorter", pairs=[Pair(20, 0)])
    (why,) = (await mirror(clusters, topics="shorter")).stopped
    assert "shorter-0 ends at 30, but was copied up to 50" in why


async def test_a_copy_with_other_records_than_its_original_stops(clusters: Clusters) -> None:
    """As where the source lost its end and got other records there."""
    await copied(clusters, "parted")
    await produce(clusters.source, "parted", [b"more"] * 20)
    await recorded_otherwise(clusters, "parted", pairs=[Pair(5, 0)])
    (why,) = (await mirror(clusters, topics="parted")).stopped
    assert "A.parted-0 has another record at 29 than parted-0 has at 34" in why
