"""One Produce request after its batches were staged: what each partition came to, and whether it may be answered.

acks=1 is answered when this broker vouches for the records, acks=all when every in-sync replica has them. Either waits
where replicas or the disk are behind; a leader that resigns meanwhile answers for nothing.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Final

from ottla.handlers.calls.peer import Peer, Slot
from ottla.handlers.produce.answer import PartitionAnswer, TopicAnswer
from ottla.model import ErrorCode, TopicPartition
from ottla.replication.leader import Leader
from ottla.storage.log.append import AppendResult

ACKS_NONE: Final = 0
ACKS_LEADER: Final = 1
ACKS_ALL: Final = -1


def acknowledged(leader: Leader, next_offset: int, acks: int) -> bool:
    """Whether what ends before `next_offset` is as safe as these acks promise."""
    return leader.high_watermark >= next_offset or (acks == ACKS_LEADER and leader.durable_end >= next_offset)


class PartitionOutcome:
    """One partition of the request: staged at a leader, or already an error."""

    __slots__ = ("answer", "appended", "leader", "partition")

    def __init__(
        self,
        partition: int,
        leader: Leader | None = None,
        appended: AppendResult | None = None,
        answer: PartitionAnswer | None = None,
    ) -> None:
        self.partition = partition
        self.leader = leader
        self.appended = appended
        #: Set once this partition's part is decided.
        self.answer = answer

    def fail(self, error: ErrorCode, message: str | None = None) -> None:
        self.answer = PartitionAnswer(self.partition, error, message=message)

    def refuse(self, error: ErrorCode, message: str, faults: Sequence[tuple[int, str | None]], log_start: int) -> None:
        self.answer = PartitionAnswer(
            self.partition, error, log_start_offset=log_start, record_errors=tuple(faults), message=message or None
        )


def settle(outcome: PartitionOutcome, acks: int) -> bool:
    """Decides a partition's part if it can be decided now."""
    if outcome.answer is not None:
        return True
    leader, appended = outcome.leader, outcome.appended
    assert leader is not None
    assert appended is not None
    if not leader.active:
        # Where this broker leads on with the same records, a client that tried again would write them twice.
        leader = outcome.leader = leader.present
    if not leader.active:
        outcome.fail(leader.end_error)
    elif acks != ACKS_NONE and not acknowledged(leader, appended.last_offset + 1, acks):
        return False
    elif acks == ACKS_ALL and not leader.had_enough_replicas():
        outcome.fail(ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND)
    else:
        outcome.answer = PartitionAnswer(
            outcome.partition,
            ErrorCode.NONE,
            appended.first_offset,
            appended.append_time_ms,
            leader.log.start_offset,
        )
    return True


def fail_unwritten(outcomes: Sequence[PartitionOutcome], acks: int) -> None:
    for outcome in outcomes:
        leader, appended = outcome.leader, outcome.appended
        if leader is None or leader.fault is None or outcome.answer is not None:
            continue
        if appended is None:
            continue
        if appended.last_offset >= leader.log.end_offset:
            outcome.fail(leader.fault, "the log could not be written")
        elif not acknowledged(leader, appended.last_offset + 1, acks):
            # The fault came behind its write, where nobody may come any more to say that it is safe.
            outcome.fail(leader.fault)


class ProduceWait:
    """A request from the end of its round until its answer."""

    __slots__ = ("_answered", "acks", "began_ms", "is_part", "peer", "slot", "timeout_ms", "topics", "unchecked")

    def __init__(
        self,
        peer: Peer,
        acks: int,
        timeout_ms: int,
        topics: list[tuple[str | bytes, list[PartitionOutcome]]],
        answered: Callable[[ProduceWait, list[TopicAnswer]], None],
    ) -> None:
        self.peer = peer
        self.acks = acks
        self.timeout_ms = timeout_ms
        self.topics = topics
        #: When its round began, where that has left it waiting.
        self.began_ms: int | None = None
        #: The answer's place behind those of earlier requests.
        self.slot = Slot()
        #: Whether some of its batches are still being looked into by another process, or wait for their log.
        self.unchecked = False
        #: Whether it is a piece of a request that has its answer elsewhere.
        self.is_part = False
        self._answered = answered

    @property
    def partition_count(self) -> int:
        return sum(len(outcomes) for _, outcomes in self.topics)

    def partitions(self) -> list[TopicPartition]:
        """The partitions that are still to be decided."""
        return [
            o.leader.tp for _, outcomes in self.topics for o in outcomes if o.answer is None and o.leader is not None
        ]

    def fail_unwritten(self) -> None:
        """At the end of the request's round: what its writes could not take is lost, and known to be."""
        for _, outcomes in self.topics:
            fail_unwritten(outcomes, self.acks)

    def try_complete(self, now_ms: int) -> bool:
        decided = True
        for _, outcomes in self.topics:
            for outcome in outcomes:
                decided = settle(outcome, self.acks) and decided
        if decided:
            self._answer()
        return decided

    def expire(self, now_ms: int) -> None:
        for _, outcomes in self.topics:
            for outcome in outcomes:
                if not settle(outcome, self.acks):
                    outcome.fail(ErrorCode.REQUEST_TIMED_OUT)
        self._answer()

    def failed(self, fault: Exception) -> None:
        self.peer.abort()

    def _answer(self) -> None:
        answers: list[TopicAnswer] = [
            (topic, [o.answer for o in outcomes if o.answer is not None]) for topic, outcomes in self.topics
        ]
        self._answered(self, answers)
