"""Transactions of a producer, in both generations of the protocol: all of one is seen or nothing is."""

from __future__ import annotations

import asyncio
import json
import pickle
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.conftest import make_topic
from tests.client.producing.transactions.generations import GENERATIONS, committed, speaking, state_of, until_state
from tests.client.proxy import Action, Pass, Request
from tests.client.reading import eventually, read_all

from ottla.client.admin.admin import Admin
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import (
    BadArgument,
    ClientClosed,
    IllegalGeneration,
    InvalidTransactionTimeout,
    InvalidTxnState,
    ProducerFenced,
    RecordTooLarge,
    SettingsError,
    TransactionAbortable,
    TransactionAborted,
    WrongTransactionState,
)
from ottla.client.producing.producer import Producer
from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.client.records import ProducerRecord
from ottla.model import TopicPartition
from ottla.protocol.apis import ApiKey

pytestmark = pytest.mark.parametrize("generation", GENERATIONS)


@asynccontextmanager
async def producing(bootstrap: str, generation: int, name: str, **settings: Any) -> AsyncIterator[Producer]:
    async with (
        speaking(bootstrap, generation) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=name, **settings) as producer,
    ):
        yield producer


async def test_all_of_a_transaction_is_seen_or_nothing(bootstrap: str, wide_topic: str, generation: int) -> None:
    async with producing(bootstrap, generation, wide_topic) as producer:
        for number in range(5):
            await producer.begin()
            for partition in range(4):
                await producer.send(wide_topic, b"%d-%d" % (number, partition), partition=partition)
            await (producer.abort() if number % 2 else producer.commit())

        async def in_vain() -> None:
            async with producer.transaction():
                await producer.send_and_wait(wide_topic, b"no")
                raise ZeroDivisionError

        with pytest.raises(ZeroDivisionError):
            await in_vain()
        async with producer.transaction():
            await producer.send(wide_topic, b"yes")
    expected = [b"%d-%d" % (number, partition) for number in (0, 2, 4) for partition in range(4)]
    assert await committed(bootstrap, wide_topic) == [*expected, b"yes"]
    seen = {one.value for one in await read_all(bootstrap, wide_topic)}
    assert {b"no", *expected} <= seen  # the aborted one was there, for those who do not mind
    async with Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer:
        consumer.assign(await consumer.partitions_for(wide_topic))
        consumer.seek_to_beginning()
        arrow: list[bytes] = []
        while len(arrow) <= len(expected):
            batch = await consumer.poll_arrow(columns=["value"], timeout_ms=30_000)
            arrow += batch.column(0).to_pylist()
    assert sorted(arrow) == [*expected, b"yes"]


async def test_an_open_transaction_holds_readers_back(bootstrap: str, topic: str, generation: int) -> None:
    partition = TopicPartition(topic, 0)
    async with (
        producing(bootstrap, generation, topic) as producer,
        Producer(bootstrap_servers=bootstrap) as plain,
        Consumer(bootstrap_servers=bootstrap, isolation_level="read_committed") as consumer,
    ):
        await plain.send_and_wait(topic, b"before")
        await producer.begin()
        await producer.send_and_wait(topic, b"within")
        await plain.send_and_wait(topic, b"behind")
        assert await consumer.end_offsets([partition]) == {partition: 1}
        consumer.assign([partition])
        consumer.seek(partition, 0)
        assert [one.value for one in await consumer.poll(timeout_ms=30_000)] == [b"before"]
        await producer.commit()
        values: list[bytes] = []
        while len(values) < 2:
            values += [one.value for one in await consumer.poll(timeout_ms=30_000)]
        assert values == [b"within", b"behind"]


