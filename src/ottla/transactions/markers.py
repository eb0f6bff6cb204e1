"""Markers on their way: the ends of transactions that are decided, to the leaders of their partitions.

    send ─┬▶ the line of each leader ─▶ one request at a time, of all that waits ─┬▶ written
          └▶ a few partitions that this broker leads: a call ────────────────────┤
          ▲                                                                      │
          └───── after a pause, by the leaders of that moment ◀───── not written ┘

A broker has one request at a time, so what comes meanwhile goes together. A marker is sent until its leader has written
it, the partition is no more, or the coordinator's own partition is given up: whoever leads that goes on.
"""

from __future__ import annotations

import asyncio
import traceback
from collections import deque
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import partial
from itertools import islice
from typing import Final, NamedTuple, Protocol

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import EndMarker
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
#: Partitions whose leaders are looked up without a pause, a millisecond or two; the rest of what is sent again follows
#: after so long. A broker that is away for minutes may hold up a hundred thousand transactions.
PARTITIONS_ROUTED_AT_ONCE: Final = 500
PIECES_S: Final = 0.02
#: A partition that this broker has never heard of may be one of a deleted topic, or of one that it has yet to hear of.
#: After so long it is the former. Until then the id stays as it is.
UNKNOWN_MS_MAX: Final = 10_000
_SAID_S: Final = 10.0
#: Of one transaction, written by a call; those of a longer one go in a request, which is taken apart in steps.
PARTITIONS_HERE_MAX: Final = 16

#: The marker is written, or need not be.
_WRITTEN: Final = frozenset({ErrorCode.NONE, ErrorCode.UNSUPPORTED_FOR_MESSAGE_FORMAT, ErrorCode.UNSUPPORTED_VERSION})


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


#: Called with a code for each partition, in their order.
Marked = Callable[[list[ErrorCode]], None]


