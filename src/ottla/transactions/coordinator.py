"""The transaction coordinator of this broker: which shard keeps a transactional id, and what is asked of all together."""

from __future__ import annotations

from ottla.coordinators.caller import Now
from ottla.model import ErrorCode
from ottla.protocol.generated.describe_transactions import TransactionState
from ottla.protocol.generated.list_transactions import ListTransactionsRequest, ListTransactionsResponse
from ottla.steps import Steps
from ottla.transactions.asked import EndAsked, ProducerAnswer, ProducerInit, ProducerPartitions, Reply, Verified


class TransactionCoordinator:
    """All requests may be asked of any broker: one that does not lead the id's partition answers NOT_COORDINATOR.

    Beside these it has `led` (`LedPartitions`), as the group coordinator.
    """

    def partition_for(self, transactional_id: str) -> int:
        """The partition of `__transaction_state` that keeps this id; by the setting while there is no topic."""
        raise NotImplementedError

    def init_producer_id(self, now: Now, asked: ProducerInit, reply: Reply[ProducerAnswer]) -> None:
        """Gives the id's producer its id and a new epoch, which fences all earlier ones.

        Answered when it is committed. CONCURRENT_TRANSACTIONS where a transaction ends or has to be ended first.
        """
        raise NotImplementedError

    def add_partitions(
        self, now: Now, asked: ProducerPartitions, client_version: int, reply: Reply[ErrorCode]
    ) -> None:
        """Adds all of the partitions to the producer's transaction, which begins with the first ones, or none.

        Answered when it is committed, and at once where nothing is new. `client_version`: 0 for AddPartitionsToTxn 0-3
        and AddOffsetsToTxn 0-3, else 2 (a Produce or a TxnOffsetCommit that adds its partitions itself).
        """
        raise NotImplementedError

    def verify_partitions(self, asked: ProducerPartitions) -> Verified:
        """Whether each partition is in this producer's ongoing transaction: NONE or TRANSACTION_ABORTABLE, or the same
        error for all. Only what is committed counts. Changes nothing, and waits for nothing."""
        raise NotImplementedError

    def end(self, now: Now, asked: EndAsked, reply: Reply[ProducerAnswer]) -> None:
        """Commits or aborts. Answered when the decision is committed; the markers are written after that.

        From `client_version` 2 on the answer has the producer's id and epoch for its next transaction, else -1.
        """
        raise NotImplementedError

    def describe(self, transactional_id: str) -> TransactionState:
        """What is committed of it, for DescribeTransactions."""
        raise NotImplementedError

    def list_transactions(self, request: ListTransactionsRequest) -> Steps[ListTransactionsResponse]:
        raise NotImplementedError
