"""A member that was put out and does not know it: the next owner alone reads and commits."""

from __future__ import annotations

import asyncio

import pytest

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.errors import TransactionAbortable, UnknownMember
from ottla.client.producing.producer import Producer
from ottla.model import TopicPartition
from tests.client.group.members import Member, close, shares, until, write
from tests.client.producing.transactions.generations import GENERATIONS, speaking


@pytest.mark.parametrize("generation", GENERATIONS)
async def test_what_a_zombie_sends_with_a_transaction_is_refused(
    bootstrap: str, topic: str, group: str, generation: int
) -> None:
    tp = TopicPartition(topic, 0)
    await write(bootstrap, topic, [b"x"] * 8)
    sleeper = Member(bootstrap, group, enable_auto_commit=False, max_poll_interval_ms=400).subscribe(topic)
    await until(lambda: len(sleeper.records) == 8, sleeper)
    other = Member(bootstrap, group, enable_auto_commit=False).subscribe(topic)
    await until(shares(1, other), other)  # it works longer than it may: the other has the partition
    await other.consumer.commit({tp: 8})
    async with (
        speaking(bootstrap, generation) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=group) as producer,
    ):

        async def as_if_nothing_had_happened() -> None:
            async with producer.transaction():
                await producer.send(topic, b"once more")
                await producer.send_offsets({tp: 4}, sleeper.consumer.group_metadata())

        with pytest.raises(TransactionAbortable) as refused:
            await as_if_nothing_had_happened()
        assert isinstance(refused.value.__cause__, UnknownMember)
        assert not sleeper.consumer.is_member
        # Nor does it help to leave: what it read is the other's.
        await sleeper.consumer.unsubscribe()
        with pytest.raises(TransactionAbortable):
            await as_if_nothing_had_happened()
        assert await other.consumer.committed([tp]) == {tp: CommittedOffset(8)}
        # Who chooses partitions by itself is no member, and says so.
        sleeper.consumer.assign([tp])
        assert sleeper.consumer.group_metadata() == (group, -1, "", None)
    await close(other, sleeper)


async def test_a_member_that_was_put_out_gives_out_nothing_more(bootstrap: str, topic: str, group: str) -> None:
    """What lies ready of partitions that others have: neither with the poll that joins again, nor by iterating."""
    settings = {"enable_auto_commit": False, "max_poll_interval_ms": 400}
    await write(bootstrap, topic, [b"x"] * 8)
    polling = Member(bootstrap, f"{group}-polls", max_poll_records=2, **settings).subscribe(topic)
    await until(lambda: bool(polling.records), polling)
    iterating = Member(bootstrap, f"{group}-iterates", **settings).subscribe(topic)
    async for _ in iterating.consumer:
        break
    while polling.consumer.is_member or iterating.consumer.is_member:  # noqa: ASYNC110 - nobody tells a caller
        await asyncio.sleep(0.01)
    assert await polling.consumer.poll(timeout_ms=0) == []
    await iterating.consumer.read_ahead()
    assert iterating.events == [("assigned", [0]), ("lost", [0]), ("assigned", [0])]
    record = iterating.consumer.next_ahead()
    assert record is not None
    assert record.offset == 0, "nobody has committed anything"
    await until(lambda: len(polling.records) == 10, polling)
    assert [one.offset for one in polling.records] == [0, 1, *range(8)]
    await close(polling, iterating)
