"""Bytes that no client should send: each costs its sender the connection, or an error, and nobody else anything."""

from __future__ import annotations

import os
import random
import socket
import struct
import tempfile

import pytest
from tests.handlers.frames import batch, fetch_request, produce_request
from tests.server.conftest import BrokerThread, Peer

from ottla.handlers.routes import HOT, ROUTES, advertised
from ottla.model import ErrorCode
from ottla.protocol.apis import api
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest, CreateTopicsResponse
from ottla.protocol.generated.metadata import MetadataRequest, MetadataResponse
from ottla.protocol.generated.produce import ProduceResponse
from ottla.protocol.header import RequestHeader, encode_request


def api_versions() -> ApiVersionsRequest:
    return ApiVersionsRequest(client_software_name="test", client_software_version="1")


def raw_frame(payload: bytes) -> bytes:
    return struct.pack(">i", len(payload)) + payload


def test_an_unknown_version_of_api_versions_is_answered_in_version_0(peer: Peer) -> None:
    peer.send(raw_frame(struct.pack(">hhih", 18, 99, 7, -1) + b"\0"))
    raw = peer.receive()
    response, end = ApiVersionsResponse.decode(raw, 0, 4)
    assert struct.unpack(">i", raw[:4]) == (7,)
    assert end == len(raw)
    assert response.error_code == ErrorCode.UNSUPPORTED_VERSION
    assert [(a.api_key, a.min_version, a.max_version) for a in response.api_keys] == [(18, 0, 4)]
    assert peer.ask(api_versions(), 3, ApiVersionsResponse).error_code == ErrorCode.NONE


#: AlterClientQuotas: it has codecs, and no handler until there are quotas.
UNSERVED = 49
UNSERVED_BODY = struct.pack(">iih4sh1si?", 1, 1, 4, b"user", 1, b"u", 0, False)


def test_what_is_asked_as_not_served_is_whole_and_not_served() -> None:
    request, end = api(UNSERVED).request_type().decode(UNSERVED_BODY, 0, 0)
    assert end == len(UNSERVED_BODY)
    assert repr(request) != repr(type(request)())
    assert UNSERVED not in {*ROUTES, *HOT}
    assert UNSERVED not in {key for key, _, _ in advertised()}


@pytest.mark.parametrize(
    "payload",
    [
        pytest.param(struct.pack(">hhih", 9999, 0, 1, -1), id="unknown api"),
        pytest.param(struct.pack(">hhih", -1, 0, 1, -1), id="negative api"),
        pytest.param(struct.pack(">hhih", 3, 99, 1, -1), id="unknown version"),
        pytest.param(struct.pack(">hhih", 3, -1, 1, -1), id="negative version"),
        pytest.param(struct.pack(">hhih", 0, 2, 1, -1), id="produce before version 3"),
        pytest.param(struct.pack(">hhih", 0, 99, 1, -1), id="unknown version of produce"),
        pytest.param(struct.pack(">hhih", 1, 3, 1, -1), id="fetch before version 4"),
        pytest.param(struct.pack(">hhih", UNSERVED, 0, 1, -1) + UNSERVED_BODY, id="an api that is not served"),
        pytest.param(struct.pack(">hhih", 11, 5, 1, -1), id="join group cut short"),
        pytest.param(struct.pack(">hhih", 3, 1, 1, 30000) + b"x", id="client id beyond the frame"),
        pytest.param(struct.pack(">hhihi", 3, 1, 1, -1, 2**31 - 1), id="count beyond the frame"),
        pytest.param(struct.pack(">hhihi", 19, 2, 1, -1, -5), id="negative count"),
        pytest.param(struct.pack(">hhih", 3, 12, 1, -1) + b"\0" + b"\xff" * 9, id="endless varint"),
        pytest.param(struct.pack(">hhih", 3, 12, 1, -1) + b"\x41" + b"\0\0" * 65, id="65 tagged fields"),
        pytest.param(struct.pack(">hhih", 0, 9, 1, -1) + b"\0\0" + b"\xff" * 20, id="produce of noise"),
        pytest.param(struct.pack(">hhih", 1, 12, 1, -1) + b"\0" * 5, id="fetch cut short"),
        pytest.param(
            struct.pack(">hhihi", 19, 2, 1, -1, 1) + b"\x7f\xff" + b"\xff" * 32767, id="a long name that is no UTF-8"
        ),
    ],
)
def test_what_cannot_be_understood_closes_the_connection(running: BrokerThread, peer: Peer, payload: bytes) -> None:
    with running.connect() as other:
        peer.send(raw_frame(payload))
        assert peer.is_closed()
        assert other.ask(api_versions(), 3, ApiVersionsResponse).error_code == ErrorCode.NONE


