"""Whose turn it is among partitions that all have something: one that stands still is heard of all the same.

What a broker would have answered is laid into the consumer, whose only broker is not there.
"""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from ottla.client.consuming.assignment import Chunk
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import NoOffset, OffsetOutOfRange, SchemaUnavailable, SerializationFailed
from ottla.client.schemas import SchemaNotLoaded
from ottla.model import TopicPartition
from ottla.records.builder import BatchBuilder

NOBODY = "127.0.0.1:1"
GOOD, BAD = TopicPartition("t", 0), TopicPartition("t", 1)
OTHER = TopicPartition("t", 2)
RECORDS = 40
BAD_VALUE = b"bad"


def consumer_of(*partitions: TopicPartition, **settings: Any) -> Consumer:
    """One that has these, `RECORDS` records of each ready but of `BAD`, which has one."""
    consumer = Consumer(bootstrap_servers=NOBODY, auto_offset_reset="none", **settings)
    consumer.assign(partitions)
    for tp in partitions:
        consumer.seek(tp, 0)
        builder = BatchBuilder()
        for _ in range(1 if tp == BAD else RECORDS):
            builder.append(0, None, BAD_VALUE if tp == BAD else b"good", ())
        batch = builder.build()
        consumer._reading.assigned[tp].chunks.append(Chunk(b"", batch, len(batch), None))
    return consumer


def refuse(consumer: Consumer) -> None:
    one = consumer._reading.assigned[BAD]
    one.chunks.clear()
    one.error = OffsetOutOfRange("there is no such offset", partition=BAD, offset=0)


async def test_an_error_is_raised_however_much_others_have() -> None:
    async with consumer_of(BAD, GOOD, OTHER, max_poll_records=1) as consumer:
        refuse(consumer)
        heard: list[int | None] = []
        for _ in range(12):
            try:
                heard += [record.partition for record in await consumer.poll()]
            except OffsetOutOfRange:
                heard.append(None)
        assert 3 <= heard.count(None) <= 6, "again and again, and in between the others are read"
        assert {0, 2} < set(heard)


async def test_what_is_read_along_with_an_error_is_not_lost() -> None:
    """The limit lets in all that the others have: the error is the next poll's."""
    async with consumer_of(GOOD, BAD, OTHER) as consumer:
        refuse(consumer)
        records = await consumer.poll()
        assert [sum(one.partition == number for one in records) for number in range(3)] == [RECORDS, 0, RECORDS]
        with pytest.raises(OffsetOutOfRange):
            await consumer.poll()


async def test_a_record_that_cannot_be_read_is_said_however_much_others_have() -> None:
    def deserialize(data: bytes) -> bytes:
        if data == BAD_VALUE:
            raise ValueError(data)
        return data

    async with consumer_of(GOOD, BAD, max_poll_records=1, value_deserializer=deserialize) as consumer:
        read = await consumer.poll()
        assert [one.partition for one in read] == [0]
        with pytest.raises(SerializationFailed, match="t-1: the record at offset 0"):
            await consumer.poll()
        assert [one.partition for one in await consumer.poll()] == [0]


async def test_arrow_batches_leave_no_error_unsaid() -> None:
    async with consumer_of(GOOD, BAD) as consumer:
        refuse(consumer)
        assert (await consumer.poll_arrow(max_rows=1)).num_rows == 1
        with pytest.raises(OffsetOutOfRange):
            await consumer.poll_arrow(max_rows=1)
        assert (await consumer.poll_arrow(max_rows=1)).num_rows == 1


async def test_batches_leave_no_error_unsaid() -> None:
    async with consumer_of(GOOD, BAD, OTHER) as consumer:
        refuse(consumer)
        heard = []
        for _ in range(2):
            try:
                fetched = await consumer.poll_batches()
                assert fetched is not None
                heard.append(fetched.partition)
            except OffsetOutOfRange:
                heard.append(BAD)
        assert heard == [GOOD, BAD]


async def test_batches_of_others_come_before_a_place_that_is_still_looked_for() -> None:
    """Who reads batches looks for places himself: that one has none yet is said when there is nothing else."""
    async with consumer_of(BAD, GOOD, OTHER) as consumer:
        one = consumer._reading.assigned[BAD]
        one.chunks.clear()
        one.error = NoOffset("it has no position", BAD)
        assert {(await consumer.poll_batches()).partition for _ in range(2)} == {GOOD, OTHER}  # type: ignore[union-attr]
        with pytest.raises(NoOffset):
            await consumer.poll_batches()


async def fetched_what_was_begun(consumer: Consumer) -> None:
    """By a thread, however long that takes to come to its turn."""
    if (fetching := consumer._schemas._fetching) is not None:
        await asyncio.wait([fetching])


async def test_a_schema_is_fetched_however_much_others_have() -> None:
    fetched: list[None] = []

    def deserialize(data: bytes) -> bytes:
        if data == BAD_VALUE and not fetched:
            raise SchemaNotLoaded(lambda: fetched.append(None), "value")
        return data

    async with consumer_of(GOOD, BAD, max_poll_records=1, value_deserializer=deserialize) as consumer:
        partitions: list[int] = []
        while len(partitions) < RECORDS:
            partitions += [record.partition for record in await consumer.poll()]
            await fetched_what_was_begun(consumer)
        assert 1 in partitions


async def test_a_schema_that_cannot_be_had_is_said_however_much_others_have() -> None:
    def fail() -> None:
        raise SchemaUnavailable("the registry is away")

    def deserialize(data: bytes) -> bytes:
        if data == BAD_VALUE:
            raise SchemaNotLoaded(fail, "value")
        return data

    async with consumer_of(GOOD, BAD, max_poll_records=1, value_deserializer=deserialize) as consumer:
        read = faults = 0
        while read < RECORDS:
            try:
                read += len(await consumer.poll())
            except SchemaUnavailable:
                faults += 1
            await fetched_what_was_begun(consumer)
        assert faults
