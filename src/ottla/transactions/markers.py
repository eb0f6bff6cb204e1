"""Markers on their way: the ends of transactions that are decided, to the leaders of their partitions.

    send ─▶ the line of each leader ─▶ one request at a time, of all that waits ─▶ written
                 ▲                                        │
                 └────── after a pause, by the leaders of that moment ◀── not written

A broker has one request at a time, so what comes meanwhile goes together. A marker is sent until its leader has written
it, the partition is no more, or the coordinator's own partition is given up: whoever leads that goes on.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Iterable, Iterator
from itertools import islice
from typing import Final, NamedTuple, Protocol

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.interbroker.links import LinkFault
from ottla.model import NO_BROKER, BrokerId, ErrorCode, TopicPartition
from ottla.ports.clock import Clock
from ottla.protocol.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

log_event = logs.logger("transactions")

#: Partitions of one request; the rest goes with the next. They take about a millisecond to put together.
PARTITIONS_A_REQUEST: Final = 1_000
#: Before what was not written is sent again.
RETRY_S: Final = 0.1
#: A partition that this broker has never heard of may be one of a deleted topic, or of one that it has yet to hear of.
#: After so long it is the former. Until then the id stays as it is.
UNKNOWN_MS_MAX: Final = 10_000
_SAID_S: Final = 10.0

#: The marker is written, or need not be.
_SETTLED: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})
#: Another coordinator has written already: this one is replaced, and hears of that in another way.
_REPLACED: Final = frozenset({ErrorCode.TRANSACTION_COORDINATOR_FENCED, ErrorCode.INVALID_PRODUCER_EPOCH})


class TransactionEnd(NamedTuple):
    """What the markers of one transaction say."""

    producer_id: int
    #: The epoch of the markers: from `transaction_version` 2 on the one behind that of the transaction's batches.
    producer_epoch: int
    #: The leader epoch of the coordinator's partition.
    coordinator_epoch: int
    committed: bool
    transaction_version: int
    partitions: frozenset[TopicPartition]


class MarkerWriter(Protocol):
    """How markers get to a broker: to this one by a call, to another by a request over a link.

    This broker's own is `handlers/write_txn_markers.py`:
    `async def write_markers(services: Services, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse`,
    which answers when all markers are committed, and asks nobody whether it may.
    """

    async def write(self, broker: BrokerId, request: WriteTxnMarkersRequest) -> WriteTxnMarkersResponse:
        """Raises LinkFault where there is no answer."""
        ...


#: The leader of a partition; NO_BROKER where it has none just now, None where it is not known.
LeaderOf = Callable[[TopicPartition], BrokerId | None]


class _Sending:
    """One transaction's end, until all its markers are written."""

    __slots__ = ("done", "end", "left", "owner", "unknown_since_ms")

    def __init__(self, owner: object, end: TransactionEnd, done: Callable[[Now], None]) -> None:
        self.owner = owner
        self.end = end
        self.done = done
        self.left = set(end.partitions)
        self.unknown_since_ms: int | None = None


class _Line:
    """What waits for one broker."""

    __slots__ = ("task", "waiting")

    def __init__(self) -> None:
        self.waiting: dict[_Sending, set[TopicPartition]] = {}
        self.task: asyncio.Task[None] | None = None


