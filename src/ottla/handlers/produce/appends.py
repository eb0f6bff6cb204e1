"""What becomes of each batch of a Produce request: staged at its leader, refused, or yet to be looked into."""

from __future__ import annotations

from typing import Final

from ottla.handlers.produce.checks import UncheckedBatch
from ottla.handlers.produce.rules import is_refused_unseen, is_transactional, refused_in
from ottla.handlers.produce.waiting import ACKS_ALL, PartitionOutcome, ProduceWait
from ottla.handlers.transactions.questions import TransactionQuestions
from ottla.handlers.transactions.verifying import FirstBatch, ProducedTransaction, first_batch
from ottla.metadata import MetadataCache
from ottla.model import ErrorCode, TopicPartition
from ottla.replication.leader import Leader
from ottla.replication.replicas import Replicas
from ottla.replication.round import Round
from ottla.replication.writes import Writes
from ottla.storage.errors import AppendRefused, RollDue, StorageFault, TooLongToCheck
from ottla.storage.log.append import AppendResult

#: What a coordinator says of a producer, whatever is in its transaction.
_OF_ANOTHER_PRODUCER: Final = frozenset({ErrorCode.INVALID_PRODUCER_ID_MAPPING, ErrorCode.INVALID_PRODUCER_EPOCH})


