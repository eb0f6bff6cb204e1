"""A transactional client that says exactly what it is told to say, over a socket."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from typing import Any

from tests.handlers.frames import batch, produce_request
from tests.server.conftest import SECONDS_MAX, Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest, AddOffsetsToTxnResponse
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.generated.end_txn import EndTxnRequest, EndTxnResponse
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from ottla.protocol.generated.produce import ProduceResponse
from ottla.protocol.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
    TxnOffsetCommitResponse,
)
from ottla.protocol.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
    WriteTxnMarkersResponse,
)

_GROUP, _TRANSACTION = 0, 1
#: What passes by itself: the topic is being made, its partition loaded, or the transaction before ends.
_PASSES = frozenset(
    {
        *(ErrorCode.COORDINATOR_NOT_AVAILABLE, ErrorCode.COORDINATOR_LOAD_IN_PROGRESS, ErrorCode.NOT_COORDINATOR),
        *(ErrorCode.CONCURRENT_TRANSACTIONS,),
    }
)


def until(is_so: Callable[[], bool]) -> None:
    """Asks again and again: clients are answered when an end is decided, and its markers come after that."""
    deadline = time.monotonic() + SECONDS_MAX
    while not is_so():
        assert time.monotonic() < deadline, "it never came"


class TransactionalClient:
    """Of one transactional id; `version` is that of transactions, 0 or 2."""

    def __init__(self, peer: Peer, transactional_id: str = "tx", version: int = 0) -> None:
        self.peer = peer
        self.id = transactional_id
        self.is_new = version == 2
        self.producer_id = self.epoch = -1
        self._sequences: dict[tuple[str, int], int] = {}

    def init(self) -> None:
        self.find(self.id, _TRANSACTION)
        request = InitProducerIdRequest(transactional_id=self.id, transaction_timeout_ms=60_000)
        answer = self._until_done(request, 4, InitProducerIdResponse)
        self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
        self._sequences.clear()

    def find(self, key: str, kind: int = _GROUP) -> None:
        """Has the topic of such coordinators made."""
        self._until_done(FindCoordinatorRequest(key=key, key_type=kind), 2, FindCoordinatorResponse)

    def add(self, topic: str, *partitions: int) -> list[int]:
        request = AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=self.producer_id,
            v3_and_below_producer_epoch=self.epoch,
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )
        while True:
            answer = self.peer.ask(request, 3, AddPartitionsToTxnResponse)
            (topic_result,) = answer.results_by_topic_v3_and_below
            codes = [each.partition_error_code for each in topic_result.results_by_partition]
            if not _PASSES & set(codes):
                return codes

    def produce(self, value: bytes, topic: str = "t", partition: int = 0, **changes: Any) -> Any:
        """The only partition's answer; `changes` are of what this client would say by itself."""
        place = (topic, partition)
        sequence = changes.pop("sequence", self._sequences.get(place, 0))
        version = changes.pop("version", 12 if self.is_new else 11)
        acks = changes.pop("acks", -1)
        # As new as markers are: a log rolls between what is weeks apart.
        changes.setdefault("timestamp", time.time_ns() // 1_000_000)
        options = {"producer_id": self.producer_id, "producer_epoch": self.epoch, "transactional": True, **changes}
        request = produce_request(batch(value, base_sequence=sequence, **options), topic, partition, acks)
        request.transactional_id = self.id
        while True:
            answer = self.peer.ask(request, version, ProduceResponse).responses[0].partition_responses[0]
            if answer.error_code not in _PASSES:
                break
        if not answer.error_code:
            self._sequences[place] = sequence + 1
        return answer

    def add_offsets(self, group: str) -> int:
        request = AddOffsetsToTxnRequest(
            transactional_id=self.id, producer_id=self.producer_id, producer_epoch=self.epoch, group_id=group
        )
        return int(self._until_done(request, 3, AddOffsetsToTxnResponse).error_code)

    def commit_offsets(
        self, group: str, offsets: Mapping[tuple[str, int], int], version: int | None = None, **member: Any
    ) -> dict[tuple[str, int], int]:
        topics: dict[str, list[TxnOffsetCommitRequestPartition]] = {}
        for (topic, partition), offset in offsets.items():
            entry = TxnOffsetCommitRequestPartition(partition_index=partition, committed_offset=offset)
            topics.setdefault(topic, []).append(entry)
        request = TxnOffsetCommitRequest(
            transactional_id=self.id,
            group_id=group,
            producer_id=member.pop("producer_id", self.producer_id),
            producer_epoch=member.pop("producer_epoch", self.epoch),
            topics=[TxnOffsetCommitRequestTopic(name=name, partitions=those) for name, those in topics.items()],
            **member,
        )
        asked = (5 if self.is_new else 4) if version is None else version
        while True:
            answer = self.peer.ask(request, asked, TxnOffsetCommitResponse)
            codes = {(t.name, p.partition_index): p.error_code for t in answer.topics for p in t.partitions}
            if not _PASSES & set(codes.values()):
                return codes

    def end(self, *, commits: bool) -> int:
        request = EndTxnRequest(
            transactional_id=self.id, producer_id=self.producer_id, producer_epoch=self.epoch, committed=commits
        )
        answer = self._until_done(request, 5 if self.is_new else 3, EndTxnResponse)
        if self.is_new and not answer.error_code:
            self.producer_id, self.epoch = answer.producer_id, answer.producer_epoch
            self._sequences.clear()
        return int(answer.error_code)

    def _until_done(self, request: Any, version: int, answer_type: type[Any]) -> Any:
        until = time.monotonic() + SECONDS_MAX
        while True:
            answer = self.peer.ask(request, version, answer_type)
            if answer.error_code not in _PASSES or time.monotonic() > until:
                return answer


def mark(
    peer: Peer,
    client: TransactionalClient,
    *partitions: tuple[str, int],
    commits: bool = False,
    version: int = 1,
    **changes: int,
) -> list[int]:
    """What the partitions answer to a marker for the client's transaction."""
    marker = WritableTxnMarker(
        producer_id=changes.get("producer_id", client.producer_id),
        producer_epoch=changes.get("producer_epoch", client.epoch),
        coordinator_epoch=changes.get("coordinator_epoch", 0),
        transaction_result=commits,
        transaction_version=changes.get("transaction_version", 2 if version == 2 else 0),
        topics=[WritableTxnMarkerTopic(name=topic, partition_indexes=[index]) for topic, index in partitions],
    )
    answer = peer.ask(WriteTxnMarkersRequest(markers=[marker]), version, WriteTxnMarkersResponse)
    (result,) = answer.markers
    assert result.producer_id == marker.producer_id
    return [partition.error_code for topic in result.topics for partition in topic.partitions]
