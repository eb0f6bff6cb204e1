"""The transaction coordinator of this broker: which shard keeps a transactional id, and what is asked of all shards."""

from __future__ import annotations

from collections.abc import Callable

from ottla.config.slices import TransactionsConfig
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import Journal
from ottla.coordinators.led_partitions import LedPartitions
from ottla.coordinators.long_work import LongWork
from ottla.javahash import partition_of
from ottla.metadata.cache import MetadataCache
from ottla.model import NO_BROKER, TRANSACTION_TOPIC, BrokerId, ErrorCode, TopicPartition
from ottla.ports.clock import Clock
from ottla.protocol.generated.describe_transactions import TransactionState
from ottla.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.steps import Steps
from ottla.transactions.adding import verified_one
from ottla.transactions.asked import EndAsked, ProducerAnswer, ProducerInit, ProducerPartitions, Reply, Verified
from ottla.transactions.listing import describing, listed
from ottla.transactions.markers import MarkerLines, MarkerWriter
from ottla.transactions.shard import FreshIds, ShardContext, TransactionShard
from ottla.transactions.state import Counts
from ottla.transactions.transaction import EPOCH_A_TRANSACTION


class TransactionCoordinator:
    """All requests may be asked of any broker: one that does not lead the id's partition answers NOT_COORDINATOR."""

    def __init__(
        self,
        settings: Callable[[], TransactionsConfig],
        metadata: MetadataCache,
        clock: Clock,
        fresh_ids: FreshIds,
        writer: MarkerWriter,
        version: Callable[[], int] = lambda: EPOCH_A_TRANSACTION,
    ) -> None:
        self._settings = settings
        self._metadata = metadata
        self.counts = Counts()
        self.markers = MarkerLines(writer, self._leader_of, clock)
        self._long_work = LongWork(clock.monotonic_ms)
        self._shared = ShardContext(
            self.counts, fresh_ids, self.markers, version, self._long_work.side_by_side, self._long_work.one_by_one
        )
        #: Its roles, and its alarm.
        self.led = LedPartitions("transactions", self._new_shard, clock)

    def _new_shard(self, partition: int, journal: Journal) -> TransactionShard:
        return TransactionShard(partition, journal, self._settings, self._shared)

    def _leader_of(self, tp: TopicPartition) -> BrokerId | None:
        """Who leads a part of the transactions' topic, and does not find that, has yet to hear of any topic: roles come
        first at a start, and whoever announces the rest may die in between."""
        state = self._metadata.partition(tp.topic, tp.partition)
        if state is None:
            return NO_BROKER if self._metadata.topic(TRANSACTION_TOPIC) is None else None
        return state.leader

    async def close(self) -> None:
        """Answers all requests that wait, and does nothing from then on."""
        await self.led.close()
        await self.markers.close()
        await self._long_work.close()

    # Finding the shard.

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that keeps this id; by the setting while there is no topic."""
        topic = self._metadata.topic(TRANSACTION_TOPIC)
        count = len(topic.partitions) if topic is not None else self._settings().topic_partitions
        return partition_of(transactional_id, count)

    def find(self, transactional_id: str) -> TransactionShard | ErrorCode:
        """The shard of this id, or why it is not here."""
        if not transactional_id:
            return ErrorCode.INVALID_REQUEST
        found = self.led.find(self.partition_for(transactional_id))
        if isinstance(found, TransactionShard) and not found.is_certain:
            return ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
        return found

    # Requests about one id.

    def init_producer_id(self, now: Now, asked: ProducerInit, reply: Reply[ProducerAnswer]) -> None:
        """Gives the id's producer its id and a new epoch, which fences all earlier ones.

        Answered when it is committed. CONCURRENT_TRANSACTIONS where a transaction ends or has to be ended first.
        """
        if not asked.transactional_id:
            reply(ProducerAnswer(ErrorCode.INVALID_REQUEST))
        elif not 0 < asked.timeout_ms <= self._settings().timeout_ms_max:
            reply(ProducerAnswer(ErrorCode.INVALID_TRANSACTION_TIMEOUT))
        elif isinstance(found := self.find(asked.transactional_id), ErrorCode):
            reply(ProducerAnswer(found))
        else:
            found.init_producer_id(now, asked, reply)

    def add_partitions(self, now: Now, asked: ProducerPartitions, client_version: int, reply: Reply[ErrorCode]) -> None:
        """Adds all of the partitions to the producer's transaction, which begins with the first ones, or none.

        Answered when it is committed, and at once where nothing is new. `client_version`: 0 for AddPartitionsToTxn 0-3
        and AddOffsetsToTxn, else 2 (a Produce or a TxnOffsetCommit that adds its partitions itself).
        """
        found = self.find(asked.transactional_id)
        if isinstance(found, ErrorCode):
            reply(found)
        else:
            found.add_partitions(now, asked, client_version, reply)

    def add_partitions_when_at_rest(self, now: Now, asked: ProducerPartitions, reply: Reply[ErrorCode]) -> None:
        """The same for AddPartitionsToTxn 0-3 and AddOffsetsToTxn, whose client has the end of its last one behind it:
        its markers are waited for, as long as a leader of partitions would ask again."""
        until_ms = now.monotonic_ms + self._settings().add_partitions_retry_ms_max
        self.add_partitions(now, asked, 0, _PatientAdding(self, asked, until_ms, reply).answered)

    def when_at_rest(self, transactional_id: str, until_ms: int, call: Callable[[], None]) -> bool:
        """Calls once: when nothing of the id is on its way any more, at `until_ms` of the monotonic clock, or when its
        partition is given up. False: the id is at rest, or not here, or too many wait; then nothing is called."""
        found = self.find(transactional_id)
        return not isinstance(found, ErrorCode) and found.when_at_rest(transactional_id, until_ms, call)

    def verify_partitions(self, asked: ProducerPartitions) -> Verified:
        """Whether each partition is in this producer's ongoing transaction: NONE or TRANSACTION_ABORTABLE, or the same
        error for all. Only what is committed counts. Changes nothing, and waits for nothing."""
        found = self.find(asked.transactional_id)
        if isinstance(found, ErrorCode):
            return dict.fromkeys(asked.partitions, found)
        return found.verify_partitions(asked)

    def verify_one(self, transactional_id: str, producer_id: int, epoch: int, tp: TopicPartition) -> ErrorCode:
        """The same of one partition."""
        found = self.find(transactional_id)
        if isinstance(found, ErrorCode):
            return found
        return verified_one(found.committed(transactional_id), producer_id, epoch, tp)

    def end(self, now: Now, asked: EndAsked, reply: Reply[ProducerAnswer]) -> None:
        """Commits or aborts. Answered when the decision is committed; the markers are written after that.

        From `client_version` 2 on the answer has the producer's id and epoch for its next transaction, else -1.
        """
        found = self.find(asked.transactional_id)
        if isinstance(found, ErrorCode):
            reply(ProducerAnswer(found))
        else:
            found.end(now, asked, reply)

    def time_out(self, now: Now, transactional_id: str, reply: Reply[ErrorCode]) -> None:
        """Aborts the id's open transaction as if its time were over, for tests. Answered when that is decided."""
        found = self.find(transactional_id)
        if isinstance(found, ErrorCode):
            reply(found)
        else:
            found.time_out(transactional_id, now, reply)

    def describing(self, transactional_id: str) -> Steps[TransactionState]:
        """What is committed of it, for DescribeTransactions."""
        found = self.find(transactional_id)
        if isinstance(found, ErrorCode):
            return TransactionState(error_code=found, transactional_id=transactional_id)
        return (yield from describing(transactional_id, found.committed(transactional_id)))

    # All ids.

    def list_transactions(self, request: ListTransactionsRequest, wall_ms: int) -> Steps[ListTransactionsResponse]:
        """The ids of this broker. While some are loaded there is an error and nothing else, as in Kafka."""
        if self.led.some_are_loaded or any(not shard.is_certain for shard in self.led.shards()):
            return ListTransactionsResponse(error_code=ErrorCode.COORDINATOR_LOAD_IN_PROGRESS)
        return (yield from listed(request, wall_ms, [shard.state for shard in self.led.shards()]))


class _PatientAdding:
    """Asks again when its id is at rest. Each call is a method of it: two functions that name each other would be a
    circle, which only the collector of garbage takes away."""

    __slots__ = ("_asked", "_coordinator", "_reply", "_until_ms")

    def __init__(
        self, coordinator: TransactionCoordinator, asked: ProducerPartitions, until_ms: int, reply: Reply[ErrorCode]
    ) -> None:
        self._coordinator = coordinator
        self._asked = asked
        self._until_ms = until_ms
        self._reply = reply

    def _ask(self) -> None:
        self._coordinator.add_partitions(self._coordinator.led.now(), self._asked, 0, self.answered)

    def answered(self, error: ErrorCode) -> None:
        coordinator, until_ms = self._coordinator, self._until_ms
        is_early = error is ErrorCode.CONCURRENT_TRANSACTIONS and coordinator.led.now().monotonic_ms < until_ms
        if not (is_early and coordinator.when_at_rest(self._asked.transactional_id, until_ms, self._ask)):
            self._reply(error)
