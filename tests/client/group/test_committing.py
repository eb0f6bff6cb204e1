"""How far a group has come: committed by itself and by hand, resumed from, refused to those who are out."""

from __future__ import annotations

import asyncio
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import Any

import pytest

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.consumer import Consumer
from ottla.client.consuming.group import commits
from ottla.client.errors import CommitFailed, KafkaError, NoOffset, OffsetMetadataTooLarge, TooManyCommits
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey
from tests.client.group.members import QUICK, Member, close, shares, until, write
from tests.client.proxy import Pass, Proxy, Silence
from tests.client.short_times import having


def numbered(count: int, start: int = 0) -> list[bytes]:
    return [b"%d" % n for n in range(start, start + count)]


async def test_the_next_member_goes_on_where_the_last_has_come_to(bootstrap: str, topic: str, group: str) -> None:
    await write(bootstrap, topic, numbered(10))
    first = Member(bootstrap, group, max_poll_records=4, auto_commit_interval_ms=60_000).subscribe(topic)
    await until(lambda: len(first.records) == 4, first)
    await close(first)
    second = Member(bootstrap, group, max_poll_records=4, auto_commit_interval_ms=60_000)
    second.subscribe(topic)
    await until(lambda: len(second.records) == 6, second)
    assert second.values == numbered(6, 4)
    await close(second)


async def test_it_commits_at_its_interval_while_it_polls(bootstrap: str, topic: str, group: str) -> None:
    """What the last poll gave out is not committed before the next: it may not have been processed."""
    tp = TopicPartition(topic, 0)
    await write(bootstrap, topic, numbered(10))
    member = Member(bootstrap, group, max_poll_records=3, auto_commit_interval_ms=0).subscribe(topic)
    other = Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group})
    seen = []
    while len(member.records) < 10:
        await member.poll()
        told = (await other.committed([tp]))[tp]
        seen.append((len(member.records), 0 if told is None else told.offset))
    assert all(committed < given or given == 0 for given, committed in seen)
    await member.poll()
    while (await other.committed([tp]))[tp] != CommittedOffset(10, "", 0):
        await member.poll()
    # Killed, not closed: what was committed is what the next one finds.
    await member.vanish()
    await other.close()


async def test_what_is_revoked_is_committed_before(bootstrap: str, wide_topic: str, group: str) -> None:
    """Nothing is read twice by members that come and go in peace, though none commits by its interval."""
    for strategy in ("range", "cooperative-sticky"):
        settings = {"auto_commit_interval_ms": 3_600_000, "partition_assignment_strategy": strategy}
        await write(bootstrap, wide_topic, numbered(40), 4)
        first = Member(bootstrap, f"{group}-{strategy}", max_poll_records=7, **settings).subscribe(wide_topic)
        await until(lambda: len(first.records) >= 10, first)  # noqa: B023 - it is awaited here
        second = Member(bootstrap, f"{group}-{strategy}", **settings).subscribe(wide_topic)
        await until(shares(4, first, second), first, second)
        await write(bootstrap, wide_topic, numbered(8, 40), 4)
        places = {(one.partition, one.offset) for one in first.records + second.records}
        total = sum((await first.consumer.end_offsets([TopicPartition(wide_topic, n) for n in range(4)])).values())
        while len(places) < total:
            await first.poll()
            await second.poll()
            places = {(one.partition, one.offset) for one in first.records + second.records}
        assert len(first.records) + len(second.records) == total
        await close(first, second)


async def test_a_commit_by_hand(bootstrap: str, wide_topic: str, group: str) -> None:
    zero, one = TopicPartition(wide_topic, 0), TopicPartition(wide_topic, 1)
    await write(bootstrap, wide_topic, numbered(8), 4)
    member = Member(bootstrap, group, enable_auto_commit=False).subscribe(wide_topic)
    await until(lambda: len(member.records) == 8, member)
    assert await member.consumer.committed([zero]) == {zero: None}
    await member.consumer.commit({zero: 1, one: (2, "half way", 0)})
    found = await member.consumer.committed([zero, one, TopicPartition(wide_topic, 2), TopicPartition("nowhere", 0)])
    assert list(found.values()) == [CommittedOffset(1), CommittedOffset(2, "half way", 0), None, None]
    await member.consumer.commit()
    assert await member.consumer.committed([zero, one]) == {
        zero: CommittedOffset(2, "", 0),
        one: CommittedOffset(2, "", 0),
    }
    await close(member)


