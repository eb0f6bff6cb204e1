"""What a producer has for its transactions, in a class of its own: one part of `Producer`."""

from __future__ import annotations

from collections.abc import Mapping
from contextlib import AbstractAsyncContextManager
from typing import Any

from ottla.client.arguments import checked_text
from ottla.client.errors import ClientClosed, KafkaError, WrongTransactionState
from ottla.client.producing.transactions.core import TransactionCore, TransactionIdentity
from ottla.client.producing.transactions.finishing import finish
from ottla.client.producing.transactions.group_offsets import Committable
from ottla.client.producing.transactions.transactor import Transactor
from ottla.client.settings import ProducerSettings, checked_values
from ottla.client.wire.cluster import Cluster
from ottla.model import TopicPartition

#: One of a producer's transactions; with another id it begins to count anew.
TransactionNumber = tuple[TransactionCore, int]


class TransactionMethods:
    settings: ProducerSettings
    cluster: Cluster
    #: None without a `transactional.id`.
    _transactor: Transactor | None = None
    _closed: bool
    #: No record is taken: the producer is closed, or transactional and none is open.
    barred: bool

    async def init_transactions(self, *, anew: bool = False) -> None:
        """Becomes the only producer with this `transactional.id`: an earlier one is fenced, and what it left open is
        aborted. The first `begin` does it where this was not called. With `anew` whoever has begun since is fenced
        as well, where otherwise nothing is done a second time."""
        await self._transactions().initialize(anew=anew)

    async def take_transactional_id(self, transactional_id: str) -> None:
        """Has another `transactional.id` from now on, on the connections that are there, between two transactions or
        when one was detached: what a process does that writes for one id after the other."""
        given = {"transactional_id": checked_text(transactional_id, "transactional_id")}
        checked = checked_values(ProducerSettings, None, given)
        await self._transactions().take_id(checked["transactional_id"])

    async def begin(self) -> None:
        """Begins a transaction: what is sent from now on is seen by readers of committed records when it commits."""
        await self._transactions().begin()

    async def commit(self) -> None:
        """Ends the transaction, with all of its records written; raises TransactionAbortable where one was not.

        Where no answer came in time (RequestTimedOut), nobody knows the outcome: commit again.
        """
        await self._transactions().commit()

    async def abort(self) -> None:
        """Ends the transaction, and nothing of it is ever seen. The outcome of what waits to be sent is
        TransactionAborted."""
        await self._transactions().abort()

    def transaction(self) -> AbstractAsyncContextManager[None]:
        """A transaction as a block: it commits at the end, and aborts where that is an exception."""
        return self._transactions().block()

    async def send_offsets(self, offsets: Mapping[TopicPartition, Committable], group: Any) -> None:
        """Commits a group's offsets with the transaction. `group` is what a consumer's `group_metadata()` gives. Where
        its partitions are another member's by now, the transaction can only be aborted."""
        await self._transactions().send_offsets(offsets, group)

    async def detach(self) -> TransactionIdentity | None:
        """Leaves the transaction open, with all its records written: with what this returns any process may `finish`
        it, before `transaction.timeout.ms` is over. None where nothing was written: then there is none."""
        return await self._transactions().detach()

    async def finish(self, identity: TransactionIdentity, *, commit: bool = True) -> None:
        """Ends a transaction that was detached, by this producer or another one; may be repeated.

        InvalidTxnState: it has ended the other way. ProducerFenced: nobody can say how it has ended.
        """
        self._check_open()
        if self._transactor is not None:
            await self._transactor.finish(identity, commit=commit)
        else:
            await finish(self.cluster, identity, self.settings.max_block_ms, commit=commit)

    @property
    def transaction_version(self) -> int:
        """The generation of the protocol that the coordinator speaks, as it was heard last."""
        return self._transactions().core.version

    def _transactions(self) -> Transactor:
        self._check_open()
        if self._transactor is None:
            raise WrongTransactionState("this producer has no transactions: give transactional.id")
        return self._transactor

    # What records ask

    def _take_records(self, takes: bool) -> None:
        self.barred = self._closed or not takes

    @property
    def _transaction(self) -> TransactionNumber | None:
        """Which one it is now; None where there are none."""
        return None if self._transactor is None else (self._transactor.core, self._transactor.core.number)

    def not_entered(self, error: KafkaError) -> None:
        """A record that was taken came into no batch: its transaction cannot be committed."""
        if self._transactor is not None:
            self._transactor.fail(error)

    def check_takes(self, of: TransactionNumber | None = None) -> None:
        """Raises where no record is taken now, or none any more of the transaction in which it was sent."""
        self._check_open()
        if self.barred:
            assert self._transactor is not None
            raise self._transactor.core.refusal("send")
        if of is not None and of != self._transaction:
            raise WrongTransactionState("send: the transaction in which the record was sent has ended")

    def _check_open(self) -> None:
        if self._closed:
            raise ClientClosed("the producer is closed")