def test_a_client_whose_id_is_no_utf8_is_served(peer: Peer) -> None:
    """As by Kafka; Latin-1 is what a C program may well send."""
    for version, tags in ((1, b""), (9, b"\0")):
        no_topics = struct.pack(">i", 0) if version < 9 else b"\x01\0\0\0\0"
        peer.send(raw_frame(struct.pack(">hhih", 3, version, 1, 6) + b"m\xfcller" + tags + no_topics))
        assert len(peer.answer(MetadataResponse, version).brokers) == 1


def test_a_name_that_is_no_utf8_is_nobodys(peer: Peer) -> None:
    peer.send(raw_frame(struct.pack(">hhihi", 3, 4, 1, -1, 1) + b"\0\3a\xffb" + b"\0"))
    (topic,) = peer.answer(MetadataResponse, 4).topics
    assert (topic.name, topic.error_code) == ("a\ufffdb", ErrorCode.INVALID_TOPIC_EXCEPTION)
    batchless = struct.pack(">hhihh", 0, 3, 1, -1, -1) + struct.pack(">hii", 1, 1000, 1) + b"\0\3a\xffb"
    peer.send(raw_frame(batchless + struct.pack(">iii", 1, 0, 0)))
    (produced,) = peer.answer(ProduceResponse, 3).responses
    assert produced.partition_responses[0].error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION


@pytest.mark.parametrize("length", [-1, 0, 7, 100 * 1024 * 1024 + 1, 2**31 - 1, -(2**31)])
def test_a_frame_of_a_bad_length_closes_the_connection_before_it_arrives(peer: Peer, length: int) -> None:
    peer.send(struct.pack(">i", length))
    assert peer.is_closed()


BAD_LENGTHS = [struct.pack(">i", length) for length in (-1, 7, 2**31 - 1)]


@pytest.mark.parametrize(
    "bad",
    [
        *BAD_LENGTHS,
        *(length + b"rest of no frame" for length in BAD_LENGTHS),
        raw_frame(struct.pack(">hhih", 9999, 0, 1, -1)),
        raw_frame(struct.pack(">hhih", 0, 99, 1, -1)),
        raw_frame(struct.pack(">hhih", 1, 12, 1, -1) + b"\0" * 5),
    ],
)
def test_what_came_before_a_bad_frame_is_answered(running: BrokerThread, peer: Peer, bad: bytes) -> None:
    """As by Kafka, which looks at a frame when the one before it is answered."""
    nothing = fetch_request(topic="nobody's", max_wait_ms=1)
    good = [
        (api_versions(), 3),
        (produce_request(batch(b"v"), topic="nobody's"), 8),
        (nothing, 11),
        (api_versions(), 3),
    ]
    peer.send(b"".join(peer.frame(*each) for each in good) + bad)
    for number in range(1, len(good) + 1):
        assert peer.receive()[:4] == struct.pack(">i", number)
    assert peer.is_closed()


@pytest.mark.parametrize("bad", [*BAD_LENGTHS, *(length + b"rest of no frame" for length in BAD_LENGTHS)])
def test_a_fetch_that_waits_is_answered_before_a_bad_frame_closes_the_connection(
    running: BrokerThread, peer: Peer, bad: bytes
) -> None:
    topic = f"waits-{bad.hex()}"
    running.create_topic(topic)
    peer.send(peer.frame(fetch_request(topic=topic, max_wait_ms=200), 11) + bad)
    assert peer.receive()[:4] == struct.pack(">i", 1)
    assert peer.is_closed()


def test_random_bytes_never_disturb_another_connection(running: BrokerThread) -> None:
    rng = random.Random(20_26)
    with running.connect() as other:
        for _ in range(200):
            with running.connect() as noisy:
                noise = rng.randbytes(rng.randrange(1, 300))
                if rng.random() < 0.7:
                    noise = raw_frame(
                        struct.pack(">hh", rng.choice([0, 1, 2, 3, 18, 19, 22, 32]), rng.randrange(14)) + noise
                    )
                noisy.send(noise)
            assert other.ask(api_versions(), 3, ApiVersionsResponse).error_code == ErrorCode.NONE


def test_a_slow_sender_is_served_like_any_other(peer: Peer) -> None:
    for byte in peer.frame(api_versions(), 3):
        peer.send(bytes([byte]))
    assert peer.answer(ApiVersionsResponse, 3).error_code == ErrorCode.NONE


