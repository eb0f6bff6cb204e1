"""What an answer brought is taken over, one partition after the other: a fault of one of them is its own.

Follower logs have no other writer than their fetcher, so that what is fetched does not take part in the rounds of
produced batches: it is staged and written here, in one write a partition and answer, and nothing is staged between two
turns of the loop. A flush that a write asks for goes the same way as a leader's.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Final

from ottla import logs
from ottla.model import ErrorCode
from ottla.protocol.hot.follower_fetch import AnswerRow
from ottla.records.batch import BatchHeader
from ottla.replication.fetching.partition import FetchedPartition, FetchState
from ottla.replication.fetching.records_pieces import pieces
from ottla.replication.fetching.surroundings import Surroundings
from ottla.replication.throttles import names
from ottla.steps import Steps
from ottla.storage.errors import AppendRefused, StorageFault

if TYPE_CHECKING:
    from ottla.replication.fetching.asked_partitions import AskedPartitions
    from ottla.replication.fetching.lookups import Lookups
    from ottla.replication.fetching.session import FollowerSession

log_event = logs.logger("replication")

#: One of the two brokers has not heard yet of what the other knows of the partition's leader.
_OF_A_LEADER_EPOCH: Final = frozenset(
    {
        ErrorCode.FENCED_LEADER_EPOCH,
        ErrorCode.UNKNOWN_LEADER_EPOCH,
        ErrorCode.NOT_LEADER_OR_FOLLOWER,
    }
)
#: The leader has not heard of the partition yet, or not any more.
_OF_A_TOPIC: Final = frozenset(
    {
        ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ErrorCode.UNKNOWN_TOPIC_ID,
        ErrorCode.INCONSISTENT_TOPIC_ID,
        ErrorCode.OFFSET_NOT_AVAILABLE,
    }
)


class TakenAnswer:
    """One answer, with what was asked."""

    __slots__ = ("_around", "_asked", "_lookups", "_partitions", "_session", "is_fenced")

    def __init__(
        self, partitions: AskedPartitions, session: FollowerSession, lookups: Lookups, around: Surroundings
    ) -> None:
        self._partitions = partitions
        self._session = session
        #: A session that starts anew meanwhile has another one.
        self._asked = session.known
        self._lookups = lookups
        self._around = around
        #: Whether the leader knows of another leader epoch of some partition than this broker.
        self.is_fenced = False

    def steps(self, rows: Iterator[AnswerRow]) -> Steps[None]:
        """A step is a write, or a partition without records. Raises DecodeError where the answer is not sound."""
        for row in rows:
            one = self._partitions.of((row.topic, row.partition))
            if one is None or not self._is_awaited(one):
                self._left(row)
                continue
            try:
                yield from self._take(one, row)
            except Exception as fault:
                self._left(row)
                self._broke(one, fault)
            yield

    def _left(self, row: AnswerRow) -> None:
        """It is not taken over. But for errors, and for where logs part, the leader does not say it again."""
        if row.error == ErrorCode.NONE and row.diverging is None:
            key = (row.topic, row.partition)
            self._session.untaken[key] = None
            self._partitions.changed[key] = None

    def _is_awaited(self, one: FetchedPartition) -> bool:
        """Whether this answers what was asked in its present role, at its present end."""
        asked = self._asked.get(one.key)
        follower = one.follower
        return (
            asked is not None
            and one.is_current
            and one.state is FetchState.FETCHING
            and asked[1] == follower.epoch
            and asked[2] == follower.log.end_offset
        )

    def _take(self, one: FetchedPartition, row: AnswerRow) -> Steps[None]:
        if row.error != ErrorCode.NONE:
            self._failed(one, row)
        elif row.diverging is not None:
            self._cut(one, *row.diverging)
        else:
            yield from self._append(one, row)

    def _append(self, one: FetchedPartition, row: AnswerRow) -> Steps[None]:
        follower = one.follower
        begin, start = follower.log.end_offset, follower.log.start_offset
        first = follower.spanning_the_start(row.records)
        if first is not None:
            self._begin_with(one, first, row)
            return
        for piece in pieces(row.records):
            follower.append(piece, row.high_watermark, row.log_start)
            yield
            if not one.is_current or one.state is not FetchState.FETCHING:
                return
        size = len(row.records)
        if size and follower.log.end_offset == begin:
            raise AppendRefused(ErrorCode.CORRUPT_MESSAGE, f"{size} bytes for {one.tp} hold no whole batch")
        one.fetched(row.high_watermark)
        self._around.replicas.waiters.changed(one.tp)
        if size:
            self._count(one, size)
        if size or follower.log.start_offset != start:
            self._partitions.touch(one)
            if not follower.may_ask:
                self._partitions.flushing[one] = None

    def _begin_with(self, one: FetchedPartition, first: BatchHeader, row: AnswerRow) -> None:
        """It is taken over at once: the leader gives out nothing at its offset, which is before the leader's start."""
        follower = one.follower
        batch = memoryview(bytes(row.records[: first.size]))

        def begun(_: int) -> None:
            try:
                follower.append(batch, row.high_watermark, row.log_start)
            except Exception as fault:
                self._broke(one, fault)
            else:
                self._around.replicas.waiters.changed(one.tp)
                self._count(one, len(batch))
                if not follower.may_ask:
                    self._partitions.flushing[one] = None

        self._partitions.cut(one, follower.starting_over(first.base_offset), begun)

    def _count(self, one: FetchedPartition, size: int) -> None:
        around = self._around
        self._partitions.bytes_taken += size
        traffic = around.replicas.traffic
        traffic.replicated_bytes_in += size
        if around.broker_id in one.follower.adding_replicas:
            traffic.reassigned_bytes_in += size
        throttled = one.follower.log.config.follower_throttled_replicas
        if throttled and names(throttled, one.tp.partition, around.broker_id):
            around.quota.record(size)

    def _cut(self, one: FetchedPartition, leader_epoch: int, leader_end: int) -> None:
        """The leader does not have what was fetched last."""
        before = one.follower.log.end_offset

        def cut(end: int) -> None:
            log_event.info(
                "a follower's log was cut to what its leader has",
                partition=one.tp,
                **{"from": before, "to": end, "leader_epoch": leader_epoch, "leader_end": leader_end},
            )
            if end == before:
                # It would be answered the same.
                self._partitions.back_off(one)
            else:
                self._around.replicas.waiters.changed(one.tp)

        self._partitions.cut(one, one.follower.cutting_to_leader(leader_epoch, leader_end), cut)

    def _failed(self, one: FetchedPartition, row: AnswerRow) -> None:
        """The leader answered with an error of this partition."""
        error, partitions = row.error, self._partitions
        if error == ErrorCode.OFFSET_OUT_OF_RANGE:
            self._lookups.ask_range(one)
        elif error in _OF_A_LEADER_EPOCH:
            self.is_fenced = True
            partitions.wait_for_news(one)
        elif error in _OF_A_TOPIC:
            partitions.wait_longer(one)
        else:
            log_event.warning_limited(
                "a leader answers a follower with an error",
                key=f"{one.tp} {error}",
                partition=one.tp,
                error=error,
            )
            partitions.back_off(one)

    # -- faults here

    def _broke(self, one: FetchedPartition, fault: Exception) -> None:
        if isinstance(fault, StorageFault):
            self._partitions.storage_failed(one, fault)
        elif isinstance(fault, AppendRefused):
            self._refuse(one, fault)
        else:
            self._partitions.broke(one, fault)

    def _refuse(self, one: FetchedPartition, refused: AppendRefused) -> None:
        if refused.error == ErrorCode.UNKNOWN_LEADER_EPOCH:
            # The leader is one of a later leader epoch by now, and this broker has yet to hear of that.
            self._partitions.wait_for_news(one)
            return
        log_event.warning_once(
            "what a leader sent is damaged, and is fetched again", key=f"{one.tp}", partition=one.tp, reason=refused
        )
        self._partitions.back_off(one)
