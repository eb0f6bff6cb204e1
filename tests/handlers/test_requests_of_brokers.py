"""What other brokers ask the controller: ISRs, producer ids, a stop, and what they forward, in every version."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from tests.server.conftest import BrokerThread, Peer

from ottla.controller.interface import TopicCreation, TopicToCreate
from ottla.metadata import MetadataUpdate
from ottla.model import ErrorCode
from ottla.protocol.generated.allocate_producer_ids import AllocateProducerIdsRequest, AllocateProducerIdsResponse
from ottla.protocol.generated.alter_partition import (
    AlterPartitionRequest,
    AlterPartitionResponse,
    BrokerState,
    RequestPartitionData,
    RequestTopicData,
)
from ottla.protocol.generated.controlled_shutdown import ControlledShutdownRequest, ControlledShutdownResponse
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.generated.default_principal_data import DefaultPrincipalData
from ottla.protocol.generated.envelope import EnvelopeRequest, EnvelopeResponse
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.protocol.header import RequestHeader, decode_response_header, encode_request
from ottla.protocol.message import Message
from ottla.security.authorizer import Operation, Resource
from ottla.security.forwarded import decode_principal
from ottla.security.principal import Principal

ALICE = Principal("User", "alice")


def encode_principal(principal: Principal) -> bytes:
    """As a forwarding broker of Kafka's writes it."""
    data = DefaultPrincipalData(type=principal.kind, name=principal.name, token_authenticated=False)
    return b"\0\0" + data.encode(0)


class OnlyBrokers:
    """Alice may do what brokers do not: create topics. Everybody else is a broker."""

    allows_all = False
    announces = False

    def __init__(self) -> None:
        self.asked: list[tuple[Principal, str, Operation]] = []

    def listen(self, changed: object) -> None: ...

    def allowed(self, principal: Principal, host: str, operation: Operation, resource: Resource, name: str) -> bool:
        self.asked.append((principal, host, operation))
        return (operation is Operation.CLUSTER_ACTION) == (principal != ALICE)


@pytest.fixture
def broker(tmp_path: Path) -> Iterator[BrokerThread]:
    with BrokerThread(str(tmp_path), **{"broker.id": "1"}) as started:
        started.create_topic("t", 2)
        yield started


@pytest.fixture
def peer(broker: BrokerThread) -> Iterator[Peer]:
    with broker.connect() as client:
        yield client


def own_epoch(broker: BrokerThread) -> int:
    return broker.look(lambda it: it.services.announced.broker_epoch)  # type: ignore[union-attr,attr-defined]


def asked_isr(
    broker: BrokerThread, version: int, broker_epoch: int, leader_epoch: int | None = None
) -> AlterPartitionRequest:
    state = broker.broker.metadata.partition("t", 0)
    assert state is not None
    partition = RequestPartitionData(
        partition_index=0,
        leader_epoch=state.leader_epoch if leader_epoch is None else leader_epoch,
        partition_epoch=state.partition_epoch,
    )
    if version < 3:
        partition.new_isr = [1]
    else:
        partition.new_isr_with_epochs = [BrokerState(broker_id=1, broker_epoch=own_epoch(broker))]
    topic = RequestTopicData(partitions=[partition])
    if version < 2:
        topic.topic_name = "t"
    else:
        topic.topic_id = state.topic_id
    return AlterPartitionRequest(broker_id=1, broker_epoch=broker_epoch, topics=[topic])


@pytest.mark.parametrize("version", range(4))
def test_an_isr_is_answered_with_the_state_as_it_is(broker: BrokerThread, peer: Peer, version: int) -> None:
    answer = peer.ask(asked_isr(broker, version, own_epoch(broker)), version, AlterPartitionResponse)
    assert answer.error_code == ErrorCode.NONE
    (topic,) = answer.topics
    (found,) = topic.partitions
    assert (found.error_code, found.leader_id, found.isr) == (ErrorCode.NONE, 1, [1])
    state = broker.broker.metadata.topics["t"]
    assert (topic.topic_name, topic.topic_id) == (("t", bytes(16)) if version < 2 else ("", state.id))


@pytest.mark.parametrize("version", range(4))
def test_an_isr_under_another_epoch_is_refused(broker: BrokerThread, peer: Peer, version: int) -> None:
    own = own_epoch(broker)
    whole = peer.ask(asked_isr(broker, version, own - 1), version, AlterPartitionResponse)
    assert (whole.error_code, whole.topics) == (ErrorCode.STALE_BROKER_EPOCH, [])
    single = peer.ask(asked_isr(broker, version, own, leader_epoch=-7), version, AlterPartitionResponse)
    assert single.error_code == ErrorCode.NONE
    assert single.topics[0].partitions[0].error_code == ErrorCode.FENCED_LEADER_EPOCH


