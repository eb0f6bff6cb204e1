"""Connections served in rounds, and outgoing ones, in every world."""

from __future__ import annotations

import asyncio
import errno
from collections.abc import Callable
from typing import Any

import pytest
from tests.ports.world import World, until

from ottla.ports import Channel, Listening
from ottla.ports.network import BROKEN, READABLE, WRITABLE

CLOSED = r"is closed|Bad file descriptor"


class Connection:
    """What a server keeps of one connection."""

    def __init__(self, channel: Channel) -> None:
        self.channel = channel
        self.received = bytearray()
        self.ended = False
        self.error: OSError | None = None
        self.events: list[int] = []
        self.unsent = bytearray()

    def receive(self, size: int = 65_536) -> int:
        view = memoryview(bytearray(size))
        try:
            count = self.channel.receive_into(view)
        except OSError as error:
            self.error = error
            self.channel.close()
            return 0
        self.received += view[:count]
        self.ended = count == 0
        if self.ended:
            self.channel.watch(reading=False, writing=bool(self.unsent))
        return count

    def send_rest(self) -> None:
        while self.unsent:
            try:
                del self.unsent[: self.channel.send(self.unsent)]
            except BlockingIOError:
                break
        self.channel.watch(reading=not self.ended, writing=bool(self.unsent))


class Server:
    """Keeps everything that it hears; `serve` says what it does with one ready connection."""

    def __init__(self, world: World, serve: Callable[[Connection, int], object] | None = None) -> None:
        self.world = world
        self.connections: list[Connection] = []
        self.rounds: list[list[tuple[Any, int]]] = []
        self.serve = serve or self.receive
        self.listening = self.listen()

    def listen(self, port: int = 0) -> Listening:
        return self.world.ports.network.listen("127.0.0.1", port, self.accept, self.on_round)

    def accept(self, channel: Channel) -> Connection:
        connection = Connection(channel)
        self.connections.append(connection)
        return connection

    def on_round(self, events: list[tuple[Any, int]]) -> bool:
        self.rounds.append(events)
        for connection, bits in events:
            connection.events.append(bits)
            self.serve(connection, bits)
        return True

    def receive(self, connection: Connection, bits: int) -> None:
        if bits & READABLE:
            connection.receive()

    def echo(self, connection: Connection, bits: int) -> None:
        if bits & READABLE and connection.receive():
            connection.unsent += connection.received
            connection.received.clear()
        if connection.error is None:
            connection.send_rest()


class Client(asyncio.Protocol):
    def __init__(self) -> None:
        self.transport: asyncio.Transport
        self.received = bytearray()
        self.told: list[str] = []
        self.error: Exception | None = None
        self.keep_open = False

    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self.transport = transport
        self.told.append("made")

    def data_received(self, data: bytes) -> None:
        assert data
        self.received += data

    def eof_received(self) -> bool:
        self.told.append("eof")
        return self.keep_open

    def connection_lost(self, exc: Exception | None) -> None:
        self.error = exc
        self.told.append("lost")

    def pause_writing(self) -> None:
        self.told.append("pause")

    def resume_writing(self) -> None:
        self.told.append("resume")


async def connected(world: World, port: int) -> Client:
    transport, protocol = await world.ports.network.connect(Client, "127.0.0.1", port)
    world.transports.append(transport)
    assert isinstance(protocol, Client)
    return protocol


async def pair(world: World, server: Server) -> tuple[Client, Connection]:
    before = len(server.connections)
    client = await connected(world, server.listening.port)
    await until(lambda: len(server.connections) > before)
    return client, server.connections[before]


