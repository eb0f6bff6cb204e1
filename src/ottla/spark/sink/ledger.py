"""Which micro-batches are finished: the topic `__ottla_spark`, one entry (`entries`) for each name of a query.

A streaming query plans a batch, writes it, and then notes in its checkpoint that it is done. One that dies in between
plans the same batch again, with the same rows. What it had written is written twice, unless somebody remembers that
the sink was finished; the ledger does, on the brokers that have the rows:

    key    the name that the option `ottla.query` gives the query
    value  {"version": 1, "query": <its checkpoint's id>, "batch": <the last one>, "state": "DONE", "rows": <its rows>}

The driver writes DONE when all tasks have their acknowledgements, and only then does Spark note the batch. So of the
batches of a checkpoint those up to the ledger's are written in full, and the next one perhaps in part. A driver that
writes exactly once has two states more, and writes in transactions, so that an older one can be fenced.

The topic is compacted and has one partition: each reader sees one order, and reads a few segments to its end. A null
value takes a name out, so that another query may have it. A transaction that another name's driver has left open hides
what stands behind it from readers of committed records: a reader waits for its end, and does not take an older entry
for the last.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping
from typing import Final, TypeVar

from ottla.client.admin.admin import Admin
from ottla.client.admin.having import have_topic
from ottla.client.admin.results import ConfigResource, NewTopic
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import (
    InvalidReplicationFactor,
    RequestTimedOut,
    UnknownTopicOrPartition,
)
from ottla.client.producing.producer import Producer
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.wire.listed_offset import LATEST
from ottla.client.wire.offsets import list_offsets
from ottla.model import TopicPartition
from ottla.spark.sink.entries import LEDGER_TOPIC, LedgerEntry, check_nothing_prepared, is_finished
from ottla.spark.sink.errors import LedgerFault

T = TypeVar("T")

_PARTITION: Final = TopicPartition(LEDGER_TOPIC, 0)

#: As many as Kafka gives its own topics, where there are so many brokers.
_REPLICAS_MAX: Final = 3
#: Small ones are compacted soon, so that a reader that begins has little to read: Kafka's least.
_SEGMENT_BYTES: Final = "1048576"
#: Between two looks: at the position while the end of the topic is read, and for the topic at a broker.
_POLL_MS: Final = 100
#: A driver that dies between the begin and the end of a write holds up other names' readers for so long.
_WRITE_MS_MAX: Final = 15_000
#: Until every broker has heard of a topic that was made.
_HEARD_SECONDS_MAX: Final = 30.0


def free_query_name(name: str, settings: Mapping[str, str] | None = None, /, **keywords: str) -> bool:
    """Has the ledger forget a name of `ottla.query`, so that another query may have it; whether it was there.

    `settings` are the client's: `free_query_name("orders", bootstrap_servers="localhost:9092")`. A query that
    still runs under the name writes its next batch as if none was finished before.
    """
    return _asked(
        {key.replace("_", "."): value for key, value in {**(settings or {}), **keywords}.items()}, name, Ledger.free
    )


def ledger_entry(name: str, settings: Mapping[str, str]) -> LedgerEntry | None:
    """What the ledger says of a name now."""
    return _asked(settings, name, Ledger.entry)


def _asked(settings: Mapping[str, str], name: str, ask: Callable[[Ledger], Awaitable[T]]) -> T:
    """By a loop of its own."""
    thread = LoopThread("ottla-spark-ledger")

    async def asked() -> T:
        ledger = Ledger(settings, name)
        try:
            return await ask(ledger)
        finally:
            await ledger.close()

    try:
        return thread.run(asked)
    finally:
        thread.end()


class Ledger:
    """One name's entry, as one event loop reads and writes it."""

    def __init__(self, settings: Mapping[str, str], name: str) -> None:
        """`settings` are those that every client has."""
        self._name = name
        self._settings = dict(settings)
        self._consumer: Consumer | None = None
        self._producer: Producer | None = None
        #: What writes instead where other drivers are fenced.
        self._driver: Producer | None = None
        #: The last record of the name.
        self._value: bytes | None = None
        #: The offset behind the last record that was read.
        self._read_to = 0

    async def entry(self) -> LedgerEntry | None:
        """What the topic says now. Creates the topic where there is none. Raises LedgerFault."""
        consumer = self._consumer or await self._opened()
        consumer.resume(_PARTITION)
        try:
            await self._read_to_end(consumer)
        finally:
            consumer.pause(_PARTITION)  # nobody reads ahead between two batches
        return None if self._value is None else LedgerEntry.parsed(self._value)

    async def finish(self, query_id: str, batch: int, rows: int) -> None:
        """Writes that a batch is done, unless that is known. Raises QueryNameTaken, and LedgerFault where somebody has
        begun to commit it by transactions."""
        entry = await self.entry()
        if is_finished(entry, self._name, query_id, batch):
            return
        check_nothing_prepared(entry, self._name)
        await self._write(LedgerEntry(query_id=query_id, batch=batch, rows=rows).value())

    async def write(self, entry: LedgerEntry) -> None:
        """After `fence`; raises ProducerFenced where a younger driver has fenced this one since."""
        driver = self._driver
        assert driver is not None, "only a driver that has fenced the others writes what they must not"
        async with driver.transaction():
            await self._send(driver, entry.value())

    async def fence(self, transactional_id: str) -> Producer:
        """A driver that has fenced before with this id writes nothing any more: what it was writing is done or undone.

        Each time anew: Spark has any of several processes commit, and the one that did before has fenced this one.
        """
        driver = self._driver or Producer(
            self._settings, linger_ms=0, transactional_id=transactional_id, transaction_timeout_ms=_WRITE_MS_MAX
        )
        self._driver = None
        try:
            await driver.init_transactions(anew=True)
        except BaseException:
            await driver.close(timeout_ms=0)
            raise
        self._driver = driver
        return driver

    async def free(self) -> bool:
        """Takes the name out; whether it was there."""
        if await self.entry() is None:
            return False
        await self._write(None)
        return True

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        producers, self._producer, self._driver = (self._producer, self._driver), None, None
        if consumer is not None:
            await consumer.close()
        for producer in producers:
            if producer is not None:
                await producer.close()

    async def _opened(self) -> Consumer:
        async with Admin(self._settings) as admin:
            await _have_topic(admin)
        consumer = Consumer(
            self._settings,
            auto_offset_reset="earliest",
            isolation_level="read_committed",
            allow_auto_create_topics=False,
        )
        consumer.assign([_PARTITION])
        consumer.seek_to_beginning(_PARTITION)
        self._consumer = consumer
        return consumer

    async def _read_to_end(self, consumer: Consumer) -> None:
        allowed_ms = consumer.settings.default_api_timeout_ms
        try:
            async with asyncio.timeout(allowed_ms / 1000):
                end = await _end(consumer)
                if await consumer.position(_PARTITION) > end:
                    self._begin_anew(consumer)  # the topic was deleted and made again, which its end tells here
                while True:
                    position = await consumer.position(_PARTITION)
                    if position < self._read_to:  # the consumer has noticed that by itself
                        self._begin_anew(consumer)
                        end = await _end(consumer)
                        continue
                    # Beyond the end as well, where others have written since.
                    if position >= end:
                        return
                    for record in await consumer.poll(timeout_ms=_POLL_MS):
                        if record.offset < position:  # the consumer went back while it was waited for
                            self._begin_anew(consumer)
                            end = await _end(consumer)
                            break
                        position = self._read_to = record.offset + 1
                        if record.key == self._name.encode():
                            self._value = record.value
        except TimeoutError:
            raise RequestTimedOut(f"{LEDGER_TOPIC} was not read to its end within {allowed_ms} ms") from None

    def _begin_anew(self, consumer: Consumer) -> None:
        self._value, self._read_to = None, 0
        consumer.seek_to_beginning(_PARTITION)

    async def _write(self, value: bytes | None) -> None:
        """Where nobody is to be fenced."""
        if self._producer is None:
            self._producer = Producer(self._settings, linger_ms=0)
        await self._send(self._producer, value)

    async def _send(self, producer: Producer, value: bytes | None) -> None:
        await producer.send_and_wait(LEDGER_TOPIC, value, self._name.encode(), partition=_PARTITION.partition)


