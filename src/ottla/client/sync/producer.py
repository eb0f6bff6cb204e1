"""The producer for threads: `send` may be called from any of them and hands its record over without waiting."""

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
from ottla.client.errors import ClientClosed, ClientFault, KafkaError
from ottla.client.producing import batches
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
#: Records that go into their batches in one turn of the loop.
_AT_ONCE: Final = 500


class Delivery:
    """What becomes of one record. Call-backs run in the client's own thread and must not wait in it."""

    __slots__ = ("_call", "_error", "_inner", "_producer", "record")

    def __init__(self, producer: Producer, record: RawRecord, call: Callable[[Delivery], object] | None) -> None:
        self._producer = producer
        #: Dropped when it is in its batch.
        self.record: RawRecord | None = record
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
        while self.record is not None:
            await self._producer.handed_over()
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
        self._thread = LoopThread("ottla-producer")
        self._handed: deque[Delivery] = deque()
        self._room = threading.Condition()
        self._taking: asyncio.Task[None] | None = None
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
        return [self._hand_over(Delivery(self, raw, None)) for raw in raws]

    def _hand_over(self, delivery: Delivery) -> Delivery:
        if self._inner.barred and not self._closed:
            self._inner.check_takes()
        if len(self._handed) >= HANDED_OVER_MAX:
            with self._room:
                self._room.wait_for(lambda: self._closed or len(self._handed) < HANDED_OVER_MAX)
        if self._closed:
            raise ClientClosed("the producer is closed")
        self._handed.append(delivery)
        if not self._told:
            self._told = True
            self._thread.loop.call_soon_threadsafe(self._take)
        if self._ended:  # since it was asked above: nobody else looks there any more
            self._refuse_all()
        return delivery

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

    def close(self, timeout_ms: int | None = None) -> None:
        """Sends what is there, for at most so long, and ends the thread. A transaction that is open is aborted."""
        checked_timeout_ms(timeout_ms)
        if self._closed:
            return
        self._closed = True
        try:
            self._thread.begin(lambda: self._close(timeout_ms)).result()
        except BaseException:  # Ctrl-C: no longer a wait, but an end
            self._thread.run(self._close_now)
            raise
        finally:
            with self._room:
                self._room.notify_all()
            self._thread.end()
            self._ended = True
            self._refuse_all()

    def _refuse_all(self) -> None:
        """In any thread: what was handed over and is in no batch has an end all the same."""
        while self._handed:
            try:
                delivery = self._handed.popleft()
            except IndexError:  # another thread does the same
                return
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

    async def _enter_all(self) -> None:
        handed, producer = self._handed, self._inner
        try:
            while handed:
                for _ in range(_AT_ONCE):
                    if not handed:
                        break
                    delivery = handed.popleft()
                    record = delivery.record
                    assert record is not None
                    try:
                        inner = producer.try_enter(record) or await producer.enter(record)
                    except KafkaError as error:
                        producer.not_entered(error)
                        delivery.refused(error)
                    except Exception as error:  # a fault of our own: this record's, and no other's
                        fault = ClientFault(f"the producer failed: {type(error).__name__}: {error}")
                        fault.__cause__ = error
                        producer.not_entered(fault)
                        delivery.refused(fault)
                    except BaseException:  # the loop's end
                        delivery.refused(_closed())
                        raise
                    else:
                        delivery.entered(inner)
                if len(handed) < HANDED_OVER_MAX // 2:
                    with self._room:
                        self._room.notify_all()
                await asyncio.sleep(0)  # what is full goes out meanwhile
        finally:
            self._taking = None
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

    async def _close(self, timeout_ms: int | None) -> None:
        self._ending = asyncio.get_running_loop().create_task(self._end(timeout_ms))
        await asyncio.shield(self._ending)

    async def _close_now(self) -> None:
        """Nobody waits any more for what is on its way: it has an end all the same, and so have the connections."""
        if self._ending is None:
            self._ending = asyncio.get_running_loop().create_task(self._end(0))
        elif not self._ending.done():
            self._ending.cancel()
        await asyncio.wait([self._ending])

    async def _end(self, timeout_ms: int | None) -> None:
        try:
            async with asyncio.timeout(None if timeout_ms is None else timeout_ms / 1000):
                await self.handed_over()
        except TimeoutError:
            pass
        except asyncio.CancelledError:  # by `_close_now`
            await self._inner.close(0)
            raise
        await self._inner.close(timeout_ms)
        self._refuse_all()


def _closed() -> ClientClosed:
    return ClientClosed("the producer was closed before the record was sent")
