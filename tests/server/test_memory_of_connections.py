"""What a connection holds in memory: no more than its client has sent, and some KB."""

from __future__ import annotations

import struct
from collections.abc import Callable
from contextlib import ExitStack

import pytest
from tests.handlers.frames import batch, fetch_request, produce_request
from tests.server.conftest import BrokerThread
from tests.server.test_connections import asks, long_poll, until

from ottla.broker.broker import Broker
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.header import RequestHeader, encode_request

Make = Callable[..., BrokerThread]

EACH_MAX = 4096
CROWD = 200


def held(broker: Broker) -> int:
    assert broker._server is not None
    return sum(each.buffer.size for each in broker._server._connections if each.buffer is not None)


def begun(broker: Broker) -> int:
    assert broker._server is not None
    return sum(each.buffer is not None for each in broker._server._connections)


def crowd(running: BrokerThread, stack: ExitStack, first: bytes, settled: int) -> None:
    """Connections that send no more than this; what they hold comes below a bound without another byte of theirs."""
    peers = [stack.enter_context(running.connect()) for _ in range(CROWD)]
    for peer in peers:
        peer.send(first)
    until(lambda: running.look(begun) == CROWD)
    until(lambda: running.look(held) <= settled * CROWD)


def test_one_byte_holds_little(make_broker: Make) -> None:
    with make_broker() as running, ExitStack() as stack:
        crowd(running, stack, b"\0", EACH_MAX)


def test_a_short_beginning_of_a_long_frame_holds_little(make_broker: Make) -> None:
    with make_broker() as running:
        for length in (60_000, 90_000_000):
            with ExitStack() as stack:
                crowd(running, stack, struct.pack(">ihhi", length, 3, 9, 1), EACH_MAX)
            until(lambda: running.look(begun) == 0)


def test_what_does_not_grow_holds_what_was_sent(make_broker: Make) -> None:
    with make_broker() as running, ExitStack() as stack:
        crowd(running, stack, struct.pack(">ihhi", 60_000, 3, 9, 1) + bytes(2_000), EACH_MAX + 2_012)


def test_what_grows_by_single_bytes_holds_what_was_sent(make_broker: Make) -> None:
    with make_broker() as running, running.connect() as peer:
        peer.send(struct.pack(">ihhi", 60_000, 3, 9, 1) + bytes(2_000))
        until(lambda: running.look(begun) == 1)

        def holds_little_after_a_byte() -> bool:
            peer.send(b"\0")
            return running.look(held) <= 2_012 + EACH_MAX

        until(holds_little_after_a_byte)


def test_what_waits_behind_a_request_holds_what_was_sent(make_broker: Make) -> None:
    with make_broker() as running:
        running.create_topic("t")
        with ExitStack() as stack:
            peers = [stack.enter_context(running.connect()) for _ in range(50)]
            sent = 0
            for peer in peers:
                request = peer.frame(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3)
                behind = request * (8_000 // len(request))
                sent += len(behind)
                peer.send(long_poll(peer) + behind)
            until(lambda: running.look(begun) == len(peers))
            until(lambda: running.look(held) <= sent + EACH_MAX * len(peers))


def test_a_frame_that_comes_byte_by_byte_is_served(make_broker: Make) -> None:
    with make_broker() as running, running.connect() as peer:
        request = peer.frame(ApiVersionsRequest(client_software_name="t" * 3_000, client_software_version="1"), 3)
        for byte in request:
            peer.send(bytes((byte,)))
        assert peer.receive()
        for cut in (1, 4, 11, 12, 13, 1023, 1024, 1025, 2047, 2048, 2049, len(request) - 1):
            for piece in (request[:cut], request[cut:]):
                peer.send(piece)
                asks_another(running)
            assert peer.receive()


def test_a_frame_that_pauses_is_served(make_broker: Make) -> None:
    with make_broker() as running:
        for length, first in ((3_000, 2_000), (200_000, 2_000), (200_000, 40_000), (60_000, 40_000)):
            with running.connect() as peer:
                topics = [MetadataRequestTopic(name=f"{number:0200}") for number in range(length // 200)]
                request = peer.frame(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 5)
                peer.send(request[:first])
                until(lambda: running.look(begun) == 1)
                if first <= 32_768 and length < 65_536:
                    until(lambda first=first: running.look(held) <= first + EACH_MAX)
                for at in range(first, len(request), 700):
                    peer.send(request[at : at + 700])
                assert peer.receive()
                assert asks(peer)
            until(lambda: running.look(begun) == 0)


def asks_another(running: BrokerThread) -> None:
    """When it is answered, what was sent before it on another connection has been received."""
    with running.connect() as other:
        assert asks(other)


@pytest.mark.parametrize("size", [10, 30_000])
def test_a_long_client_id_is_not_remembered(make_broker: Make, size: int) -> None:
    """What a connection remembers of its last requests makes the next ones fast; it may not keep whatever came."""

    def remembered(broker: Broker) -> tuple[bool, ...]:
        assert broker._server is not None
        (only,) = broker._server._connections
        return only.produce_memo is not None, only.fetch_memo is not None

    with make_broker() as running, running.connect() as peer:
        running.create_topic("t")
        for message, version in ((produce_request(batch(b"v")), 8), (fetch_request(), 11)):
            header = RequestHeader(api_key=message.API_KEY, api_version=version, correlation_id=1, client_id="c" * size)
            for _ in range(3):
                peer.send(encode_request(header, message))
                assert peer.receive()
        assert running.look(remembered) == (size == 10, size == 10)