async def _end(consumer: Consumer) -> int:
    """Of all records: behind the last that is committed there may be one of an open transaction, and ours."""
    return (await list_offsets(consumer.cluster, {_PARTITION: LATEST}))[_PARTITION].offset


async def _have_topic(admin: Admin) -> None:
    try:
        await admin.describe_topic(LEDGER_TOPIC)
    except UnknownTopicOrPartition:
        await _create_topic(admin)
    policy = await _cleanup_policy(admin)
    if policy != "compact":
        raise LedgerFault(
            f"topic {LEDGER_TOPIC} has cleanup.policy={policy}, so that what it knows of queries would vanish: "
            "set it to compact"
        )


async def _cleanup_policy(admin: Admin) -> str | None:
    """Of a topic that is there: a broker that has just come, or that was not asked to make it, may hear of it later."""
    loop = asyncio.get_running_loop()
    deadline = loop.time() + _HEARD_SECONDS_MAX
    resource = ConfigResource.topic(LEDGER_TOPIC)
    while True:
        try:
            configs = await admin.describe_configs([resource], names=["cleanup.policy"])
        except UnknownTopicOrPartition:
            if loop.time() > deadline:
                raise
            await asyncio.sleep(_POLL_MS / 1000)
        else:
            return configs[resource]["cleanup.policy"].value


async def _create_topic(admin: Admin) -> None:
    """With as many replicas as brokers allow: one that has just died is counted for a while."""
    brokers = len((await admin.describe_cluster()).brokers)
    for replicas in range(max(1, min(brokers, _REPLICAS_MAX)), 0, -1):
        configs = {"cleanup.policy": "compact", "segment.bytes": _SEGMENT_BYTES}
        if replicas == _REPLICAS_MAX:
            configs["min.insync.replicas"] = "2"
        try:
            await have_topic(admin, NewTopic(LEDGER_TOPIC, 1, replicas, configs))  # another query may be first
        except InvalidReplicationFactor:
            if replicas == 1:
                raise
        else:
            return