def test_a_topic_that_this_broker_itself_has_not_heard_of(broker: BrokerThread, peer: Peer) -> None:
    """The controller has it: what its broker shows to clients may come later. So with brokers."""
    request = asked_isr(broker, 3, own_epoch(broker))
    epoch = broker.broker.metadata.controller_epoch
    broker.look(lambda it: it.metadata.apply(MetadataUpdate(controller_epoch=epoch, topics_deleted=["t"])))
    answer = peer.ask(request, 3, AlterPartitionResponse)
    (found,) = answer.topics[0].partitions
    assert (found.error_code, found.leader_id, found.isr) == (ErrorCode.NONE, 1, [1])
    broker.look(lambda it: it.metadata.apply(MetadataUpdate(controller_epoch=epoch, brokers=[])))
    ids = AllocateProducerIdsRequest(broker_id=1, broker_epoch=own_epoch(broker))
    assert peer.ask(ids, 0, AllocateProducerIdsResponse).error_code == ErrorCode.NONE


def test_topics_that_nobody_knows(broker: BrokerThread, peer: Peer) -> None:
    for version, error in ((1, ErrorCode.UNKNOWN_TOPIC_OR_PARTITION), (3, ErrorCode.UNKNOWN_TOPIC_ID)):
        request = asked_isr(broker, version, own_epoch(broker))
        request.topics[0].topic_name = "nowhere" if version < 2 else ""
        request.topics[0].topic_id = bytes(16) if version < 2 else b"\7" * 16
        answer = peer.ask(request, version, AlterPartitionResponse)
        assert answer.topics[0].partitions[0].error_code == error


def test_producer_ids_are_given_in_blocks_that_never_come_again(broker: BrokerThread, peer: Peer) -> None:
    own = own_epoch(broker)
    blocks = [
        peer.ask(AllocateProducerIdsRequest(broker_id=1, broker_epoch=own), 0, AllocateProducerIdsResponse)
        for _ in range(3)
    ]
    assert [block.error_code for block in blocks] == [0, 0, 0]
    assert [block.producer_id_len for block in blocks] == [1000] * 3
    assert len({block.producer_id_start for block in blocks}) == 3
    for request in (
        AllocateProducerIdsRequest(broker_id=1, broker_epoch=own - 1),
        AllocateProducerIdsRequest(broker_id=8, broker_epoch=own),
    ):
        assert peer.ask(request, 0, AllocateProducerIdsResponse).error_code == ErrorCode.STALE_BROKER_EPOCH


@pytest.mark.parametrize("version", range(4))
def test_a_broker_that_wants_to_stop_is_answered(broker: BrokerThread, peer: Peer, version: int) -> None:
    own = own_epoch(broker)
    if version >= 2:
        stale = ControlledShutdownRequest(broker_id=1, broker_epoch=own - 1)
        assert peer.ask(stale, version, ControlledShutdownResponse).error_code == ErrorCode.STALE_BROKER_EPOCH
    request = ControlledShutdownRequest(broker_id=1)
    if version >= 2:
        request.broker_epoch = own
    answer = peer.ask(request, version, ControlledShutdownResponse)
    # Nobody else could lead its only replicas: as in Kafka, they hold nothing up.
    assert (answer.error_code, answer.remaining_partitions) == (ErrorCode.NONE, [])


# Envelope


def enveloped(message: Message, version: int, principal: Principal | None = ALICE, **fields: object) -> EnvelopeRequest:
    header = RequestHeader(api_key=message.API_KEY, api_version=version, correlation_id=77, client_id="a client")
    given: dict[str, object] = {
        "request_data": encode_request(header, message)[4:],
        "request_principal": None if principal is None else encode_principal(principal),
        "client_host_address": bytes([10, 1, 2, 3]),
        **fields,
    }
    return EnvelopeRequest(**given)  # type: ignore[arg-type]


def create(name: str) -> CreateTopicsRequest:
    topic = CreatableTopic(name=name, num_partitions=1, replication_factor=1)
    return CreateTopicsRequest(topics=[topic], timeout_ms=60_000)


@pytest.mark.parametrize("version", range(2, 8))
def test_a_forwarded_request_is_served_as_its_clients(broker: BrokerThread, peer: Peer, version: int) -> None:
    answer = peer.ask(enveloped(create("forwarded"), version), 0, EnvelopeResponse)
    assert answer.error_code == ErrorCode.NONE
    raw = bytes(answer.response_data)
    correlation, _, at = decode_response_header(raw, 19, version)
    created, end = CreateTopicsResponse.decode(raw, version, at)
    assert (correlation, end) == (77, len(raw))
    assert [(each.name, each.error_code) for each in created.topics] == [("forwarded", 0)]
    assert "forwarded" in broker.broker.metadata.topics


