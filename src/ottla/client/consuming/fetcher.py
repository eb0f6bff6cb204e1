"""Reads ahead: keeps one fetch on its way to every broker that leads an assigned partition with room for more.

As the sender does, it looks at everything in one turn of the loop whenever something has changed. What comes is put
into the partitions' buffers as it is; decoding is left to the caller that takes the records out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Final, NamedTuple

from ottla.client.consuming.assignment import CHUNKS_MAX, AssignedPartition, Chunk
from ottla.client.consuming.fetch_session import FetchSession, WantedPartition
from ottla.client.consuming.resets import Resets
from ottla.client.errors import (
    ClientFault,
    CorruptRecords,
    KafkaError,
    LogTruncated,
    OffsetOutOfRange,
    RecordTooLarge,
    error_of,
)
from ottla.client.settings import ConsumerSettings
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.connections import DATA
from ottla.client.wire.metadata import Node, error_code
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.model import NO_BROKER, NO_EPOCH, ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.fetch import FetchRequest, FetchResponse, PartitionData
from ottla.records.batch import MAGIC, iterate
from ottla.records.errors import RecordError
from ottla.records.legacy import is_legacy

if TYPE_CHECKING:
    from ottla.client.wire.world import ClientPorts

#: Topics are named by their ids from this version on.
_BY_ID: Final = 13
#: Answers name a divergence from this version on.
_DIVERGING: Final = 12
_RACKS: Final = 11
_ISOLATION: Final = 4
_SESSIONS: Final = 7
_LEADER_EPOCHS: Final = 9

_SESSION_GONE: Final = frozenset({ErrorCode.FETCH_SESSION_ID_NOT_FOUND, ErrorCode.INVALID_FETCH_SESSION_EPOCH})
#: Errors of a partition that pass when metadata is fresh, or by themselves.
_PASSING: Final = frozenset(
    {
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
        ErrorCode.REPLICA_NOT_AVAILABLE,
        ErrorCode.KAFKA_STORAGE_ERROR,
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.OFFSET_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.LEADER_NOT_AVAILABLE,
        ErrorCode.UNKNOWN_SERVER_ERROR,
    }
)


class AskedPartition(NamedTuple):
    """What a fetch on its way asks of one partition."""

    one: AssignedPartition
    generation: int
    offset: int
    #: Whether the broker that is asked leads it, as far as is known; otherwise it is a replica to read from.
    of_leader: bool

    @property
    def is_awaited(self) -> bool:
        """Whether its answer still counts: a partition may be on its way from two brokers, and the first that brings
        something moves on."""
        one = self.one
        return one.generation == self.generation and one.fetch_offset == self.offset and one.error is None


_Asked = dict[TopicPartition, AskedPartition]


class Fetcher:
    def __init__(
        self,
        settings: ConsumerSettings,
        cluster: Cluster,
        world: ClientPorts,
        assigned: dict[TopicPartition, AssignedPartition],
        resets: Resets,
        on_news: Callable[[], None],
    ) -> None:
        self._settings = settings
        self._cluster = cluster
        self._clock = world.clock
        self._assigned = assigned
        self._resets = resets
        self._on_news = on_news
        self._loop = asyncio.get_running_loop()
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, world.entropy)
        self._isolation = READ_COMMITTED if settings.isolation_level == "read_committed" else READ_UNCOMMITTED
        self._sessions: dict[int, FetchSession] = {}
        #: Brokers that a fetch is on its way to.
        self._under_way: set[int] = set()
        self._failures: dict[int, int] = {}
        self._scheduled = False
        self._timer: asyncio.TimerHandle | None = None
        self._closed = False
        cluster.on_change.append(self.wake)

    def wake(self) -> None:
        if not self._scheduled and not self._closed:
            self._scheduled = True
            self._loop.call_soon(self._pump)

    def _placed(self) -> None:
        """A look-up of positions has ended, one way or the other."""
        self._on_news()
        self.wake()

    def close(self) -> None:
        self._closed = True
        if self._timer is not None:
            self._timer.cancel()

    # Out

    def _pump(self) -> None:
        self._scheduled = False
        if self._closed:
            return
        try:
            self._pump_once()
        except Exception as error:
            self._tell_all(error)

    def _tell_all(self, error: Exception) -> None:
        """A fault of our own: the next poll raises it, and the one after that tries again."""
        for one in self._assigned.values():
            fault = ClientFault(f"{one.tp}: the consumer failed: {type(error).__name__}: {error}")
            fault.__cause__ = error
            one.error = one.error or fault
        self._on_news()

    def _pump_once(self) -> None:
        now_ms = self._clock.monotonic_ms()
        self._resets.begin(self._assigned, self._placed)
        next_ms: int | None = None
        groups: dict[int, list[AssignedPartition]] = {}
        # What is not given out now would keep the others waiting for as long.
        buffered = sum(one.buffered_bytes for one in self._assigned.values() if one.gives_out)
        for one in self._assigned.values():
            if not _wants_more(one) or buffered > self._settings.fetch_max_bytes:
                continue
            if one.not_before_ms > now_ms:
                next_ms = one.not_before_ms if next_ms is None else min(next_ms, one.not_before_ms)
                continue
            node = self._source(one, now_ms)
            if node is None:
                if not self._resets.refused(one, self._on_news):
                    self._cluster.request_update()
            elif node not in self._under_way:
                groups.setdefault(node, []).append(one)
        for node, group in groups.items():
            connection = self._cluster.connections.open(node, DATA)
            if connection is not None and connection.sendable:
                self._fetch(node, connection, group)
            elif connection is None:
                self._cluster.connections.open_soon(node, DATA, self.wake)
            else:
                pause_ms = max(1, int((connection.throttled_until - self._loop.time()) * 1000) + 1)
                next_ms = now_ms + pause_ms if next_ms is None else min(next_ms, now_ms + pause_ms)
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None
        if next_ms is not None:
            self._timer = self._loop.call_later(max(1, next_ms - now_ms) / 1000, self._pump)

    def _source(self, one: AssignedPartition, now_ms: int) -> int | None:
        """The broker to read from: the leader, or for a while the replica that it recommended."""
        if one.read_replica >= 0:
            if now_ms < one.read_replica_until_ms and one.read_replica in self._cluster.metadata.nodes:
                return one.read_replica
            one.read_replica = NO_BROKER
        leader = self._cluster.metadata.leader(*one.tp)
        return None if leader is None else leader.leader

    def _fetch(self, node: int, connection: BrokerConnection, group: list[AssignedPartition]) -> None:
        settings = self._settings
        metadata = self._cluster.metadata
        try:
            version = connection.version(ApiKey.FETCH, at_least=_ISOLATION)
        except KafkaError as error:
            for one in group:
                one.error = error
            self._on_news()
            return
        topics = {one.tp.topic: metadata.topics[one.tp.topic] for one in group if one.tp.topic in metadata.topics}
        if version >= _BY_ID and any(
            one.tp.topic not in topics or topics[one.tp.topic].topic_id == ZERO_TOPIC_ID for one in group
        ):
            version = _BY_ID - 1
        wanted: dict[TopicPartition, WantedPartition] = {}
        asked: _Asked = {}
        for one in group:
            leader = metadata.leader(*one.tp)
            wanted[one.tp] = WantedPartition(
                topics[one.tp.topic].topic_id if version >= _BY_ID else ZERO_TOPIC_ID,
                one.fetch_offset,
                leader.leader_epoch if leader is not None and version >= _LEADER_EPOCHS else NO_EPOCH,
                one.fetch_epoch if version >= _DIVERGING else NO_EPOCH,
                settings.max_partition_fetch_bytes,
            )
            leads = leader is not None and leader.leader == node
            asked[one.tp] = AskedPartition(one, one.generation, one.fetch_offset, leads)
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=self._isolation,
            rack_id=settings.client_rack if version >= _RACKS else "",
        )
        session = self._sessions.setdefault(node, FetchSession())
        if version >= _SESSIONS:
            session.fill(request, wanted, by_id=version >= _BY_ID)
        else:
            session.restart()
            session.fill(request, wanted, by_id=False)
        timeout_ms = settings.request_timeout_ms + settings.fetch_max_wait_ms
        try:
            future = connection.send(request, FetchResponse, version, timeout_ms)
        except KafkaError as error:
            self._fetch_failed(node, asked, error)
            return
        self._under_way.add(node)
        future.add_done_callback(lambda done: self._take_answer(node, asked, done))

    # Back

    def _take_answer(self, node: int, asked: _Asked, future: asyncio.Future[FetchResponse]) -> None:
        try:
            self._answered(node, asked, future)
        except Exception as error:
            self._sessions.setdefault(node, FetchSession()).restart()  # it may have gone on without us
            self._tell_all(error)

    def _answered(self, node: int, asked: _Asked, future: asyncio.Future[FetchResponse]) -> None:
        self._under_way.discard(node)
        if self._closed or future.cancelled():
            return
        error = future.exception()
        if isinstance(error, KafkaError):
            self._fetch_failed(node, asked, error)
            return
        answer = future.result()
        session = self._sessions[node]
        if answer.error_code:
            code = error_code(answer.error_code)
            if code in _SESSION_GONE:
                session.forget()
                self.wake()
            else:
                self._fetch_failed(node, asked, error_of(answer.error_code, about=f"broker {node}"))
            return
        session.answered(answer.session_id)
        self._failures.pop(node, None)
        names = self._cluster.metadata.names
        nodes = [Node(one.node_id, one.host, one.port, one.rack) for one in answer.node_endpoints]
        for topic in answer.responses:
            name = topic.topic or names.get(bytes(topic.topic_id), "")
            for data in topic.partitions:
                found = asked.get(TopicPartition(name, data.partition_index))
                if found is not None and found.is_awaited:
                    self._take(found, bytes(topic.topic_id), data, nodes)
        self._on_news()
        self.wake()

    def _fetch_failed(self, node: int, asked: _Asked, error: KafkaError) -> None:
        """Nothing came: all is asked again, of the leaders that metadata then names."""
        self._sessions.setdefault(node, FetchSession()).restart()
        failures = self._failures[node] = self._failures.get(node, 0) + 1
        until_ms = self._clock.monotonic_ms() + self._backoff.pause_ms(failures)
        for found in asked.values():
            one = found.one
            one.not_before_ms = until_ms
            one.read_replica = NO_BROKER
            if not error.retriable:
                one.error = error
        self._cluster.request_update()
        self._on_news()
        self.wake()

    def _take(self, asked: AskedPartition, topic_id: bytes, data: PartitionData, nodes: list[Node]) -> None:
        one, offset = asked.one, asked.offset
        code = error_code(data.error_code)
        if code is not ErrorCode.NONE:
            self._refused(asked, code, topic_id, data, nodes)
            return
        replica, brings_records = data.preferred_read_replica, data.records is not None and len(data.records) > 0
        if replica >= 0 and not brings_records and replica not in self._cluster.metadata.nodes:
            self._ask_again(one)  # it has come since we looked, and its leader gives nothing to whom it sends there
            return
        one.failures = 0
        if data.diverging_epoch.epoch >= 0:
            self._truncated(one, offset, data.diverging_epoch.epoch, data.diverging_epoch.end_offset)
            return
        one.high_watermark = data.high_watermark
        one.last_stable_offset = data.last_stable_offset
        one.log_start_offset = data.log_start_offset
        if replica >= 0:
            one.read_replica = replica
            one.read_replica_until_ms = self._clock.monotonic_ms() + self._settings.metadata_max_age_ms
        if data.records is None or not brings_records:
            return
        end, last, records = 0, None, data.records
        try:
            if is_legacy(records, 0):  # hardly ever: it takes codecs along
                from ottla.records.old_batches import as_batches

                records = as_batches(records, check_crcs=self._settings.check_crcs)
            for pos, header in iterate(records, 0, len(records)):
                if header.magic < MAGIC and last is not None:
                    break  # an old message behind batches is the first of the next answer
                end, last = pos + header.size, header
        except RecordError as error:
            if last is None:
                one.error = CorruptRecords(f"{one.tp}: what was fetched at offset {offset}: {error}", one.tp, offset)
                return
        if last is None:
            one.error = RecordTooLarge(f"{one.tp}: the batch at offset {offset} did not come whole")
            return
        aborted = None
        if self._isolation == READ_COMMITTED:
            aborted = [(row.first_offset, row.producer_id) for row in data.aborted_transactions or ()]
        one.chunks.append(Chunk(topic_id, records, end, aborted))
        one.fetch_offset = max(offset, last.next_offset)
        one.fetch_epoch = last.leader_epoch

    def _refused(
        self, asked: AskedPartition, code: ErrorCode, topic_id: bytes, data: PartitionData, nodes: list[Node]
    ) -> None:
        one, offset = asked.one, asked.offset
        if data.current_leader.leader_id >= 0:
            leader = data.current_leader
            self._cluster.learn_leader(one.tp, topic_id, leader.leader_id, leader.leader_epoch, nodes)
        if code is ErrorCode.OFFSET_OUT_OF_RANGE and asked.of_leader:
            strategy = self._resets.strategy()
            if strategy is None:
                one.error = OffsetOutOfRange(
                    f"{one.tp}: there is no offset {offset}, and auto.offset.reset is none",
                    partition=one.tp,
                    offset=offset,
                )
            else:
                one.reset = strategy
        elif code in _PASSING or code is ErrorCode.OFFSET_OUT_OF_RANGE:
            self._ask_again(one)
        elif code is ErrorCode.CORRUPT_MESSAGE:
            one.error = CorruptRecords(f"{one.tp}: the broker found damage at offset {offset}", one.tp, offset)
        else:
            one.error = error_of(code, about=str(one.tp))

    def _ask_again(self, one: AssignedPartition) -> None:
        """After a pause, of the leader that fresh metadata names."""
        one.read_replica = NO_BROKER
        one.failures += 1
        one.not_before_ms = self._clock.monotonic_ms() + self._backoff.pause_ms(one.failures)
        self._cluster.request_update()

    def _truncated(self, one: AssignedPartition, offset: int, epoch: int, end_offset: int) -> None:
        """The log has lost what was read up to here: goes back to where it still is what it was."""
        if self._resets.strategy() is None:
            one.error = LogTruncated(
                f"{one.tp}: the log was truncated to offset {end_offset} of epoch {epoch}, before {offset}",
                one.tp,
                offset,
                end_offset,
            )
            return
        position = min(offset if one.position is None else one.position, end_offset)
        one.seek(position, epoch)


def _wants_more(one: AssignedPartition) -> bool:
    return (
        one.position is not None
        and one.gives_out
        and one.reset is None
        and one.error is None
        and len(one.chunks) < CHUNKS_MAX
    )