def test_echo(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        server.serve = server.echo
        client, connection = await pair(world, server)
        assert connection.channel.peer == "127.0.0.1"
        assert connection.channel.peer_port == client.transport.get_extra_info("sockname")[1]
        assert client.transport.get_extra_info("peername")[:2] == ("127.0.0.1", server.listening.port)
        for number in range(20):
            client.transport.write(b"%03d" % number)
            await until(lambda: len(client.received) == 3 * number + 3)  # noqa: B023 - waited for in the loop
        assert client.received == b"".join(b"%03d" % number for number in range(20))
        client.transport.close()
        await until(lambda: connection.ended)
        assert connection.error is None
        assert client.told == ["made", "lost"]

    world.run(main())


def test_free_ports_differ_and_a_port_in_use_is_refused(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        other = server.listen()
        assert 0 < other.port != server.listening.port > 0
        with pytest.raises(OSError, match="in use"):
            server.listen(other.port)
        other.close()
        other.close()
        with pytest.raises(ConnectionRefusedError):
            await connected(world, other.port)
        server.listen(other.port).close()

    world.run(main())


def test_an_address_of_another_machine_is_refused(world: World) -> None:
    async def main() -> None:
        with pytest.raises(OSError, match=r"[Cc]annot assign|is no address"):
            world.ports.network.listen("192.0.2.1", 0, lambda _: None, lambda _: None)

    world.run(main())


@pytest.mark.parametrize("host", ["", "0.0.0.0", "localhost", "::", "::1"])
def test_every_way_to_name_this_machine(world: World, host: str) -> None:
    async def main() -> None:
        server = Server(world)
        try:
            listening = world.ports.network.listen(host, 0, server.accept, server.on_round)
        except OSError as error:
            if error.errno in {errno.EADDRNOTAVAIL, errno.EAFNOSUPPORT} and ":" in host:
                pytest.skip("this machine has no IPv6")
            raise
        reached = "::1" if host == "::1" else "127.0.0.1"
        transport, _ = await world.ports.network.connect(Client, reached, listening.port)
        world.transports.append(transport)
        await until(lambda: server.connections)
        assert server.connections[0].channel.peer in {reached, "127.0.0.1"}

    world.run(main())


def test_refused_connection_is_closed(world: World) -> None:
    async def main() -> None:
        listening = world.ports.network.listen("127.0.0.1", 0, lambda _: None, lambda _: None)
        client = await connected(world, listening.port)
        await until(lambda: "lost" in client.told)

    world.run(main())


def test_connection_closed_inside_accept_is_never_served(world: World) -> None:
    async def main() -> None:
        server = Server(world)

        def accept(channel: Channel) -> Connection:
            channel.close()
            return server.accept(channel)

        listening = world.ports.network.listen("127.0.0.1", 0, accept, server.on_round)
        client = await connected(world, listening.port)
        await until(lambda: "lost" in client.told)
        assert server.rounds == []

    world.run(main())


def test_a_failing_accept_hurts_nobody_else(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        server.serve = server.echo

        def accept(channel: Channel) -> Connection:
            if not world.complaints:
                raise ValueError("as asked")
            return server.accept(channel)

        listening = world.ports.network.listen("127.0.0.1", 0, accept, server.on_round)
        first = await connected(world, listening.port)
        await until(lambda: "lost" in first.told)
        second = await connected(world, listening.port)
        second.transport.write(b"hello")
        await until(lambda: second.received == b"hello")
        assert isinstance(world.complaints.pop(), ValueError)

    world.run(main())


def test_half_closed_connection_is_still_answered(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        client.keep_open = True
        client.transport.write(b"question")
        client.transport.write_eof()
        await until(lambda: connection.ended)
        assert connection.received == b"question"
        assert not any(bits & BROKEN for bits in connection.events)
        heard = len(connection.events)
        await asyncio.sleep(0.01)
        assert len(connection.events) == heard  # muted after the end: no storm of events
        assert connection.channel.send(b"answer") == 6
        await until(lambda: client.received == b"answer")
        connection.channel.close()
        await until(lambda: "eof" in client.told)
        client.transport.close()
        await until(lambda: "lost" in client.told)
        assert client.error is None

    world.run(main())


def test_bytes_before_a_reset_can_be_read(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        client.transport.write(b"last words")
        await until(lambda: connection.received == b"last words")
        client.transport.abort()
        await until(lambda: connection.ended or connection.error)

    world.run(main())


def test_muted_connection_is_quiet_until_it_is_watched_again(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        connection.channel.watch(reading=False, writing=False)
        client.transport.write(b"hello")
        await asyncio.sleep(0.02)
        assert server.rounds == []
        connection.channel.watch(reading=True, writing=False)
        await until(lambda: connection.received == b"hello")

    world.run(main())


def test_what_is_left_unread_is_told_again(world: World) -> None:
    async def main() -> None:
        server = Server(world, lambda connection, _: connection.receive(3))
        client, connection = await pair(world, server)
        client.transport.write(b"0123456789")
        await until(lambda: len(connection.received) == 10)
        assert len(connection.events) >= 4

    world.run(main())


def test_muted_connection_tells_that_it_broke(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        connection.channel.watch(reading=False, writing=False)
        client.transport.pause_reading()
        assert connection.channel.send(b"unread") == 6
        await asyncio.sleep(0.02)
        client.transport.abort()  # with something unread: a reset
        await until(lambda: connection.events)
        assert connection.events[0] & BROKEN
        await until(lambda: connection.ended or connection.error)

    world.run(main())


def test_full_buffer_takes_a_part_and_tells_when_there_is_room(world: World) -> None:
    async def main() -> None:
        def serve(connection: Connection, bits: int) -> None:
            if bits & WRITABLE:
                connection.send_rest()

        server = Server(world, serve)
        client, connection = await pair(world, server)
        client.transport.pause_reading()
        sent = bytes(range(256)) * 40_000
        connection.unsent += sent
        connection.send_rest()
        assert 0 < len(connection.unsent) < len(sent)
        with pytest.raises(BlockingIOError):
            connection.channel.send(b"x")
        assert client.received == b""
        client.transport.resume_reading()
        await until(lambda: len(client.received) == len(sent))
        assert client.received == sent
        heard = len(connection.events)
        await asyncio.sleep(0.01)
        assert len(connection.events) == heard  # writing is no longer watched

    world.run(main())


def test_send_buffers_keeps_their_order(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        assert connection.channel.send_buffers([b"ab", bytearray(b"cd"), memoryview(b"ef")]) == 6
        pieces = [b"%04d" % number for number in range(3000)]
        taken = connection.channel.send_buffers(pieces)
        assert 0 < taken <= 12_000
        await until(lambda: len(client.received) == 6 + taken)
        assert client.received == b"abcdef" + b"".join(pieces)[:taken]

    world.run(main())


def test_send_file_sends_a_piece_of_it(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        file = world.ports.disk.open(world.folder + "/log", create=True)
        content = bytes(range(256)) * 4096
        file.append([content])
        position, end = 1000, 900_000
        while position < end:
            try:
                sent = connection.channel.send_file(file, position, end - position)
            except BlockingIOError:
                await asyncio.sleep(0)
                continue
            assert 0 < sent <= end - position
            position += sent
        await until(lambda: len(client.received) == end - 1000)
        assert client.received == content[1000:end]
        assert connection.channel.send_file(file, len(content), 10) == 0
        file.close()

    world.run(main())


def test_send_file_into_a_full_buffer_blocks(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        client.transport.pause_reading()
        file = world.ports.disk.open(world.folder + "/log", create=True)
        file.append([bytes(65_536)])

        def fill() -> None:
            for _ in range(1000):
                connection.channel.send_file(file, 0, 65_536)

        with pytest.raises(BlockingIOError):
            fill()
        file.close()

    world.run(main())


def test_a_connection_closed_in_a_round_is_not_served_as_another(world: World) -> None:
    async def main() -> None:
        closed: list[Connection] = []

        def serve(connection: Connection, bits: int) -> None:
            if connection in closed:
                with pytest.raises(OSError, match=CLOSED):
                    connection.channel.receive_into(memoryview(bytearray(10)))
                with pytest.raises(OSError, match=CLOSED):
                    connection.channel.send(b"x")
                connection.channel.watch(reading=True, writing=True)
                return
            connection.receive()
            for other in server.connections:
                if other is not connection and other not in closed:
                    closed.append(other)
                    other.channel.close()
                    other.channel.close()

        server = Server(world, serve)
        clients = [await connected(world, server.listening.port) for _ in range(8)]
        await until(lambda: len(server.connections) == 8)
        for client in clients:
            client.transport.write(b"x")
        await until(lambda: len(closed) == 7)
        await until(lambda: sum("lost" in client.told for client in clients) == 7)
        survivor = next(connection for connection in server.connections if connection not in closed)
        # New connections get the descriptors that were given back, and hear of nothing that is not theirs.
        fresh = [await connected(world, server.listening.port) for _ in range(7)]
        await until(lambda: len(server.connections) == 15)
        assert survivor.received == b"x"
        assert all(connection.events == [] for connection in server.connections[8:])
        assert all(client.received == b"" for client in fresh)

    world.run(main())


def test_a_thousand_connections_share_rounds(world: World, many_descriptors: None) -> None:
    async def main() -> None:
        server = Server(world)
        server.serve = server.echo
        clients = await asyncio.gather(*(connected(world, server.listening.port) for _ in range(1000)))
        await until(lambda: len(server.connections) == 1000)
        for number, client in enumerate(clients):
            client.transport.write(b"%04d" % number)
        await until(lambda: all(len(client.received) == 4 for client in clients))
        assert [bytes(client.received) for client in clients] == [b"%04d" % number for number in range(1000)]
        assert len(server.rounds) < 900
        for client in clients:
            client.transport.close()
        await until(lambda: all(connection.ended or connection.error for connection in server.connections))

    world.run(main())


def test_listeners_of_one_owner_share_its_rounds(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        other = server.listen()
        clients = [await connected(world, server.listening.port), await connected(world, other.port)]
        await until(lambda: len(server.connections) == 2)
        for client in clients:
            client.transport.write(b"x")
        await until(lambda: all(connection.received == b"x" for connection in server.connections))

    world.run(main())


def test_a_failing_round_does_not_stop_the_next(world: World) -> None:
    async def main() -> None:
        def serve(connection: Connection, bits: int) -> None:
            connection.receive()
            if connection.received == b"bad":
                raise ValueError("as asked")

        server = Server(world, serve)
        client, connection = await pair(world, server)
        client.transport.write(b"bad")
        await until(lambda: len(connection.received) == 3)
        client.transport.write(b"good")
        await until(lambda: connection.received == b"badgood")
        while world.complaints:
            assert isinstance(world.complaints.pop(), ValueError)

    world.run(main())


def test_closing_the_network_closes_its_connections(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client, connection = await pair(world, server)
        world.ports.network.close()
        world.ports.network.close()
        await until(lambda: "lost" in client.told)
        with pytest.raises(OSError, match=CLOSED):
            connection.channel.send(b"x")
        with pytest.raises(ConnectionRefusedError):
            await connected(world, server.listening.port)

    world.run(main())


def test_closing_a_listener_leaves_its_connections(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        server.serve = server.echo
        client, _ = await pair(world, server)
        server.listening.close()
        client.transport.write(b"still")
        await until(lambda: client.received == b"still")

    world.run(main())


def test_network_closed_in_the_middle_of_a_round(world: World) -> None:
    async def main() -> None:
        server = Server(world, lambda *_: world.ports.network.close())
        client, _ = await pair(world, server)
        client.transport.write(b"x")
        await until(lambda: "lost" in client.told)

    world.run(main())


def test_a_paused_listener_accepts_nobody_until_it_goes_on(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        first, _ = await pair(world, server)
        server.listening.pause()
        server.listening.pause()
        waiting = [await connected(world, server.listening.port) for _ in range(3)]
        first.transport.write(b"x")
        await until(lambda: server.connections[0].received == b"x")
        assert len(server.connections) == 1
        waiting[0].transport.write(b"early")
        server.listening.resume()
        await until(lambda: len(server.connections) == 4)
        await until(lambda: any(connection.received == b"early" for connection in server.connections))

    world.run(main())


def test_a_listener_may_pause_itself_out_of_accept(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        accept = server.accept

        def accept_one(channel: Channel) -> Connection:
            server.listening.pause()
            return accept(channel)

        server.accept = accept_one  # type: ignore[method-assign]
        server.listening.close()
        server.listening = server.listen()
        clients = [await connected(world, server.listening.port) for _ in range(4)]
        for count in range(1, 5):
            await until(lambda: len(server.connections) == count)  # noqa: B023 - waited for in the loop
            server.listening.resume()
        server.listening.pause()
        late = await connected(world, server.listening.port)
        server.listening.close()
        await until(lambda: "lost" in late.told)
        assert len(server.connections) == len(clients)

    world.run(main())
