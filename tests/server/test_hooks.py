"""Who may, and how much: every API asks the authorizer and the quotas that the broker was given.

A new API fails here until it has a row in `DENIED`: what it is asked, and what it answers to one who may nothing.
"""

from __future__ import annotations

import time
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from tests.handlers.frames import batch, fetch, fetch_request, produce, produce_request, values
from tests.handlers.transactional import TransactionalClient
from tests.server.conftest import BrokerThread, Peer
from tests.server.test_connections import until

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.handlers.routes import API_VERSIONS, BETWEEN_BROKERS, FETCH, PRODUCE, ROUTES
from ottla.metadata import MetadataUpdate
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.real import real_ports
from ottla.protocol.apis import api
from ottla.protocol.generated import (
    add_offsets_to_txn,
    add_partitions_to_txn,
    allocate_producer_ids,
    alter_configs,
    alter_partition,
    alter_partition_reassignments,
    alter_replica_log_dirs,
    consumer_group_describe,
    consumer_group_heartbeat,
    controlled_shutdown,
    create_acls,
    create_partitions,
    create_topics,
    delete_acls,
    delete_groups,
    delete_records,
    delete_topics,
    describe_acls,
    describe_client_quotas,
    describe_configs,
    describe_groups,
    describe_log_dirs,
    describe_producers,
    describe_topic_partitions,
    describe_transactions,
    describe_user_scram_credentials,
    elect_leaders,
    end_txn,
    envelope,
    find_coordinator,
    heartbeat,
    incremental_alter_configs,
    init_producer_id,
    join_group,
    leader_and_isr,
    leave_group,
    list_offsets,
    list_partition_reassignments,
    list_transactions,
    metadata,
    offset_commit,
    offset_delete,
    offset_fetch,
    offset_for_leader_epoch,
    stop_replica,
    sync_group,
    txn_offset_commit,
    update_features,
    update_metadata,
    write_txn_markers,
)
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest
from ottla.protocol.generated.fetch import FetchResponse
from ottla.protocol.generated.list_groups import ListGroupsRequest
from ottla.protocol.generated.produce import PartitionProduceData, ProduceResponse
from ottla.protocol.hot.produce import PLAIN_PARTS_MAX
from ottla.protocol.message import Message
from ottla.security.authorizer import Operation, Resource
from ottla.security.principal import ANONYMOUS, Principal
from ottla.security.quotas import Use

HELD_BACK_MS = 777
TP = TopicPartition("t", 0)
TOPIC_DENIED, GROUP_DENIED = ErrorCode.TOPIC_AUTHORIZATION_FAILED, ErrorCode.GROUP_AUTHORIZATION_FAILED
ID_DENIED = ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
#: These ask about what they have found, which is nothing.
ASK_OF_NOTHING = {API_VERSIONS, 66}
#: WriteTxnMarkers: its answer has no word for it.
NEVER_HELD_BACK = {27}
CLUSTER_DENIED = ErrorCode.CLUSTER_AUTHORIZATION_FAILED


