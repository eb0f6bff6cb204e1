"""A producer's transactions at work: asks the coordinator what the core says has to be asked, and waits.

The coordinator is asked for one thing at a time, so that nothing that belongs to a transaction comes behind its end. An
end that was not heard in time stays to be asked for again (`commit` or `abort` once more): nobody may guess it.
"""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Awaitable, Callable, Mapping
from contextlib import asynccontextmanager, suppress
from dataclasses import replace
from typing import Protocol

from ottla.client.admin.group_results import CommittedOffset
from ottla.client.consuming.group.membership import GroupMetadata
from ottla.client.errors import (
    KafkaError,
    ProducerFenced,
    TransactionAbortable,
    TransactionFailed,
    TransactionFault,
    TransactionTimedOut,
)
from ottla.client.producing.sequences import Identities, ProducerIdentity
from ottla.client.producing.transactions.adding import add_offsets, add_partitions, ask_identity, version_of
from ottla.client.producing.transactions.calls import CoordinatorCalls, soon
from ottla.client.producing.transactions.core import CLASSIC, EPOCH_A_TRANSACTION, TransactionCore, TransactionIdentity
from ottla.client.producing.transactions.finishing import end, finish
from ottla.client.producing.transactions.group_offsets import checked_group, checked_offsets, commit_offsets
from ottla.client.producing.transactions.states import TransactionState
from ottla.client.producing.transactions.timed_out import aborted_by_coordinator
from ottla.client.producing.transactions.verdicts import Verdict, of_batch, of_coordinator
from ottla.client.settings import ProducerSettings
from ottla.client.wire.cluster import Cluster
from ottla.client.wire.connections import CONTROL
from ottla.client.wire.coordinator import Coordinator
from ottla.client.wire.coordinators import TRANSACTION
from ottla.model import ErrorCode, TopicPartition
from ottla.protocol.generated.end_txn import EndTxnResponse

#: How leaders refuse a batch of a transaction that was aborted meanwhile.
_LATE = frozenset({ErrorCode.INVALID_PRODUCER_EPOCH, ErrorCode.INVALID_TXN_STATE, ErrorCode.TRANSACTION_ABORTABLE})

_S = TransactionState


class Outbound(Protocol):
    """What carries the records: the sender."""

    def wake(self) -> None: ...
    def stop(self, error: KafkaError) -> None: ...
    async def quiet(self) -> None:
        """Until nothing is on the wire, and nothing waits to be."""