def test_it_is_asked_about_under_its_clients_principal(tmp_path: Path) -> None:
    authorizer = OnlyBrokers()
    with BrokerThread(str(tmp_path), **{"broker.id": "1"}) as broker:

        async def guard() -> None:
            services = broker.broker.services
            assert services is not None
            dispatcher = broker.broker._dispatcher
            assert dispatcher is not None
            dispatcher._services = services._replace(authorizer=authorizer)

        broker.run(guard())
        with broker.connect() as peer:
            answer = peer.ask(enveloped(create("hers"), 7), 0, EnvelopeResponse)
            assert answer.error_code == ErrorCode.NONE
            assert "hers" in broker.broker.metadata.topics
            assert (ALICE, "10.1.2.3", Operation.CREATE) in authorizer.asked
            # A connection of hers may forward nothing.
            mallory = enveloped(create("no"), 7, Principal("User", "mallory"))
            denied = peer.ask(mallory, 0, EnvelopeResponse)
            raw = bytes(denied.response_data)
            _, _, at = decode_response_header(raw, 19, 7)
            created, _ = CreateTopicsResponse.decode(raw, 7, at)
            assert created.topics[0].error_code == ErrorCode.TOPIC_AUTHORIZATION_FAILED


def test_what_may_not_be_forwarded(broker: BrokerThread, peer: Peer) -> None:
    for request, error in (
        (enveloped(MetadataRequest(topics=[]), 9), ErrorCode.INVALID_REQUEST),
        (enveloped(enveloped(create("x"), 7), 0), ErrorCode.INVALID_REQUEST),
        (enveloped(create("x"), 7, request_data=b"\0\x13\0"), ErrorCode.INVALID_REQUEST),
        (enveloped(create("x"), 7, request_data=b"\0\x13\0\x07" + bytes(3)), ErrorCode.INVALID_REQUEST),
        (enveloped(create("x"), 7, client_host_address=b"abc"), ErrorCode.INVALID_REQUEST),
        (enveloped(create("x"), 7, request_principal=b"\0"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
        (enveloped(create("x"), 7, request_principal=b"\0\x09abc"), ErrorCode.PRINCIPAL_DESERIALIZATION_FAILURE),
    ):
        answer = peer.ask(request, 0, EnvelopeResponse)
        assert (answer.error_code, answer.response_data) == (error, None), request
    unknown = enveloped(create("x"), 7)
    data = bytearray(unknown.request_data)
    data[2:4] = b"\0\x63"
    unknown.request_data = bytes(data)
    assert peer.ask(unknown, 0, EnvelopeResponse).error_code == ErrorCode.UNSUPPORTED_VERSION
    assert "x" not in broker.broker.metadata.topics


class ReplacedController:
    """Another broker is the controller before it has answered."""

    def __init__(self, error: ErrorCode) -> None:
        self.active = True
        self._error = error

    async def create_topics(
        self, topics: Sequence[TopicToCreate], *, validate_only: bool = False, timeout_ms: int | None = None
    ) -> list[TopicCreation]:
        self.active = False
        return [TopicCreation(topic.name, self._error) for topic in topics]


@pytest.mark.parametrize("error", [ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT, ErrorCode.NOT_CONTROLLER])
def test_what_was_carried_out_is_not_forwarded_again(broker: BrokerThread, peer: Peer, error: ErrorCode) -> None:
    """By NOT_CONTROLLER a forwarding broker knows that nothing was done. The next controller would say of a topic that
    it exists already, or delete one that was made since."""

    async def replace() -> None:
        dispatcher = broker.broker._dispatcher
        assert dispatcher is not None
        controller: Any = ReplacedController(error)
        dispatcher._services = dispatcher._services._replace(own_controller=controller)

    broker.run(replace())
    answer = peer.ask(enveloped(create("forwarded"), 7), 0, EnvelopeResponse)
    if error is ErrorCode.NOT_CONTROLLER:
        assert (answer.error_code, answer.response_data) == (error, None)
        return
    assert answer.error_code == ErrorCode.NONE
    raw = bytes(answer.response_data)
    _, _, at = decode_response_header(raw, 19, 7)
    created, _ = CreateTopicsResponse.decode(raw, 7, at)
    assert [(each.name, each.error_code) for each in created.topics] == [("forwarded", error)]


def test_a_principal_comes_back_as_it_was() -> None:
    assert decode_principal(encode_principal(ALICE)) == ALICE
    # As Kafka's DefaultKafkaPrincipalBuilder writes it.
    assert encode_principal(ALICE) == b"\0\0\x05User\x06alice\0\0"
