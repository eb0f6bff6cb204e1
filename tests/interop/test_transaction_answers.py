"""Whole conversations with the transaction coordinator: each answer is what Apache Kafka said to the same request."""

from __future__ import annotations

import struct
from collections.abc import Iterator

import pytest
from confluent_kafka.admin import AdminClient

from ottla.model import ErrorCode
from ottla.protocol.generated.add_partitions_to_txn import (
    AddPartitionsToTxnRequest,
    AddPartitionsToTxnResponse,
    AddPartitionsToTxnTopic,
)
from ottla.protocol.generated.find_coordinator import FindCoordinatorRequest, FindCoordinatorResponse
from ottla.protocol.generated.init_producer_id import InitProducerIdRequest, InitProducerIdResponse
from tests.conftest import WatchServer
from tests.interop.broker import Broker
from tests.interop.clients import eventually
from tests.interop.conftest import create_topic, new_broker
from tests.interop.transaction_answers import PROPERTIES, SCENARIOS, TOPIC, converse, recorded
from tests.server.conftest import Peer


@pytest.fixture(scope="module")
def asked(tmp_path_factory: pytest.TempPathFactory, watch_server: WatchServer) -> Iterator[Broker]:
    broker = new_broker(tmp_path_factory.mktemp("transaction-broker"), PROPERTIES)
    with watch_server(broker.server), broker.server:
        create_topic(AdminClient({"bootstrap.servers": broker.bootstrap, "log_level": 0}), TOPIC, partitions=3)
        yield broker


def test_every_conversation_is_recorded() -> None:
    assert list(recorded()) == list(SCENARIOS)


@pytest.mark.parametrize("scenario", SCENARIOS)
def test_answers_are_kafkas(asked: Broker, scenario: str) -> None:
    assert converse(asked.bootstrap, scenario) == recorded()[scenario]


def initialise(name: str) -> InitProducerIdRequest:
    return InitProducerIdRequest(transactional_id=name, transaction_timeout_ms=60_000)


def wait_until_loaded(peer: Peer, name: str) -> None:
    """The first question of all creates the topic."""
    find = FindCoordinatorRequest(key_type=1, coordinator_keys=[name])
    eventually(lambda: not peer.ask(find, 4, FindCoordinatorResponse).coordinators[0].error_code)
    request = initialise(f"{name}-before")
    eventually(lambda: not peer.ask(request, 5, InitProducerIdResponse).error_code)


def test_two_producers_with_one_id_at_the_same_moment(asked: Broker) -> None:
    """Both get an epoch in the end, and the one with the lower one is fenced: whichever came first."""
    add = AddPartitionsToTxnTopic(name=TOPIC, partitions=[0])
    with Peer(asked.server.port) as one, Peer(asked.server.port) as other:
        wait_until_loaded(one, "same-moment")
        for _ in range(10):
            found: dict[int, tuple[int, int]] = {}
            waiting = [one, other]
            while waiting:
                for peer in waiting:
                    peer.send(peer.frame(initialise("same-moment"), 5))
                for peer in list(waiting):
                    answer = peer.answer(InitProducerIdResponse, 5)
                    if answer.error_code == ErrorCode.NONE:
                        found[id(peer)] = answer.producer_id, answer.producer_epoch
                        waiting.remove(peer)
                    else:
                        assert answer.error_code == ErrorCode.CONCURRENT_TRANSACTIONS
            assert len(set(found.values())) == 2
            newest = max(found.values())
            for peer in (one, other):
                producer_id, epoch = found[id(peer)]
                request = AddPartitionsToTxnRequest(
                    v3_and_below_transactional_id="same-moment",
                    v3_and_below_producer_id=producer_id,
                    v3_and_below_producer_epoch=epoch,
                    v3_and_below_topics=[add],
                )
                expected = ErrorCode.NONE if (producer_id, epoch) == newest else ErrorCode.PRODUCER_FENCED
                (topic,) = peer.ask(request, 3, AddPartitionsToTxnResponse).results_by_topic_v3_and_below
                assert [each.partition_error_code for each in topic.results_by_partition] == [expected]


def test_an_id_of_65_000_characters_is_no_string_of_the_protocol(asked: Broker) -> None:
    """The connection ends with it, and the others go on. Older versions have no room for its length."""
    compact = 65_000 + 1
    size = bytes([compact & 0x7F | 0x80, compact >> 7 & 0x7F | 0x80, compact >> 14])
    head = struct.pack(">hhih", 22, 5, 1, 4) + b"test\0"
    frame = head + size + b"x" * 65_000 + struct.pack(">iqh", 60_000, -1, -1) + b"\0"
    with Peer(asked.server.port) as peer, Peer(asked.server.port) as other:
        wait_until_loaded(other, "short")
        peer.send(struct.pack(">i", len(frame)) + frame)
        assert peer.is_closed()
        assert other.ask(initialise("short"), 5, InitProducerIdResponse).error_code == ErrorCode.NONE
