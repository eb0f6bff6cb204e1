"""One connection against a peer that does everything wrong: each fault has its own clear end, and nothing hangs."""

from __future__ import annotations

import asyncio
import struct
from random import Random
from typing import Any

import pytest
from tests.client.scripted_peer import Peer, Script, ScriptedServer, all_versions, frame
from tools.server_process import free_port

from ottla.client.errors import (
    BadAnswer,
    ClientClosed,
    ConnectFailed,
    ConnectionLost,
    RequestTimedOut,
    UnsupportedVersion,
)
from ottla.client.wire import connection as connections
from ottla.client.wire.connection import BrokerConnection
from ottla.client.wire.dialling import connect as connect_to
from ottla.client.wire.world import real_world
from ottla.model import ErrorCode
from ottla.protocol.apis import ApiKey
from ottla.protocol.generated.api_versions import ApiVersion, ApiVersionsResponse
from ottla.protocol.generated.fetch import FetchableTopicResponse, FetchRequest, FetchResponse, PartitionData
from ottla.protocol.generated.metadata import (
    MetadataRequest,
    MetadataRequestTopic,
    MetadataResponse,
    MetadataResponseBroker,
)


async def connect(server: ScriptedServer, **options: Any) -> BrokerConnection:
    options = {"client_id": "test", "setup_timeout_ms": 60_000, **options}
    return await connect_to(real_world(), "127.0.0.1", server.port, **options)


async def ask_metadata(connection: BrokerConnection, timeout_ms: int = 60_000) -> MetadataResponse:
    return await connection.ask(MetadataRequest(topics=[]), MetadataResponse, timeout_ms=timeout_ms)


def brokers(*ids: int) -> MetadataResponse:
    return MetadataResponse(brokers=[MetadataResponseBroker(node_id=one, host="h", port=1) for one in ids])


async def outcome(script: Script) -> BaseException:
    """What a Metadata request ends with after the negotiation went well."""

    async def whole(peer: Peer) -> None:
        await peer.negotiate()
        await script(peer)

    async with ScriptedServer(whole) as server:
        connection = await connect(server)
        with pytest.raises(ConnectionLost) as caught:
            await ask_metadata(connection)
        assert connection.closed
        with pytest.raises(ConnectionLost):
            await ask_metadata(connection)
        return caught.value


async def test_answers_find_their_requests() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()
        headers = [await peer.request() for _ in range(10)]  # all are in flight before the first answer
        for number, header in enumerate(headers):
            await peer.answer(header, brokers(number))

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        answers = await asyncio.gather(*(ask_metadata(connection) for _ in range(10)))
        assert [answer.brokers[0].node_id for answer in answers] == list(range(10))
        await connection.close()


