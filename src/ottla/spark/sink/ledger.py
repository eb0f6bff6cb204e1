"""Which micro-batches are finished: the topic `__ottla_spark`, one record for each name of a query.

A streaming query plans a batch, writes it, and then notes in its checkpoint that it is done. One that dies in between
plans the same batch again, with the same rows. What it had written is written twice, unless somebody remembers that
the sink was finished; the ledger does, on the brokers that have the rows:

    key    the name that the option `ottla.query` gives the query
    value  {"version": 1, "query": <its checkpoint's id>, "batch": <the last one>, "state": "DONE", "rows": <its rows>}

The driver writes DONE when all tasks have their acknowledgements, and only then does Spark note the batch. So of the
batches of a checkpoint those up to the ledger's are written in full, and the next one perhaps in part.

The topic is compacted and has one partition: each reader sees one order, and reads a few segments to its end. A null
value takes a name out, so that another query may have it.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Final, Self

from ottla.client.admin.admin import Admin
from ottla.client.admin.results import ConfigResource, NewTopic
from ottla.client.consuming.consumer import Consumer
from ottla.client.errors import (
    InvalidReplicationFactor,
    RequestTimedOut,
    TopicAlreadyExists,
    UnknownTopicOrPartition,
)
from ottla.client.producing.producer import Producer
from ottla.client.sync.loop_thread import LoopThread
from ottla.model import TopicPartition
from ottla.spark.sink.errors import LedgerFault, QueryNameTaken

LEDGER_TOPIC: Final = "__ottla_spark"
_PARTITION: Final = TopicPartition(LEDGER_TOPIC, 0)
VERSION: Final = 1
DONE: Final = "DONE"

#: As many as Kafka gives its own topics, where there are so many brokers.
_REPLICAS_MAX: Final = 3
#: Small ones are compacted soon, so that a reader that begins has little to read: Kafka's least.
_SEGMENT_BYTES: Final = "1048576"
#: Between two looks: at the position while the end of the topic is read, and for the topic at a broker.
_POLL_MS: Final = 100
#: Until every broker has heard of a topic that was made.
_HEARD_SECONDS_MAX: Final = 30.0


@dataclass(frozen=True, slots=True, kw_only=True)
class LedgerEntry:
    """What is known of a name."""

    #: The query's id, which its checkpoint keeps over restarts.
    query_id: str
    #: The last batch that is finished, and with it all before.
    batch: int
    #: Of that batch.
    rows: int

    def value(self) -> bytes:
        known = {"version": VERSION, "query": self.query_id, "batch": self.batch, "state": DONE, "rows": self.rows}
        return json.dumps(known).encode()

    @classmethod
    def parsed(cls, value: bytes) -> Self:
        """Raises LedgerFault for what this version did not write: to take it for nothing would write rows twice."""
        try:
            told = json.loads(value)
            version, state, rows = told["version"], told["state"], told.get("rows", 0)
            query_id, batch = told["query"], told["batch"]
        except (ValueError, TypeError, KeyError, AttributeError) as error:
            raise LedgerFault(f"{LEDGER_TOPIC} has a record that is none of the ledger's: {value[:200]!r}") from error
        whole = all(isinstance(one, int) and not isinstance(one, bool) for one in (version, batch, rows))
        if not whole or not isinstance(query_id, str) or version != VERSION or state != DONE:
            raise LedgerFault(
                f"{LEDGER_TOPIC} has a record of version {version!r} in state {state!r}, which this version of Ottla "
                "does not know: a newer one wrote it"
            )
        return cls(query_id=query_id, batch=batch, rows=rows)


def is_finished(entry: LedgerEntry | None, name: str, query_id: str, batch: int) -> bool:
    """Whether this batch was written in full. Raises QueryNameTaken where the name is another query's."""
    if entry is None:
        return False
    if entry.query_id != query_id:
        raise QueryNameTaken(
            f"ottla.query={name} is the name of another query: its checkpoint has the id {entry.query_id}, this one's "
            f"{query_id}. Give this query another name; or, if it takes the other's place and that one will not "
            f"run again, free the name with ottla.spark.free_query_name({name!r}, ...)"
        )
    return batch <= entry.batch


def free_query_name(name: str, settings: Mapping[str, str] | None = None, /, **keywords: str) -> bool:
    """Has the ledger forget a name of `ottla.query`, so that another query may have it; whether it was there.

    `settings` are the client's: `free_query_name("orders", bootstrap_servers="localhost:9092")`. A query that
    still runs under the name writes its next batch as if none was finished before.
    """
    thread = LoopThread("ottla-spark-ledger")
    given = {key.replace("_", "."): value for key, value in {**(settings or {}), **keywords}.items()}

    async def free() -> bool:
        ledger = Ledger(given, name)
        try:
            return await ledger.free()
        finally:
            await ledger.close()

    try:
        return thread.run(free)
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
        #: The last record of the name.
        self._value: bytes | None = None

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
        """Writes that a batch is done, unless that is known. Raises QueryNameTaken."""
        if is_finished(await self.entry(), self._name, query_id, batch):
            return
        await self._write(LedgerEntry(query_id=query_id, batch=batch, rows=rows).value())

    async def free(self) -> bool:
        """Takes the name out; whether it was there."""
        if await self.entry() is None:
            return False
        await self._write(None)
        return True

    async def close(self) -> None:
        consumer, self._consumer = self._consumer, None
        producer, self._producer = self._producer, None
        if consumer is not None:
            await consumer.close()
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
                end = (await consumer.end_offsets([_PARTITION]))[_PARTITION]
                if await consumer.position(_PARTITION) > end:  # the topic was deleted, and made again
                    self._value = None
                    consumer.seek_to_beginning(_PARTITION)
                while await consumer.position(_PARTITION) < end:
                    for record in await consumer.poll(timeout_ms=_POLL_MS):
                        if record.key == self._name.encode():
                            self._value = record.value
        except TimeoutError:
            raise RequestTimedOut(f"{LEDGER_TOPIC} was not read to its end within {allowed_ms} ms") from None

    async def _write(self, value: bytes | None) -> None:
        if self._producer is None:
            self._producer = Producer(self._settings, linger_ms=0)
        await self._producer.send_and_wait(LEDGER_TOPIC, value, self._name.encode(), partition=_PARTITION.partition)


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
            await admin.create_topics([NewTopic(LEDGER_TOPIC, 1, replicas, configs)])
        except TopicAlreadyExists:
            return  # another query was first
        except InvalidReplicationFactor:
            if replicas == 1:
                raise
        else:
            return
