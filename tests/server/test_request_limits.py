"""What slow senders and many large requests may hold: in virtual time, on the network in memory."""

from __future__ import annotations

import asyncio
from collections.abc import Coroutine
from typing import Any

import pytest
from tests.testing.sim.one_broker import TP, OneBroker

from ottla.model import ErrorCode
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.produce import PartitionProduceData, ProduceRequest, TopicProduceData
from ottla.protocol.header import RequestHeader, encode_request
from ottla.records.record import Record, encode_batch
from ottla.server.buffers import FIRST_READ_BYTES
from ottla.server.listeners import LOOK_MS, Server
from ottla.server.request_memory import BoundedRounds

IDLE_MS = 60_000


class Trickle(asyncio.Protocol):
    """A connection that sends what it is told to, and counts what comes back."""

    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.received = bytearray()
        self.lost = asyncio.Event()

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport

    def data_received(self, data: bytes) -> None:
        self.received += data

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost.set()

    def answers(self) -> int:
        count = at = 0
        while at + 4 <= len(self.received):
            at += 4 + int.from_bytes(self.received[at : at + 4], "big")
            count += at <= len(self.received)
        return count


async def trickle(one: OneBroker) -> Trickle:
    network = one.simulation.world.machine("clients").network
    _, protocol = await network.connect(Trickle, *one.broker.address)
    assert isinstance(protocol, Trickle)
    return protocol


def versions_request() -> bytes:
    header = RequestHeader(api_key=18, api_version=3, correlation_id=1, client_id="slow")
    return encode_request(header, ApiVersionsRequest(client_software_name="slow", client_software_version="1"))


def produce_request(size: int) -> bytes:
    data = encode_batch([Record(0, 1_700_000_000_000, None, b"x" * size)])
    partition = PartitionProduceData(index=0, records=data)
    request = ProduceRequest(
        acks=1, timeout_ms=1000, topic_data=[TopicProduceData(name="t", partition_data=[partition])]
    )
    return encode_request(RequestHeader(api_key=0, api_version=9, correlation_id=2, client_id="slow"), request)


def server_of(one: OneBroker) -> Server:
    assert one.broker.broker is not None
    server = one.broker.broker._server
    assert server is not None
    return server


def run(scenario: Any, **properties: str) -> None:
    with OneBroker(1, {"connections.max.idle.ms": str(IDLE_MS), **properties}) as one:

        async def started() -> None:
            await one.broker.started()
            assert await one.create(configs={"max.message.bytes": "10000000"}) == ErrorCode.NONE
            work: Coroutine[Any, Any, None] = scenario(one)
            await work

        one.run(started())