async def test_a_commit_without_waiting(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    await write(bootstrap, topic, numbered(5))
    member = Member(bootstrap, group, enable_auto_commit=False).subscribe(topic)
    await until(lambda: len(member.records) == 5, member)
    told: list[tuple[Mapping[TopicPartition, CommittedOffset], KafkaError | None]] = []
    for offset in range(100):
        member.consumer.commit_async({tp: offset}, lambda offsets, error: told.append((offsets, error)))
    await member.consumer.commit({tp: 3})
    # Those before it have been answered before it, in their order.
    assert told == [({tp: CommittedOffset(offset)}, None) for offset in range(100)]
    assert await member.consumer.committed([tp]) == {tp: CommittedOffset(3)}
    member.consumer.commit_async(on_committed=lambda offsets, error: told.append((offsets, error)))
    while len(told) < 101:
        await member.poll()
    assert told[100] == ({tp: CommittedOffset(5, "", 0)}, None)
    await close(member)


async def test_a_poll_does_not_fail_for_the_commits_that_nobody_answers(
    bootstrap: str, topic: str, group: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """So many by hand that no more are taken: what the consumer commits by itself waits, and records are read on."""
    monkeypatch.setattr(commits, "PENDING_MAX", 3)
    tp = TopicPartition(topic, 0)
    async with Proxy(bootstrap) as proxy:
        member = Member(proxy.bootstrap, group, auto_commit_interval_ms=0).subscribe(topic)
        await until(shares(1, member), member)
        proxy.rule = lambda one: Silence() if one.key == ApiKey.OFFSET_COMMIT else Pass()
        with suppress(TooManyCommits):
            while True:
                member.consumer.commit_async({tp: 0})
        await write(bootstrap, topic, numbered(1))
        await until(lambda: len(member.records) == 1, member)
        for _ in range(3):
            await member.poll()
        with having(member.consumer, default_api_timeout_ms=100):
            await close(member)


async def test_a_call_back_of_a_commit_that_raises_is_said_and_ends_nothing(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = TopicPartition(topic, 0)
    said: list[dict[str, Any]] = []
    asyncio.get_running_loop().set_exception_handler(lambda _, context: said.append(context))

    def call_back(*_: object) -> None:
        raise ZeroDivisionError

    member = Member(bootstrap, group, enable_auto_commit=False).subscribe(topic)
    await until(shares(1, member), member)
    member.consumer.commit_async({tp: 1}, call_back)
    await member.consumer.commit({tp: 2})
    assert [(one["message"], type(one["exception"])) for one in said] == [
        ("a call-back of commit_async raised", ZeroDivisionError)
    ]
    member.consumer.commit_async({tp: 3}, call_back)
    await close(member)
    assert len(said) == 2


async def test_a_record_that_iteration_gave_out_last_is_not_committed_before_the_next(
    bootstrap: str, topic: str, group: str
) -> None:
    tp = TopicPartition(topic, 0)
    await write(bootstrap, topic, numbered(10))
    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:
        consumer.subscribe([topic])
        async for record in consumer:
            if record.offset == 4:
                break
        assert await consumer.position(tp) == 5
    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:
        consumer.subscribe([topic])
        assert [record.offset for record in await consumer.poll()] == [5, 6, 7, 8, 9]


async def test_a_block_that_ends_in_an_exception_does_not_commit(bootstrap: str, topic: str, group: str) -> None:
    await write(bootstrap, topic, numbered(3))
    settings = {**QUICK, "bootstrap_servers": bootstrap, "group_id": group, "auto_commit_interval_ms": 60_000}

    async def work() -> None:
        async with Consumer(settings) as consumer:
            consumer.subscribe([topic])
            assert len(await consumer.poll()) == 3
            raise ZeroDivisionError

    with pytest.raises(ZeroDivisionError):
        await work()
    async with Consumer(settings) as consumer:
        consumer.subscribe([topic])
        assert len(await consumer.poll()) == 3


async def test_a_consumer_that_is_in_no_group_leaves_its_offsets_there(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    await write(bootstrap, topic, numbered(6))
    settings = {**QUICK, "bootstrap_servers": bootstrap, "group_id": group, "max_poll_records": 4}
    async with Consumer(settings) as consumer:
        consumer.assign([tp])
        assert len(await consumer.poll()) == 4
    async with Consumer(settings) as consumer:
        consumer.assign([tp])
        assert await consumer.position(tp) == 4
        assert [record.offset for record in await consumer.poll()] == [4, 5]
        await consumer.commit({tp: 1})
        consumer.seek(tp, 0)
        assert (await consumer.poll())[0].offset == 0
        # A group with members takes no commits from outside.
        member = Member(bootstrap, group).subscribe(topic)
        await until(shares(1, member), member)
        with pytest.raises(CommitFailed, match="assigned by hand, is none of them"):
            await consumer.commit({tp: 2})
        await close(member)


async def test_a_group_without_offsets_and_without_a_reset(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    await write(bootstrap, topic, numbered(3))
    async with Consumer(
        {**QUICK, "bootstrap_servers": bootstrap, "group_id": group, "auto_offset_reset": "none"}
    ) as consumer:
        consumer.subscribe([topic])
        for _ in range(2):
            with pytest.raises(
                NoOffset, match=r"has committed nothing here, and auto\.offset\.reset is none: seek first"
            ):
                await consumer.poll()
        consumer.seek(tp, 1)
        assert [record.offset for record in await consumer.poll()] == [1, 2]


async def test_the_latest_is_where_a_group_begins_that_says_nothing(bootstrap: str, topic: str, group: str) -> None:
    await write(bootstrap, topic, numbered(3))
    member = Member(bootstrap, group, auto_offset_reset="latest").subscribe(topic)
    await until(shares(1, member), member)
    assert await member.consumer.position(TopicPartition(topic, 0)) == 3
    await write(bootstrap, topic, numbered(2, 3))
    await until(lambda: len(member.records) == 2, member)
    assert member.values == [b"3", b"4"]
    await close(member)


async def test_a_listener_seeks_and_commits(bootstrap: str, topic: str, group: str) -> None:
    await write(bootstrap, topic, numbered(6))
    tp = TopicPartition(topic, 0)

    class Seeking(Member):
        async def on_assigned(self, partitions: Sequence[TopicPartition]) -> None:
            assert await self.consumer.position(tp) == 0
            self.consumer.seek(tp, 4)

        async def on_revoked(self, partitions: Sequence[TopicPartition]) -> None:
            await self.consumer.commit({tp: await self.consumer.position(tp) - 1})

    member = Seeking(bootstrap, group, enable_auto_commit=False).subscribe(topic)
    await until(lambda: len(member.records) == 2, member)
    assert member.values == [b"4", b"5"]
    await close(member)
    async with Consumer({**QUICK, "bootstrap_servers": bootstrap, "group_id": group}) as consumer:
        assert await consumer.committed([tp]) == {tp: CommittedOffset(5)}


async def test_commits_that_are_refused(bootstrap: str, topic: str, group: str) -> None:
    tp = TopicPartition(topic, 0)
    member = Member(bootstrap, group, enable_auto_commit=False).subscribe(topic)
    with pytest.raises(CommitFailed, match="no member of its group yet; poll first"):
        await member.consumer.commit({tp: 0})
    await until(shares(1, member), member)
    with pytest.raises(OffsetMetadataTooLarge):
        await member.consumer.commit({tp: (0, "x" * 5000)})
    with pytest.raises(ValueError, match="the offset must be from 0 to"):
        await member.consumer.commit({tp: -1})
    with pytest.raises(KafkaError) as caught:
        await member.consumer.commit({TopicPartition("nowhere", 0): 1}, timeout_ms=1_500)
    assert caught.value.code.name in {"UNKNOWN_TOPIC_OR_PARTITION", "UNKNOWN_TOPIC_ID"}
    await close(member)


async def test_what_was_put_ahead_for_iteration_goes_with_its_partition(
    bootstrap: str, wide_topic: str, group: str
) -> None:
    """Records that lie ready when their partition is revoked are the next owner's, and nobody loses them."""
    await write(bootstrap, wide_topic, numbered(40), 4)
    first = Member(bootstrap, group, auto_commit_interval_ms=60_000).subscribe(wide_topic)
    second = Member(bootstrap, group, auto_commit_interval_ms=60_000)
    seen: list[tuple[int, int]] = []
    enough = asyncio.Event()

    async def iterate() -> None:
        async for record in first.consumer:
            seen.append((record.partition, record.offset))
            if len(seen) == 3:
                enough.set()
            await asyncio.sleep(0.005)

    task = asyncio.create_task(iterate())
    await enough.wait()
    second.subscribe(wide_topic)
    await until(lambda: len(seen) + len(second.records) >= 40, second)
    assert sorted(seen + [(one.partition, one.offset) for one in second.records]) == sorted(
        (partition, offset) for partition in range(4) for offset in range(10)
    )
    task.cancel()
    await asyncio.wait([task])
    await close(first, second)


async def test_who_commits_at_every_look_reads_on_through_a_rebalance(
    bootstrap: str, wide_topic: str, group: str
) -> None:
    """While it joins nothing can be committed: iteration that only looked whether it is time to held up the loop."""
    settings = {"auto_commit_interval_ms": 0, "partition_assignment_strategy": "cooperative-sticky"}
    await write(bootstrap, wide_topic, numbered(400), 4)
    first = Member(bootstrap, group, **settings).subscribe(wide_topic)
    second = Member(bootstrap, group, **settings)
    reading = aiter(first.consumer)
    first.records.append(await anext(reading))
    second.subscribe(wide_topic)
    joining = asyncio.create_task(until(lambda: bool(second.has), second))
    while not joining.done():
        taking = asyncio.ensure_future(anext(reading))
        await asyncio.wait({taking, joining}, return_when=asyncio.FIRST_COMPLETED)
        await asyncio.sleep(0.01)
        taking.cancel()
        await asyncio.wait({taking})
    await joining
    await close(first, second)
