"""Which partitions of the transaction topic this broker coordinates: those that it leads, as long as it leads them."""

from __future__ import annotations

from ottla.config import Config
from ottla.config.live import LiveConfig
from ottla.handlers.on_demand.transactions import TransactionsOnDemand
from ottla.model import TRANSACTION_TOPIC, TopicPartition
from ottla.records.compression import NONE
from ottla.replication.follower import Follower
from ottla.replication.journals import Journals, JournalSettings
from ottla.replication.leader import Leader


class TransactionJournalSettings:
    """As Kafka's: no write waits longer than a request, and nothing is compressed."""

    def __init__(self, live: LiveConfig) -> None:
        self._live = live
        self._config = live.current
        self._made = _journal_settings(live.current)

    def __call__(self) -> JournalSettings:
        """Each write asks some times, and settings hardly ever change."""
        if self._live.current is not self._config:
            self._config = self._live.current
            self._made = _journal_settings(self._config)
        return self._made


def _journal_settings(config: Config) -> JournalSettings:
    return JournalSettings(
        commit_timeout_ms=config.replication.request_timeout_ms,
        load_bytes_max=config.transactions.load_buffer_bytes,
        compression=NONE,
    )


class TransactionPartitions:
    """Implements `RoleListener` and `JournalOwner`."""

    def __init__(self, transactions: TransactionsOnDemand, journals: Journals) -> None:
        self._transactions = transactions
        self._journals = journals

    def became_leader(self, leader: Leader) -> None:
        if leader.tp.topic == TRANSACTION_TOPIC:
            self._transactions.get().led.elected(leader.tp.partition, self._journals.open(leader, self))

    def became_follower(self, follower: Follower) -> None:
        """Transactions are where the leader is."""

    def resigned(self, tp: TopicPartition) -> None:
        if tp.topic == TRANSACTION_TOPIC:
            # First the requests that wait for their writes.
            self._journals.close(tp)
            if self._transactions.made is not None:
                self._transactions.made.led.resigned(tp.partition)

    def journal_lost(self, tp: TopicPartition) -> None:
        self._transactions.get().led.journal_failed(tp.partition)