class Choosy:
    """Allows all but what it is told to deny."""

    allows_all = False
    #: Set before the broker starts.
    announces = False

    def listen(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def __init__(self) -> None:
        self.denies_all = False
        self.denied: set[tuple[Operation, Resource, str]] = set()
        self.asked: list[tuple[Operation, Resource, str]] = []

    def allowed(self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        assert (principal, host) == (ANONYMOUS, "127.0.0.1")
        self.asked.append((operation, resource, name))
        return not self.denies_all and (operation, resource, name) not in self.denied


class Slow:
    """Holds back whom it is told to."""

    unlimited = False
    announces = False

    def listen(self, changed: Callable[[], None]) -> None:
        self.changed = changed

    def counts(self, principal: Principal, client_id: str | None) -> bool:
        return self.holds_back

    def __init__(self) -> None:
        self.holds_back = False
        self.used: list[tuple[str | None, Use, float]] = []

    def throttle_ms(self, principal: Principal, client_id: str | None, use: Use, amount: float, now_ms: int) -> int:
        assert principal == ANONYMOUS
        assert abs(now_ms - time.time() * 1000) < 60_000
        self.used.append((client_id, use, amount))
        return HELD_BACK_MS if self.holds_back else 0


class Guarded(BrokerThread):
    async def _start(self) -> None:
        self.choosy, self.slow = Choosy(), Slow()
        self.ports = real_ports()
        self.broker = Broker(Config.parse(self.properties), self.ports, authorizer=self.choosy, quotas=self.slow)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


@pytest.fixture
def guarded(tmp_path: Path) -> Iterator[Guarded]:
    settings = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}
    with Guarded(str(tmp_path), **settings) as broker:
        broker.create_topic("t")
        yield broker


class Row(NamedTuple):
    request: Message
    #: One that names topics by their names.
    version: int
    #: None where whoever may connect may ask: what may not be seen is left out of the answer.
    error: ErrorCode | None


def row(request: Message, error: ErrorCode | None, version: int | None = None) -> Row:
    return Row(request, ROUTES[request.API_KEY].version_max if version is None else version, error)


DENIED: dict[int, Row] = {
    each.request.API_KEY: each
    for each in (
        # Between brokers: their principals need ClusterAction.
        row(leader_and_isr.LeaderAndIsrRequest(), CLUSTER_DENIED),
        row(stop_replica.StopReplicaRequest(), CLUSTER_DENIED),
        row(update_metadata.UpdateMetadataRequest(), CLUSTER_DENIED),
        row(controlled_shutdown.ControlledShutdownRequest(), CLUSTER_DENIED),
        row(alter_partition.AlterPartitionRequest(), CLUSTER_DENIED),
        row(envelope.EnvelopeRequest(), CLUSTER_DENIED),
        row(allocate_producer_ids.AllocateProducerIdsRequest(), CLUSTER_DENIED),
        row(produce_request(batch(b"v")), TOPIC_DENIED, 12),
        row(fetch_request(), TOPIC_DENIED, 12),
        row(
            list_offsets.ListOffsetsRequest(
                topics=[
                    list_offsets.ListOffsetsTopic(
                        name="t", partitions=[list_offsets.ListOffsetsPartition(partition_index=0, timestamp=-1)]
                    )
                ]
            ),
            TOPIC_DENIED,
        ),
        row(metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")]), TOPIC_DENIED),
        row(
            offset_commit.OffsetCommitRequest(
                group_id="g",
                topics=[
                    offset_commit.OffsetCommitRequestTopic(
                        name="t", partitions=[offset_commit.OffsetCommitRequestPartition(committed_offset=0)]
                    )
                ],
            ),
            GROUP_DENIED,
            9,
        ),
        row(
            offset_fetch.OffsetFetchRequest(
                groups=[
                    offset_fetch.OffsetFetchRequestGroup(
                        group_id="g",
                        topics=[offset_fetch.OffsetFetchRequestTopics(name="t", partition_indexes=[0])],
                    )
                ]
            ),
            GROUP_DENIED,
            9,
        ),
        row(find_coordinator.FindCoordinatorRequest(coordinator_keys=["g"]), GROUP_DENIED),
        row(
            join_group.JoinGroupRequest(
                group_id="g",
                session_timeout_ms=6000,
                protocol_type="consumer",
                protocols=[join_group.JoinGroupRequestProtocol(name="range")],
            ),
            GROUP_DENIED,
        ),
        row(heartbeat.HeartbeatRequest(group_id="g"), GROUP_DENIED),
        row(
            leave_group.LeaveGroupRequest(group_id="g", members=[leave_group.MemberIdentity(member_id="m")]),
            GROUP_DENIED,
        ),
        row(sync_group.SyncGroupRequest(group_id="g", protocol_type="consumer", protocol_name="range"), GROUP_DENIED),
        row(describe_groups.DescribeGroupsRequest(groups=["g"]), GROUP_DENIED),
        row(ListGroupsRequest(), None),
        row(ApiVersionsRequest(client_software_name="a", client_software_version="1"), None),
        row(
            create_topics.CreateTopicsRequest(
                topics=[create_topics.CreatableTopic(name="n", num_partitions=1, replication_factor=1)],
                timeout_ms=60_000,
            ),
            TOPIC_DENIED,
        ),
        row(
            delete_topics.DeleteTopicsRequest(topics=[delete_topics.DeleteTopicState(name="t")], timeout_ms=60_000),
            TOPIC_DENIED,
        ),
        row(
            delete_records.DeleteRecordsRequest(
                topics=[
                    delete_records.DeleteRecordsTopic(
                        name="t", partitions=[delete_records.DeleteRecordsPartition(offset=-1)]
                    )
                ],
                timeout_ms=60_000,
            ),
            TOPIC_DENIED,
        ),
        row(init_producer_id.InitProducerIdRequest(transactional_id=None, transaction_timeout_ms=1000), CLUSTER_DENIED),
        row(
            offset_for_leader_epoch.OffsetForLeaderEpochRequest(
                topics=[
                    offset_for_leader_epoch.OffsetForLeaderTopic(
                        topic="t", partitions=[offset_for_leader_epoch.OffsetForLeaderPartition()]
                    )
                ]
            ),
            TOPIC_DENIED,
        ),
        row(add_partitions_to_txn.AddPartitionsToTxnRequest(), CLUSTER_DENIED),
        row(add_offsets_to_txn.AddOffsetsToTxnRequest(transactional_id="x", group_id="g"), ID_DENIED),
        row(end_txn.EndTxnRequest(transactional_id="x"), ID_DENIED),
        row(
            write_txn_markers.WriteTxnMarkersRequest(
                markers=[
                    write_txn_markers.WritableTxnMarker(
                        topics=[write_txn_markers.WritableTxnMarkerTopic(name="t", partition_indexes=[0])]
                    )
                ]
            ),
            CLUSTER_DENIED,
        ),
        row(
            txn_offset_commit.TxnOffsetCommitRequest(
                transactional_id="x",
                group_id="g",
                topics=[
                    txn_offset_commit.TxnOffsetCommitRequestTopic(
                        name="t", partitions=[txn_offset_commit.TxnOffsetCommitRequestPartition()]
                    )
                ],
            ),
            ID_DENIED,
        ),
        row(
            describe_acls.DescribeAclsRequest(
                resource_name_filter=None, principal_filter=None, host_filter=None, operation=1
            ),
            CLUSTER_DENIED,
        ),
        row(create_acls.CreateAclsRequest(creations=[create_acls.AclCreation(resource_name="t")]), CLUSTER_DENIED),
        row(
            delete_acls.DeleteAclsRequest(
                filters=[
                    delete_acls.DeleteAclsFilter(resource_name_filter=None, principal_filter=None, host_filter=None)
                ]
            ),
            CLUSTER_DENIED,
        ),
        row(
            describe_configs.DescribeConfigsRequest(
                resources=[
                    describe_configs.DescribeConfigsResource(
                        resource_type=2, resource_name="t", configuration_keys=None
                    )
                ]
            ),
            TOPIC_DENIED,
        ),
        row(
            alter_configs.AlterConfigsRequest(
                resources=[alter_configs.AlterConfigsResource(resource_type=2, resource_name="t")]
            ),
            TOPIC_DENIED,
        ),
        row(
            alter_replica_log_dirs.AlterReplicaLogDirsRequest(
                dirs=[
                    alter_replica_log_dirs.AlterReplicaLogDir(
                        path="/nowhere",
                        topics=[alter_replica_log_dirs.AlterReplicaLogDirTopic(name="t", partitions=[0])],
                    )
                ]
            ),
            CLUSTER_DENIED,
        ),
        row(describe_log_dirs.DescribeLogDirsRequest(topics=None), CLUSTER_DENIED),
        row(
            create_partitions.CreatePartitionsRequest(
                topics=[create_partitions.CreatePartitionsTopic(name="t", count=2, assignments=None)], timeout_ms=5000
            ),
            TOPIC_DENIED,
        ),
        row(delete_groups.DeleteGroupsRequest(groups_names=["g"]), GROUP_DENIED),
        row(
            incremental_alter_configs.IncrementalAlterConfigsRequest(
                resources=[incremental_alter_configs.AlterConfigsResource(resource_type=2, resource_name="t")]
            ),
            TOPIC_DENIED,
        ),
        row(
            elect_leaders.ElectLeadersRequest(
                topic_partitions=[elect_leaders.TopicPartitions(topic="t", partitions=[0])], timeout_ms=5000
            ),
            CLUSTER_DENIED,
        ),
        row(
            alter_partition_reassignments.AlterPartitionReassignmentsRequest(
                topics=[
                    alter_partition_reassignments.ReassignableTopic(
                        name="t", partitions=[alter_partition_reassignments.ReassignablePartition(replicas=[0])]
                    )
                ],
                timeout_ms=60_000,
            ),
            CLUSTER_DENIED,
        ),
        row(list_partition_reassignments.ListPartitionReassignmentsRequest(topics=None), CLUSTER_DENIED),
        row(offset_delete.OffsetDeleteRequest(group_id="g"), GROUP_DENIED),
        row(describe_client_quotas.DescribeClientQuotasRequest(components=[]), CLUSTER_DENIED),
        row(describe_user_scram_credentials.DescribeUserScramCredentialsRequest(users=None), CLUSTER_DENIED),
        row(update_features.UpdateFeaturesRequest(feature_updates=[]), CLUSTER_DENIED),
        row(DescribeClusterRequest(include_cluster_authorized_operations=True), None),
        row(
            describe_producers.DescribeProducersRequest(
                topics=[describe_producers.TopicRequest(name="t", partition_indexes=[0])]
            ),
            TOPIC_DENIED,
        ),
        row(describe_transactions.DescribeTransactionsRequest(transactional_ids=["x"]), ID_DENIED),
        row(list_transactions.ListTransactionsRequest(), None),
        row(
            consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
                group_id="g",
                member_id="m",
                rebalance_timeout_ms=5000,
                subscribed_topic_names=["t"],
                topic_partitions=[],
            ),
            GROUP_DENIED,
        ),
        row(consumer_group_describe.ConsumerGroupDescribeRequest(group_ids=["g"]), GROUP_DENIED),
        row(
            describe_topic_partitions.DescribeTopicPartitionsRequest(
                topics=[describe_topic_partitions.TopicRequest(name="t")]
            ),
            TOPIC_DENIED,
        ),
    )
}


def errors(answer: Any) -> list[int]:
    """Every error code of an answer, wherever it stands."""
    if isinstance(answer, list | tuple):
        return [error for each in answer for error in errors(each)]
    names = [name for kind in type(answer).__mro__ for name in getattr(kind, "__slots__", ())]
    found = []
    for name in names:
        value = getattr(answer, name, None)
        found += [value] if name == "error_code" else [] if isinstance(value, str | bytes) else errors(value)
    return found


def ask(peer: Peer, asked: Row) -> Any:
    return peer.ask(asked.request, asked.version, api(asked.request.API_KEY).response_type())


def test_no_api_is_left_out() -> None:
    assert DENIED.keys() == {*ROUTES, PRODUCE, FETCH}


@pytest.mark.parametrize("key", sorted(DENIED), ids=lambda key: api(key).name)
def test_who_may_nothing_is_told_so(guarded: Guarded, key: int) -> None:
    asked = DENIED[key]
    with guarded.connect() as peer:
        assert produce(peer, batch(b"secret")).error_code == ErrorCode.NONE
        guarded.choosy.denies_all = True
        guarded.choosy.asked.clear()
        answer = ask(peer, asked)
        if asked.error is None:
            assert set(errors(answer)) <= {ErrorCode.NONE}
        else:
            # Where an answer has a code for the request and one for each item, one of them is this.
            assert set(errors(answer)) - {ErrorCode.NONE} == {asked.error}
        assert bool(guarded.choosy.asked) == (key not in ASK_OF_NOTHING)
        assert b"secret" not in bytes(getattr(answer, "records", b""))
        guarded.choosy.denies_all = False
        assert values(fetch(peer)) == [b"secret"]


@pytest.mark.parametrize(
    "key", sorted(DENIED.keys() - BETWEEN_BROKERS - NEVER_HELD_BACK), ids=lambda key: api(key).name
)
def test_who_uses_too_much_is_held_back(guarded: Guarded, key: int) -> None:
    asked = DENIED[key]
    with guarded.connect() as peer:
        assert getattr(ask(peer, asked), "throttle_time_ms", 0) == 0
        guarded.slow.holds_back = True
        guarded.slow.used.clear()
        assert ask(peer, asked).throttle_time_ms == HELD_BACK_MS
        assert {client for client, _, _ in guarded.slow.used} == {"test"}
        assert Use.REQUEST_TIME in {use for _, use, _ in guarded.slow.used}


def test_bytes_are_counted(guarded: Guarded) -> None:
    raw = batch(b"v" * 500)
    with guarded.connect() as peer:
        for _ in range(3):
            guarded.slow.used.clear()
            request = peer.frame(produce_request(raw), 9)
            peer.send(request)
            assert peer.answer(ProduceResponse, 9).throttle_time_ms == 0
            assert ("test", Use.PRODUCED_BYTES, len(request) - 4) in guarded.slow.used
        for offset in range(3):
            guarded.slow.used.clear()
            assert len(fetch(peer, offset).records) == (3 - offset) * len(raw)
            assert ("test", Use.FETCHED_BYTES, (3 - offset) * len(raw)) in guarded.slow.used
        # A follower is not a client that could have too much.
        guarded.slow.used.clear()
        peer.ask(fetch_request(replica_id=2), 11, FetchResponse)
        assert guarded.slow.used == []


def test_a_produce_of_very_many_partitions_is_counted_and_held_back(guarded: Guarded) -> None:
    """It is served piece by piece, and counts as one request all the same."""
    guarded.slow.holds_back = True
    request = produce_request(batch(b"v" * 500))
    (topic,) = request.topic_data
    topic.partition_data += [PartitionProduceData(index=1 + number, records=None) for number in range(PLAIN_PARTS_MAX)]
    with guarded.connect() as peer:
        guarded.slow.used.clear()
        sent = peer.frame(request, 9)
        peer.send(sent)
        answer = peer.answer(ProduceResponse, 9)
    assert len(answer.responses[0].partition_responses) == 1 + PLAIN_PARTS_MAX
    assert answer.throttle_time_ms == HELD_BACK_MS
    assert sorted(guarded.slow.used, key=str) == sorted(
        [("test", Use.REQUEST_TIME, 0.0), ("test", Use.PRODUCED_BYTES, len(sent) - 4)], key=str
    )


def test_a_fetch_that_is_held_back_brings_nothing_and_loses_nothing(guarded: Guarded) -> None:
    with guarded.connect() as peer:
        assert produce(peer, batch(b"a")).error_code == ErrorCode.NONE
        guarded.slow.holds_back = True
        held = peer.ask(fetch_request(session_epoch=0), 11, FetchResponse)
        assert (held.throttle_time_ms, held.session_id, held.responses) == (HELD_BACK_MS, 0, [])
        guarded.slow.holds_back = False
        opened = peer.ask(fetch_request(session_epoch=0), 11, FetchResponse)
        assert values(opened.responses[0].partitions[0]) == [b"a"]
        guarded.slow.holds_back = True
        again = fetch_request(session_id=opened.session_id, session_epoch=1)
        held = peer.ask(again, 11, FetchResponse)
        assert (held.throttle_time_ms, held.session_id, held.responses) == (HELD_BACK_MS, opened.session_id, [])
        guarded.slow.holds_back = False
        later = peer.ask(fetch_request(session_id=opened.session_id, session_epoch=2), 11, FetchResponse)
        assert values(later.responses[0].partitions[0]) == [b"a"]


def test_what_one_may_changes_while_a_session_lasts(guarded: Guarded) -> None:
    with guarded.connect() as peer:
        assert produce(peer, batch(b"a")).error_code == ErrorCode.NONE
        opened = peer.ask(fetch_request(session_epoch=0), 11, FetchResponse)
        assert opened.responses[0].partitions[0].error_code == ErrorCode.NONE
        guarded.choosy.denied.add((Operation.READ, Resource.TOPIC, "t"))
        asked = fetch_request(offset=0, session_id=opened.session_id, session_epoch=1)
        (denied,) = peer.ask(asked, 11, FetchResponse).responses[0].partitions
        assert (denied.error_code, values(denied)) == (TOPIC_DENIED, [])
        # By its id the topic is as closed, and an id that nobody has is no secret.
        topic_id = guarded.look(lambda broker: broker.metadata.topics["t"].id)
        for asked_id, error in ((topic_id, TOPIC_DENIED), (b"\7" * 16, ErrorCode.UNKNOWN_TOPIC_ID)):
            by_id = fetch_request()
            by_id.topics[0].topic_id = asked_id
            assert peer.ask(by_id, 13, FetchResponse).responses[0].partitions[0].error_code == error


def test_a_group_reads_by_an_expression_what_its_member_may_see(guarded: Guarded) -> None:
    guarded.create_topic("secret")
    guarded.choosy.denied.add((Operation.DESCRIBE, Resource.TOPIC, "secret"))
    request = consumer_group_heartbeat.ConsumerGroupHeartbeatRequest(
        group_id="g", member_id="m", rebalance_timeout_ms=5000, subscribed_topic_regex=".*", topic_partitions=[]
    )
    with guarded.connect() as peer:
        client = TransactionalClient(peer)
        client.find("g")
        answer = client._until_done(request, 1, consumer_group_heartbeat.ConsumerGroupHeartbeatResponse)
    topic_id = guarded.look(lambda broker: broker.metadata.topics["t"].id)
    assert answer.error_code == ErrorCode.NONE
    assert answer.assignment is not None
    assert [given.topic_id for given in answer.assignment.topic_partitions] == [topic_id]


def test_nothing_is_remembered_of_what_one_may(guarded: Guarded) -> None:
    """Requests that are like the last one in every byte, and answers that were made before."""
    topics = metadata.MetadataRequest(topics=[metadata.MetadataRequestTopic(name="t")])
    with guarded.connect() as peer:

        def told() -> list[int]:
            described = peer.ask(topics, 9, metadata.MetadataResponse).topics[0]
            return [produce(peer, batch(b"a")).error_code, fetch(peer).error_code, described.error_code]

        for denies in (False, False, False, True, True, False, True):
            guarded.choosy.denies_all = denies
            assert told() == [TOPIC_DENIED if denies else ErrorCode.NONE] * 3
        assert guarded.look(lambda broker: broker.services.replicas.leaders[TP].run) is None


def test_nothing_is_remembered_of_what_one_may_use(guarded: Guarded) -> None:
    with guarded.connect() as peer:
        for holds_back in (False, False, False, True, True, False, True):
            guarded.slow.holds_back = holds_back
            throttle_ms = HELD_BACK_MS if holds_back else 0
            assert peer.ask(produce_request(batch(b"a")), 9, ProduceResponse).throttle_time_ms == throttle_ms
            assert peer.ask(fetch_request(), 11, FetchResponse).throttle_time_ms == throttle_ms


def test_a_fetch_that_waits_is_asked_about_again(guarded: Guarded) -> None:
    with guarded.connect() as peer, guarded.connect() as writer:
        peer.send(peer.frame(fetch_request(max_wait_ms=60_000), 11))
        until(lambda: guarded.look(lambda broker: len(broker.services.replicas.waiters)) == 1)
        guarded.choosy.denied.add((Operation.READ, Resource.TOPIC, "t"))
        assert produce(writer, batch(b"secret")).error_code == ErrorCode.NONE
        answer = peer.answer(FetchResponse, 11).responses[0].partitions[0]
        assert (answer.error_code, values(answer)) == (TOPIC_DENIED, [])


def test_followers_act_for_the_cluster(guarded: Guarded) -> None:
    with guarded.connect() as peer:
        guarded.choosy.denied.add((Operation.READ, Resource.TOPIC, "t"))
        as_follower = fetch_request(replica_id=2)
        # It may read, and is told that it has no replica.
        answer = peer.ask(as_follower, 11, FetchResponse).responses[0].partitions[0]
        assert answer.error_code == ErrorCode.NOT_LEADER_OR_FOLLOWER
        guarded.choosy.denied = {(Operation.CLUSTER_ACTION, Resource.CLUSTER, "kafka-cluster")}
        assert peer.ask(as_follower, 11, FetchResponse).responses[0].partitions[0].error_code == TOPIC_DENIED
        assert fetch(peer).error_code == ErrorCode.NONE


@pytest.mark.parametrize(("active", "error"), [(True, TOPIC_DENIED), (False, ErrorCode.UNKNOWN_TOPIC_ID)])
def test_a_topic_that_this_broker_has_not_heard_of_is_not_deleted_by_its_id(
    guarded: Guarded, active: bool, error: ErrorCode
) -> None:
    """Whose name it has it does not know then, and the controller would take its word that its client may."""
    metadata = guarded.broker.metadata
    topic_id, epoch = metadata.topics["t"].id, metadata.controller_epoch
    guarded.look(lambda it: it.metadata.apply(MetadataUpdate(controller_epoch=epoch, topics_deleted=["t"])))
    if not active:
        guarded.look(lambda it: setattr(it.controller.tenure, "_has_begun", False))  # type: ignore[union-attr]
    guarded.choosy.denied = {(Operation.DELETE, Resource.TOPIC, "t")}
    gone = [delete_topics.DeleteTopicState(name=None, topic_id=topic_id)]
    with guarded.connect() as peer:
        answer = ask(peer, row(delete_topics.DeleteTopicsRequest(topics=gone, timeout_ms=60_000), None))
    assert errors(answer) == [error]


def test_changes_of_partitions_are_counted(guarded: Guarded) -> None:
    def counted(request: Message) -> list[float]:
        guarded.slow.used.clear()
        ask(peer, row(request, None))
        return [amount for _, use, amount in guarded.slow.used if use is Use.PARTITION_CHANGES]

    new = [
        create_topics.CreatableTopic(name="n", num_partitions=3, replication_factor=1),
        create_topics.CreatableTopic(name="t", num_partitions=9, replication_factor=1),
    ]
    grown = [create_partitions.CreatePartitionsTopic(name="n", count=5, assignments=None)]
    gone = [delete_topics.DeleteTopicState(name=name) for name in ("n", "never")]
    with guarded.connect() as peer:
        assert counted(create_topics.CreateTopicsRequest(topics=new, timeout_ms=60_000)) == [3]
        assert counted(create_partitions.CreatePartitionsRequest(topics=grown, timeout_ms=60_000)) == [2]
        assert counted(create_partitions.CreatePartitionsRequest(topics=grown, timeout_ms=60_000)) == [0]
        assert counted(delete_topics.DeleteTopicsRequest(topics=gone, timeout_ms=60_000)) == [5]
