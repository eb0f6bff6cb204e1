"""What a task does: reads the offsets of a split, and nothing else, in the order in which they lie.

    fetch ----> answer ----> Arrow batches ----> Spark
                  |
                  +--> the next fetch, which is on its way while the answer is decoded

The thread of the link fetches; the task's own thread decodes. Fetches name the topic by its id where brokers know ids,
so that a topic that was made again under the same name is never read for the one that was planned. A range ends when a
batch at or behind its end has been seen: compaction and markers leave gaps, also at the end.

No offset is ever reset. One that is not there any more goes to the loss policy, which raises or says what is left out.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from concurrent.futures import Future
from typing import Any, Final, NamedTuple

from ottla.arrow.decoding import Decoder
from ottla.arrow.survey import ReadBounds
from ottla.client.errors import (
    KafkaError,
    NotLeaderOrFollower,
    UnknownTopicOrPartition,
    error_of,
)
from ottla.client.wire.backoff import Backoff
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connections import CONTROL
from ottla.client.wire.metadata import Node
from ottla.client.wire.offsets import READ_COMMITTED, READ_UNCOMMITTED
from ottla.client.wire.world import real_world
from ottla.model import NO_EPOCH, ZERO_TOPIC_ID, ErrorCode, TopicPartition
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchResponse, FetchTopic, PartitionData
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import Readable, iterate
from ottla.records.errors import RecordError
from ottla.spark.source.bounds import Offsets
from ottla.spark.source.errors import ReadFailed
from ottla.spark.source.links import Link
from ottla.spark.source.loss import LossPolicy
from ottla.spark.source.settings import POLL_TIMEOUT
from ottla.spark.source.splits import Split

#: Topics are named by their ids from this version on.
_BY_ID: Final = 13
_ISOLATION: Final = 4
_LEADER_EPOCHS: Final = 9
_RACKS: Final = 11
#: So many times in a row brokers say that a topic is not there, or is another, until that is believed: one of them may
#: have just begun, or lag behind.
_GONE_AFTER: Final = 5
_NOT_THERE: Final = frozenset(
    {ErrorCode.UNKNOWN_TOPIC_OR_PARTITION, ErrorCode.UNKNOWN_TOPIC_ID, ErrorCode.INCONSISTENT_TOPIC_ID}
)


class Fetched(NamedTuple):
    """Whole batches of an answer, as they came."""

    first: int
    buf: Readable
    end: int
    #: Behind the last of them.
    next_offset: int
    aborted: list[tuple[int, int]] | None


class RangeReader:
    """Of one split. `batches` may be called once."""

    def __init__(self, link: Link, split: Split, columns: tuple[str, ...], loss: LossPolicy, patience_ms: int) -> None:
        self._link = link
        self._settings = link.settings
        self._split = split
        self._tp: TopicPartition = split.tp
        self._columns = columns
        self._loss = loss
        self._patience_ms = patience_ms
        settings = link.settings
        self._isolation = READ_COMMITTED if settings.isolation_level == "read_committed" else READ_UNCOMMITTED
        self._backoff = Backoff(settings.retry_backoff_ms, settings.retry_backoff_max_ms, real_world().entropy)

    def batches(self) -> Iterator[Any]:
        """Arrow batches with every record of the split that there is."""
        until = self._split.until
        pending: Future[Fetched | None] | None = self._begin(self._split.first)
        try:
            while pending is not None:
                fetched = pending.result()
                if fetched is None:
                    return
                pending = self._begin(fetched.next_offset) if fetched.next_offset < until else None
                yield from self._decoded(fetched)
        finally:
            if pending is not None:
                pending.cancel()

    def _begin(self, offset: int) -> Future[Fetched | None]:
        return self._link.begin(lambda cluster: self._fetched(cluster, offset))

    # In the task's thread

    def _decoded(self, fetched: Fetched) -> Iterator[Any]:
        bounds = ReadBounds(first=fetched.first, until=self._split.until, check_crcs=self._settings.check_crcs)
        decoder = Decoder(*self._tp, self._columns, bounds)
        aborted = None if fetched.aborted is None else AbortedTransactions(fetched.aborted)
        pos, ended, reached = 0, False, fetched.first
        while not ended and pos < fetched.end:
            try:
                found = decoder.step(fetched.buf, pos, fetched.end, aborted)
            except RecordError as error:
                raise ReadFailed(
                    f"{self._tp}: the batch at offset {reached} or soon behind it is damaged: {error}; name offsets "
                    "behind it in startingOffsets to read on"
                ) from error
            pos, ended = found.pos, found.ended
            reached = reached if found.next_offset is None else found.next_offset
            for rows in found.rows:
                yield rows.batch

    # In the link's thread

    async def _fetched(self, cluster: Cluster, offset: int) -> Fetched | None:
        """The batches from an offset on, asked for until they come; None where nothing is left of the split."""
        loop = asyncio.get_running_loop()
        deadline = loop.time() + self._patience_ms / 1000
        failures = not_there = 0
        last: KafkaError | None = None
        cluster.want([self._tp.topic])
        while True:
            try:
                async with asyncio.timeout_at(deadline):
                    told = await self._answer(cluster, offset)
                    fetched = self._whole_batches(told, offset)
                if fetched is not None:
                    return fetched
                last, not_there = None, 0
            except TimeoutError:
                await self._give_up(cluster, offset, last)
                return None
            except KafkaError as error:
                if error.code is ErrorCode.OFFSET_OUT_OF_RANGE:
                    moved = await self._moved(cluster, offset)
                    if moved is None:
                        return None
                    offset = moved
                elif error.code in _NOT_THERE:
                    not_there += 1
                    if not_there >= _GONE_AFTER:
                        self._loss.lost(self._tp, offset, self._split.until, "the topic was deleted, or made again")
                        return None
                elif not error.retriable:
                    raise ReadFailed(f"{self._tp}: nothing could be read at offset {offset}: {error}") from error
                last = error
                failures += 1
                cluster.request_update()
            if loop.time() >= deadline:
                await self._give_up(cluster, offset, last)
                return None
            if last is not None:
                await asyncio.sleep(self._backoff.pause_ms(failures) / 1000)

    async def _answer(self, cluster: Cluster, offset: int) -> PartitionData:
        """Asks the leader once; raises what it answers instead of records."""
        tp = self._tp
        if tp.topic not in cluster.metadata.topics or self._is_another(cluster):
            await cluster.updated()  # what the link knows may be older than the plan
        topic = cluster.metadata.topics.get(tp.topic)
        if topic is None:
            code = cluster.metadata.errors.get(tp.topic, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION)
            raise error_of(code, about=tp.topic)
        if self._is_another(cluster):
            raise UnknownTopicOrPartition(f"{tp.topic} was made again")
        leader = cluster.metadata.leader(*tp)
        if leader is None:
            raise NotLeaderOrFollower(f"{tp} has no leader now")
        # The lane of questions: this link has no others while it fetches, so one connection to a broker does.
        connection = await cluster.connections.to(leader.leader, CONTROL)
        version = connection.version(ApiKey.FETCH, at_least=_ISOLATION)
        topic_id = self._split.topic_id if self._split.topic_id != ZERO_TOPIC_ID else topic.topic_id
        if topic_id == ZERO_TOPIC_ID:
            version = min(version, _BY_ID - 1)
        settings = self._settings
        wanted = FetchPartition(
            partition=tp.partition,
            current_leader_epoch=leader.leader_epoch if version >= _LEADER_EPOCHS else NO_EPOCH,
            fetch_offset=offset,
            partition_max_bytes=settings.max_partition_fetch_bytes,
        )
        request = FetchRequest(
            max_wait_ms=settings.fetch_max_wait_ms,
            min_bytes=settings.fetch_min_bytes,
            max_bytes=settings.fetch_max_bytes,
            isolation_level=self._isolation,
            rack_id=settings.client_rack if version >= _RACKS else "",
            topics=[
                FetchTopic(topic_id=topic_id, partitions=[wanted])
                if version >= _BY_ID
                else FetchTopic(topic=tp.topic, partitions=[wanted])
            ],
        )
        timeout_ms = settings.request_timeout_ms + settings.fetch_max_wait_ms
        answer = await connection.ask(request, FetchResponse, timeout_ms=timeout_ms, at_most=version)
        if answer.error_code:
            raise error_of(answer.error_code, about=str(tp))
        told = next((one for of in answer.responses for one in of.partitions), None)
        if told is None:
            raise NotLeaderOrFollower(f"{tp}: broker {leader.leader} answered nothing")
        if told.error_code:
            if told.current_leader.leader_id >= 0:
                nodes = [Node(one.node_id, one.host, one.port, one.rack) for one in answer.node_endpoints]
                cluster.learn_leader(*tp, told.current_leader.leader_id, told.current_leader.leader_epoch, nodes)
            raise error_of(told.error_code, about=str(tp))
        return told

    def _whole_batches(self, told: PartitionData, offset: int) -> Fetched | None:
        """None where nothing came, for now."""
        records = told.records
        if records is None or not len(records):
            return None
        end, last = 0, None
        fault: RecordError | None = None
        try:
            for pos, header in iterate(records, 0, len(records)):
                end, last = pos + header.size, header
        except RecordError as error:
            fault = error
        if last is None:
            if fault is None:
                raise ReadFailed(
                    f"{self._tp}: the batch at offset {offset} did not come whole: ask the broker's keeper"
                )
            raise ReadFailed(f"{self._tp}: what came at offset {offset} is no batch: {fault}") from fault
        aborted = None
        if self._isolation == READ_COMMITTED:
            aborted = [(one.first_offset, one.producer_id) for one in told.aborted_transactions or ()]
        return Fetched(offset, records, end, max(offset + 1, last.next_offset), aborted)

    def _is_another(self, cluster: Cluster) -> bool:
        """Whether the topic that has the name now is another than was planned."""
        known = cluster.metadata.topics.get(self._tp.topic)
        return (
            known is not None
            and ZERO_TOPIC_ID not in {known.topic_id, self._split.topic_id}
            and (known.topic_id != self._split.topic_id)
        )

    # What is not there any more

    async def _moved(self, cluster: Cluster, offset: int) -> int | None:
        """Where to go on when an offset is out of range; None where nothing is left."""
        offsets = Offsets(cluster, self._settings)
        earliest = (await offsets.earliest([self._tp]))[self._tp]
        if offset < earliest:
            gone_until = min(earliest, self._split.until)
            self._loss.lost(
                self._tp,
                offset,
                gone_until,
                f"the log begins at offset {earliest} now: retention or a deletion has removed what lies before",
            )
            return earliest if earliest < self._split.until else None
        latest = (await offsets.latest([self._tp]))[self._tp]
        if offset > latest:
            self._loss.lost(self._tp, offset, self._split.until, f"the log ends at offset {latest} now")
            return None
        return offset

    async def _give_up(self, cluster: Cluster, offset: int, last: KafkaError | None) -> None:
        """Nothing came for so long: because the log ends before, or for a reason that the last error names."""
        seconds = self._patience_ms / 1000
        if last is None:
            latest = (await Offsets(cluster, self._settings).latest([self._tp]))[self._tp]
            # Not where there are records from this offset on, which did not come in time.
            if latest <= offset:
                self._loss.lost(self._tp, offset, self._split.until, f"the log ends at offset {latest} now")
                return
        why = "no record came" if last is None else f"it was tried again and again: {last}"
        raise ReadFailed(
            f"{self._tp}: nothing could be read at offset {offset} for {seconds:g} s: {why} "
            f"({POLL_TIMEOUT} is how long a task tries)"
        ) from last