@pytest.mark.parametrize("piece", [1, 3, 1000])
async def test_frames_in_pieces_and_in_lumps(piece: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()
        random = Random(piece)
        sent = bytearray()
        from ottla.protocol.header import encode_response

        for number in range(20):
            header = await peer.request()
            sent += encode_response(header.api_key, header.api_version, header.correlation_id, brokers(number))
        while sent:
            size = random.randint(1, piece)
            await peer.send(bytes(sent[:size]))
            del sent[:size]
            await asyncio.sleep(0)

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        answers = await asyncio.gather(*(ask_metadata(connection) for _ in range(20)))
        assert [answer.brokers[0].node_id for answer in answers] == list(range(20))
        await connection.close()


async def test_large_frames_between_small_ones() -> None:
    sizes = [10, 65_500, 65_540, 3_000_000, 1, 200_000, 0, 70_000]
    contents = [Random(size).randbytes(size) for size in sizes]

    def fetched(content: bytes) -> FetchResponse:
        topic = FetchableTopicResponse(topic_id=bytes(15) + b"\1", partitions=[PartitionData(records=content)])
        return FetchResponse(responses=[topic])

    async def script(peer: Peer) -> None:
        await peer.negotiate()
        for content in contents:
            await peer.answer(await peer.request(), fetched(content))

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        version = connection.version(ApiKey.FETCH)
        futures = [connection.send(FetchRequest(), FetchResponse, version, 60_000) for _ in contents]
        for future, content in zip(futures, contents, strict=True):
            assert bytes((await future).responses[0].partitions[0].records or b"") == content
        await connection.close()


async def test_the_peer_closes_before_the_answer() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()

    assert "closed the connection" in str(await outcome(script))


async def test_the_peer_closes_within_an_answer() -> None:
    async def script(peer: Peer) -> None:
        header = await peer.request()
        await peer.send(struct.pack(">ii", 500, header.correlation_id) + b"only this")

    assert "closed the connection" in str(await outcome(script))


@pytest.mark.parametrize("size", [-1, 0, 3, 2**31 - 1, struct.unpack(">i", b"HTTP")[0]])
async def test_a_length_that_no_answer_has(size: int) -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(struct.pack(">i", size) + b"/1.1 400 Bad Request\r\n")
        await peer.request()

    fault = await outcome(script)
    assert isinstance(fault, BadAnswer)
    assert str(size) in str(fault)


async def test_another_program_at_a_brokers_port_is_not_listened_to() -> None:
    """What it says first would be the length of an answer of 1.2 GB, which a follower would take."""

    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.send(b"HTTP/1.1 400 Bad Request\r\n")
        await peer.request()

    async with ScriptedServer(script) as server:
        with pytest.raises(BadAnswer, match=r"is it a Kafka broker\?$"):
            await connect(server, answer_bytes_max=2**31 - 1)


async def test_an_answer_that_is_larger_than_was_asked_for() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()
        await peer.answer(await peer.request(), brokers(*range(200)))
        await peer.request()

    async with ScriptedServer(script) as server:
        connection = await connect(server, answer_bytes_max=1500)
        with pytest.raises(BadAnswer, match=r"fetch\.max\.bytes says how much"):
            await ask_metadata(connection)


async def test_an_unknown_correlation_id() -> None:
    async def script(peer: Peer) -> None:
        header = await peer.request()
        header.correlation_id += 7
        await peer.answer(header, brokers(1))
        await peer.request()

    fault = await outcome(script)
    assert isinstance(fault, BadAnswer)
    assert "was next" in str(fault)


async def test_an_answer_that_nobody_asked_for() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()
        await peer.send(frame(bytes(20)))
        await peer.request()

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        lost = asyncio.Event()
        connection.on_lost = lambda _: lost.set()
        if not connection.closed:
            await lost.wait()
        assert isinstance(connection.fault, BadAnswer)


@pytest.mark.parametrize("seed", range(20))
async def test_an_answer_of_random_bytes(seed: int) -> None:
    async def script(peer: Peer) -> None:
        header = await peer.request()
        body = Random(seed).randbytes(seed * 5 + 1)
        await peer.send(frame(struct.pack(">i", header.correlation_id) + body))
        await peer.request()

    fault = await outcome(script)
    assert isinstance(fault, BadAnswer)
    assert "Metadata" in str(fault)


async def test_no_answer_in_time() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()
        for _ in range(3):
            await peer.request()
        await peer.request()

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        patient = asyncio.ensure_future(ask_metadata(connection, 50_000))
        with pytest.raises(RequestTimedOut, match="did not answer Metadata in time"):
            await ask_metadata(connection, 50)
        with pytest.raises(RequestTimedOut):
            await patient  # it would have been answered behind one that never is
        assert connection.closed


async def test_closing_ends_all_waits() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate()
        await peer.request()
        await peer.request()

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        waiting = asyncio.ensure_future(ask_metadata(connection))
        await asyncio.sleep(0)
        await connection.close()
        with pytest.raises(ClientClosed):
            await waiting


async def test_closing_lets_out_what_was_written() -> None:
    received: list[int] = []
    opened, everything = asyncio.Event(), asyncio.Event()

    async def script(peer: Peer) -> None:
        await peer.negotiate()
        await opened.wait()  # far more is written meanwhile than the sockets hold
        for _ in range(40):
            header = await peer.request()
            received.append(header.correlation_id)
        everything.set()

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 30_000) for _ in range(30)])
        for _ in range(40):
            connection.send_unanswered(request, 9)
        closing = asyncio.ensure_future(connection.close())
        await asyncio.sleep(0)
        opened.set()
        await closing
        await everything.wait()
    with pytest.raises(ClientClosed):
        await ask_metadata(connection)


async def test_a_peer_that_takes_nothing_holds_closing_up_for_a_while_only(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "CLOSE_SECONDS_MAX", 0.02)

    async def script(peer: Peer) -> None:
        await peer.negotiate()
        await asyncio.Event().wait()

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        request = MetadataRequest(topics=[MetadataRequestTopic(name="x" * 30_000) for _ in range(30)])
        waiting = [connection.send(request, MetadataResponse, 9, 60_000) for _ in range(40)]
        await connection.close()
        for one in waiting:
            with pytest.raises(ClientClosed):
                await one


