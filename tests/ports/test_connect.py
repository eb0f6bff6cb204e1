"""Outgoing connections behave as asyncio's own do."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.ports.test_network import Client, Server, connected, pair
from tests.ports.world import World, until


class Buffered(asyncio.BufferedProtocol):
    def __init__(self) -> None:
        self.buffer = bytearray(10)
        self.received = bytearray()
        self.lost = False

    def get_buffer(self, sizehint: int) -> bytearray:
        return self.buffer

    def buffer_updated(self, nbytes: int) -> None:
        self.received += self.buffer[:nbytes]

    def connection_lost(self, exc: Exception | None) -> None:
        self.lost = True


def test_nobody_listens(world: World) -> None:
    async def main() -> None:
        listening = Server(world).listening
        listening.close()
        with pytest.raises(ConnectionRefusedError):
            await connected(world, listening.port)

    world.run(main())


def test_buffered_protocol_is_fed_into_its_buffer(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        factory: Any = Buffered
        transport, protocol = await world.ports.network.connect(factory, "127.0.0.1", server.listening.port)
        world.transports.append(transport)
        assert isinstance(protocol, Buffered)
        await until(lambda: server.connections)
        server.connections[0].channel.send(b"0123456789" * 5)
        await until(lambda: len(protocol.received) == 50)
        assert protocol.received == b"0123456789" * 5
        server.connections[0].channel.close()
        await until(lambda: protocol.lost)

    world.run(main())


def test_paused_reading_stops_data_and_then_the_peer(world: World) -> None:
    async def main() -> None:
        server = Server(world, lambda connection, _: connection.send_rest())
        client, connection = await pair(world, server)
        assert client.transport.is_reading()
        client.transport.pause_reading()
        assert not client.transport.is_reading()
        connection.unsent += bytes(20_000_000)
        connection.send_rest()
        assert connection.unsent
        await asyncio.sleep(0.01)
        assert client.received == b""
        client.transport.resume_reading()
        await until(lambda: len(client.received) == 20_000_000)

    world.run(main())


def test_writing_is_paused_and_resumed_and_nothing_is_lost(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        connection.channel.watch(reading=False, writing=False)
        client.transport.set_write_buffer_limits(high=1000, low=10)
        sent = bytes(range(256)) * 40_000
        for start in range(0, len(sent), 100_000):
            client.transport.write(sent[start : start + 100_000])
        assert client.told == ["made", "pause"]
        assert client.transport.get_write_buffer_size() > 1000
        connection.channel.watch(reading=True, writing=False)
        await until(lambda: "resume" in client.told)
        await until(lambda: len(connection.received) == len(sent))
        assert connection.received == sent
        assert client.told == ["made", "pause", "resume"]
        assert client.transport.get_write_buffer_size() == 0

    world.run(main())


def test_close_sends_what_was_written(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        connection.channel.watch(reading=False, writing=False)
        client.transport.writelines([b"a" * 1_000_000, b"b" * 9_000_000])
        assert client.transport.get_write_buffer_size() > 0
        client.transport.close()
        assert client.transport.is_closing()
        connection.channel.watch(reading=True, writing=False)
        await until(lambda: connection.ended)
        assert connection.received == b"a" * 1_000_000 + b"b" * 9_000_000
        await until(lambda: "lost" in client.told)
        assert client.error is None

    world.run(main())


def test_abort_throws_away_what_was_written(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        connection.channel.watch(reading=False, writing=False)
        client.transport.write(bytes(20_000_000))
        client.transport.abort()
        assert client.transport.is_closing()
        await until(lambda: "lost" in client.told)
        connection.channel.watch(reading=True, writing=False)
        await until(lambda: connection.ended or connection.error)
        assert len(connection.received) < 20_000_000

    world.run(main())


def test_writing_behind_the_end_is_a_mistake(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        client.transport.write_eof()
        with pytest.raises(RuntimeError):
            client.transport.write(b"x")
        await until(lambda: connection.ended)

    world.run(main())


def test_peer_that_went_is_told_to_the_writer(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        client.keep_open = True
        connection.channel.close()
        await until(lambda: "eof" in client.told)
        while "lost" not in client.told:
            client.transport.write(b"is anybody there?")
            await asyncio.sleep(0.001)
        assert isinstance(client.error, ConnectionError)

    world.run(main())


def test_end_of_peer_closes_unless_kept_open(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        connection.channel.send(b"bye")
        connection.channel.close()
        await until(lambda: client.told == ["made", "eof", "lost"])
        assert client.received == b"bye"
        assert client.error is None

    world.run(main())


def test_protocol_can_be_changed(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        successor = Client()
        client.transport.set_protocol(successor)
        assert client.transport.get_protocol() is successor
        connection.channel.send(b"for the successor")
        await until(lambda: successor.received == b"for the successor")
        assert client.received == b""
        client.transport.close()
        await until(lambda: successor.told == ["lost"])

    world.run(main())
