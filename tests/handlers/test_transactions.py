"""The APIs of transactions at every version that is advertised, over a socket: what they say and what they do."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import pytest
from tests.broker.test_broker_metrics import numbers
from tests.handlers.frames import batch, produce
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.broker.transaction_metrics import register_transaction_metrics
from ottla.coordinators.caller import Now
from ottla.handlers.routes import ROUTES
from ottla.model import OFFSETS_TOPIC, TRANSACTION_TOPIC, ErrorCode, TopicPartition
from ottla.protocol.apis import api
from ottla.protocol.generated.add_offsets_to_txn import AddOffsetsToTxnRequest
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnTopic,
    AddPartitionsToTxnTransaction,
)
from ottla.protocol.generated.describe_transactions import DescribeTransactionsRequest
from ottla.protocol.generated.end_txn import EndTxnRequest
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest
from ottla.protocol.generated.list_transactions import ListTransactionsRequest
from ottla.protocol.generated.txn_offset_commit import (
    TxnOffsetCommitRequest,
    TxnOffsetCommitRequestPartition,
    TxnOffsetCommitRequestTopic,
)
from ottla.protocol.generated.write_txn_markers import (
    WritableTxnMarker,
    WritableTxnMarkerTopic,
    WriteTxnMarkersRequest,
)
from ottla.protocol.message import Message
from ottla.transactions.coordinator import TransactionCoordinator
from ottla.transactions.markers import TransactionEnd

PROPERTIES = {
    "transaction.state.log.replication.factor": "1",
    "transaction.state.log.min.isr": "1",
    "transaction.state.log.num.partitions": "3",
    "offsets.topic.replication.factor": "1",
    "offsets.topic.num.partitions": "3",
    # What one test leaves open is not ended in the middle of another one, however long all of them take.
    "transaction.abort.timed.out.transaction.cleanup.interval.ms": "3600000",
}
NONE, CONCURRENT = ErrorCode.NONE, ErrorCode.CONCURRENT_TRANSACTIONS
LOADING = ErrorCode.COORDINATOR_LOAD_IN_PROGRESS
TOPIC = "t"

MARKERS = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"

Producer = tuple[int, int]


@pytest.fixture(scope="module")
def running(tmp_path_factory: pytest.TempPathFactory) -> Iterator[BrokerThread]:
    with BrokerThread(str(tmp_path_factory.mktemp("transactions")), **PROPERTIES) as broker:
        broker.create_topic(TOPIC, 3)
        yield broker


@pytest.fixture
def peer(running: BrokerThread) -> Iterator[Peer]:
    with running.connect() as client:
        yield client


class Scene:
    """A transactional id of its own for one API and version."""

    def __init__(self, peer: Peer, name: str, version: int) -> None:
        self.peer, self.version, self.id = peer, version, f"{name}-{version}"
        find = FindCoordinatorRequest(key_type=1, coordinator_keys=[self.id])
        (found,) = self.ask(find, 4).coordinators
        assert (found.error_code, found.key) == (NONE, self.id)

    def ask(self, request: Message, version: int | None = None) -> Any:
        at = self.version if version is None else version
        return self.peer.ask(request, at, api(request.API_KEY).response_type())

    def until(self, request: Message, *passing: ErrorCode, version: int | None = None) -> Any:
        """Asks again while what was asked before ends, or a coordinator is loaded."""
        while True:
            answer = self.ask(request, version)
            if answer.error_code not in passing:
                return answer

    def init(self, producer: Producer = (-1, -1), version: int = 5) -> Producer:
        request = InitProducerIdRequest(
            transactional_id=self.id,
            transaction_timeout_ms=60_000,
            producer_id=producer[0],
            producer_epoch=producer[1],
        )
        answer = self.until(request, CONCURRENT, LOADING, version=version)
        assert answer.error_code == NONE
        return answer.producer_id, answer.producer_epoch

    def add(self, producer: Producer, *partitions: int) -> None:
        request = self.adding(producer, *partitions)
        while True:
            (topic,) = self.ask(request, 3).results_by_topic_v3_and_below
            codes = {each.partition_error_code for each in topic.results_by_partition}
            if codes != {CONCURRENT}:
                assert codes == {NONE}
                return

    def adding(self, producer: Producer, *partitions: int, topic: str = TOPIC) -> AddPartitionsToTxnRequest:
        return AddPartitionsToTxnRequest(
            v3_and_below_transactional_id=self.id,
            v3_and_below_producer_id=producer[0],
            v3_and_below_producer_epoch=producer[1],
            v3_and_below_topics=[AddPartitionsToTxnTopic(name=topic, partitions=list(partitions))],
        )

    def ending(self, producer: Producer, *, commit: bool = True) -> EndTxnRequest:
        return EndTxnRequest(
            transactional_id=self.id, producer_id=producer[0], producer_epoch=producer[1], committed=commit
        )

    def described(self) -> Any:
        (state,) = self.ask(DescribeTransactionsRequest(transactional_ids=[self.id]), 0).transaction_states
        return state


def each_version(key: int) -> Any:
    return pytest.mark.parametrize("version", range(ROUTES[key].version_min, ROUTES[key].version_max + 1))


@each_version(22)
def test_init_producer_id(peer: Peer, version: int) -> None:
    scene = Scene(peer, "init", version)
    first = scene.init(version=version)
    second = scene.init(version=version)
    assert second == (first[0], first[1] + 1)
    if version >= 3:
        assert scene.init(second, version) == (first[0], second[1] + 1)
        request = InitProducerIdRequest(
            transactional_id=scene.id, transaction_timeout_ms=60_000, producer_id=first[0], producer_epoch=first[1]
        )
        fenced = scene.ask(request).error_code
        assert fenced == (ErrorCode.PRODUCER_FENCED if version >= 4 else ErrorCode.INVALID_PRODUCER_EPOCH)


@each_version(24)
def test_add_partitions_to_txn(peer: Peer, version: int) -> None:
    scene = Scene(peer, "add", version)
    producer = scene.init()
    if version < 4:
        (topic,) = scene.ask(scene.adding(producer, 2, 0)).results_by_topic_v3_and_below
        assert [(each.partition_index, each.partition_error_code) for each in topic.results_by_partition] == [
            (2, NONE),
            (0, NONE),
        ]
        (topic,) = scene.ask(scene.adding(producer, 1, 7)).results_by_topic_v3_and_below
        assert [each.partition_error_code for each in topic.results_by_partition] == [
            ErrorCode.OPERATION_NOT_ATTEMPTED,
            ErrorCode.UNKNOWN_TOPIC_OR_PARTITION,
        ]
    else:
        topics = [AddPartitionsToTxnTopic(name=TOPIC, partitions=[0, 2])]
        transactions = [
            AddPartitionsToTxnTransaction(
                transactional_id=scene.id,
                producer_id=producer[0],
                producer_epoch=producer[1],
                verify_only=verify,
                topics=topics,
            )
            for verify in (True, False)
        ]
        for transaction, error in zip(transactions, (ErrorCode.TRANSACTION_ABORTABLE, NONE), strict=True):
            answer = scene.ask(AddPartitionsToTxnRequest(transactions=[transaction]))
            ((result,), code) = answer.results_by_transaction, answer.error_code
            (topic,) = result.topic_results
            assert (code, result.transactional_id, topic.name) == (NONE, scene.id, TOPIC)
            assert [each.partition_error_code for each in topic.results_by_partition] == [error, error]
    assert [(each.topic, each.partitions) for each in scene.described().topics] == [(TOPIC, [0, 2])]


def test_clients_add_no_partition_of_a_coordinators_topic(peer: Peer) -> None:
    scene = Scene(peer, "add-internal", 3)
    request = scene.adding(scene.init(), 0)
    request.v3_and_below_topics.append(AddPartitionsToTxnTopic(name=TRANSACTION_TOPIC, partitions=[0]))
    found = {topic.name: topic.results_by_partition for topic in scene.ask(request).results_by_topic_v3_and_below}
    assert {name: [each.partition_error_code for each in those] for name, those in found.items()} == {
        TOPIC: [ErrorCode.OPERATION_NOT_ATTEMPTED],
        TRANSACTION_TOPIC: [ErrorCode.TOPIC_AUTHORIZATION_FAILED],
    }


@each_version(25)
def test_add_offsets_to_txn(peer: Peer, version: int) -> None:
    scene = Scene(peer, "offsets", version)
    producer_id, epoch = scene.init()
    answer = scene.ask(
        AddOffsetsToTxnRequest(
            transactional_id=scene.id, producer_id=producer_id, producer_epoch=epoch, group_id="readers"
        )
    )
    assert answer.error_code == NONE
    assert [each.topic for each in scene.described().topics] == [OFFSETS_TOPIC]


@each_version(26)
def test_end_txn(peer: Peer, version: int) -> None:
    scene = Scene(peer, "end", version)
    producer = scene.init()
    for commit, name in ((True, "CompleteCommit"), (False, "CompleteAbort")):
        scene.add(producer, 0, 1)
        answer = scene.ask(scene.ending(producer, commit=commit))
        assert answer.error_code == NONE
        again = scene.until(scene.ending(producer, commit=commit), CONCURRENT)
        assert again.error_code == NONE
        assert scene.described().transaction_state == name
        if version >= 5:
            assert (answer.producer_id, answer.producer_epoch) == (producer[0], producer[1] + 1)
            producer = (answer.producer_id, answer.producer_epoch)
    wrong = scene.ask(scene.ending((producer[0], producer[1] + 1))).error_code
    assert wrong == (ErrorCode.PRODUCER_FENCED if version >= 2 else ErrorCode.INVALID_PRODUCER_EPOCH)


@each_version(27)
def test_write_txn_markers(peer: Peer, version: int) -> None:
    scene = Scene(peer, "markers", version)
    marker = WritableTxnMarker(
        producer_id=90_000 + version,
        producer_epoch=0,
        transaction_result=True,
        topics=[WritableTxnMarkerTopic(name=TOPIC, partition_indexes=[2, 9])],
        coordinator_epoch=0,
    )
    (result,) = scene.ask(WriteTxnMarkersRequest(markers=[marker])).markers
    (topic,) = result.topics
    assert (result.producer_id, topic.name) == (90_000 + version, TOPIC)
    assert [(each.partition_index, each.error_code) for each in topic.partitions] == [
        (2, NONE),
        (9, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION),
    ]


@each_version(28)
def test_txn_offset_commit(peer: Peer, version: int) -> None:
    scene = Scene(peer, "commit", version)
    producer_id, epoch = scene.init()
    group = f"group of {scene.id}"
    while scene.ask(FindCoordinatorRequest(coordinator_keys=[group]), 4).coordinators[0].error_code:
        pass
    if version < 5:
        adding = AddOffsetsToTxnRequest(
            transactional_id=scene.id, producer_id=producer_id, producer_epoch=epoch, group_id=group
        )
        assert scene.ask(adding, 3).error_code == NONE
    committing = TxnOffsetCommitRequest(
        transactional_id=scene.id,
        group_id=group,
        producer_id=producer_id,
        producer_epoch=epoch,
        topics=[
            TxnOffsetCommitRequestTopic(
                name=TOPIC, partitions=[TxnOffsetCommitRequestPartition(committed_offset=7, committed_metadata="")]
            )
        ],
    )
    while True:
        (topic,) = scene.ask(committing).topics
        (partition,) = topic.partitions
        # What does not know LOADING takes it for the end.
        if partition.error_code != (LOADING if version >= 2 else ErrorCode.COORDINATOR_NOT_AVAILABLE):
            break
    assert partition.error_code == NONE
    assert [each.topic for each in scene.described().topics] == [OFFSETS_TOPIC]


@each_version(65)
def test_describe_transactions(peer: Peer, version: int) -> None:
    scene = Scene(peer, "describe", version)
    producer = scene.init()
    scene.add(producer, 1)
    names = [scene.id, "nobody's", scene.id, ""]
    states = scene.ask(DescribeTransactionsRequest(transactional_ids=names)).transaction_states
    assert [(each.transactional_id, each.error_code) for each in states] == [
        (scene.id, NONE),
        ("nobody's", ErrorCode.TRANSACTIONAL_ID_NOT_FOUND),
        (scene.id, NONE),
        ("", ErrorCode.INVALID_REQUEST),
    ]
    found = states[0]
    assert (found.transaction_state, found.transaction_timeout_ms) == ("Ongoing", 60_000)
    assert (found.producer_id, found.producer_epoch) == producer
    assert found.transaction_start_time_ms > 0


@each_version(66)
def test_list_transactions(peer: Peer, version: int) -> None:
    scene = Scene(peer, "list", version)
    producer = scene.init()
    scene.add(producer, 1)

    def listed(**filters: Any) -> list[str]:
        answer = scene.ask(ListTransactionsRequest(**filters))
        assert answer.error_code == NONE
        return [each.transactional_id for each in answer.transaction_states]

    assert scene.id in listed()
    assert listed(producer_id_filters=[producer[0]]) == [scene.id]
    assert scene.id not in listed(state_filters=["Empty"])
    if version >= 1:
        assert scene.id not in listed(duration_filter=3_600_000)
    if version >= 2:
        assert listed(transactional_id_pattern=f"{scene.id}(abc)?") == [scene.id]
        assert listed(transactional_id_pattern="list") == []


def test_the_topic_is_made_as_kafka_makes_it(running: BrokerThread, peer: Peer) -> None:
    Scene(peer, "topic", 0)
    topic = running.look(lambda broker: broker.metadata.topics[TRANSACTION_TOPIC])
    assert (len(topic.partitions), topic.is_internal) == (3, True)
    assert dict(running.look(lambda broker: broker.metadata.topic_config(TRANSACTION_TOPIC))) == {
        "cleanup.policy": "compact",
        "compression.type": "uncompressed",
        "min.insync.replicas": "1",
        "segment.bytes": "104857600",
        "unclean.leader.election.enable": "false",
    }


def test_transactions_in_numbers(running: BrokerThread, peer: Peer) -> None:
    running.look(register_transaction_metrics)

    def seen(name: str) -> float:
        return numbers(running.look(lambda broker: broker.registry.render()))[f"ottla_transactions_{name}"]

    scene = Scene(peer, "numbers", 0)
    ids, ongoing = seen("ids"), seen("ongoing")
    producer = scene.init()
    scene.add(producer, 0)
    assert (seen("ids"), seen("ongoing")) == (ids + 1, ongoing + 1)
    scene.ask(scene.ending(producer), 4)
    scene.until(scene.ending(producer), CONCURRENT, version=4)
    assert (seen("ids"), seen("ongoing"), seen("ending")) == (ids + 1, ongoing, 0)
    # Beside transactions themselves: a marker for a topic that nobody knows (yet), and completions that are refused.
    waiting = (f"{MARKERS}unknowndestinationqueuesize", f"{MARKERS}logappendretryqueuesize")

    def look() -> list[float]:
        found = numbers(running.look(lambda broker: broker.registry.render()))
        return [found["ottla_transactions_ending"], *(found[name] for name in waiting)]

    assert look() == [0, 0, 0]
    owner = object()
    unknown = frozenset({TopicPartition("unknown", 0), TopicPartition("unknown", 1)})
    running.look(lambda broker: made(broker).markers.send(owner, TransactionEnd(7, 0, 0, True, 0, unknown), never))
    running.look(lambda broker: setattr(made(broker).counts, "unwritten", 3))
    assert look() == [1, 1, 3]
    running.look(lambda broker: made(broker).markers.forget(owner))
    running.look(lambda broker: setattr(made(broker).counts, "unwritten", 0))
    while look() != [0, 0, 0]:
        pass  # until the pause is over after which they would go again


def made(broker: Broker) -> TransactionCoordinator:
    assert broker.services is not None
    found = broker.services.transactions_on_demand.made
    assert found is not None
    return found


def never(now: Now) -> None:
    raise AssertionError("its topic is not there")


def test_clients_do_not_write_to_it(running: BrokerThread, peer: Peer) -> None:
    Scene(peer, "topic", 1)
    assert produce(peer, batch(b"v"), topic=TRANSACTION_TOPIC).error_code == ErrorCode.INVALID_TOPIC_EXCEPTION


def test_a_restart_knows_what_was_decided(tmp_path: Any) -> None:
    folder = str(tmp_path)
    with BrokerThread(folder, **PROPERTIES) as broker, broker.connect() as peer:
        broker.create_topic(TOPIC, 3)
        scene = Scene(peer, "restart", 0)
        producer = scene.init()
        scene.add(producer, 0)
    with BrokerThread(folder, **PROPERTIES) as broker, broker.connect() as peer:
        scene = Scene(peer, "restart", 0)
        while scene.described().error_code == LOADING:
            pass
        assert scene.described().transaction_state == "Ongoing"
        assert scene.until(scene.ending(producer), LOADING, version=4).error_code == NONE
        assert scene.until(scene.ending(producer), CONCURRENT, version=4).error_code == NONE
        assert scene.described().transaction_state == "CompleteCommit"
