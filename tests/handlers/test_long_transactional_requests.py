"""Requests about transactions with arrays as long as a frame carries, and what brokers ask of one another: small steps.

The steps are counted, and what they look at; a slow machine changes neither.
"""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Any

import pytest
from tests.groups.journal import MemoryJournal
from tests.handlers.test_long_admin_requests import Admin, Handle
from tests.server.conftest import BrokerThread

from ottla.config.broker import Config
from ottla.handlers import (
    add_partitions_to_txn,
    describe_topic_partitions,
    describe_transactions,
    leader_and_isr,
    list_transactions,
    stop_replica,
    write_txn_markers,
)
from ottla.handlers.calls import loading
from ottla.handlers.calls.call import Call
from ottla.handlers.calls.later import Later
from ottla.metadata import MetadataUpdate
from ottla.model import Epoch, ErrorCode, TopicPartition
from ottla.protocol.generated import add_partitions_to_txn as adding
from ottla.protocol.generated import stop_replica as stopping
from ottla.protocol.generated import write_txn_markers as marking
from ottla.protocol.generated.describe_topic_partitions import DescribeTopicPartitionsRequest
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest, TransactionState
from ottla.protocol.generated.leader_and_isr import LeaderAndIsrRequest, LeaderAndIsrTopicState
from ottla.protocol.generated.list_transactions import ListTransactionsRequest
from ottla.protocol.message import Message
from ottla.security.principal import ANONYMOUS
from ottla.steps import PIECE, Steps, at_once
from ottla.transactions import listing
from ottla.transactions.records import transaction_key
from ottla.transactions.state import Counts, ShardState, TransactionalId
from ottla.transactions.states import TransactionStatus
from ottla.transactions.transaction import Transaction

MANY = 20_000
ID = "id"


@pytest.fixture(scope="module")
def admin(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Admin]:
    with BrokerThread(str(tmp_path_factory.mktemp("transactions"))) as running:
        running.create_topic("t")
        yield Admin(running)


def counted(steps: Any) -> tuple[Any, int]:
    """What they return, and how many they were."""
    count = 0
    while True:
        try:
            next(steps)
        except StopIteration as end:
            return end.value, count
        count += 1


def ask(admin: Admin, handle: Handle, request: Message, version: int) -> Any:
    """As `Admin.ask`, with the steps of an answer that was known at once."""
    found = admin.ask(handle, request, version)
    if isinstance(found, Later):
        found, more = counted(found.response)
        admin.steps += more
    return found


# -- elements without elements


def markers(*topics: marking.WritableTxnMarkerTopic, count: int = 1) -> marking.WriteTxnMarkersRequest:
    one = marking.WritableTxnMarker(producer_id=1, producer_epoch=0, coordinator_epoch=0, topics=list(topics))
    return marking.WriteTxnMarkersRequest(markers=[one] * count)


def test_markers_of_no_partition(admin: Admin) -> None:
    answer = ask(admin, write_txn_markers.handle, markers(count=MANY), 1)
    assert [marker.topics for marker in answer.markers] == [[]] * MANY
    assert admin.steps >= 2 * MANY


def test_a_marker_of_topics_without_partitions(admin: Admin) -> None:
    topics = [marking.WritableTxnMarkerTopic(name="t", partition_indexes=[])] * MANY
    answer = ask(admin, write_txn_markers.handle, markers(*topics), 1)
    assert [topic.partitions for topic in answer.markers[0].topics] == [[]] * MANY
    assert admin.steps >= 2 * MANY // PIECE


