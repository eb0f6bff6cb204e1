"""From the queues to the brokers and back: which batches go now, and what an answer means for each.

Everything happens in `_pump`, which runs once a turn of the loop when something has changed: a batch became full or
due, an answer came, a connection opened, a leader is known. A request takes one batch of each partition that its
broker leads, up to `max.request.size`; a connection holds at most `max.in.flight` of them.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final

from ottla.client.errors import BadAnswer, ClientFault, DeliveryTimedOut, KafkaError, error_of
from ottla.client.producing.accumulator import Accumulator
from ottla.client.producing.batches import ProducerBatch
from ottla.client.producing.identity_source import IdentitySource
from ottla.client.producing.queues import PartitionQueue
from ottla.client.producing.sequences import Identities
from ottla.client.producing.transactions.transactor import Transactor
from ottla.client.records import UNKNOWN_OFFSET
from ottla.client.settings import ProducerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.connections import DATA
from ottla.client.wire.metadata import Node, error_code
from ottla.model import NO_TIMESTAMP, ZERO_TOPIC_ID, ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.produce import (
    PartitionProduceData,
    PartitionProduceResponse,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.records.compression import CODECS

if TYPE_CHECKING:
    from ottla.client.wire.world import ClientPorts

#: Topics are named by their ids from this version on.
_BY_ID: Final = 13
#: zstd came with this version.
_ZSTD: Final = 7
#: Leaders add partitions to transactions themselves from this version on; it is asked for only where all brokers do.
_ADDS_PARTITIONS: Final = 12
#: What a request needs beside its batches, by far.
_REQUEST_OVERHEAD: Final = 512
#: Metadata that made us send to the wrong place.
_STALE: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.NETWORK_EXCEPTION,
    }
)
_TOO_LARGE: Final = frozenset({ErrorCode.MESSAGE_TOO_LARGE, ErrorCode.RECORD_LIST_TOO_LARGE})


class Sender:
    def __init__(
        self,
        settings: ProducerSettings,
        cluster: Cluster,
        world: ClientPorts,
        accumulator: Accumulator,
        on_room: Callable[[], None],
        transactor: Transactor | None = None,
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._clock = world.clock
        self._queues = accumulator
        self._on_room = on_room
        self._loop = asyncio.get_running_loop()
        self._idempotent = settings.enable_idempotence is True
        self._in_flight_max = settings.max_in_flight_requests_per_connection
        self._codec = CODECS[settings.compression_type]
        self._level: int | None = getattr(settings, f"compression_{settings.compression_type}_level", None)
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, world.entropy)
        self._transactor = transactor
        self._identities = Identities() if transactor is None else transactor.identities
        #: None where the transactions' coordinator gives the identity.
        self._identity_source: IdentitySource | None = None
        if transactor is None:
            self._identity_source = IdentitySource(self._identities, cluster, self._backoff, self.wake, self.stop)
        else:
            transactor.outbound = self
        self._pump_scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        #: What stopped the sender for good.
        self.fault: KafkaError | None = None
        #: Turns that producers have asked for and that have not come yet.
        self.turns_owed = 0
        #: Batches sent and not answered, of all partitions.
        self._on_wire = 0
        #: Callers that wait until nothing is under way.
        self._quiet: list[asyncio.Future[None]] = []
        cluster.on_change.append(self.wake)

    def wake(self) -> None:
        """Looks at everything in the loop's next turn."""
        if not self._pump_scheduled and self.fault is None:
            self._pump_scheduled = True
            self._loop.call_soon(self._pump)

    async def close(self, error: KafkaError) -> None:
        """Gives up what is not settled."""
        self.stop(error)
        if self._identity_source is not None:
            await self._identity_source.close()

    async def quiet(self) -> None:
        """Until nothing is on the wire, and nothing waits to be."""
        if self.fault is None and (self._on_wire or self._queues.live):
            future: asyncio.Future[None] = self._loop.create_future()
            self._quiet.append(future)
            await future

    def stop(self, error: KafkaError) -> None:
        if self.fault is not None:
            return
        self.fault = error
        if self._timer is not None:
            self._timer.cancel()
        for batch in list(self._queues.live):
            self._queues.release(batch)
            batch.finish(UNKNOWN_OFFSET, NO_TIMESTAMP, error)
        self._queues.ready.clear()
        self._on_room()
        self._tell_quiet()

    def _tell_quiet(self) -> None:
        waiting, self._quiet = self._quiet, []
        for future in waiting:
            if not future.done():
                future.set_result(None)

    # Out

    def _pump(self) -> None:
        self._pump_scheduled = False
        self.turns_owed = 0
        if self.fault is not None:
            return
        try:
            self._pump_once()
        except Exception as error:
            self._fail_all(error)

    def _fail_all(self, error: Exception) -> None:
        """A fault of our own: nobody may wait for ever for a record that is not sent any more."""
        fault = ClientFault(f"the producer failed: {type(error).__name__}: {error}")
        fault.__cause__ = error
        self.stop(fault)

    def _pump_once(self) -> None:
        now_ms = self._clock.monotonic_ms()
        next_ms = self._queues.take_due(now_ms)
        self._expire(now_ms)
        if self._transactor is not None:
            self._drop_waiting(self._transactor.dropping())
        if self._queues.ready and self._has_identity():
            retry_ms = self._send_ready(now_ms)
            if retry_ms is not None and (next_ms is None or retry_ms < next_ms):
                next_ms = retry_ms
        if self._quiet and not self._on_wire and not self._queues.live:
            self._tell_quiet()
        if self.fault is None:
            self._set_timer(now_ms, next_ms)

    def _has_identity(self) -> bool:
        return not self._idempotent or self._identity_source is None or self._identity_source.ready()

    def _drop_waiting(self, outcome: KafkaError | None) -> None:
        """Records of a transaction that is given up are not sent; what is on the wire has its answer first."""
        if outcome is None:
            return
        for batch in list(self._queues.live):
            if not batch.on_wire:
                self._queues.remove_waiting(batch)
                self._fail(batch, outcome, known=batch.attempts == 0)
        self._on_room()

    def _set_timer(self, now_ms: int, next_ms: int | None) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        oldest = next(iter(self._queues.live), None)
        if oldest is not None and (next_ms is None or oldest.deadline_ms < next_ms):
            next_ms = oldest.deadline_ms
        if next_ms is not None:
            self._timer = self._loop.call_later(max(1, next_ms - now_ms) / 1000, self._pump)

    def _send_ready(self, now_ms: int) -> int | None:
        """Sends all that may go; returns when something that may not go yet will be able to."""
        next_ms: int | None = None
        rooms: dict[int, BrokerConnection | None] = {}
        sent = True
        while sent:
            requests: dict[int, list[ProducerBatch]] = {}
            sizes: dict[int, int] = {}
            for queue in list(self._queues.ready):
                batch = queue.waiting[0]
                if batch.not_before_ms > now_ms:
                    next_ms = batch.not_before_ms if next_ms is None else min(next_ms, batch.not_before_ms)
                    continue
                if not self._may_go(queue, batch):
                    continue
                leader = self._cluster.metadata.leader(queue.topic, queue.partition)
                if leader is None:
                    self._cluster.request_update()
                    if batch.last_fault is None:
                        about = str(queue)
                        batch.last_fault = error_of(ErrorCode.LEADER_NOT_AVAILABLE, "it has no leader", about=about)
                    continue
                node = leader.leader
                if node not in rooms or node not in requests:
                    rooms[node] = self._room(node)
                if rooms[node] is None:
                    continue
                size = sizes.get(node, _REQUEST_OVERHEAD) + batch.builder.size
                if node in requests and size > self._settings.max_request_size:
                    continue
                sizes[node] = size
                requests.setdefault(node, []).append(self._queues.take(queue))
            sent = bool(requests)
            for node, batches in requests.items():
                connection = rooms[node]
                assert connection is not None
                self._send(connection, batches)
                if self.fault is not None:
                    return None
        for node in rooms:
            connection = self._cluster.connections.open(node, DATA)
            pause = 0.0 if connection is None else connection.throttled_until - self._loop.time()
            if pause > 0:  # nothing else would wake us at its end
                again_ms = now_ms + int(pause * 1000) + 1
                next_ms = again_ms if next_ms is None else min(next_ms, again_ms)
        return next_ms

    def _may_go(self, queue: PartitionQueue, batch: ProducerBatch) -> bool:
        if queue.on_wire and self._in_flight_max == 1:
            return False  # the promise of one in flight is the partition's order, even across a change of leader
        if self._transactor is not None and not self._transactor.admits(queue.topic, queue.partition):
            return False
        return not self._idempotent or queue.sequences.may_send(batch, self._identities, queue.on_wire)

    def _room(self, node: int) -> BrokerConnection | None:
        """The connection to a leader, if it takes another request now."""
        connection = self._cluster.connections.open(node, DATA)
        if connection is None:
            self._cluster.connections.open_soon(node, DATA, self.wake)
            return None
        if connection.in_flight >= self._in_flight_max or not connection.sendable:
            connection.on_writable = self.wake  # with acks=0 no answer would wake us
            return None
        return connection

    def _send(self, connection: BrokerConnection, batches: list[ProducerBatch]) -> None:
        try:
            version = self._version(connection)
        except KafkaError as error:
            for batch in batches:
                self._fail(batch, error, known=True)
            return
        ids = self._topic_ids(batches) if version >= _BY_ID else None
        if ids is None:
            version = min(version, _BY_ID - 1)
        request = self._request(batches, ids)
        try:
            if not self._settings.acks:
                connection.send_unanswered(request, version)
                for batch in batches:
                    self._over(batch)
                    batch.finish(UNKNOWN_OFFSET, NO_TIMESTAMP, None)
                return
            future = connection.send(request, ProduceResponse, version, self._settings.request_timeout_ms)
        except KafkaError as error:
            for batch in batches:
                self._try_again_or_fail(batch, error, -1)
            return
        for batch in batches:
            batch.on_wire = True
            batch.queue.on_wire += 1
        self._on_wire += len(batches)
        # Kept with the request: when the answer comes, the metadata may not have the topic, or another of its name.
        asked = {} if ids is None else ids
        future.add_done_callback(lambda done: self._take_answer(done, batches, asked))

    def _topic_ids(self, batches: list[ProducerBatch]) -> dict[str, bytes] | None:
        """The ids of these batches' topics by their names; None where one is not known."""
        ids: dict[str, bytes] = {}
        for batch in batches:
            known = self._cluster.metadata.topics.get(batch.queue.topic)
            if known is None or known.topic_id == ZERO_TOPIC_ID:
                return None
            ids[known.name] = known.topic_id
        return ids

    def _version(self, connection: BrokerConnection) -> int:
        at_least = _ZSTD if self._settings.compression_type == "zstd" else 3
        if self._transactor is None:
            return connection.version(ApiKey.PRODUCE, at_least=at_least)
        if self._transactor.is_newer():
            return connection.version(ApiKey.PRODUCE, at_least=_ADDS_PARTITIONS)
        return connection.version(ApiKey.PRODUCE, at_least=at_least, at_most=_ADDS_PARTITIONS - 1)

    def _request(self, batches: list[ProducerBatch], ids: dict[str, bytes] | None) -> ProduceRequest:
        data: dict[str, TopicProduceData] = {}
        for batch in batches:
            queue = batch.queue
            batch.attempts += 1
            identity = None
            if self._idempotent:
                queue.sequences.stamp(batch)
                identity = batch.identity
            producer_id, epoch = identity if identity is not None else (-1, -1)
            records = batch.builder.build(
                compression=self._codec,
                level=self._level,
                producer_id=producer_id,
                producer_epoch=epoch,
                base_sequence=batch.sequence if batch.sequence is not None else -1,
                transactional=self._transactor is not None,
            )
            topic = data.get(queue.topic)
            if topic is None:
                topic = data[queue.topic] = (
                    TopicProduceData(name=queue.topic) if ids is None else TopicProduceData(topic_id=ids[queue.topic])
                )
            topic.partition_data.append(PartitionProduceData(index=queue.partition, records=records))
        return ProduceRequest(
            transactional_id=None if self._transactor is None else self._transactor.core.transactional_id,
            acks=self._settings.acks,
            timeout_ms=self._settings.request_timeout_ms,
            topic_data=list(data.values()),
        )

    # Back

    def _take_answer(
        self, future: asyncio.Future[ProduceResponse], batches: list[ProducerBatch], ids: dict[str, bytes]
    ) -> None:
        try:
            self._answered(future, batches, ids)
        except Exception as error:
            self._fail_all(error)

    def _answered(
        self, future: asyncio.Future[ProduceResponse], batches: list[ProducerBatch], ids: dict[str, bytes]
    ) -> None:
        for batch in batches:
            batch.on_wire = False
            batch.queue.on_wire -= 1
        self._on_wire -= len(batches)
        if self.fault is not None or future.cancelled():
            return
        error = future.exception()
        if isinstance(error, KafkaError):
            for batch in batches:
                self._try_again_or_fail(batch, error, -1)
        else:
            answer = future.result()
            names = {topic_id: name for name, topic_id in ids.items()}
            answered = {
                (topic.name or names.get(bytes(topic.topic_id), ""), one.index): one
                for topic in answer.responses
                for one in topic.partition_responses
            }
            nodes = [Node(one.node_id, one.host, one.port, one.rack) for one in answer.node_endpoints]
            for batch in batches:
                queue = batch.queue
                topic_id = ids.get(queue.topic, ZERO_TOPIC_ID)
                self._judge(batch, topic_id, answered.get((queue.topic, queue.partition)), nodes)
        self.wake()
        self._on_room()

    def _judge(
        self, batch: ProducerBatch, topic_id: bytes, answered: PartitionProduceResponse | None, nodes: list[Node]
    ) -> None:
        if answered is None:
            self._try_again_or_fail(batch, BadAnswer(f"the answer says nothing about {batch.queue}"), -1)
            return
        code = error_code(answered.error_code)
        if code is ErrorCode.NONE or code is ErrorCode.DUPLICATE_SEQUENCE_NUMBER:
            # A duplicate that the broker has no offset for any more is in the log all the same.
            base = answered.base_offset if code is ErrorCode.NONE else UNKNOWN_OFFSET
            if self._idempotent:
                batch.queue.sequences.acknowledged(batch)
            self._over(batch)
            batch.finish(base, answered.log_append_time_ms, None)
            return
        if answered.current_leader.leader_id >= 0:
            leader, tp = answered.current_leader, (batch.queue.topic, batch.queue.partition)
            self._cluster.learn_leader(tp, topic_id, leader.leader_id, leader.leader_epoch, nodes)
        if code in _TOO_LARGE and batch.count > 1 and not batch.done:
            self._split(batch)
            return
        message = answered.error_message
        if answered.record_errors:
            listed = "; ".join(
                f"record {one.batch_index}: {one.batch_index_error_message}" for one in answered.record_errors
            )
            message = f"{message or ''} ({listed})"
        error = error_of(answered.error_code, message, about=str(batch.queue))
        self._try_again_or_fail(batch, error, answered.log_start_offset)

    def _split(self, batch: ProducerBatch) -> None:
        parts = self._queues.split(batch)
        if self._idempotent:
            batch.queue.sequences.replaced(batch, parts)
        for part in parts:
            self._queues.put_back(part, 0)

    def _try_again_or_fail(self, batch: ProducerBatch, error: KafkaError, log_start_offset: int) -> None:
        code = error.code
        if code in _STALE:
            self._cluster.request_update()
        if self._transactor is not None:
            # What numbers that begin anew would mend elsewhere ends the transaction: it is written whole or not at all.
            late = code is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and not batch.queue.sequences.is_first(batch)
            retriable = (code.retriable or late) and self._transactor.dropping() is None
        elif self._idempotent:
            retriable = batch.queue.sequences.is_retriable(batch, code, log_start_offset)
        else:
            retriable = code.retriable
        now_ms = self._clock.monotonic_ms()
        batch.last_fault = error
        if batch.done:  # its time was over while it was on the wire
            self._fail(batch, error, known=not retriable)
        elif not retriable:
            self._fail(batch, error, known=True)
        elif batch.attempts > self._settings.retries:
            self._fail(batch, error, known=False)
        else:
            pauses = self._backoff
            if self._transactor is not None and code is ErrorCode.CONCURRENT_TRANSACTIONS:
                pauses = self._transactor.soon
            self._queues.put_back(batch, now_ms + pauses.pause_ms(max(1, batch.attempts)))

    def _fail(self, batch: ProducerBatch, error: KafkaError, *, known: bool) -> None:
        """A batch's end. `known`: it is certain that it was not written."""
        if self._idempotent:
            if known:
                batch.queue.sequences.refused(batch)
            else:
                batch.queue.sequences.given_up(batch)
        self._over(batch)
        batch.finish(UNKNOWN_OFFSET, NO_TIMESTAMP, error)
        if self._transactor is not None:
            self._transactor.batch_failed(error, stamped=batch.sequence is not None)

    def _expire(self, now_ms: int) -> None:
        """Fails what was not acknowledged in time. The oldest comes first: all have the same time."""
        expired = False
        while (batch := next(iter(self._queues.live), None)) is not None and batch.deadline_ms <= now_ms:
            expired = True
            fault = batch.last_fault
            if fault is None and self._identity_source is not None:
                fault = self._identity_source.fault
            last = f"; the last fault was: {fault}" if fault is not None else ""
            error = DeliveryTimedOut(
                f"{batch.queue}: {batch.count} record{'s were' if batch.count > 1 else ' was'} not acknowledged within "
                f"{self._settings.delivery_timeout_ms} ms{last}"
            )
            if batch.on_wire:
                # Its answer still says where the sequence numbers stand; its memory is free when that has come.
                self._queues.live.pop(batch)
                batch.finish(UNKNOWN_OFFSET, NO_TIMESTAMP, error)
                if self._transactor is not None:
                    self._transactor.batch_failed(error, stamped=True)
                continue
            self._queues.remove_waiting(batch)
            self._fail(batch, error, known=batch.attempts == 0)
        if expired:
            self._on_room()

    def _over(self, batch: ProducerBatch) -> None:
        self._queues.release(batch)