async def test_a_groups_offsets_are_committed_with_it(bootstrap: str, topic: str, generation: int) -> None:
    partition = TopicPartition(topic, 0)
    async with (
        producing(bootstrap, generation, topic) as producer,
        Consumer(bootstrap_servers=bootstrap, group_id=topic, enable_auto_commit=False) as consumer,
    ):
        consumer.subscribe([topic])
        while not consumer.assignment():
            await consumer.poll(timeout_ms=100)
        who = consumer.group_metadata()
        async with producer.transaction():
            await producer.send(topic, b"out")
            await producer.send_offsets({partition: (5, "a note")}, who)
        told = (await consumer.committed([partition]))[partition]
        assert told is not None
        assert told[:2] == (5, "a note")

        async def in_vain() -> None:
            async with producer.transaction():
                await producer.send_offsets({partition: 9}, who)
                raise ZeroDivisionError

        async def as_nobody() -> None:
            async with producer.transaction():
                await producer.send(topic, b"of a member that is none")
                await producer.send_offsets({partition: 9}, who._replace(generation=who.generation + 1))

        with pytest.raises(ZeroDivisionError):
            await in_vain()
        with pytest.raises(TransactionAbortable) as refused:
            await as_nobody()
        assert isinstance(refused.value.__cause__, IllegalGeneration)
        told = (await consumer.committed([partition]))[partition]
        assert told is not None
        assert told.offset == 5
    # An id alone is taken as well, while nobody is in the group.
    async with producing(bootstrap, generation, topic) as producer:
        async with producer.transaction():
            await producer.send_offsets({partition: 6}, topic)
        unwritable = "\ud800"
        bad: list[tuple[Any, Any]] = [
            ({partition: -1}, topic),
            ([partition], topic),
            ({partition: (1, unwritable)}, topic),
            ({partition: 1}, 5),
            ({partition: 1}, unwritable),
            ({partition: 1}, "x" * 40_000),
            ({partition: 1}, who._replace(group_id=None)),
            ({partition: 1}, who._replace(generation="1")),
            ({partition: 1}, who._replace(member_id=unwritable)),
            ({partition: 1}, who._replace(instance_id=7)),
        ]
        await producer.begin()
        for offsets, group in bad:
            with pytest.raises(BadArgument):
                await producer.send_offsets(offsets, group)
        await producer.commit()  # nothing was asked for
    assert await committed(bootstrap, topic) == [b"out"]


async def test_calls_that_belong_elsewhere(bootstrap: str, topic: str, generation: int) -> None:
    async with producing(bootstrap, generation, topic) as producer:
        await producer.init_transactions()
        for call in (producer.commit, producer.abort, producer.detach):
            with pytest.raises(WrongTransactionState, match="no transaction is open: begin one"):
                await call()
        with pytest.raises(WrongTransactionState, match="send: no transaction is open"):
            await producer.send(topic, b"outside")
        assert producer.try_send(topic, b"outside") is None
        (refused,) = await producer.send_many([ProducerRecord(topic=topic, value=b"outside")])
        assert isinstance(refused.exception(), WrongTransactionState)
        assert await producer.partitions_for(topic) == 1
        await producer.begin()
        for call in (producer.begin, producer.init_transactions):
            with pytest.raises(WrongTransactionState, match="a transaction is open: commit or abort it first"):
                await call()
        committing = asyncio.ensure_future(producer.commit())
        await asyncio.sleep(0)
        with pytest.raises(WrongTransactionState):
            await producer.abort()
        await committing
        # Nothing was written: the coordinator has heard of nothing.
        await producer.begin()
        await producer.abort()
    with pytest.raises(ClientClosed):
        await producer.begin()
    async with Producer(bootstrap_servers=bootstrap) as plain:
        with pytest.raises(WrongTransactionState, match=r"give transactional\.id"):
            await plain.begin()
    assert await committed(bootstrap, topic) == []


async def test_a_record_that_failed_keeps_all_from_being_committed(
    bootstrap: str, new_name: str, generation: int
) -> None:
    await make_topic(bootstrap, new_name, 2, max_message_bytes="1000")
    async with producing(bootstrap, generation, new_name, linger_ms=1000) as producer:
        await producer.begin()
        good = await producer.send(new_name, b"good", partition=0)
        await producer.flush()
        large = await producer.send(new_name, b"x" * 2000, partition=1)
        late = await producer.send(new_name, b"late", partition=0)
        with pytest.raises(TransactionAbortable) as refused:
            await producer.commit()
        assert isinstance(refused.value.__cause__, RecordTooLarge)
        assert good.exception() is None
        assert isinstance(large.exception(), RecordTooLarge)
        assert late.done()
        with pytest.raises(TransactionAbortable):
            await producer.send(new_name, b"behind it")
        with pytest.raises(WrongTransactionState, match="abort it first"):
            await producer.begin()
        await producer.abort()
        for number in range(3):  # on goes both partitions' numbering
            async with producer.transaction():
                for partition in range(2):
                    await producer.send(new_name, b"then-%d" % number, partition=partition)
        await producer.begin()
        nowhere = ProducerRecord(topic=new_name, value=b"nowhere", partition=99)
        deliveries = await producer.send_many([ProducerRecord(topic=new_name, value=b"first"), nowhere])
        with pytest.raises(TransactionAbortable):
            await producer.commit()
        await producer.abort()
        assert all(one.exception() is not None for one in deliveries)
    assert await committed(bootstrap, new_name) == sorted(b"then-%d" % number for number in range(3) for _ in range(2))