def test_a_marker_of_many_topics_is_written_to_few_partitions_at_once(
    admin: Admin, monkeypatch: pytest.MonkeyPatch
) -> None:
    sizes: list[int] = []

    def write(_: object, end: object, partitions: list[TopicPartition], marked: Any) -> None:
        sizes.append(len(partitions))
        marked([ErrorCode.NONE] * len(partitions))

    markers_of = admin.running.look(lambda broker: type(broker.services.markers))  # type: ignore[union-attr]
    monkeypatch.setattr(markers_of, "write", write)
    topics = [marking.WritableTxnMarkerTopic(name="t", partition_indexes=[0, 1, 2])] * 100
    answer = ask(admin, write_txn_markers.handle, markers(*topics), 1)
    assert sum(sizes) == 300
    assert max(sizes) == 16
    assert [len(topic.partitions) for topic in answer.markers[0].topics] == [3] * 100


def test_partitions_are_added_of_topics_that_name_none(admin: Admin) -> None:
    request = adding.AddPartitionsToTxnRequest(
        v3_and_below_transactional_id=ID,
        v3_and_below_topics=[adding.AddPartitionsToTxnTopic(name=f"none-{n}", partitions=[]) for n in range(MANY)],
    )
    answer = ask(admin, add_partitions_to_txn.handle, request, 3)
    assert len(answer.results_by_topic_v3_and_below) == MANY
    assert admin.steps >= 2 * MANY // PIECE


def test_transactions_that_name_no_topic(admin: Admin) -> None:
    one = adding.AddPartitionsToTxnTransaction(transactional_id=ID, verify_only=True)
    answer = ask(admin, add_partitions_to_txn.handle, adding.AddPartitionsToTxnRequest(transactions=[one] * MANY), 5)
    assert len(answer.results_by_transaction) == MANY
    assert admin.steps >= 2 * MANY


def test_replicas_of_no_partition_are_stopped(admin: Admin) -> None:
    stale = {"controller_id": 1, "controller_epoch": -1, "broker_epoch": -1}
    requests = (
        (stopping.StopReplicaRequest(**stale, topics=[stopping.StopReplicaTopicV1(name="t")] * MANY), 2),
        (stopping.StopReplicaRequest(**stale, topic_states=[stopping.StopReplicaTopicState()] * MANY), 4),
    )
    for request, version in requests:
        ask(admin, stop_replica.handle, request, version)
        assert admin.steps >= MANY // PIECE


def test_roles_in_no_partition(admin: Admin) -> None:
    topics = [LeaderAndIsrTopicState()] * MANY
    ask(admin, leader_and_isr.handle, LeaderAndIsrRequest(controller_epoch=-1, topic_states=topics), 7)
    assert admin.steps >= MANY // PIECE


# -- DescribeTransactions


