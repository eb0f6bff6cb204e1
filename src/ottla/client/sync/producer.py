"""The producer for threads: `send` may be called from any of them and hands its record over without waiting.

The loop's thread puts the records into their batches, in the order in which they were handed over. Those of a topic
that is not known yet are held in a queue of their own until it is: nobody else's wait for them.
"""

from __future__ import annotations

import asyncio
import threading
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import AbstractAsyncContextManager, contextmanager
from functools import partial
from types import TracebackType
from typing import Any, Final, Self

from ottla.client.arguments import NO_HEADERS, GivenHeaders, check_call, checked_timeout_ms
from ottla.client.errors import BufferExhausted, ClientClosed, ClientFault, KafkaError
from ottla.client.producing import batches
from ottla.client.producing.accumulator import Accumulator
from ottla.client.producing.producer import Producer as AsyncProducer
from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.client.producing.transactions.group_offsets import Committable
from ottla.client.records import (
    ProducerRecord,
    RawRecord,
    RecordMetadata,
    WrittenRows,
    checked_record,
    checked_records,
    numbered,
)
from ottla.client.schemas import waiting_for_schemas
from ottla.client.sync.described import described_by
from ottla.client.sync.loop_thread import LoopThread
from ottla.client.wire.world import ClientPorts
from ottla.model import TopicPartition

#: Records between the callers' threads and the loop's; beyond it `send` waits.
HANDED_OVER_MAX: Final = 10_000
#: Records of one topic that is not known yet; beyond it `send` waits for that topic alone.
HELD_MAX: Final = 1_000
#: Records that go into their batches in one turn of the loop.
_AT_ONCE: Final = 500


class Delivery:
    """What becomes of one record. Call-backs run in the client's own thread and must not wait in it."""

    __slots__ = ("_call", "_error", "_inner", "_producer", "record", "size")

    def __init__(self, producer: Producer, record: RawRecord, call: Callable[[Delivery], object] | None) -> None:
        self._producer = producer
        #: Dropped when it is in its batch.
        self.record: RawRecord | None = record
        self.size = Accumulator.cost(record.key, record.value, record.headers)
        self._inner: batches.Delivery | None = None
        self._error: KafkaError | None = None
        self._call = call

    def done(self) -> bool:
        return self._error is not None or (self._inner is not None and self._inner.done())

    def result(self, timeout: float | None = None) -> RecordMetadata:
        """Where the record was written; raises why not, or TimeoutError after so many seconds."""
        if not self.done():
            self._producer.wait_for(self, timeout)
        if self._error is not None:
            raise self._error
        assert self._inner is not None
        return self._inner.result()

    def exception(self, timeout: float | None = None) -> KafkaError | None:
        if not self.done():
            self._producer.wait_for(self, timeout)
        return self._error if self._inner is None else self._inner.exception()

    # In the loop's thread

    def entered(self, inner: batches.Delivery) -> None:
        self._inner = inner
        self.record = None
        if self._call is not None:
            call = self._call
            inner.add_done_callback(lambda _: call(self))

    def refused(self, error: KafkaError) -> None:
        self._error = error
        self.record = None
        if self._call is not None:
            batches.call_back(self._call, self, "a record that was refused")

    async def known(self) -> None:
        """Waits until the record is in its batch (or refused) and the batch's outcome is known."""
        while (record := self.record) is not None:
            await self._producer.entering(record.topic)
        if self._inner is not None:
            while not self._inner.done():
                await self._inner.batch.wait()