async def test_closing_aborts_what_is_open(bootstrap: str, topic: str, generation: int) -> None:
    async with producing(bootstrap, generation, topic, linger_ms=60_000, delivery_timeout_ms=120_000) as producer:
        await producer.begin()
        waits = await producer.send(topic, b"waits")
    assert isinstance(waits.exception(), TransactionAborted)
    async with producing(bootstrap, generation, topic) as producer:
        await producer.begin()
        await producer.send_and_wait(topic, b"written")
    await until_state(bootstrap, topic, "CompleteAbort")
    assert await committed(bootstrap, topic) == []


async def test_the_second_with_an_id_fences_the_first(bootstrap: str, topic: str, generation: int) -> None:
    async with (
        producing(bootstrap, generation, topic) as first,
        producing(bootstrap, generation, topic) as second,
    ):
        await first.begin()
        await first.send_and_wait(topic, b"of the first")
        await second.begin()
        await second.send_and_wait(topic, b"of the second")
        await first.send(topic, b"too late")
        with pytest.raises(TransactionAbortable):
            await first.commit()
        with pytest.raises(ProducerFenced):
            await first.abort()
        for call in (first.begin, first.commit, first.abort, lambda: first.send(topic, b"never")):
            with pytest.raises(ProducerFenced):
                await call()
        await second.commit()
    assert await committed(bootstrap, topic) == [b"of the second"]


async def test_who_takes_the_id_anew_fences_whoever_had_it_since(bootstrap: str, topic: str, generation: int) -> None:
    async with (
        producing(bootstrap, generation, topic) as first,
        producing(bootstrap, generation, topic) as second,
    ):
        await first.init_transactions()
        await second.init_transactions()
        await first.init_transactions()  # it has one: nothing is asked
        await second.begin()
        await second.send_and_wait(topic, b"of the second")
        await first.init_transactions(anew=True)
        async with first.transaction():
            await first.send(topic, b"of the first")
        with pytest.raises(ProducerFenced):
            await second.commit()
    assert await committed(bootstrap, topic) == [b"of the first"]


async def test_who_takes_the_id_anew_and_does_not_hear_of_it_goes_on(
    bootstrap: str, topic: str, generation: int
) -> None:
    """The coordinator has raised the epoch: who asks again as what it was before has been fenced by itself."""
    unheard = asyncio.Event()

    def rule(request: Request) -> Action:
        return Pass(until=unheard) if request.key == ApiKey.INIT_PRODUCER_ID and begun else Pass()

    async def epoch() -> int:
        async with Admin(bootstrap_servers=bootstrap) as admin:
            return (await admin.describe_transactions([topic]))[topic].producer_epoch

    begun = False
    async with (
        speaking(bootstrap, generation, rule) as proxy,
        Producer(bootstrap_servers=proxy.bootstrap, transactional_id=topic) as producer,
    ):
        await producer.init_transactions()
        begun, before = True, await epoch()

        async def is_raised() -> bool:
            return await epoch() > before

        again = asyncio.ensure_future(producer.init_transactions(anew=True))
        await eventually(is_raised)
        again.cancel()
        with pytest.raises(asyncio.CancelledError):
            await again
        unheard.set()
        async with producer.transaction():
            await producer.send(topic, b"here")
    assert await committed(bootstrap, topic) == [b"here"]