@pytest.mark.parametrize("size", [20, 200_000])
def test_a_request_that_trickles_in_holds_its_buffer_for_a_bounded_time(size: int) -> None:
    async def scenario(one: OneBroker) -> None:
        slow = await trickle(one)
        begun = asyncio.get_running_loop().time()
        frame = produce_request(size)
        slow.transport.write(frame[: size // 2])
        for byte in frame[size // 2 :]:
            slow.transport.write(bytes([byte]))
            try:
                await asyncio.wait_for(slow.lost.wait(), 5)
            except TimeoutError:
                continue
            break
        assert slow.lost.is_set()
        lasted = asyncio.get_running_loop().time() - begun
        assert IDLE_MS / 1000 <= lasted <= 1.5 * IDLE_MS / 1000
        assert one.said("WARN", "never came whole")
        assert server_of(one).connection_count == 0  # the client of the test was idle

    run(scenario)


def test_whole_requests_may_come_as_slowly_as_they_like() -> None:
    async def scenario(one: OneBroker) -> None:
        slow = await trickle(one)
        frame = versions_request()
        # Each takes most of the time there is, and begins in the same packet in which the one before ends.
        slow.transport.write(frame[:5])
        for number in range(1, 6):
            await asyncio.sleep(IDLE_MS / 1000 * 0.7)
            slow.transport.write(frame[5:] + frame[:5])
            await asyncio.sleep(1)
            assert slow.answers() == number

    run(scenario)


def test_the_wait_of_a_request_does_not_count_against_the_next_one() -> None:
    async def scenario(one: OneBroker) -> None:
        from tests.handlers.frames import fetch_request

        slow = await trickle(one)
        wait = fetch_request(max_wait_ms=3 * IDLE_MS)
        header = RequestHeader(api_key=1, api_version=11, correlation_id=1, client_id="slow")
        frame = versions_request()
        slow.transport.write(encode_request(header, wait) + frame[:7])
        await asyncio.sleep(3 * IDLE_MS / 1000 + 1)
        assert slow.answers() == 1
        await asyncio.sleep(IDLE_MS / 1000 * 0.6)
        slow.transport.write(frame[7:])
        await asyncio.sleep(1)
        assert slow.answers() == 2

    run(scenario)


BOUND = {"queued.max.request.bytes": "2000000", "socket.request.max.bytes": "2000000"}


def test_requests_over_the_bound_wait_until_others_are_whole() -> None:
    async def scenario(one: OneBroker) -> None:
        rounds = server_of(one)._rounds
        assert isinstance(rounds, BoundedRounds)
        frame = produce_request(900_000)
        slow = [await trickle(one) for _ in range(10)]
        for connection in slow:
            connection.transport.write(frame[:-1])
        await asyncio.sleep(5)
        # Buffers are powers of two: two of them reach the bound.
        assert rounds.held_bytes == 2 << 20
        # Small requests that come whole hold nothing from one round to the next.
        await one.must_produce()
        for connection in slow:
            connection.transport.write(frame[-1:])
        await asyncio.sleep(5)
        assert [connection.answers() for connection in slow] == [1] * 10
        assert rounds.held_bytes == 0

    run(scenario, **BOUND)


def test_a_starved_connection_goes_on_when_others_are_closed() -> None:
    async def scenario(one: OneBroker) -> None:
        rounds = server_of(one)._rounds
        assert isinstance(rounds, BoundedRounds)
        frame = produce_request(900_000)
        slow = [await trickle(one) for _ in range(3)]
        for connection in slow[:2]:
            connection.transport.write(frame[:-1])
        await asyncio.sleep(1)
        slow[2].transport.write(frame)
        await asyncio.sleep(1)
        assert slow[2].answers() == 0
        slow[0].transport.abort()
        await asyncio.sleep(1)
        assert slow[2].answers() == 1
        slow[1].transport.abort()
        await asyncio.sleep(1)
        assert rounds.held_bytes == 0

    run(scenario, **BOUND)


def test_a_starved_connection_goes_on_when_others_hold_less() -> None:
    async def scenario(one: OneBroker) -> None:
        rounds = server_of(one)._rounds
        assert isinstance(rounds, BoundedRounds)
        frame = produce_request(30_000)
        slow = [await trickle(one) for _ in range(2_000_000 // FIRST_READ_BYTES + 1)]
        for connection in slow:
            connection.transport.write(frame[:2000])
        await asyncio.sleep(0.1)
        assert rounds.held_bytes >= 2_000_000
        late = await trickle(one)
        late.transport.write(frame[:2000])
        await asyncio.sleep(0.1)
        late.transport.write(frame[2000:])
        await asyncio.sleep(0.1)
        assert late.answers() == 0
        await asyncio.sleep(3 * LOOK_MS / 1000)
        assert rounds.held_bytes < 2_000_000
        assert late.answers() == 1

    run(scenario, **BOUND)


def test_a_starved_connection_is_not_late() -> None:
    async def scenario(one: OneBroker) -> None:
        frame = produce_request(900_000)
        slow = [await trickle(one) for _ in range(3)]
        for _ in range(6):
            for connection in slow[:2]:
                connection.transport.write(frame[:-1])
            await asyncio.sleep(1)
            slow[2].transport.write(frame[:100])
            await asyncio.sleep(IDLE_MS / 1000 * 0.4)
            for connection in slow[:2]:
                connection.transport.write(frame[-1:])
            slow[2].transport.write(frame[100:])
            await asyncio.sleep(1)
        assert [connection.answers() for connection in slow] == [6] * 3

    run(scenario, **BOUND)


def test_another_setting_that_changes_does_not_begin_the_rate_anew() -> None:
    async def scenario(one: OneBroker) -> None:
        from tests.broker.test_settings_at_work import must_alter

        await asyncio.sleep(5)
        clients = await opened(one, 20)
        for size in range(6):
            await asyncio.sleep(0.5)
            await must_alter(one, "message.max.bytes", str(1_000_000 + size))
        # The client of the test came long before; two may come at once, and then two a second.
        assert 1 + 6 <= server_of(one).connection_count <= 1 + 2 + 7
        assert len(clients) == 20

    run(scenario, **{"max.connection.creation.rate": "2"})


async def opened(one: OneBroker, count: int, port: int = 9092) -> list[Trickle]:
    network = one.simulation.world.machine("clients").network
    made = [await network.connect(Trickle, "broker", port) for _ in range(count)]
    return [protocol for _, protocol in made if isinstance(protocol, Trickle)]


@pytest.mark.parametrize(
    "name", ["max.connection.creation.rate", "listener.name.plaintext.max.connection.creation.rate"]
)
def test_connections_over_the_rate_wait_to_be_accepted(name: str) -> None:
    async def scenario(one: OneBroker) -> None:
        # The client of the test is one of those connections: its second is over.
        await asyncio.sleep(2)
        loop = asyncio.get_running_loop()
        begun = loop.time()
        clients = await opened(one, 50)
        for client in clients:
            client.transport.write(versions_request())
        counts = []
        for second in range(1, 5):
            await asyncio.sleep(begun + second - loop.time())
            counts.append(sum(client.answers() for client in clients))
        # A second's worth at once, and then one each tenth of a second.
        assert all(10 * second + 8 <= count <= 10 * second + 11 for second, count in enumerate(counts, 1)), counts
        await asyncio.sleep(2)
        assert all(client.answers() == 1 for client in clients)

    run(scenario, **{name: "10"})


def test_the_listener_between_brokers_is_not_held_up_by_the_others() -> None:
    two = {
        "listeners": "CLIENTS://:9092,BROKERS://:9093",
        "listener.security.protocol.map": "CLIENTS:PLAINTEXT,BROKERS:PLAINTEXT",
        "inter.broker.listener.name": "BROKERS",
        "max.connection.creation.rate": "1",
    }

    async def scenario(one: OneBroker) -> None:
        await asyncio.sleep(2)
        clients, brokers = await opened(one, 5), await opened(one, 5, 9093)
        for client in (*clients, *brokers):
            client.transport.write(versions_request())
        await asyncio.sleep(0.5)
        assert sum(client.answers() for client in clients) == 1
        assert sum(client.answers() for client in brokers) == 5

    run(scenario, **two)


def test_the_rate_and_the_limits_change_while_the_broker_runs() -> None:
    async def scenario(one: OneBroker) -> None:
        from ottla.protocol.generated.incremental_alter_configs import (
            AlterableConfig,
            AlterConfigsResource,
            IncrementalAlterConfigsRequest,
        )

        async def alter(name: str, value: str) -> None:
            config = AlterableConfig(name=name, config_operation=0, value=value)
            resource = AlterConfigsResource(resource_type=4, resource_name="", configs=[config])
            answer = await one.client.ask(IncrementalAlterConfigsRequest(resources=[resource]), 1)
            assert answer.responses[0].error_code == ErrorCode.NONE, answer

        await alter("max.connection.creation.rate", "1")
        clients = await opened(one, 4)
        await asyncio.sleep(0.5)
        assert server_of(one).connection_count == 2
        await alter("max.connection.creation.rate", str(2**31 - 1))
        await asyncio.sleep(2)
        assert server_of(one).connection_count == 5
        await alter("max.connections", "6")
        clients += await opened(one, 3)
        await asyncio.sleep(0.5)
        assert server_of(one).connection_count == 6
        await one.must_produce(TP)

    run(scenario)


def test_idle_connections_are_closed_after_a_fault_with_one(monkeypatch: pytest.MonkeyPatch) -> None:
    plain, looked = Server._look_at_one, 0

    def planted(server: Server, connection: Any, now_ms: int) -> None:
        nonlocal looked
        looked += 1
        if looked < 3:
            raise ValueError("planted")
        plain(server, connection, now_ms)

    async def scenario(one: OneBroker) -> None:
        await trickle(one)
        await trickle(one)
        monkeypatch.setattr(Server, "_look_at_one", planted)
        await asyncio.sleep(3 * IDLE_MS / 1000)
        assert looked > 3
        assert server_of(one).connection_count == 0

    run(scenario)
