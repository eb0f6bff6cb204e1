"""A transactional producer's side of the protocol, as real clients speak it, in both of its generations.

    init ─▶ begin ─▶ write, send_offsets ... ─▶ end ─▶ begin ...
      ▲                   └────────┬─────────────┘
      └──────── TransactionLost ◀──┘      somebody else has its epoch, its time was over, or it gives up

The older generation adds partitions before it writes to them, and keeps its epoch. The newer one
(`transaction.version` 2) leaves that to the leaders, and has another epoch for each transaction. Each request is
repeated until it is answered. In the older generation a repeated request that comes late could be taken for one of the
next transaction, and so a producer that has missed an answer goes on in another epoch (Kafka's own clients do the same
with what was not acknowledged).
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from copy import copy
from random import Random
from typing import Any, Final, Self

from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Clock
from ottla.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.generated.add_partitions_to_txn import AddPartitionsToTxnRequest, AddPartitionsToTxnTopic
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.message import Message
from ottla.records.record import Record, encode_batch
from ottla.testing.sim.history import HistoryFault
from ottla.testing.sim.invariants.cluster import CommitAnswered
from ottla.testing.sim.members import AGAIN, OF_GROUPS, OF_TRANSACTIONS, GroupRefusal, coordinator_of
from ottla.testing.sim.routing import MOVED, ClusterClient
from ottla.testing.sim.transaction_history import Outcome, SentTransaction, TransactionHistory
from ottla.testing.sim.wire import Unreachable

#: The same is asked again.
_AGAIN: Final = frozenset(
    {
        *AGAIN,
        *MOVED,
        ErrorCode.CONCURRENT_TRANSACTIONS,
        ErrorCode.NETWORK_EXCEPTION,
        ErrorCode.NOT_ENOUGH_REPLICAS_AFTER_APPEND,
        # Beside an error of another partition of the same request.
        ErrorCode.OPERATION_NOT_ATTEMPTED,
    }
)
#: The transaction is over, or another producer has come.
_LOST: Final = frozenset(
    {
        ErrorCode.INVALID_PRODUCER_EPOCH,
        ErrorCode.PRODUCER_FENCED,
        ErrorCode.INVALID_PRODUCER_ID_MAPPING,
        ErrorCode.INVALID_TXN_STATE,
        ErrorCode.TRANSACTION_ABORTABLE,
    }
)
#: Seconds after which a producer gives up what it cannot write, and begins anew.
_PATIENCE_S: Final = 6.0
_BACK_OFF_S: Final = (0.02, 0.2)

CommitSeen = Callable[[CommitAnswered], None]


class TransactionLost(Exception):
    """The producer is to begin anew."""


class RequestVersions:
    """Of the requests of one generation."""

    def __init__(self, *, newer: bool) -> None:
        self.newer = newer
        self.init, self.produce, self.offsets, self.end = (5, 12, 5, 5) if newer else (4, 11, 4, 4)
        #: Only the older one asks for these itself.
        self.add_partitions = self.add_offsets = 3


class TransactionalClient:
    """One life after the other of the producer with a transactional id."""

    def __init__(
        self,
        client: ClusterClient,
        clock: Clock,
        history: TransactionHistory,
        random: Random,
        *,
        newer: bool,
        timeout_ms: int,
        commit_seen: CommitSeen,
    ) -> None:
        self.id = client.name
        self.timeout_ms = timeout_ms
        self.versions = RequestVersions(newer=newer)
        self._client = client
        self._clock = clock
        self._history = history
        self._random = random
        self._commit_seen = commit_seen
        self._coordinators: dict[tuple[int, str], int] = {}
        self._producer_id = self._epoch = -1
        #: Of the next record, by partition, in this epoch.
        self._sequences: dict[TopicPartition, int] = {}
        #: Partitions and groups that are in the transaction.
        self._added: set[TopicPartition | str] = set()
        #: An answer is missing: the request may be on its way still.
        self._is_in_doubt = False
        self._commits: Counter[tuple[int, int]] = Counter()
        self.transaction: SentTransaction | None = None
        self.is_alive = False

    def copy(self) -> Self:
        """One that has missed everything that comes from now on, with a transaction that nobody is to see."""
        twin = copy(self)
        twin.separate()
        return twin

    def separate(self) -> None:
        """Of a copy: what changes in it from now on is its own."""
        self._coordinators, self._sequences, self._added = {}, dict(self._sequences), set(self._added)
        name = f"{self.id} after its end"
        self.transaction = self._history.begin(name, name)
        self._history.lost(self.transaction)

    # Lives

    async def init(self) -> None:
        """A new epoch: what earlier lives have left open is aborted."""
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=self.timeout_ms)
        answer = await self._of_coordinator(request, self.versions.init, lambda said: [said.error_code])
        self._take_epoch(answer.producer_id, answer.producer_epoch)
        self.is_alive, self._is_in_doubt = True, False

    def _take_epoch(self, producer_id: int, epoch: int) -> None:
        self._producer_id, self._epoch = producer_id, epoch
        self._sequences.clear()

    def die(self) -> None:
        """It forgets everything, and begins with another epoch."""
        if self.transaction is not None:
            self._history.lost(self.transaction)
        self.transaction = None
        self.is_alive = False

    # Transactions

    def begin(self, name: str) -> SentTransaction:
        self.transaction = self._history.begin(f"{self.id}:{name}", self.id)
        self._added.clear()
        return self.transaction

    async def write(self, tp: TopicPartition, values: Sequence[bytes]) -> None:
        """Returns when they are acknowledged. Raises TransactionLost."""
        assert self.transaction is not None
        self._history.send(self.transaction, tp, values)
        if not self.versions.newer and tp not in self._added:
            await self._add(tp)
        self._added.add(tp)
        sequence, now_ms = self._sequences.get(tp, 0), self._clock.wall_ms()
        data = encode_batch(
            [Record(place, now_ms, None, value) for place, value in enumerate(values)],
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            base_sequence=sequence,
            transactional=True,
        )
        partition = PartitionProduceData(index=tp.partition, records=data)
        request = ProduceRequest(
            transactional_id=self.id,
            acks=-1,
            timeout_ms=2_000,
            topic_data=[TopicProduceData(name=tp.topic, partition_data=[partition])],
        )

        async def attempt() -> Any:
            answer = await self._client.ask_leader(tp, request, self.versions.produce)
            return answer.responses[0].partition_responses[0]

        said = await self._until_done(
            f"produce to {tp}", attempt, lambda said: [said.error_code], lambda: self._client.forget(tp)
        )
        self._sequences[tp] = sequence + len(values)
        if said.base_offset >= 0:
            self._history.acknowledge(tp, said.base_offset + len(values))

    async def _add(self, tp: TopicPartition) -> None:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self._producer_id,
            v3_and_below_producer_epoch=self._epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=tp.topic, partitions=[tp.partition])],
        )

        def codes(answer: Any) -> list[int]:
            topics = answer.results_by_topic_v3_and_below
            return [each.partition_error_code for topic in topics for each in topic.results_by_partition]

        await self._of_coordinator(request, self.versions.add_partitions, codes)

    async def send_offsets(self, group: str, positions: Mapping[TopicPartition, int]) -> None:
        """Raises TransactionLost."""
        assert self.transaction is not None
        self.transaction.positions.update(positions)
        if not self.versions.newer and group not in self._added:
            wanted = AddOffsetsToTxnRequest(
                transactional_id=self.id, producer_id=self._producer_id, producer_epoch=self._epoch, group_id=group
            )
            await self._of_coordinator(wanted, self.versions.add_offsets, lambda said: [said.error_code])
        self._added.add(group)
        await self.commit_offsets(group, positions)

    async def commit_offsets(self, group: str, positions: Mapping[TopicPartition, int]) -> None:
        """What is sent to the group's coordinator, whether its partition is in the transaction or not."""
        request = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=group,
            producer_id=self._producer_id,
            producer_epoch=self._epoch,
            topics=[
                TxnOffsetCommitRequestTopic(
                    name=tp.topic,
                    partitions=[
                        TxnOffsetCommitRequestPartition(partition_index=tp.partition, committed_offset=position)
                    ],
                )
                for tp, position in sorted(positions.items())
            ],
        )

        def codes(answer: Any) -> list[int]:
            return [each.error_code for topic in answer.topics for each in topic.partitions]

        await self._of_coordinator(request, self.versions.offsets, codes, OF_GROUPS, group)

    async def end(self, *, commits: bool) -> None:
        """Returns when it is decided. Raises TransactionLost."""
        transaction, before = self.transaction, (self._producer_id, self._epoch)
        assert transaction is not None
        if commits:
            self._history.becomes(transaction, Outcome.IN_DOUBT)
        request = EndTxnRequest(
            transactional_id=self.id, producer_id=self._producer_id, producer_epoch=self._epoch, committed=commits
        )
        answer = await self._of_coordinator(request, self.versions.end, lambda said: [said.error_code], is_patient=True)
        self.transaction = None
        self._history.becomes(transaction, Outcome.COMMITTED if commits else Outcome.ABORTED)
        if commits:
            self._commits[before] += 1
            decided_in = before[1] + 1 if self.versions.newer else before[1]
            self._commit_seen(CommitAnswered(self.id, before[0], decided_in, self._commits[before]))
        if self.versions.newer:
            self._take_epoch(answer.producer_id, answer.producer_epoch)
        elif self._is_in_doubt:
            self.is_alive = False

    # Requests

    async def _of_coordinator(
        self,
        request: Message,
        version: int,
        codes: Callable[[Any], Sequence[int]],
        kind: int = OF_TRANSACTIONS,
        key: str | None = None,
        *,
        is_patient: bool = False,
    ) -> Any:
        whose = kind, key or self.id

        async def attempt() -> Any:
            if whose not in self._coordinators:
                self._coordinators[whose] = await coordinator_of(self._client, whose[1], kind)
            return await self._client.broker(self._coordinators[whose]).ask(request, version)

        what = f"{type(request).__name__} of {self.id}"
        return await self._until_done(
            what, attempt, codes, lambda: self._coordinators.pop(whose, None), is_patient=is_patient
        )

    async def _until_done(
        self,
        what: str,
        attempt: Callable[[], Any],
        codes: Callable[[Any], Sequence[int]],
        moved: Callable[[], object],
        *,
        is_patient: bool = False,
    ) -> Any:
        """The answer without an error. Raises TransactionLost; unless it `is_patient` also when that takes too long."""
        loop = asyncio.get_running_loop()
        until = loop.time() + _PATIENCE_S
        while True:
            try:
                answer = await attempt()
            except GroupRefusal:
                moved()
            except Unreachable:
                self._is_in_doubt = True
                moved()
            else:
                error = ErrorCode(next((code for code in codes(answer) if code), ErrorCode.NONE))
                if error in (ErrorCode.NONE, ErrorCode.DUPLICATE_SEQUENCE_NUMBER):
                    return answer
                if error in _LOST:
                    raise TransactionLost(f"{what}: {error.name}")
                if error not in _AGAIN:
                    raise HistoryFault(f"{what}: {error.name}")
                if error is not ErrorCode.CONCURRENT_TRANSACTIONS:
                    moved()
            if loop.time() >= until and not is_patient:
                raise TransactionLost(f"{what}: not done within {_PATIENCE_S} s")
            await asyncio.sleep(self._random.uniform(*_BACK_OFF_S))
