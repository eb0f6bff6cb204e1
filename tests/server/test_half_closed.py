"""A client that ends its side and reads on: what it has sent is served and answered, as Kafka does."""

from __future__ import annotations

import socket
import struct

import pytest
from tests.handlers.frames import batch, fetch_request, produce_request
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.model import TopicPartition
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.metadata import MetadataRequest

TOPIC = "half-closed"
MANY = 300
SIZE = 10_000


@pytest.fixture(scope="module")
def filled(running: BrokerThread) -> str:
    running.create_topic(TOPIC)
    with running.connect() as peer:
        for _ in range(20):
            peer.send(peer.frame(produce_request(batch(b"v" * SIZE), topic=TOPIC), 9))
            peer.receive()
    return TOPIC


def end(peer: Peer) -> None:
    peer.socket.shutdown(socket.SHUT_WR)


def end_of(broker: Broker) -> int:
    assert broker.services is not None
    return broker.services.replicas.leaders[TopicPartition(TOPIC, 0)].log.end_offset


def answers(peer: Peer) -> list[int]:
    """The correlation ids, up to the end."""
    found: list[int] = []
    try:
        while True:
            found.append(struct.unpack_from(">i", peer.receive())[0])
    except EOFError:
        return found


@pytest.mark.parametrize("is_warm", [False, True])
def test_every_fetch_of_many_is_answered(running: BrokerThread, filled: str, *, is_warm: bool) -> None:
    with running.connect() as peer:
        warm = 5 if is_warm else 0  # a lane serves it then
        for _ in range(warm):
            peer.send(peer.frame(fetch_request(topic=filled, offset=3, partition_max_bytes=16384), 12))
            peer.receive()
        peer.send(
            b"".join(
                peer.frame(fetch_request(topic=filled, offset=3, partition_max_bytes=16384), 12) for _ in range(MANY)
            )
        )
        end(peer)
        assert answers(peer) == [*range(warm + 1, warm + MANY + 1)]


def test_all_kinds_are_answered_in_their_order(running: BrokerThread, filled: str) -> None:
    with running.connect() as peer:
        kinds = [
            (produce_request(batch(b"p"), topic=filled), 9),
            (fetch_request(topic=filled, offset=0), 12),
            (MetadataRequest(topics=None), 9),
            (ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3),
        ]
        peer.send(b"".join(peer.frame(*kinds[number % 4]) for number in range(100)))
        end(peer)
        assert answers(peer) == [*range(1, 101)]


def test_what_only_waits_for_others_is_given_up(running: BrokerThread, filled: str) -> None:
    with running.connect() as peer:
        peer.send(peer.frame(fetch_request(topic=filled, offset=3), 12))
        waits = fetch_request(topic=filled, offset=running.look(end_of), max_wait_ms=3_600_000)
        peer.send(peer.frame(waits, 12))
        end(peer)
        assert answers(peer) == [1]


def test_a_rest_that_is_no_request_ends_the_connection(peer: Peer) -> None:
    whole = peer.frame(ApiVersionsRequest(client_software_name="c", client_software_version="1"), 3)
    peer.send(whole + whole[:-5])
    end(peer)
    assert answers(peer) == [1]