async def test_requests_in_flight_are_bounded(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(connections, "IN_FLIGHT_MAX", 2)
    most = 0

    async def script(peer: Peer) -> None:
        await peer.negotiate()
        for number in range(6):
            await peer.answer(await peer.request(), brokers(number))

    async with ScriptedServer(script) as server:
        connection = await connect(server)

        async def one() -> int:
            nonlocal most
            answer = await ask_metadata(connection)
            most = max(most, connection.in_flight + 1)
            return answer.brokers[0].node_id

        assert await asyncio.gather(*(one() for _ in range(6))) == list(range(6))
        assert most <= 2
        await connection.close()


async def test_throttling_holds_the_next_request_back() -> None:
    loop = asyncio.get_running_loop()
    times: list[float] = []

    async def script(peer: Peer) -> None:
        await peer.negotiate()
        answer = brokers(1)
        answer.throttle_time_ms = 50
        header = await peer.request()
        times.append(loop.time())
        await peer.answer(header, answer)
        header = await peer.request()
        times.append(loop.time())
        await peer.answer(header, brokers(2))

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        await ask_metadata(connection)
        assert not connection.sendable or loop.time() - times[0] >= 0.05
        assert (await ask_metadata(connection)).brokers[0].node_id == 2
        # A promise to the broker, by its own clock: it has waited since before the answer was sent.
        assert times[1] - times[0] >= 0.049
        await connection.close()


# The first words


async def test_a_broker_that_does_not_know_our_apiversions() -> None:
    """It answers in version 0 with error 35 and what it serves; we ask again in its newest."""
    asked: list[int] = []

    async def script(peer: Peer) -> None:
        header = await peer.request()
        asked.append(header.api_version)
        refusal = ApiVersionsResponse(
            error_code=ErrorCode.UNSUPPORTED_VERSION,
            api_keys=[ApiVersion(api_key=ApiKey.API_VERSIONS, min_version=0, max_version=2)],
        )
        await peer.answer(header, refusal, version=0)
        header = await peer.request()
        asked.append(header.api_version)
        await peer.answer(header, all_versions(METADATA=(0, 5)))
        header = await peer.request()
        asked.append(header.api_version)
        await peer.answer(header, brokers(3))

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        assert (await ask_metadata(connection)).brokers[0].node_id == 3
        await connection.close()
    assert asked == [4, 2, 5]


async def test_an_old_broker_that_says_no_more_than_error_35() -> None:
    asked: list[int] = []

    async def script(peer: Peer) -> None:
        header = await peer.request()
        asked.append(header.api_version)
        await peer.answer(header, ApiVersionsResponse(error_code=ErrorCode.UNSUPPORTED_VERSION), version=0)
        header = await peer.request()
        asked.append(header.api_version)
        await peer.answer(header, all_versions())

    async with ScriptedServer(script) as server:
        await (await connect(server)).close()
    assert asked == [4, 0]


async def test_no_version_in_common() -> None:
    async def script(peer: Peer) -> None:
        await peer.negotiate(METADATA=(98, 99))

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        with pytest.raises(UnsupportedVersion, match="serves Metadata 98 to 99; needed is one of 0 to 13"):
            await ask_metadata(connection)
        await connection.close()


async def test_an_api_that_the_broker_does_not_have() -> None:
    async def script(peer: Peer) -> None:
        header = await peer.request()
        await peer.answer(header, ApiVersionsResponse())

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        with pytest.raises(UnsupportedVersion, match="serves Metadata not at all"):
            await ask_metadata(connection)
        await connection.close()


async def test_a_peer_that_never_negotiates() -> None:
    async def script(peer: Peer) -> None:
        await peer.request()
        await peer.request()

    async with ScriptedServer(script) as server:
        with pytest.raises((ConnectFailed, RequestTimedOut)):
            await connect(server, setup_timeout_ms=50)


async def test_a_peer_that_is_no_broker() -> None:
    async def script(peer: Peer) -> None:
        await peer.reader.read(100)
        await peer.send(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n")

    async with ScriptedServer(script) as server:
        with pytest.raises(BadAnswer, match="is it a Kafka broker"):
            await connect(server)


async def test_nobody_listens() -> None:
    with pytest.raises(ConnectFailed):
        await connect_to(real_world(), "127.0.0.1", free_port(), client_id="test", setup_timeout_ms=60_000)


async def test_a_host_that_does_not_exist() -> None:
    with pytest.raises(ConnectFailed, match=r"no-such-host\.invalid:9092"):
        await connect_to(real_world(), "no-such-host.invalid", 9092, client_id="test", setup_timeout_ms=60_000)


async def test_a_name_that_no_resolver_can_be_asked_for() -> None:
    """As a broker may advertise it."""
    with pytest.raises(ConnectFailed, match=r"a{64}:9092: the host's name is not known"):
        await connect_to(real_world(), "a" * 64, 9092, client_id="test", setup_timeout_ms=60_000)


async def test_who_gives_up_wakes_the_next_one(monkeypatch: pytest.MonkeyPatch) -> None:
    """It was woken by an answer, and was about to send when the broker's pause would be over."""
    monkeypatch.setattr(connections, "IN_FLIGHT_MAX", 1)

    async def script(peer: Peer) -> None:
        await peer.negotiate()
        await peer.answer(await peer.request(), MetadataResponse(throttle_time_ms=600_000))
        await peer.answer(await peer.request(), brokers(7))

    async with ScriptedServer(script) as server:
        connection = await connect(server)
        first, second, third = (asyncio.create_task(ask_metadata(connection)) for _ in range(3))
        await first
        for _ in range(10):  # turns of the loop, in which the second one is woken and sees that there is a pause
            await asyncio.sleep(0)
        second.cancel()
        connection.throttled_until = 0.0  # it is over when the third one looks
        answer = await asyncio.wait_for(third, 20)
        assert [broker.node_id for broker in answer.brokers] == [7]
        await connection.close()
