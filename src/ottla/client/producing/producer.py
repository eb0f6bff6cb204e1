"""Producer: records in, acknowledgements out.

    async with Producer(bootstrap_servers="localhost:9092", compression_type="lz4") as producer:
        delivery = await producer.send("orders", b"one", key=b"alice")
        print((await delivery).offset)

`send` returns when the record stands in its batch; what it returns is awaited, polled or given a call-back for the
acknowledgement. It waits only where it must: for a new topic's metadata, and for room in `buffer.memory`.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from ottla.client.arguments import (
    NO_HEADERS,
    GivenHeaders,
    a_kind_of,
    check_call,
    checked_headers,
    checked_partition,
    checked_timeout_ms,
    checked_timestamp,
    checked_topic,
)
from ottla.client.errors import (
    BadArgument,
    BufferExhausted,
    ClientClosed,
    ClientFault,
    KafkaError,
    PartitionerFailed,
    RecordTooLarge,
    TransactionFault,
    UnknownTopicOrPartition,
)
from ottla.client.producing.accumulator import RECORD_OVERHEAD, Accumulator
from ottla.client.producing.batches import Delivery, EncodedRecords, ProducerBatch
from ottla.client.producing.consistency import consistent
from ottla.client.producing.partitioners import murmur2_partitioner, partitioner_for, sticky_partitioner
from ottla.client.producing.room import WaitingForRoom
from ottla.client.producing.routes import TopicRoute, TopicRoutes
from ottla.client.producing.sender import Sender
from ottla.client.producing.transactions.methods import TransactionMethods
from ottla.client.producing.transactions.transactor import Transactor
from ottla.client.records import (
    ProducerRecord,
    RawRecord,
    RecordMetadata,
    WrittenRows,
    checked_record,
    checked_records,
    numbered,
)
from ottla.client.schemas import SchemaNotLoaded, with_schemas
from ottla.client.serializers import serialized, serializer_for
from ottla.client.settings import ProducerSettings, parse_settings
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.world import ClientPorts, real_world
from ottla.records.batch import HEADER_SIZE, INT32_MAX
from ottla.records.builder import Headers

#: Batches that may become full before `send` lets the loop turn, so that they go out while more come in.
_TURNS_OWED_MAX: Final = 4


class Producer(TransactionMethods):
    """One client of one event loop; any of its tasks may use it."""

    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self.settings = consistent(parse_settings(ProducerSettings, settings, keywords))
        self._partitioner = partitioner_for(self.settings.partitioner)
        if self.settings.partitioner_ignore_keys and self._partitioner is murmur2_partitioner:
            self._partitioner = sticky_partitioner
        self._key_serializer = serializer_for(self.settings.key_serializer, "key.serializer", self.settings)
        self._value_serializer = serializer_for(self.settings.value_serializer, "value.serializer", self.settings)
        self._world = world or real_world()
        self._wall_ms = self._world.clock.wall_ms
        self.cluster = Cluster(self.settings, self._world, auto_create=True)
        self._queues = Accumulator(
            batch_bytes=self.settings.batch_size,
            linger_ms=self.settings.linger_ms,
            delivery_timeout_ms=self.settings.delivery_timeout_ms,
            memory_bytes=self.settings.buffer_memory,
        )
        #: The most that a record may cost: it goes alone in its request, and all of `buffer.memory` is for it.
        self._cost_max = min(
            self.settings.max_request_size - HEADER_SIZE, self.settings.buffer_memory - RECORD_OVERHEAD
        )
        self._routes = TopicRoutes(self.settings, self.cluster, self._world)
        self._sender: Sender | None = None
        self._waiting = WaitingForRoom(self._queues, self.settings.max_block_ms)
        self._closed = False
        if self.settings.transactional_id is not None:
            self._transactor = Transactor(self.settings, self.cluster, self._all_settled, self._take_records)
        self.barred = self._transactor is not None

    async def __aenter__(self) -> Self:
        return self

    async def __aexit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        await self.close()

    # What callers use

    async def send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: GivenHeaders = NO_HEADERS,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> Delivery:
        """Puts a record into its batch. Await the result for the acknowledgement, or have `on_delivery` called."""
        try:
            raw_value = (
                value if value.__class__ is bytes and self._value_serializer is None else self._value(topic, value)
            )
            raw_key = (
                key
                if key is None or (key.__class__ is bytes and self._key_serializer is None)
                else self._key(topic, key)
            )
        except SchemaNotLoaded:
            raw_value, raw_key = await with_schemas(lambda: (self._value(topic, value), self._key(topic, key)))
        if partition is not None and (partition.__class__ is not int or not 0 <= partition <= INT32_MAX):
            partition = checked_partition(partition)
        timestamp = self._wall_ms() if timestamp is None else checked_timestamp(timestamp)
        checked: Headers = () if headers is NO_HEADERS else checked_headers(headers)
        if on_delivery is not None:
            check_call(on_delivery, "on_delivery")
        cost = self._queues.cost(raw_key, raw_value, checked)
        if cost > self._cost_max:
            raise self._too_large(cost)
        route = self._routes.known.get(topic) if topic.__class__ is str else None
        if route is None or self.barred:
            route = await self._route(topic, partition)
        place = self._place(route, raw_key, cost) if partition is None else partition
        queue = route.queues.get(place)
        delivery = None
        if queue is not None and not self._waiting:
            # What becomes of nearly every record of a fast producer: there is a batch for it, and nothing to wait for.
            delivery = self._queues.add(queue, timestamp, raw_key, raw_value, checked, cost)
        if delivery is None:
            if place >= len(route.topic.partitions):
                route = await self._route(topic, place)
            if self._waiting or not self._queues.has_room(cost):
                route = await self._room(cost, route)
            delivery = self._append(route, place, timestamp, raw_key, raw_value, checked, cost)
        if on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        assert self._sender is not None
        if self._sender.turns_owed > _TURNS_OWED_MAX:
            await asyncio.sleep(0)
        return delivery

    def try_send(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: GivenHeaders = NO_HEADERS,
        on_delivery: Callable[[Delivery], object] | None = None,
    ) -> Delivery | None:
        """As `send`, but gives None where `send` would wait."""
        try:
            raw = self.checked(topic, value, key, partition, timestamp, headers)
        except SchemaNotLoaded:
            return None
        if on_delivery is not None:
            check_call(on_delivery, "on_delivery")
        delivery = self.try_enter(raw)
        if delivery is not None and on_delivery is not None:
            delivery.add_done_callback(on_delivery)
        return delivery

    async def send_record(self, record: ProducerRecord) -> Delivery:
        checked_record(record)
        return await self.send(
            record.topic,
            record.value,
            record.key,
            partition=record.partition,
            timestamp=record.timestamp,
            headers=record.headers,
        )

    async def send_many(self, records: Iterable[ProducerRecord]) -> list[Delivery]:
        """Puts records into their batches, in their order. All are checked before the first is queued.

        Nothing else is raised: what could not be queued (no such topic, no room within `max.block.ms`) is the outcome
        of its record's delivery.
        """
        raws: list[RawRecord] = []
        for number, r in enumerate(checked_records(records)):
            given = (r.topic, r.value, r.key, r.partition, r.timestamp, r.headers)
            try:
                raws.append(numbered(number, self.checked, *given))
            except SchemaNotLoaded:
                raws.append(await with_schemas(partial(numbered, number, self.checked, *given)))
        deliveries: list[Delivery] = []
        transaction = self._transaction
        #: By topic, or by None for all, why nothing more of it can be queued in this call.
        faults: dict[str | None, KafkaError] = {}
        for raw in raws:
            fault = faults.get(None) or faults.get(raw.topic)
            if fault is not None:
                deliveries.append(Delivery.failed(raw.topic, raw.partition, fault))
                continue
            try:
                deliveries.append(self.try_enter(raw) or await self.enter(raw))
            except PartitionerFailed as error:
                self.not_entered(error)
                deliveries.append(Delivery.failed(raw.topic, raw.partition, error))
            except KafkaError as error:
                about_all = isinstance(error, BufferExhausted | ClientClosed | ClientFault | TransactionFault)
                faults[None if about_all else raw.topic] = error
                if self._transaction == transaction:
                    self.not_entered(error)
                deliveries.append(Delivery.failed(raw.topic, raw.partition, error))
            if self._sender is not None and self._sender.turns_owed > _TURNS_OWED_MAX:
                await asyncio.sleep(0)
        return deliveries

    async def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: GivenHeaders = NO_HEADERS,
    ) -> RecordMetadata:
        """Sends a record and waits until it is acknowledged."""
        return await (await self.send(topic, value, key, partition=partition, timestamp=timestamp, headers=headers))

    async def send_arrow(self, rows: Any, topic: str | None = None) -> list[WrittenRows]:
        """Writes a table's rows and waits until they are acknowledged; gives where each batch of them is.

        `rows` is an Arrow table, a frame of Polars or the like (docs/arrow.md). Without a topic there must be a column
        of that name. Where one row cannot be a record, those before it may have been written.
        """
        from ottla.client.producing.arrow import enter_table

        return await (await enter_table(self, rows, topic)).written()

    async def partitions_for(self, topic: str) -> int:
        """How many partitions a topic has."""
        return len((await self._known(topic, None)).topic.partitions)

    async def flush(self) -> None:
        """Until all that was sent before is acknowledged or has failed; does not wait for linger."""
        if self._closed:
            raise ClientClosed("the producer is closed")
        await self._all_settled()

    async def _all_settled(self) -> None:
        pending = list(self._queues.live)
        self._queues.hurry()
        if self._sender is not None:
            self._sender.wake()
        while pending:
            batch = pending.pop()
            await batch.wait()
            pending += batch.parts

    async def close(self, timeout_ms: float | None = None) -> None:
        """Sends what is there, for at most so long (None: as long as deliveries take), and ends.

        A transaction that is open is aborted; one that was detached stays open.
        """
        given_ms = checked_timeout_ms(timeout_ms)
        if self._closed:
            return
        self._closed = self.barred = True
        try:
            async with asyncio.timeout(None if given_ms is None else given_ms / 1000):
                if self._transactor is not None:
                    await self._transactor.close()
                await self._all_settled()
        except TimeoutError:
            pass
        finally:
            error = ClientClosed("the producer was closed before the record was acknowledged")
            if self._sender is not None:
                await self._sender.close(error)
            self._waiting.close()
            if self._transactor is not None:
                await self._transactor.end()
            await self.cluster.close()

    # Ways of a record

    def checked(
        self, topic: str, value: Any, key: Any, partition: int | None, timestamp: int | None, headers: GivenHeaders
    ) -> RawRecord:
        """A record as bytes and numbers that the wire takes; raises what keeps it from being one. For any thread."""
        raw = RawRecord(
            checked_topic(topic),
            self._value(topic, value),
            self._key(topic, key),
            None if partition is None else checked_partition(partition),
            None if timestamp is None else checked_timestamp(timestamp),
            NO_HEADERS if headers is NO_HEADERS else checked_headers(headers),
        )
        self._check_size(raw.key, raw.value, raw.headers)
        return raw

    def try_enter(self, raw: RawRecord) -> Delivery | None:
        """Puts a record into its batch unless it has to wait for that."""
        topic, value, key, partition, timestamp, headers = raw
        route = self._routes.known.get(topic)
        if route is None or self.barred or (partition is not None and partition >= len(route.topic.partitions)):
            return None
        cost = self._queues.cost(key, value, headers)
        if self._waiting or not self._queues.has_room(cost):
            return None
        place = self._place(route, key, cost) if partition is None else partition
        return self._append(route, place, timestamp, key, value, headers, cost)

    def is_known(self, topic: str, partition: int | None) -> bool:
        """Whether a record for this partition (None: any) needs no news of its topic."""
        route = self._routes.known.get(topic)
        there = route is not None and topic in self.cluster.metadata.topics
        return there and (partition is None or (route is not None and partition < len(route.topic.partitions)))

    async def enter(self, raw: RawRecord) -> Delivery:
        topic, value, key, partition, timestamp, headers = raw
        route = await self._route(topic, partition)
        cost = self._queues.cost(key, value, headers)
        if self._waiting or not self._queues.has_room(cost):
            route = await self._room(cost, route)
        place = self._place(route, key, cost) if partition is None else partition
        return self._append(route, place, timestamp, key, value, headers, cost)

    def check_places_rows(self) -> None:
        """Raises where this producer's settings ask for more of a record than is done with rows."""
        if self._key_serializer is not None or self._value_serializer is not None:
            raise BadArgument("Arrow has keys and values as they are: leave the serializers out")
        if self._partitioner is not murmur2_partitioner:
            raise BadArgument(
                "rows are placed by murmur2 of their keys, or by the column 'partition': leave out the partitioner"
            )

    def now_ms(self) -> int:
        return self._wall_ms()

    async def led_partitions(self, topic: str, highest: int | None = None) -> tuple[int, list[int]]:
        """How many partitions a topic has, and those that rows may go to that name none, in a random order.

        `highest` is the last one that is named; where it is not known yet, it is waited for as by `send`.
        """
        found = (await self._known(topic, None)).topic
        if highest is not None and highest >= len(found.partitions):
            with suppress(UnknownTopicOrPartition):  # whoever names it says so of the row
                found = (await self._known(topic, highest)).topic
        led = list(found.led or range(len(found.partitions)))
        below = self._world.entropy.below
        return len(found.partitions), [led.pop(below(len(led))) for _ in range(len(led))]

    async def enter_batch(self, topic: str, partition: int, records: EncodedRecords) -> ProducerBatch:
        """Puts a finished batch behind its partition's others, when there is room for it."""
        route = await self._route(topic, partition)
        if self._waiting or not self._queues.has_room(records.size):
            route = await self._room(records.size, route)
        self.check_takes()
        sender = self._sender
        assert sender is not None
        if sender.fault is not None:
            raise sender.fault
        queue = route.queues.get(partition)
        if queue is None:
            queue = route.queues[partition] = self._queues.queue(topic, partition)
        route.used = True
        batch = self._queues.enter(queue, records, self._world.clock.monotonic_ms())
        sender.turns_owed += 1
        sender.wake()
        if sender.turns_owed > _TURNS_OWED_MAX:
            await asyncio.sleep(0)
        return batch

    def _key(self, topic: str, key: Any) -> bytes | None:
        return serialized(key, self._key_serializer, "key", topic)

    def _value(self, topic: str, value: Any) -> bytes | None:
        return serialized(value, self._value_serializer, "value", topic)

    def _place(self, route: TopicRoute, key: bytes | None, cost: int) -> int:
        """The partition of a record that names none."""
        count = len(route.topic.partitions)
        try:
            place = self._partitioner(route.topic.name, key, count)
        except Exception as error:
            raise PartitionerFailed(f"the partitioner raised {type(error).__name__}: {error}") from error
        if place.__class__ is not int or place >= count:
            raise self._misplaced(place, count)
        return place if place >= 0 else self._routes.sticky(route, cost)

    def _append(
        self,
        route: TopicRoute,
        place: int,
        timestamp: int | None,
        key: bytes | None,
        value: bytes | None,
        headers: Headers,
        cost: int,
    ) -> Delivery:
        """Puts a record for which there is room into its partition's open batch, or into a new one."""
        sender = self._sender
        assert sender is not None
        if self.barred:  # since the caller began to wait
            self.check_takes()
        if sender.fault is not None:
            raise sender.fault
        queue = route.queues.get(place)
        if queue is None:
            queue = route.queues[place] = self._queues.queue(route.topic.name, place)
        route.used = True
        if timestamp is None:
            timestamp = self._wall_ms()
        delivery = self._queues.add(queue, timestamp, key, value, headers, cost)
        if delivery is None:
            now_ms = self._world.clock.monotonic_ms()
            delivery = self._queues.append(queue, timestamp, key, value, headers, cost, now_ms)
            sender.turns_owed += 1
            sender.wake()
        return delivery

    @staticmethod
    def _misplaced(partition: Any, count: int) -> PartitionerFailed:
        """Why what a partitioner of the caller's returned is none."""
        if partition.__class__ is not int:
            return PartitionerFailed(f"the partitioner returned {a_kind_of(partition)}, not an int")
        return PartitionerFailed(f"the partitioner chose partition {partition}: the last one is {count - 1}")

    def _check_size(self, key: bytes | None, value: bytes | None, headers: Headers) -> None:
        """Raises RecordTooLarge for a record that no request or no buffer could hold."""
        cost = self._queues.cost(key, value, headers)
        if cost > self._cost_max:
            raise self._too_large(cost)

    def _too_large(self, cost: int) -> RecordTooLarge:
        """Why a record that costs so much is refused."""
        settings = self.settings
        if cost + HEADER_SIZE > settings.max_request_size:
            return RecordTooLarge(f"a record of {cost} bytes is over max.request.size, {settings.max_request_size}")
        return RecordTooLarge(f"a record of {cost} bytes is over buffer.memory, {settings.buffer_memory}")

    async def _route(self, topic: str, partition: int | None) -> TopicRoute:
        """What is known of a topic that records are to be sent to."""
        self.check_takes()
        transaction = self._transaction
        route = await self._known(topic, partition)
        self.check_takes(transaction)
        return route

    async def _known(self, topic: str, partition: int | None) -> TopicRoute:
        """What is known of a topic, waiting for it up to `max.block.ms`."""
        self._check_open()
        if self._sender is None:
            room = self._waiting.wake_first
            self._sender = Sender(self.settings, self.cluster, self._world, self._queues, room, self._transactor)
        route = await self._routes.find(topic, partition)
        self._check_open()
        return route

    async def _room(self, cost: int, route: TopicRoute) -> TopicRoute:
        """Waits for room; gives the route to take behind that."""
        assert self._sender is not None
        transaction = self._transaction
        await self._waiting.wait(cost, self._sender)
        self.check_takes(transaction)
        return self._routes.taken_up(route)