class Described:
    """A transaction of many partitions, and how often it was looked at."""

    def __init__(self) -> None:
        partitions = frozenset(TopicPartition(f"t-{n % 1_000}", n // 1_000) for n in range(10_000))
        self.known = Transaction(5, 0, 60_000, TransactionStatus.ONGOING, partitions)
        self.times = 0

    def describing(self, transactional_id: str) -> Steps[TransactionState]:
        self.times += 1
        return (yield from listing.describing(transactional_id, self.known))


class LookedThrough(list[Any]):
    """Counts how often all of it was gone through."""

    times = 0

    def __iter__(self) -> Iterator[Any]:
        LookedThrough.times += 1
        return super().__iter__()


def test_a_large_transaction_is_described_in_steps_and_once(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    described = Described()
    coordinator = admin.running.look(lambda broker: type(broker.services.transactions))  # type: ignore[union-attr]
    monkeypatch.setattr(coordinator, "describing", lambda _, name: described.describing(name))
    answer = admin.ask(describe_transactions.handle, DescribeTransactionsRequest(transactional_ids=[ID]), 0)
    (only,) = answer.transaction_states
    assert {(topic.topic, number) for topic in only.topics for number in topic.partitions} == described.known.partitions
    assert admin.steps >= 10_000 // 64 + 2 * 1_000 // 64
    many = 1_000
    answer = admin.ask(describe_transactions.handle, DescribeTransactionsRequest(transactional_ids=[ID] * many), 0)
    assert described.times == 2
    room = describe_transactions.PARTITIONS_MAX // 10_000
    codes = [state.error_code for state in answer.transaction_states]
    assert codes == [ErrorCode.NONE] * room + [ErrorCode.INVALID_REQUEST] * (many - room)


def test_ids_that_are_named_again_are_counted_no_more(admin: Admin, monkeypatch: pytest.MonkeyPatch) -> None:
    described = Described()

    def describing(_: object, name: str) -> Steps[TransactionState]:
        state = yield from described.describing(name)
        state.topics = LookedThrough(state.topics)
        return state

    coordinator = admin.running.look(lambda broker: type(broker.services.transactions))  # type: ignore[union-attr]
    monkeypatch.setattr(coordinator, "describing", describing)
    LookedThrough.times = 0
    admin.ask(describe_transactions.handle, DescribeTransactionsRequest(transactional_ids=[ID] * MANY), 0)
    assert LookedThrough.times <= 2


def test_few_topics_of_a_transaction_come_in_order() -> None:
    partitions = frozenset(TopicPartition(name, number) for name in "cab" for number in (2, 0, 1))
    known = Transaction(5, 0, 60_000, TransactionStatus.ONGOING, partitions)
    state = at_once(listing.describing(ID, known))
    assert [(topic.topic, topic.partitions) for topic in state.topics] == [(name, [0, 1, 2]) for name in "abc"]


# -- what changes between two steps


def test_topics_that_are_made_while_all_are_described(admin: Admin) -> None:
    async def described() -> int:
        services = admin.running.broker.services
        assert services is not None
        metadata = services.metadata
        state = metadata.partition("t", 0)
        assert state is not None
        made = [state._replace(topic=f"made-{number}") for number in range(3_000)]
        metadata.apply(MetadataUpdate(controller_epoch=Epoch(metadata.controller_epoch), partitions=made))
        call = Call(services, 0, 1, "test", ANONYMOUS, "127.0.0.1", "PLAINTEXT", services.clock.wall_ms())
        steps = describe_topic_partitions.handle(call, DescribeTopicPartitionsRequest(topics=[]))
        next(steps)
        late = state._replace(topic="late")
        metadata.apply(MetadataUpdate(controller_epoch=Epoch(metadata.controller_epoch), partitions=[late]))
        found = at_once(steps)
        gone = [each.topic for each in (*made, late)]
        metadata.apply(MetadataUpdate(controller_epoch=Epoch(metadata.controller_epoch), topics_deleted=gone))
        await asyncio.sleep(0)
        return len(found.topics)

    assert admin.running.run(described()) > 1_000


# -- ListTransactions


def test_an_expression_is_matched_with_no_id_that_takes_it_long() -> None:
    """Ids may have 32 KB, and are matched in one piece."""
    config = Config.parse().transactions
    state = ShardState(0, MemoryJournal(), lambda: config, Counts(), lambda *_: None)
    known = Transaction(5, 0, 60_000)
    for name in ("short", "a" * 32_000):
        state.ids[name] = TransactionalId(name, transaction_key(name), known)

    def asked(pattern: str) -> tuple[int, list[str]]:
        request = ListTransactionsRequest(transactional_id_pattern=pattern)
        answer = at_once(listing.listed(request, 0, [state]))
        return answer.error_code, [each.transactional_id[:5] for each in answer.transaction_states]

    assert asked(".*(or|aa).*") == (ErrorCode.NONE, ["short", "aaaaa"])
    assert asked("[ab]*a[ab]{1000}") == (ErrorCode.INVALID_REGULAR_EXPRESSION, [])


def test_the_library_of_expressions_is_loaded_by_a_worker(admin: Admin) -> None:
    request = ListTransactionsRequest(transactional_id_pattern="x")
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(loading, "_LOADED", set())

        async def first() -> object:
            services = admin.running.broker.services
            assert services is not None
            call = Call(services, 2, 1, "test", ANONYMOUS, "127.0.0.1", "PLAINTEXT", services.clock.wall_ms())
            return next(list_transactions.handle(call, request))

        assert admin.running.run(first()) is not None