class MarkerWriter(Protocol):
    """How markers get to a broker: to this one by a call, to another by a request over a link."""

    broker_id: BrokerId

    def write_here(self, end: EndMarker, partitions: Sequence[TopicPartition], marked: Marked) -> None:
        """In partitions that this broker leads, with all that comes for the same round. Asks nobody whether it may.
        `marked` is called once, later: a code is NONE when that marker is committed."""
        ...

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
        #: Of partitions that are not known just now.
        self.unknown_since_ms: dict[TopicPartition, int] = {}


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
        #: All that are not at their end, by owner. What is not here any more is passed over wherever it waits.
        self._sendings: dict[object, dict[_Sending, None]] = {}
        #: What goes to whoever leads it after the pause; and of the pause before, what has its turn now.
        self._again: dict[_Sending, set[TopicPartition]] = {}
        self._due: dict[_Sending, set[TopicPartition]] = {}
        self._pause: asyncio.TimerHandle | None = None
        #: Whose leaders were not all looked up for the first time, and how many more are before the loop's next turn.
        self._new: deque[tuple[_Sending, Iterator[TopicPartition]]] = deque()
        self._room = PARTITIONS_ROUTED_AT_ONCE
        self._turn: asyncio.Handle | None = None
        self._closed = False

    def __len__(self) -> int:
        """Transactions whose markers are on their way."""
        return sum(map(len, self._sendings.values()))

    @property
    def without_leader(self) -> int:
        """Those of which a part waits for the pause to end: for a leader, or to be sent once more."""
        return len(self._again) + len(self._due)

    def send(self, owner: object, end: TransactionEnd, done: Callable[[Now], None]) -> None:
        """`done` is called when all partitions have their marker: at once where there are none."""
        sending = _Sending(owner, end, done)
        if not end.partitions:
            self._call(done)
            return
        self._sendings.setdefault(owner, {})[sending] = None
        is_small = len(end.partitions) <= PARTITIONS_ROUTED_AT_ONCE
        self._new.append((sending, iter(sorted(end.partitions) if is_small else end.partitions)))
        self._route_new()

    def forget(self, owner: object) -> None:
        """Nothing more is sent of these, and nothing is called."""
        self._sendings.pop(owner, None)

    def _is_under_way(self, sending: _Sending) -> bool:
        return sending in self._sendings.get(sending.owner, ())

    async def close(self) -> None:
        self._closed = True
        for waits in (self._pause, self._turn):
            if waits is not None:
                waits.cancel()
        tasks = [line.task for line in self._lines.values() if line.task is not None]
        for task in tasks:
            task.cancel()
        await asyncio.gather(*tasks, return_exceptions=True)

    # Who leads what.

    def _route_new(self) -> None:
        """As many as one turn of the loop has room for: hundreds of large transactions may end in the same moment."""
        while self._new and self._room:
            sending, left = self._new[0]
            piece = tuple(islice(left, self._room))
            if len(piece) < self._room:
                self._new.popleft()
            self._room -= len(piece)
            self._route(sending, piece)
        if not self._room and self._turn is None and not self._closed:
            self._turn = asyncio.get_running_loop().call_soon(self._next_turn)

    def _next_turn(self) -> None:
        self._turn = None
        self._room = PARTITIONS_ROUTED_AT_ONCE
        self._route_new()

    def _route(self, sending: _Sending, partitions: Iterable[TopicPartition]) -> None:
        if not self._is_under_way(sending) or self._closed:
            return
        gone: list[TopicPartition] = []
        here: list[TopicPartition] = []
        for tp in sorted(partitions):
            leader = self._leader_of(tp)
            if leader is not None:
                sending.unknown_since_ms.pop(tp, None)
            elif self._is_gone(sending, tp):
                gone.append(tp)
                continue
            if leader is None or leader == NO_BROKER:
                self._later(sending, (tp,))
            elif leader == self._writer.broker_id:
                here.append(tp)
            else:
                self._line_up(leader, sending, tp)
        if len(here) > PARTITIONS_HERE_MAX:
            for tp in here:
                self._line_up(self._writer.broker_id, sending, tp)
        elif here:
            self._write_here(sending, here)
        if gone:
            log_event.warning_limited("a transaction ends without markers where the topic is gone", partition=gone[0])
            self._settled(sending, gone)

    def _line_up(self, leader: BrokerId, sending: _Sending, tp: TopicPartition) -> None:
        line = self._lines.get(leader)
        if line is None:
            line = self._lines[leader] = _Line()
        line.waiting.setdefault(sending, set()).add(tp)
        self._serve(leader, line)

    def _is_gone(self, sending: _Sending, tp: TopicPartition) -> bool:
        now_ms = self._clock.monotonic_ms()
        return now_ms - sending.unknown_since_ms.setdefault(tp, now_ms) >= UNKNOWN_MS_MAX

    def _later(self, sending: _Sending, partitions: Iterable[TopicPartition]) -> None:
        self._again.setdefault(sending, set()).update(partitions)
        if self._pause is None:
            self._wait(RETRY_S)

    def _wait(self, pause_s: float) -> None:
        if not self._closed:
            self._pause = asyncio.get_running_loop().call_later(pause_s, self._route_again)

    def _route_again(self) -> None:
        """A piece of what has waited for long enough; then what came meanwhile waits in its turn."""
        if not self._due:
            self._due, self._again = self._again, {}
        room = PARTITIONS_ROUTED_AT_ONCE
        while self._due and room > 0:
            sending, partitions = self._due.popitem()
            if len(partitions) > room:
                piece = set(islice(partitions, room))
                partitions -= piece
                self._due[sending] = partitions
                partitions = piece
            room -= len(partitions)
            self._route(sending, partitions)
        self._pause = None
        if self._due or self._again:
            self._wait(PIECES_S if self._due else RETRY_S)

    # This broker.

    def _write_here(self, sending: _Sending, partitions: Sequence[TopicPartition]) -> None:
        end = sending.end
        marker = EndMarker(
            end.producer_id, end.producer_epoch, end.coordinator_epoch, end.committed, end.transaction_version
        )
        self._writer.write_here(marker, partitions, partial(self._written_here, sending, partitions))

    def _written_here(self, sending: _Sending, partitions: Sequence[TopicPartition], codes: list[ErrorCode]) -> None:
        self._take(sending, dict(zip(partitions, codes, strict=True)))

    # Another broker's line.

    def _serve(self, broker: BrokerId, line: _Line) -> None:
        if line.task is None and not self._closed:
            loop = asyncio.get_running_loop()
            line.task = loop.create_task(self._send_all(broker, line), name=f"markers to broker {broker}")

    async def _send_all(self, broker: BrokerId, line: _Line) -> None:
        try:
            while line.waiting:
                batch = self._taken(line)
                if not batch:
                    await asyncio.sleep(0)
                    continue
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

    def _taken(self, line: _Line) -> dict[_Sending, set[TopicPartition]]:
        """What goes next: of each producer one end, as the answers name producers. Nothing where those that were looked
        at are all forgotten."""
        batch: dict[_Sending, set[TopicPartition]] = {}
        producers: set[int] = set()
        room = PARTITIONS_A_REQUEST
        for sending in list(islice(line.waiting, PARTITIONS_A_REQUEST)):
            if not room:
                break
            if not self._is_under_way(sending):
                del line.waiting[sending]
                continue
            if sending.end.producer_id in producers:
                continue
            producers.add(sending.end.producer_id)
            waiting = line.waiting[sending]
            if len(waiting) <= room:
                batch[sending] = waiting
                del line.waiting[sending]
            else:
                batch[sending] = set(islice(waiting, room))
                waiting -= batch[sending]
            room -= len(batch[sending])
        return batch

    def _answered(self, batch: dict[_Sending, set[TopicPartition]], answer: WriteTxnMarkersResponse) -> None:
        errors = {
            (marker.producer_id, topic.name, each.partition_index): each.error_code
            for marker in answer.markers
            for topic in marker.topics
            for each in topic.partitions
        }
        for sending, partitions in batch.items():
            producer_id = sending.end.producer_id
            self._take(
                sending,
                {tp: errors.get((producer_id, *tp), ErrorCode.REQUEST_TIMED_OUT) for tp in partitions},
            )

    def _take(self, sending: _Sending, errors: Mapping[TopicPartition, int]) -> None:
        """What became of some of its markers."""
        if not self._is_under_way(sending):
            return
        written: list[TopicPartition] = []
        again: list[TopicPartition] = []
        for tp, error in errors.items():
            if error == ErrorCode.TRANSACTION_COORDINATOR_FENCED:
                log_event.warning_limited("markers of an old coordinator were refused", partition=tp)
                self._drop(sending)
                return
            (written if error in _WRITTEN or self._needs_none(tp, error) else again).append(tp)
        if again:
            self._later(sending, again)
        self._settled(sending, written)

    def _needs_none(self, tp: TopicPartition, error: int) -> bool:
        """A later epoch of the producer has written: either this coordinator is replaced, and then what it writes of
        that end is not committed, or somebody used the producer's id for more than its transactions. The partition
        takes no marker of this epoch any more, and the other partitions must not wait for it for ever."""
        if error != ErrorCode.INVALID_PRODUCER_EPOCH:
            return False
        log_event.warning_limited("a partition has batches of a later epoch and takes no marker", partition=tp)
        return True

    def _settled(self, sending: _Sending, partitions: Iterable[TopicPartition]) -> None:
        sending.left.difference_update(partitions)
        if not sending.left and self._is_under_way(sending):
            self._drop(sending)
            self._call(sending.done)

    def _call(self, done: Callable[[Now], None]) -> None:
        try:
            done(self._now())
        except Exception as fault:  # a fault of ours: an answer, a round and a pause are about other transactions too
            log_event.error("a transaction could not go on", error="".join(traceback.format_exception(fault)))

    def _drop(self, sending: _Sending) -> None:
        mine = self._sendings.get(sending.owner)
        if mine is not None and sending in mine:
            del mine[sending]
            if not mine:
                del self._sendings[sending.owner]
        self._again.pop(sending, None)
        self._due.pop(sending, None)
        for line in self._lines.values():
            line.waiting.pop(sending, None)

    def _now(self) -> Now:
        return Now(self._clock.wall_ms(), self._clock.monotonic_ms())


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