class Transactor:
    def __init__(
        self,
        settings: ProducerSettings,
        cluster: Cluster,
        flush: Callable[[], Awaitable[None]],
        on_state: Callable[[bool], None],
    ) -> None:
        assert settings.transactional_id is not None
        self._settings = settings
        self._cluster = cluster
        self._clock = cluster.world.clock
        self._flush = flush
        #: Called with whether records are taken now.
        self._on_state = on_state
        self.identities = Identities(raised_here=False)
        self.core = TransactionCore(settings.transactional_id, self.identities)
        self._coordinator = Coordinator(cluster, settings.transactional_id, TRANSACTION)
        self._groups: dict[str, Coordinator] = {}
        self._calls = CoordinatorCalls(cluster)
        #: Pauses of batches that meet the markers of the transaction before.
        self.soon = soon(cluster)
        #: The sender, once there is one.
        self.outbound: Outbound | None = None
        self._adding: asyncio.Task[None] | None = None
        #: What the coordinator has now, after it has aborted the transaction by itself.
        self._succeeded_by: ProducerIdentity | None = None

    # What callers use

    async def initialize(self, *, anew: bool) -> None:
        """Fences what has the same id, and ends its transaction; has this producer's identity from then on."""
        with self.core.busy("init_transactions", _S.UNINITIALIZED, _S.INITIALIZING, _S.READY):
            if anew or self.core.state is not _S.READY:
                # As a new producer: one whose answer is not heard begins as that again, not as who it has fenced.
                self.identities.current = self._succeeded_by = None
                await self._initialize(None)

    async def take_id(self, transactional_id: str) -> None:
        """Is another producer from now on, as one that is made anew; what was detached stays open."""
        with self.core.busy("take_transactional_id", _S.UNINITIALIZED, _S.READY, _S.DETACHED):
            before = self._coordinator
            self._settings = replace(self._settings, transactional_id=transactional_id)
            self.identities.current = self._succeeded_by = None
            self.core = TransactionCore(transactional_id, self.identities)
            self._coordinator = Coordinator(self._cluster, transactional_id, TRANSACTION)
            await before.close()

    async def begin(self) -> None:
        core = self.core
        with core.busy("begin", _S.UNINITIALIZED, _S.INITIALIZING, _S.READY):
            if core.state is not _S.READY:
                await self._initialize(self._succeeded_by or self.identities.current)
            elif core.needs_identity or self._version_changed():
                await self._initialize(core.identity)
            core.begin()
            self._on_state(True)

    async def commit(self) -> None:
        core = self.core
        with core.busy("commit", _S.OPEN, _S.COMMITTING):
            if core.state is _S.OPEN:
                await self._flushed("commit")
            if core.has_end:
                await self._end(commit=True)
            else:
                core.ended(None)

    async def abort(self) -> None:
        core = self.core
        with core.busy("abort", _S.OPEN, _S.FAILED, _S.ABORTING):
            core.abort()
            self._on_state(False)
            await self._quiet()
            if self._succeeded_by is not None:
                core.ended(None)
                await self._take_over()
                return
            if core.has_end:
                # What was asked to be added, and was not answered, is to come under an old epoch.
                core.needs_identity |= not core.certain
                await self._end(commit=False)
            else:
                core.ended(None)
            if core.needs_identity and core.state is _S.READY:
                await self._initialize(core.identity)

    async def send_offsets(self, offsets: object, group: object) -> None:
        wanted, who = checked_offsets(offsets), checked_group(group)
        core = self.core
        with core.busy("send_offsets", _S.OPEN):
            if not wanted:
                return
            try:
                await self._send_offsets(wanted, who)
            except asyncio.CancelledError:
                core.fail(TransactionAbortable("send_offsets was given up: whether it was done, nobody knows"))
                self._on_state(False)
                raise
            except KafkaError as error:
                raise self._hindered(error) from error
            if core.state is not _S.OPEN:  # a record has failed meanwhile
                raise core.refusal("send_offsets")

    async def detach(self) -> TransactionIdentity | None:
        core = self.core
        with core.busy("detach", _S.OPEN):
            await self._flushed("detach")
            if not core.has_end:
                core.ended(None)
                return None
            return core.detach()

    async def finish(self, identity: TransactionIdentity, *, commit: bool) -> None:
        await finish(self._cluster, identity, self._settings.max_block_ms, commit=commit)
        core = self.core
        if core.state is _S.DETACHED and core.open_identity() == tuple(identity):
            core.ended(None)

    @asynccontextmanager
    async def block(self) -> AsyncIterator[None]:
        """Begins; commits at its end, and aborts where that is an exception."""
        await self.begin()
        number = self.core.number
        try:
            yield
            if self._is_open(number):
                await self.commit()
        except BaseException as error:
            await self._give_up(number, error)
            raise

    def _is_open(self, number: int) -> bool:
        """Whether this transaction is still to be ended: the block may have done that itself."""
        return self.core.number == number and self.core.state in {_S.OPEN, _S.FAILED}

    async def _give_up(self, number: int, error: BaseException) -> None:
        """Aborts what an exception has ended. Of two faults the graver one is raised: that there is no next time."""
        if not self._is_open(number) or self.core.is_busy:
            return
        try:
            await self.abort()
        except (ProducerFenced, TransactionFailed) as over:
            if isinstance(error, KafkaError):
                raise over from error
            error.add_note(f"and the transaction could not be aborted: {over}")
        except KafkaError as fault:
            error.add_note(f"and the transaction could not be aborted: {fault}")

    async def close(self) -> None:
        """Aborts what is open. One that is being committed stays as it is: nobody knows."""
        core = self.core
        if core.state in {_S.OPEN, _S.FAILED, _S.ABORTING} and not core.is_busy:
            with suppress(KafkaError):  # the coordinator ends it, when its time is over
                await self.abort()

    async def end(self) -> None:
        """Nothing is asked any more."""
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)
        for coordinator in (self._coordinator, *self._groups.values()):
            await coordinator.close()

    # What the sender asks and says

    def admits(self, topic: str, partition: int) -> bool:
        """Whether a batch of this partition may go now; has the partition added where that must come first."""
        admitted = self.core.admits(TopicPartition(topic, partition), self._clock.monotonic_ms())
        if not admitted and self.core.pending and self._adding is None:
            self._adding = asyncio.get_running_loop().create_task(self._add_partitions())
        return admitted

    def dropping(self) -> KafkaError | None:
        return self.core.dropping()

    def is_newer(self) -> bool:
        return self.core.version >= EPOCH_A_TRANSACTION

    def batch_failed(self, error: KafkaError, *, stamped: bool) -> None:
        """A batch was not written, or nobody knows: the transaction cannot be committed."""
        self.core.batch_failed(stamped=stamped)
        self.fail(error)

    def fail(self, error: KafkaError) -> None:
        """A record that was taken will not be written. One that came when the end was asked for belongs to no
        transaction: all of this one's are written by then."""
        if self.core.end_asked:
            return
        verdict = of_batch(error)
        if verdict is Verdict.FENCED and self.core.state in {_S.OPEN, _S.COMMITTING}:
            self._over(self._fenced(error))
        elif verdict is Verdict.FATAL and self.core.state in {_S.OPEN, _S.COMMITTING}:
            self._over(error)
        elif self.core.fail(self._timed_out(error) if error.code in _LATE and self._is_late() else error):
            self._on_state(False)
            self._wake()

    # Its identity

    async def _initialize(self, expected: ProducerIdentity | None) -> None:
        core = self.core
        core.initialize()
        try:
            identity, version = await ask_identity(self._calls, self._coordinator, self._settings, expected)
        except KafkaError as error:
            verdict = of_coordinator(error)
            if verdict is Verdict.UNHEARD:
                raise
            if verdict is Verdict.FENCED:
                raise self._over(self._fenced(error)) from error
            self._over(error)
            raise
        self._succeeded_by = None
        core.initialized(identity, version)

    def _version_changed(self) -> bool:
        """Whether the coordinator, as far as it is connected, speaks the other generation by now."""
        node = self._coordinator.node_id
        connection = None if node is None else self._cluster.connections.open(node, CONTROL)
        return connection is not None and version_of(connection) != self.core.version

    # What belongs to a transaction

    async def _add_partitions(self) -> None:
        """Has the coordinator add partitions until none waits for it; a refusal is the transaction's end."""
        core = self.core
        try:
            while core.pending and core.state in {_S.OPEN, _S.COMMITTING}:
                wanted = frozenset(core.pending)
                core.start(self._clock.monotonic_ms())
                await add_partitions(
                    self._calls, self._coordinator, core.open_identity(), wanted, self._settings.max_block_ms
                )
                core.added(wanted)
                self._wake()
        except KafkaError as error:
            if of_coordinator(error) is not Verdict.UNHEARD:
                core.refused()
            self._hindered(error)
        finally:
            self._adding = None
            self._wake()

    async def _send_offsets(self, offsets: Mapping[TopicPartition, CommittedOffset], group: GroupMetadata) -> None:
        core, timeout_ms = self.core, self._settings.max_block_ms
        core.start(self._clock.monotonic_ms())
        if core.version == CLASSIC and group.group_id not in core.groups:
            try:
                await add_offsets(self._calls, self._coordinator, core.open_identity(), group.group_id, timeout_ms)
            except KafkaError as error:
                if of_coordinator(error) is not Verdict.UNHEARD:
                    core.refused()
                raise
            core.group_added(group.group_id)
        coordinator = self._groups.get(group.group_id)
        if coordinator is None:
            coordinator = self._groups[group.group_id] = Coordinator(self._cluster, group.group_id)
        try:
            await commit_offsets(self._calls, coordinator, core.open_identity(), offsets, group, timeout_ms)
        except BaseException as error:
            if not isinstance(error, KafkaError) or of_coordinator(error) is Verdict.UNHEARD:
                core.offsets_unheard()
            raise

    async def _flushed(self, verb: str) -> None:
        """All records written, and no more taken. Raises where one was not; a caller that gives up may go on."""
        core = self.core
        core.commit()
        self._on_state(False)
        try:
            await self._flush()
            if self._adding is not None:
                await asyncio.wait([self._adding])
        except BaseException:
            core.reopen()
            self._on_state(core.takes_records)
            raise
        if core.state is not _S.COMMITTING:
            raise core.refusal(verb)

    async def _quiet(self) -> None:
        """Until nothing of the transaction is under way any more."""
        if self._adding is not None:
            self._adding.cancel()
            await asyncio.gather(self._adding, return_exceptions=True)
        if self.outbound is not None:
            self._wake()
            await self.outbound.quiet()

    # Its end

    async def _end(self, *, commit: bool) -> None:
        core = self.core
        identity = core.open_identity()
        core.end_asked = True
        try:
            answer = await end(self._calls, self._coordinator, identity, self._settings.max_block_ms, commit=commit)
        except KafkaError as error:
            await self._end_refused(error, commit=commit)
        else:
            core.ended(_next_identity(answer))

    async def _end_refused(self, error: KafkaError, *, commit: bool) -> None:
        """Returns where the transaction is aborted, as was asked; raises what is to be said otherwise."""
        core = self.core
        verdict = of_coordinator(error)
        if verdict is Verdict.UNHEARD:
            raise error
        if (verdict is Verdict.FENCED or error.code is ErrorCode.INVALID_TXN_STATE) and self._is_late():
            self._succeeded_by = await aborted_by_coordinator(self._calls, self._coordinator, core.open_identity())
        if self._succeeded_by is not None:
            if not commit:
                core.ended(None)
                await self._take_over()
                return
            core.fail(self._timed_out(error))
            raise core.abortable() from error
        if verdict is Verdict.ABORTABLE and commit:
            core.fail(error)
            raise core.abortable() from error
        if verdict is Verdict.ABORTABLE or (error.code is ErrorCode.INVALID_TXN_STATE and not core.certain):
            core.ended(None)  # there is nothing to abort
            core.needs_identity = True
            return
        # One that is there and was aborted before its time was over: another producer begins, whose epoch comes next.
        fenced = verdict is Verdict.FENCED or error.code is ErrorCode.INVALID_TXN_STATE
        raise self._over(self._fenced(error) if fenced else error) from error

    async def _take_over(self) -> None:
        """Goes on after the coordinator has aborted the transaction by itself, unless another has begun since then."""
        await self._initialize(self._succeeded_by)

    # Faults

    def _hindered(self, error: KafkaError) -> KafkaError:
        """The transaction cannot be committed, or there will be none any more; gives what to raise."""
        core = self.core
        if core.state not in {_S.OPEN, _S.COMMITTING}:
            return core.refusal("the transaction") if core.state in {_S.FAILED, _S.OVER} else error
        verdict = of_coordinator(error)
        if verdict in {Verdict.FENCED, Verdict.FATAL}:
            return self._over(self._fenced(error) if verdict is Verdict.FENCED else error)
        core.fail(error)
        self._on_state(False)
        self._wake()
        return core.abortable()

    def _is_late(self) -> bool:
        """Whether the coordinator may have aborted the transaction by itself."""
        core = self.core
        return core.started and self._clock.monotonic_ms() - core.started_ms >= self._settings.transaction_timeout_ms

    def _timed_out(self, error: KafkaError) -> TransactionTimedOut:
        made = TransactionTimedOut(
            "the coordinator has aborted the transaction: it was open for longer than transaction.timeout.ms, "
            f"{self._settings.transaction_timeout_ms}",
            code=error.code,
        )
        made.__cause__ = error
        return made

    def _fenced(self, error: KafkaError) -> ProducerFenced:
        made = ProducerFenced(
            f"another producer has begun with transactional.id {self.core.transactional_id}: {error}", code=error.code
        )
        made.__cause__ = error
        return made

    def _over(self, error: KafkaError) -> TransactionFault:
        said = self.core.over(error)
        self._on_state(False)
        if self.outbound is not None:
            self.outbound.stop(said)
        return said

    def _wake(self) -> None:
        if self.outbound is not None:
            self.outbound.wake()


def _next_identity(answer: EndTxnResponse) -> ProducerIdentity | None:
    return ProducerIdentity(answer.producer_id, answer.producer_epoch) if answer.producer_id >= 0 else None