def test_a_frame_cut_in_the_middle_waits_and_costs_others_nothing(running: BrokerThread, peer: Peer) -> None:
    frame = peer.frame(api_versions(), 3)
    peer.send(frame[:7])
    with running.connect() as other:
        assert other.ask(api_versions(), 3, ApiVersionsResponse).error_code == ErrorCode.NONE
    peer.send(frame[7:])
    assert peer.answer(ApiVersionsResponse, 3).error_code == ErrorCode.NONE


def test_a_half_closed_socket_still_gets_its_answers_or_a_close(peer: Peer) -> None:
    peer.send(peer.frame(api_versions(), 3))
    peer.socket.shutdown(socket.SHUT_WR)
    assert peer.answer(ApiVersionsResponse, 3).error_code == ErrorCode.NONE
    assert peer.is_closed()


def test_software_names_that_could_break_a_log_line_are_refused(peer: Peer) -> None:
    bad = ApiVersionsRequest(client_software_name="a\nb", client_software_version="1")
    assert peer.ask(bad, 3, ApiVersionsResponse).error_code == ErrorCode.INVALID_REQUEST


@pytest.mark.parametrize("name", ["..", ".", "", "a/b", "../../etc", "a" * 250, "a b", "ä", "a\0b"])
def test_bad_topic_names_get_kafkas_error_and_leave_no_folder(running: BrokerThread, peer: Peer, name: str) -> None:
    before = set(os.listdir(running.broker.config.storage.log_dirs[0]))
    request = CreateTopicsRequest(
        topics=[CreatableTopic(name=name, num_partitions=1, replication_factor=1, assignments=[], configs=[])],
        timeout_ms=1000,
        validate_only=False,
    )
    (created,) = peer.ask(request, 5, CreateTopicsResponse).topics
    assert created.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    asked = MetadataRequest(topics=[], allow_auto_topic_creation=True)
    from ottla.protocol.generated.metadata import MetadataRequestTopic

    asked.topics = [MetadataRequestTopic(name=name)]
    (shown,) = peer.ask(asked, 5, MetadataResponse).topics
    assert shown.error_code == ErrorCode.INVALID_TOPIC_EXCEPTION
    assert set(os.listdir(running.broker.config.storage.log_dirs[0])) == before


def test_many_pipelined_requests_are_answered_in_their_order(peer: Peer) -> None:
    frames = b"".join(peer.frame(api_versions() if n % 3 else MetadataRequest(topics=None), 3) for n in range(300))
    peer.send(frames)
    for n in range(300):
        peer.answer(ApiVersionsResponse if n % 3 else MetadataResponse, 3)
        assert peer.last_correlation == n + 1


def test_a_header_with_an_unknown_tagged_field_is_read(peer: Peer) -> None:
    header = RequestHeader(api_key=18, api_version=3, correlation_id=5, client_id=None, unknown_tags={7: b"x"})
    peer.send(encode_request(header, api_versions()))
    assert peer.answer(ApiVersionsResponse, 3).error_code == ErrorCode.NONE


@pytest.mark.parametrize(
    ("sent", "named"),
    [
        (b"GET /metrics HTTP/1.1\r\nHost: broker:9092\r\n\r\n", "an HTTP request"),
        (b"POST /topics/orders HTTP/1.1\r\n\r\n", "an HTTP request"),
        (b"DELETE / HTTP/1.0\r\n\r\n", "an HTTP request"),
        (b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n", "an HTTP request"),
        (b"GET ", "an HTTP request"),
        # The record of a ClientHello: a handshake, of TLS 1.0 as all versions say at first.
        (bytes.fromhex("16030100f8010000f40303") + bytes(32), "a TLS handshake"),
        (bytes.fromhex("16030300f8010000f40303") + bytes(32), "a TLS handshake"),
    ],
)
def test_who_speaks_another_protocol_is_named_in_the_log(log_lines: list[str], sent: bytes, named: str) -> None:
    with tempfile.TemporaryDirectory() as folder, BrokerThread(folder) as broker, broker.connect() as peer:
        peer.send(sent)
        assert peer.is_closed()
        (line,) = [line for line in log_lines if "WARN" in line and "peer" in line]
    assert f"{named} came" in line
    assert "127.0.0.1" in line
    assert "PLAINTEXT" in line  # the listener's name


def test_a_bad_size_is_still_one(log_lines: list[str]) -> None:
    with tempfile.TemporaryDirectory() as folder, BrokerThread(folder) as broker, broker.connect() as peer:
        peer.send(struct.pack(">i", 2**31 - 1) + bytes(20))
        assert peer.is_closed()
        (line,) = [line for line in log_lines if "WARN" in line and "peer" in line]
    assert "frame of a bad size" in line
    assert "bytes=2147483647" in line