class Appends:
    def __init__(self, replicas: Replicas, writes: Writes, this_round: Round, questions: TransactionQuestions) -> None:
        self._replicas = replicas
        self._writes = writes
        self._round = this_round
        self._questions = questions

    def append(
        self,
        tp: TopicPartition,
        records: memoryview | None,
        acks: int,
        unchecked: list[UncheckedBatch],
        transaction: ProducedTransaction | None = None,
        *,
        may_be_looked_into: bool = True,
    ) -> PartitionOutcome:
        """What the partition's part comes to; it stays undecided where `unchecked` then has its batch.

        `transaction`: that of the request, where its client may use the transactional id.

        One that is long to look at is refused unless it `may_be_looked_into`, so that its producer makes smaller ones.
        """
        outcome = PartitionOutcome(tp.partition)
        if records is None and tp in self._replicas.leaders:
            outcome.fail(ErrorCode.INVALID_RECORD)
            return outcome
        leader = self._leader(tp, acks, outcome)
        if leader is None or records is None:
            return outcome
        if leader.changing_over is not None:
            unchecked.append(
                UncheckedBatch(tp, outcome, records, leader, is_looked_into=False, transaction=transaction)
            )
            return outcome
        try:
            first = self._first_of(transaction, leader, tp, records)
            if first is not None:
                unchecked.append(UncheckedBatch(tp, outcome, records, leader, is_looked_into=False, first=first))
            else:
                self._staged(outcome, leader, leader.append(records, self._round.wall_ms))
        except TooLongToCheck as error:
            if may_be_looked_into:
                unchecked.append(
                    UncheckedBatch(tp, outcome, records, leader, is_looked_into=True, transaction=transaction)
                )
            else:
                self._not_staged(outcome, leader, error)
        except RollDue:
            self._replicas.files.roll(leader)
            unchecked.append(
                UncheckedBatch(tp, outcome, records, leader, is_looked_into=False, transaction=transaction)
            )
        except (StorageFault, AppendRefused) as error:
            self._not_staged(outcome, leader, error)
        except Exception as fault:
            self._broken(outcome, leader, fault)
        return outcome

    def _first_of(
        self, transaction: ProducedTransaction | None, leader: Leader, tp: TopicPartition, records: memoryview
    ) -> FirstBatch | None:
        if transaction is None or not is_transactional(records):
            return None
        return first_batch(self._questions, leader.log, tp, records, transaction)

    def serve(
        self,
        tp: TopicPartition,
        records: memoryview | None,
        version: int,
        acks: int,
        unchecked: list[UncheckedBatch],
        transaction: ProducedTransaction | None,
        rule: ErrorCode | None,
        *,
        may_be_looked_into: bool = True,
    ) -> PartitionOutcome:
        """A partition of a request that was not recognised. `rule`: why nobody may write to the topic like this."""
        refused = None if records is None else refused_in(version, records)
        if refused is not None and self._knows(tp):
            outcome = PartitionOutcome(tp.partition)
            outcome.fail(*refused)
            return outcome
        if rule is not None:
            return self._refused_by(rule, tp, records, unchecked, transaction)
        return self.append(tp, records, acks, unchecked, transaction, may_be_looked_into=may_be_looked_into)

    def _knows(self, tp: TopicPartition) -> bool:
        """Whether there is such a partition, as far as this broker has heard."""
        return tp in self._replicas.leaders or self._replicas.why_not_leader(tp) != ErrorCode.UNKNOWN_TOPIC_OR_PARTITION

    def _refused_by(
        self,
        rule: ErrorCode,
        tp: TopicPartition,
        records: memoryview | None,
        unchecked: list[UncheckedBatch],
        transaction: ProducedTransaction | None,
    ) -> PartitionOutcome:
        """What becomes of a batch that is refused by a rule, whatever is in it. Nothing is staged.

        Kafka asks first whether there is such a partition, and then the transaction's coordinator.
        """
        outcome = PartitionOutcome(tp.partition)
        leader = self._replicas.leaders.get(tp)
        if leader is None or records is None or transaction is None:
            outcome.fail(rule if self._knows(tp) else self._replicas.why_not_leader(tp))
            return outcome
        try:
            first = self._first_of(transaction.only_asked(), leader, tp, records)
        except (RollDue, StorageFault):
            first = None
        except AppendRefused as error:
            self._ruled_out(outcome, rule, error, transaction)
            return outcome
        if first is None:
            outcome.fail(rule)
        else:
            unchecked.append(
                UncheckedBatch(
                    tp, outcome, records, leader, is_looked_into=False, first=first, transaction=transaction, rule=rule
                )
            )
        return outcome

    @staticmethod
    def _ruled_out(
        outcome: PartitionOutcome, rule: ErrorCode, error: AppendRefused, transaction: ProducedTransaction | None
    ) -> None:
        # A partition that would have been added is not: its transaction's end would write to what nobody may write to.
        if transaction is not None and transaction.adds and error.error not in _OF_ANOTHER_PRODUCER:
            outcome.fail(rule)
        else:
            outcome.refuse(error.error, error.message, error.record_errors, -1)

    def fail_unknown(self, wait: ProduceWait, metadata: MetadataCache) -> None:
        """What was sent to a topic by its id and is not staged yet: that topic may be gone by now."""
        for topic, outcomes in wait.topics:
            if isinstance(topic, bytes) and metadata.topic_name(topic) is None:
                for outcome in outcomes:
                    if outcome.answer is None and outcome.leader is None:
                        outcome.fail(ErrorCode.UNKNOWN_TOPIC_ID)

    def append_checked(self, unchecked: UncheckedBatch, acks: int, *, may_be_looked_into: bool = True) -> bool:
        """Goes on with a batch that another process has looked into, or whose log takes batches again.

        False where it has to wait once more.
        """
        outcome = unchecked.outcome
        leader = self._leader(unchecked.tp, acks, outcome)
        if leader is None:
            return True
        if leader.log is not unchecked.log:
            # Deleted and created again, perhaps: its client finds out.
            outcome.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return True
        if unchecked.rule is not None:
            self._say_rule(unchecked, unchecked.rule, leader)
            return True
        try:
            if not self._is_verified(unchecked, leader):
                return False
            self._append_judged(unchecked, leader)
        except TooLongToCheck as error:
            if may_be_looked_into:
                unchecked.is_to_be_looked_into()
                return False
            self._not_staged(outcome, leader, error)
        except RollDue:
            self._replicas.files.roll(leader)
            return False
        except (StorageFault, AppendRefused) as error:
            self._not_staged(outcome, leader, error)
        except Exception as fault:
            self._broken(outcome, leader, fault)
        return True

    def _say_rule(self, unchecked: UncheckedBatch, rule: ErrorCode, leader: Leader) -> None:
        """The coordinator has answered."""
        assert unchecked.first is not None
        try:
            unchecked.first.check(leader.log)
        except (RollDue, StorageFault):
            unchecked.outcome.fail(rule)
        except AppendRefused as error:
            self._ruled_out(unchecked.outcome, rule, error, unchecked.transaction)
        else:
            unchecked.outcome.fail(rule)

    def _is_verified(self, unchecked: UncheckedBatch, leader: Leader) -> bool:
        """False where the coordinator of its transaction has to be asked, now that the log can be looked at."""
        if unchecked.first is None:
            records = memoryview(unchecked.records)
            unchecked.first = self._first_of(unchecked.transaction, leader, unchecked.tp, records)
            return unchecked.first is None
        unchecked.first.check(leader.log)
        return True

    def _append_judged(self, unchecked: UncheckedBatch, leader: Leader) -> None:
        verdict = unchecked.verdict
        if verdict is None:
            appended = leader.append(memoryview(unchecked.records), self._round.wall_ms)
        else:
            refused = verdict.refused()
            if refused is not None:
                raise refused
            records = unchecked.records if verdict.changed is None else bytearray(verdict.changed)
            appended = leader.append_checked(memoryview(records), self._round.wall_ms)
        self._staged(unchecked.outcome, leader, appended)

    def _leader(self, tp: TopicPartition, acks: int, outcome: PartitionOutcome) -> Leader | None:
        """The leader that takes the batch; None where the outcome says why none does."""
        leader = self._replicas.leaders.get(tp)
        if leader is None:
            outcome.fail(self._replicas.why_not_leader(tp))
        elif acks == ACKS_ALL and not leader.has_enough_replicas():
            outcome.fail(ErrorCode.NOT_ENOUGH_REPLICAS)
        elif leader.fault is not None:
            outcome.fail(leader.fault)
        else:
            return leader
        return None

    def _staged(self, outcome: PartitionOutcome, leader: Leader, appended: AppendResult) -> None:
        self._writes.staged(leader)
        outcome.leader, outcome.appended = leader, appended

    def _not_staged(self, outcome: PartitionOutcome, leader: Leader, error: StorageFault | AppendRefused) -> None:
        if isinstance(error, StorageFault):
            # What this round staged and is not written will not be.
            self._writes.refused(leader, error)
            outcome.fail(ErrorCode.KAFKA_STORAGE_ERROR)
            return
        if error.error is ErrorCode.OUT_OF_ORDER_SEQUENCE_NUMBER and self._may_lack_batches(leader):
            outcome.fail(ErrorCode.NOT_LEADER_OR_FOLLOWER)
            return
        start = -1 if is_refused_unseen(error) else leader.log.start_offset
        outcome.refuse(error.error, error.message, error.record_errors, start)

    def _may_lack_batches(self, leader: Leader) -> bool:
        """Whether what comes before the batch may be with another leader: a client that is told that its numbers are
        wrong gives the batch up, where it should ask who leads."""
        return len(leader.isr.replicas) > 1 and self._replicas.may_be_replaced()

    def _broken(self, outcome: PartitionOutcome, leader: Leader, fault: Exception) -> None:
        self._writes.broke(leader, fault)
        outcome.fail(ErrorCode.KAFKA_STORAGE_ERROR)
