"""The driver's decisions carried out: asks the ledger, the coordinators and, where these cannot say, the log."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence
from contextlib import suppress
from typing import Any, ClassVar, Final

from ottla.client.admin.admin import Admin
from ottla.client.admin.transaction_results import TransactionDescription
from ottla.client.errors import (
    InvalidProducerIdMapping,
    InvalidRegularExpression,
    InvalidTxnState,
    KafkaError,
    ProducerFenced,
    SomeFailed,
    TransactionalIdNotFound,
    UnknownProducerId,
    UnsupportedVersion,
)
from ottla.client.producing.producer import Producer
from ottla.client.producing.transactions.core import TransactionIdentity
from ottla.spark.sink.entries import LedgerTask
from ottla.spark.sink.errors import DriverFenced
from ottla.spark.sink.exactly_once.core import BatchCommit
from ottla.spark.sink.exactly_once.effects import (
    Abort,
    Aborted,
    Commit,
    Committed,
    Describe,
    Described,
    Effect,
    Event,
    Fail,
    Fence,
    Fenced,
    FindStrays,
    Finish,
    LedgerRead,
    Outcome,
    ReadLedger,
    StraysFound,
    Write,
    Written,
)
from ottla.spark.sink.exactly_once.naming import driver_id, is_task_id, task_ids_pattern
from ottla.spark.sink.exactly_once.outcomes import outcome_in_the_log
from ottla.spark.sink.ledger import Ledger

#: So many transactions are ended at the same time.
_AT_ONCE_MAX: Final = 64
_OPEN: Final = "Ongoing"


class BatchCommitter:
    """Of one query's name in one process, for all its micro-batches."""

    def __init__(self, settings: Mapping[str, str], name: str, ledger: Ledger) -> None:
        """`settings` are those that every client has; the ledger is closed by whoever has made it."""
        self._settings = dict(settings)
        self._name = name
        self._ledger = ledger
        self._admin = Admin(self._settings)
        self._turns = asyncio.Semaphore(_AT_ONCE_MAX)
        #: Ends transactions of tasks: whoever has their identities may.
        self._ender = Producer(self._settings)
        #: Writes to the ledger, and is fenced by younger ones.
        self._driver: Producer | None = None

    async def commit(self, core: BatchCommit) -> None:
        """Returns when the micro-batch is finished. Raises why it is not, or KafkaError: then it is to be planned
        again, and whatever was done by now is found."""
        effect = core.begin()
        while not isinstance(effect, Finish):
            if isinstance(effect, Fail):
                raise effect.error
            effect = core.step(await self.perform(effect))

    async def perform(self, effect: Effect) -> Event:
        try:
            return await self._PERFORMED[type(effect)](self, effect)
        except ProducerFenced as error:  # of the ledger's writes: those of tasks are outcomes
            raise DriverFenced(
                f"another driver of ottla.query={self._name} has begun since, and goes on with this query: {error}"
            ) from error

    async def abort(self, transactions: Sequence[TransactionIdentity]) -> None:
        """Those of a micro-batch that Spark has given up, and that the ledger does not list. Its commit may have begun,
        and in another process: what is listed is to be committed, whoever does it."""
        entry = await self._ledger.entry()
        listed = frozenset() if entry is None else frozenset(one.transaction for one in entry.tasks)
        await self._abort(Abort(tuple(one for one in transactions if one not in listed)))

    async def close(self) -> None:
        await self._admin.close()
        await self._ender.close()

    # One effect each

    async def _fence(self, _: Fence) -> Event:
        self._driver = await self._ledger.fence(driver_id(self._name))
        return Fenced()

    async def _read(self, _: ReadLedger) -> Event:
        return LedgerRead(await self._ledger.entry())

    async def _describe(self, effect: Describe) -> Event:
        known = await self._described([one.transactional_id for one in effect.transactions])
        return Described(
            frozenset(one for one in effect.transactions if _is_open(known.get(one.transactional_id), one))
        )

    async def _write(self, effect: Write) -> Event:
        await self._ledger.write(effect.entry)
        return Written()

    async def _commit(self, effect: Commit) -> Event:
        # One that is not answered leaves the others to be: the next driver has the less to do.
        outcomes = await asyncio.gather(*map(self._outcome, effect.tasks), return_exceptions=True)
        found = {}
        for task, outcome in zip(effect.tasks, outcomes, strict=True):
            if isinstance(outcome, BaseException):
                raise outcome
            found[task.task] = outcome
        return Committed(found)

    async def _find_strays(self, effect: FindStrays) -> Event:
        assert self._driver is not None
        version = self._driver.transaction_version
        try:
            listed = await self._admin.list_transactions(states=[_OPEN], pattern=task_ids_pattern(self._name))
        except (UnsupportedVersion, InvalidRegularExpression):  # brokers before 4.1 list all of them
            listed = await self._admin.list_transactions(states=[_OPEN])
        ids = [one.transactional_id for one in listed if is_task_id(self._name, one.transactional_id)]
        described = await self._described([one for one in ids if one not in effect.known])
        return StraysFound(
            tuple(
                TransactionIdentity(name, one.producer_id, one.producer_epoch, version)
                for name, one in described.items()
                if one.state == _OPEN
            )
        )

    async def _abort(self, effect: Abort) -> Event:
        await asyncio.gather(*map(self._undo, effect.transactions))
        return Aborted()

    # One transaction each

    async def _outcome(self, task: LedgerTask) -> Outcome:
        assert task.transaction is not None
        try:
            async with self._turns:
                await self._ender.finish(task.transaction)
        except InvalidTxnState:
            return Outcome.ABORTED
        except (ProducerFenced, InvalidProducerIdMapping, UnknownProducerId, TransactionalIdNotFound):
            return await outcome_in_the_log(self._settings, task.place)
        return Outcome.COMMITTED

    async def _undo(self, transaction: TransactionIdentity) -> None:
        with suppress(KafkaError):  # it has ended already, or does when its time is over
            async with self._turns:
                await self._ender.finish(transaction, commit=False)

    async def _described(self, ids: Sequence[str]) -> Mapping[str, TransactionDescription]:
        """Those that are known."""
        if not ids:
            return {}
        try:
            return await self._admin.describe_transactions(ids)
        except TransactionalIdNotFound:
            return {}
        except SomeFailed as error:
            if all(isinstance(one, TransactionalIdNotFound) for one in error.errors.values()):
                return error.results
            raise

    _PERFORMED: ClassVar[Mapping[type[Any], Callable[[Any, Any], Awaitable[Event]]]] = {
        Fence: _fence,
        ReadLedger: _read,
        Describe: _describe,
        Write: _write,
        Commit: _commit,
        FindStrays: _find_strays,
        Abort: _abort,
    }


def _is_open(known: TransactionDescription | None, wanted: TransactionIdentity) -> bool:
    return (
        known is not None
        and known.state == _OPEN
        and (known.producer_id, known.producer_epoch) == (wanted.producer_id, wanted.epoch)
    )