async def test_one_producer_writes_for_one_id_after_the_other(bootstrap: str, topic: str, generation: int) -> None:
    async with producing(bootstrap, generation, topic) as producer:
        left = []
        for number in range(6):
            await producer.take_transactional_id(f"{topic}-{number % 3}")
            await producer.begin()
            with pytest.raises(WrongTransactionState):
                await producer.take_transactional_id(topic)
            await producer.send(topic, b"%d" % number)
            if number < 3:
                left.append(await producer.detach())
            else:
                await producer.commit()
        assert [one.transactional_id for one in left if one is not None] == [f"{topic}-{number}" for number in range(3)]
        for one in left:
            assert one is not None
            with pytest.raises((InvalidTxnState, ProducerFenced)):  # the next with its id has aborted it
                await producer.finish(one)
        with pytest.raises(SettingsError):
            await producer.take_transactional_id("")
        with pytest.raises(BadArgument, match="transactional_id must be a str, not None"):
            await producer.take_transactional_id(None)  # type: ignore[arg-type]
    assert await committed(bootstrap, topic) == [b"3", b"4", b"5"]


async def test_closing_one_that_was_fenced_is_no_error(bootstrap: str, topic: str, generation: int) -> None:
    async with producing(bootstrap, generation, topic) as first:
        await first.begin()
        await first.send_and_wait(topic, b"of the first")
        async with producing(bootstrap, generation, topic) as second:
            await second.init_transactions()
    with pytest.raises(ClientClosed):
        await first.abort()
    assert await committed(bootstrap, topic) == []


async def test_two_at_the_same_moment(bootstrap: str, topic: str, generation: int) -> None:
    """One of them is the later one, and goes on; the other one is fenced or sees its transaction aborted."""
    async with (
        producing(bootstrap, generation, topic) as first,
        producing(bootstrap, generation, topic) as second,
    ):

        async def work(producer: Producer, name: bytes) -> int:
            done = 0
            while done < 5:
                try:
                    async with producer.transaction():
                        await producer.send(topic, b"%s-%d" % (name, done))
                except ProducerFenced:
                    return done
                except TransactionAbortable:  # the other one has had it aborted, and has not begun yet
                    continue
                done += 1
            return done

        done = await asyncio.gather(work(first, b"a"), work(second, b"b"))
    assert max(done) == 5
    seen = await committed(bootstrap, topic)
    assert len(seen) == sum(done)
    assert len(set(seen)) == len(seen)


async def test_a_time_out_over_the_brokers_limit(bootstrap: str, topic: str, generation: int) -> None:
    async with producing(bootstrap, generation, topic, transaction_timeout_ms=2**31 - 1) as producer:
        with pytest.raises(InvalidTransactionTimeout):
            await producer.begin()


async def test_one_that_was_detached_is_finished_by_anybody(bootstrap: str, topic: str, generation: int) -> None:
    async with producing(bootstrap, generation, topic) as producer:
        await producer.begin()
        assert await producer.detach() is None  # there is nothing to end
        await producer.begin()
        await producer.send(topic, b"handed over")
        identity = await producer.detach()
        assert identity is not None
        assert identity.version == generation
        for call in (producer.begin, producer.commit, producer.abort, lambda: producer.send(topic, b"more")):
            with pytest.raises(WrongTransactionState, match="was detached"):
                await call()
    assert await state_of(bootstrap, topic) == "Ongoing"
    again = TransactionIdentity(*json.loads(json.dumps(pickle.loads(pickle.dumps(identity)))))
    async with Producer(bootstrap_servers=bootstrap) as plain:
        for _ in range(2):
            await plain.finish(again)
        with pytest.raises(InvalidTxnState):
            await plain.finish(again, commit=False)
        with pytest.raises(BadArgument):
            await plain.finish("till-1")  # type: ignore[arg-type]
    async with producing(bootstrap, generation, topic) as producer:
        await producer.begin()
        await producer.send(topic, b"given up")
        identity = await producer.detach()
        assert identity is not None
        for _ in range(2):
            await producer.finish(identity, commit=False)
        with pytest.raises(InvalidTxnState):
            await producer.finish(identity)
        async with producer.transaction():  # the producer that had it goes on
            await producer.send(topic, b"next")
        with pytest.raises(ProducerFenced):  # the id was used again: nobody can say
            await producer.finish(identity)
    assert await committed(bootstrap, topic) == [b"handed over", b"next"]