class MarkerLines:
    def __init__(self, writer: MarkerWriter, leader_of: LeaderOf, clock: Clock) -> None:
        self._writer = writer
        self._leader_of = leader_of
        self._clock = clock
        self._lines: dict[BrokerId, _Line] = {}
        #: All that are not at their end.
        self._sendings: dict[_Sending, None] = {}
        #: What goes to whoever leads it after the pause.
        self._again: dict[_Sending, set[TopicPartition]] = {}
        self._pause: asyncio.TimerHandle | None = None
        self._closed = False

    def __len__(self) -> int:
        """Transactions whose markers are on their way."""
        return len(self._sendings)

    def send(self, owner: object, end: TransactionEnd, done: Callable[[Now], None]) -> None:
        """`done` is called when all partitions have their marker: at once where there are none."""
        sending = _Sending(owner, end, done)
        if not end.partitions:
            done(self._now())
            return
        self._sendings[sending] = None
        self._route(sending, end.partitions)

    def forget(self, owner: object) -> None:
        """Nothing more is sent of these, and nothing is called."""
        for sending in [each for each in self._sendings if each.owner is owner]:
            self._drop(sending)

    async def close(self) -> None:
        self._closed = True
        if self._pause is not None:
            self._pause.cancel()
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Who leads what.

    def _route(self, sending: _Sending, partitions: Iterable[TopicPartition]) -> None:
        gone: list[TopicPartition] = []
        is_unknown = False
        for tp in sorted(partitions):
            leader = self._leader_of(tp)
            if leader is None:
                is_unknown = True
                if self._is_gone(sending):
                    gone.append(tp)
                    continue
            if leader is None or leader == NO_BROKER:
                self._later(sending, (tp,))
                continue
            line = self._lines.get(leader)
            if line is None:
                line = self._lines[leader] = _Line()
            line.waiting.setdefault(sending, set()).add(tp)
            self._serve(leader, line)
        if not is_unknown:
            sending.unknown_since_ms = None
        if gone:
            log_event.warning_limited("a transaction ends without markers where the topic is gone", partition=gone[0])
            self._settled(sending, gone)

    def _is_gone(self, sending: _Sending) -> bool:
        now_ms = self._clock.monotonic_ms()
        if sending.unknown_since_ms is None:
            sending.unknown_since_ms = now_ms
        return now_ms - sending.unknown_since_ms >= UNKNOWN_MS_MAX

    def _later(self, sending: _Sending, partitions: Iterable[TopicPartition]) -> None:
        if self._closed:
            return
        self._again.setdefault(sending, set()).update(partitions)
        if self._pause is None:
            self._pause = asyncio.get_running_loop().call_later(RETRY_S, self._route_again)

    def _route_again(self) -> None:
        self._pause = None
        again, self._again = self._again, {}
        for sending, partitions in again.items():
            if sending in self._sendings:
                self._route(sending, partitions)

    # One broker's line.

    def _serve(self, broker: BrokerId, line: _Line) -> None:
        if line.task is None and not self._closed:
            loop = asyncio.get_running_loop()
            line.task = loop.create_task(self._send_all(broker, line), name=f"markers to broker {broker}")

    async def _send_all(self, broker: BrokerId, line: _Line) -> None:
        try:
            while line.waiting:
                batch = _taken(line)
                try:
                    answer = await self._writer.write(broker, _request(batch))
                except LinkFault as fault:
                    log_event.warning_limited(
                        "markers of transactions wait for a broker", str(broker), interval_s=_SAID_S, why=str(fault)
                    )
                    answer = WriteTxnMarkersResponse()
                except Exception as fault:  # a fault of ours: the transactions must end all the same
                    log_event.error("markers of transactions could not be written", broker=broker, error=repr(fault))
                    answer = WriteTxnMarkersResponse()
                self._answered(batch, answer)
        finally:
            line.task = None
            if line.waiting and not self._closed:
                self._serve(broker, line)

    def _answered(self, batch: dict[_Sending, set[TopicPartition]], answer: WriteTxnMarkersResponse) -> None:
        errors = {
            (marker.producer_id, topic.name, each.partition_index): each.error_code
            for marker in answer.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        for sending, partitions in batch.items():
            if sending not in self._sendings:
                continue
            written: list[TopicPartition] = []
            again: list[TopicPartition] = []
            for tp in partitions:
                error = errors.get((sending.end.producer_id, tp.topic, tp.partition), ErrorCode.REQUEST_TIMED_OUT)
                if error in _REPLACED:
                    reason = ErrorCode(error).name
                    log_event.warning_limited("markers of an old coordinator were refused", partition=tp, why=reason)
                    self._drop(sending)
                    break
                (written if error in _SETTLED else again).append(tp)
            else:
                if again:
                    self._later(sending, again)
                self._settled(sending, written)

    def _settled(self, sending: _Sending, partitions: Iterable[TopicPartition]) -> None:
        sending.left.difference_update(partitions)
        if not sending.left and sending in self._sendings:
            self._drop(sending)
            sending.done(self._now())

    def _drop(self, sending: _Sending) -> None:
        self._sendings.pop(sending, None)
        self._again.pop(sending, None)
        for line in self._lines.values():
            line.waiting.pop(sending, None)

    def _now(self) -> Now:
        return Now(self._clock.wall_ms(), self._clock.monotonic_ms())


def _taken(line: _Line) -> dict[_Sending, set[TopicPartition]]:
    """What goes next: of each producer one end, as the answers name producers."""
    batch: dict[_Sending, set[TopicPartition]] = {}
    producers: set[int] = set()
    room = PARTITIONS_A_REQUEST
    for sending in list(islice(line.waiting, PARTITIONS_A_REQUEST)):
        if not room:
            break
        if sending.end.producer_id in producers:
            continue
        producers.add(sending.end.producer_id)
        waiting = line.waiting[sending]
        if len(waiting) <= room:
            batch[sending] = waiting
            del line.waiting[sending]
        else:
            batch[sending] = set(sorted(waiting)[:room])
            waiting -= batch[sending]
        room -= len(batch[sending])
    return batch


def _request(batch: dict[_Sending, set[TopicPartition]]) -> WriteTxnMarkersRequest:
    return WriteTxnMarkersRequest(
        markers=[
            WritableTxnMarker(
                producer_id=sending.end.producer_id,
                producer_epoch=sending.end.producer_epoch,
                transaction_result=sending.end.committed,
                topics=[WritableTxnMarkerTopic(name=name, partition_indexes=numbers) for name, numbers in topics],
                coordinator_epoch=sending.end.coordinator_epoch,
                transaction_version=sending.end.transaction_version,
            )
            for sending, partitions in batch.items()
            for topics in (_by_topic(partitions),)
        ]
    )


def _by_topic(partitions: Iterable[TopicPartition]) -> Iterator[tuple[str, list[int]]]:
    topics: dict[str, list[int]] = {}
    for topic, partition in partitions:
        topics.setdefault(topic, []).append(partition)
    for topic in sorted(topics):
        yield topic, sorted(topics[topic])