@described_by(AsyncProducer)
class Producer:
    def __init__(
        self, settings: Mapping[str, Any] | None = None, /, *, world: ClientPorts | None = None, **keywords: Any
    ) -> None:
        self._inner = AsyncProducer(settings, world=world, **keywords)
        self.settings = self._inner.settings
        self._thread = LoopThread("ottla-producer", self._left_behind)
        self._handed: deque[Delivery] = deque()
        #: What was handed over and is in no batch yet: how many, and their bytes. Written under `_counting`.
        self._count = self._bytes = 0
        self._counting = threading.Lock()
        self._room = threading.Condition()
        self._taking: asyncio.Task[None] | None = None
        #: Records of topics that are not known yet, and what puts them into their batches when they are.
        self._held: dict[str, deque[Delivery]] = {}
        self._holding: dict[str, asyncio.Task[None]] = {}
        self._ending: asyncio.Task[None] | None = None
        self._told = False
        self._closed = False
        #: Its loop does not run any more.
        self._ended = False

    def __enter__(self) -> Self:
        return self

    def __exit__(
        self, kind: type[BaseException] | None, error: BaseException | None, trace: TracebackType | None
    ) -> None:
        self.close()

    def send(
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
        """Hands a record over; waits only where too many are on their way already."""
        if on_delivery is not None:
            check_call(on_delivery, "on_delivery")
        raw = waiting_for_schemas(lambda: self._inner.checked(topic, value, key, partition, timestamp, headers))
        return self._hand_over(Delivery(self, raw, on_delivery))

    def send_many(self, records: Iterable[ProducerRecord]) -> list[Delivery]:
        """Hands records over, in their order. All are checked before the first is."""
        raws = [
            waiting_for_schemas(
                partial(
                    numbered, number, self._inner.checked, r.topic, r.value, r.key, r.partition, r.timestamp, r.headers
                )
            )
            for number, r in enumerate(checked_records(records))
        ]
        deliveries = [Delivery(self, raw, None) for raw in raws]
        for number, delivery in enumerate(deliveries):
            try:
                self._hand_over(delivery)
            except BufferExhausted as fault:
                self._thread.loop.call_soon_threadsafe(self._inner.not_entered, fault)
                for rest in deliveries[number:]:
                    rest.refused(fault)
                break
        return deliveries

    def _hand_over(self, delivery: Delivery) -> Delivery:
        if self._inner.barred and not self._closed:
            self._inner.check_takes()
        if self._is_full(delivery):
            self._wait_for_room(delivery)
        if self._closed:
            self._thread.check_runs()
            raise ClientClosed("the producer is closed")
        with self._counting:
            self._count += 1
            self._bytes += delivery.size
        self._handed.append(delivery)
        if not self._told:
            try:
                self._told = True
                self._thread.loop.call_soon_threadsafe(self._take)
            except BaseException:  # Ctrl-C: the next one wakes the loop
                self._told = False
                raise
        if self._ended:  # since it was asked above: nobody else looks there any more
            self._refuse_all()
        return delivery

    def _is_full(self, delivery: Delivery) -> bool:
        if self._count >= HANDED_OVER_MAX:
            return True
        if self._bytes and self._bytes + delivery.size > self.settings.buffer_memory:
            return True
        if not self._held or (record := delivery.record) is None:
            return False
        return len(self._held.get(record.topic, ())) >= HELD_MAX

    def _wait_for_room(self, delivery: Delivery) -> None:
        if self._thread.is_here:
            raise BufferExhausted("too many records are on their way, and a call-back must not wait for them")
        max_block_ms = self.settings.max_block_ms
        with self._room:
            seconds = min(max_block_ms / 1000, threading.TIMEOUT_MAX)
            if not self._room.wait_for(lambda: self._closed or not self._is_full(delivery), seconds):
                raise BufferExhausted(
                    f"too many records were on their way for max.block.ms, {max_block_ms}: they come faster than "
                    "brokers take them, or no broker does"
                )

    def send_record(self, record: ProducerRecord) -> Delivery:
        checked_record(record)
        return self.send(
            record.topic,
            record.value,
            record.key,
            partition=record.partition,
            timestamp=record.timestamp,
            headers=record.headers,
        )

    def send_and_wait(
        self,
        topic: str,
        value: Any = None,
        key: Any = None,
        *,
        partition: int | None = None,
        timestamp: int | None = None,
        headers: GivenHeaders = NO_HEADERS,
        timeout: float | None = None,
    ) -> RecordMetadata:
        return self.send(topic, value, key, partition=partition, timestamp=timestamp, headers=headers).result(timeout)

    def send_arrow(self, rows: Any, topic: str | None = None) -> list[WrittenRows]:
        return self._thread.run(lambda: self._send_arrow(rows, topic))

    async def _send_arrow(self, rows: Any, topic: str | None) -> list[WrittenRows]:
        await self.handed_over()  # what was sent before comes first
        return await self._inner.send_arrow(rows, topic)

    def partitions_for(self, topic: str) -> int:
        return self._thread.run(lambda: self._inner.partitions_for(topic))

    def flush(self, timeout: float | None = None) -> None:
        """Until all that was sent before is acknowledged or has failed."""
        self._thread.run(self._flush, timeout)

    # Transactions

    def init_transactions(self, *, anew: bool = False) -> None:
        self._thread.run(lambda: self._inner.init_transactions(anew=anew))

    def take_transactional_id(self, transactional_id: str) -> None:
        self._thread.run(lambda: self._inner.take_transactional_id(transactional_id))

    def begin(self) -> None:
        self._thread.run(self._inner.begin)

    def commit(self) -> None:
        self._thread.run(self._commit)

    def abort(self) -> None:
        self._thread.run(self._abort)

    @contextmanager
    def transaction(self) -> Iterator[None]:
        block = self._inner.transaction()
        self._thread.run(block.__aenter__)
        try:
            yield
        except BaseException as error:
            self._thread.run(partial(self._leave, block, error))
            raise
        self._thread.run(partial(self._leave, block, None))

    def send_offsets(self, offsets: Mapping[TopicPartition, Committable], group: Any) -> None:
        self._thread.run(lambda: self._inner.send_offsets(offsets, group))

    def detach(self) -> TransactionIdentity | None:
        return self._thread.run(self._detach)

    def finish(self, identity: TransactionIdentity, *, commit: bool = True) -> None:
        self._thread.run(lambda: self._inner.finish(identity, commit=commit))

    def close(self, timeout_ms: float | None = None) -> None:
        """Sends what is there, for at most so long, and ends the thread. A transaction that is open is aborted."""
        given_ms = checked_timeout_ms(timeout_ms)
        if self._closed:
            return
        self._thread.check_may_wait()
        self._closed = True
        try:
            self._thread.begin(lambda: self._close(given_ms)).result()
        except BaseException:  # Ctrl-C: no longer a wait, but an end
            self._thread.run(self._close_now)
            raise
        finally:
            with self._room:
                self._room.notify_all()
            self._thread.end()
            self._ended = True
            self._refuse_all()

    def _left_behind(self) -> None:
        """In a process that was forked off: what was handed over is sent by the one that it was handed over in."""
        self._closed, self._room = True, threading.Condition()

    def _refuse_all(self) -> None:
        """In any thread: what was handed over and is in no batch has an end all the same."""
        for waiting in (self._handed, *list(self._held.values())):
            while waiting:
                try:
                    delivery = waiting.popleft()
                except IndexError:  # another thread does the same
                    break
                delivery.refused(_closed())

    def wait_for(self, delivery: Delivery, timeout: float | None) -> None:
        self._thread.run(delivery.known, timeout)

    # In the loop's thread

    def _take(self) -> None:
        self._told = False
        if self._taking is None:
            self._taking = asyncio.get_running_loop().create_task(self._enter_all())

    async def handed_over(self) -> None:
        """Until what was handed over before is in its batches."""
        self._take()
        if self._taking is not None:
            await asyncio.shield(self._taking)
        if self._holding:
            await asyncio.wait(list(self._holding.values()))

    async def entering(self, topic: str) -> None:
        """The same of one topic's."""
        self._take()
        if self._taking is not None:
            await asyncio.shield(self._taking)
        if topic in self._holding:
            await asyncio.wait([self._holding[topic]])

    async def _enter_all(self) -> None:
        handed, inner = self._handed, self._inner
        try:
            while handed:
                for _ in range(_AT_ONCE):
                    if not handed:
                        break
                    delivery = handed.popleft()
                    record = delivery.record
                    assert record is not None
                    if record.topic in self._held:
                        self._held[record.topic].append(delivery)
                    elif self._try_enter(delivery, record):
                        pass
                    elif inner.barred or inner.is_known(record.topic, record.partition):
                        await self._enter(delivery)
                    else:
                        held = self._held[record.topic] = deque([delivery])
                        entering = self._enter_held(record.topic, held)
                        self._holding[record.topic] = asyncio.get_running_loop().create_task(entering)
                self._tell_room()
                await asyncio.sleep(0)  # what is full goes out meanwhile
        finally:
            self._taking = None
            with self._room:
                self._room.notify_all()

    async def _enter_held(self, topic: str, held: deque[Delivery]) -> None:
        """Of a topic that is not known yet. Where it stays so, that is the outcome of all that wait for it."""
        try:
            turn = 0
            while held:
                fault = await self._enter(held.popleft())
                if fault is not None and not self._inner.is_known(topic, None):
                    while held:
                        self._refuse(held.popleft(), fault)
                turn += 1
                if turn % _AT_ONCE == 0:
                    self._tell_room()
                    await asyncio.sleep(0)
        finally:
            while held:  # the loop's end
                self._refuse(held.popleft(), _closed())
            del self._held[topic], self._holding[topic]
            with self._room:
                self._room.notify_all()

    def _try_enter(self, delivery: Delivery, record: RawRecord) -> bool:
        """Whether the record needs no wait: it is in its batch, or refused."""
        try:
            inner = self._inner.try_enter(record)
        except Exception as error:
            self._refuse(delivery, error)
            return True
        if inner is None:
            return False
        self._settled(delivery)
        delivery.entered(inner)
        return True

    async def _enter(self, delivery: Delivery) -> KafkaError | None:
        """Has a record in its batch, waiting for that; gives why it is in none."""
        record = delivery.record
        assert record is not None
        try:
            inner = await self._inner.enter(record)
        except Exception as error:
            return self._refuse(delivery, error)
        except BaseException:  # the loop's end
            self._refuse(delivery, _closed())
            raise
        self._settled(delivery)
        delivery.entered(inner)
        self._tell_room()
        return None

    def _refuse(self, delivery: Delivery, error: Exception) -> KafkaError:
        """This record's outcome, and no other's. A fault that is no KafkaError is our own."""
        if isinstance(error, KafkaError):
            fault = error
        else:
            fault = ClientFault(f"the producer failed: {type(error).__name__}: {error}")
            fault.__cause__ = error
        self._inner.not_entered(fault)
        self._settled(delivery)
        delivery.refused(fault)
        return fault

    def _settled(self, delivery: Delivery) -> None:
        with self._counting:
            self._count -= 1
            self._bytes -= delivery.size

    def _tell_room(self) -> None:
        if self._count < HANDED_OVER_MAX // 2 and self._bytes <= self.settings.buffer_memory // 2:
            with self._room:
                self._room.notify_all()

    async def _commit(self) -> None:
        await self.handed_over()  # what was sent before belongs to it
        await self._inner.commit()

    async def _abort(self) -> None:
        await self.handed_over()
        await self._inner.abort()

    async def _detach(self) -> TransactionIdentity | None:
        await self.handed_over()
        return await self._inner.detach()

    async def _leave(self, block: AbstractAsyncContextManager[None], error: BaseException | None) -> None:
        await self.handed_over()
        if error is None:
            await block.__aexit__(None, None, None)
        else:
            await block.__aexit__(type(error), error, error.__traceback__)

    async def _flush(self) -> None:
        await self.handed_over()
        await self._inner.flush()

    async def _close(self, timeout_ms: float | None) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._end(timeout_ms))
        await asyncio.shield(self._ending)

    async def _close_now(self) -> None:
        """Nobody waits any more for what is on its way: it has an end all the same, and so have the connections."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(0))
        elif not self._ending.done():
            self._ending.cancel()
        await asyncio.wait([self._ending])

    async def _end(self, timeout_ms: float | None) -> None:
        loop = asyncio.get_running_loop()
        deadline = None if timeout_ms is None else loop.time() + timeout_ms / 1000
        try:
            async with asyncio.timeout_at(deadline):
                await self.handed_over()
        except TimeoutError:
            pass
        except asyncio.CancelledError:  # by `_close_now`
            await self._inner.close(0)
            raise
        await self._inner.close(None if deadline is None else max(0.0, (deadline - loop.time()) * 1000))
        self._refuse_all()


def _closed() -> ClientClosed:
    return ClientClosed("the producer was closed before the record was sent")
