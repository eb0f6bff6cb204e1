"""What only a real machine does: running out of descriptors, and sockets of no asyncio client."""

from __future__ import annotations

import asyncio
import os
import resource
import socket
from collections.abc import Iterator
from contextlib import contextmanager, suppress

import pytest
from tests.ports.test_network import Server
from tests.ports.world import World, until

from ottla.ports.real.epoll_rounds import ROUNDS_MAX

pytestmark = pytest.mark.parametrize("world", ["real", "hosted", "portable"], indirect=True)


@contextmanager
def descriptors_left(count: int) -> Iterator[None]:
    """Leaves the process as many descriptors to open, until the end of the block."""
    soft, hard = resource.getrlimit(resource.RLIMIT_NOFILE)
    fillers: list[int] = []
    try:
        while len(fillers) < count + 1:  # threads that other tests have left may be quicker
            highest = max(map(int, os.listdir("/dev/fd")))
            resource.setrlimit(resource.RLIMIT_NOFILE, (highest + count + 1, hard))
            with suppress(OSError):
                while True:
                    fillers.append(os.dup(2))
        for _ in range(count):
            os.close(fillers.pop())
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_NOFILE, (soft, hard))
        for filler in fillers:
            os.close(filler)


def test_listener_rests_while_no_descriptor_is_left(world: World, log_lines: list[str]) -> None:
    async def main() -> None:
        server = Server(world)
        server.serve = server.echo
        clients = [socket.socket() for _ in range(20)]
        with descriptors_left(5):
            for client in clients:
                client.connect(("127.0.0.1", server.listening.port))
            await until(lambda: any("no connection can be accepted for now port=" in line for line in log_lines))
            assert len(server.connections) <= 5
        await until(lambda: len(server.connections) == 20)
        for client in clients:
            client.send(b"x")
        await until(lambda: all(connection.events for connection in server.connections))
        for client in clients:
            client.settimeout(10)
            assert client.recv(10) == b"x"
            client.close()

    world.run(main())


def test_closing_a_resting_listener(world: World, log_lines: list[str]) -> None:
    async def main() -> None:
        server = Server(world)
        client = socket.socket()
        with descriptors_left(0):
            client.connect(("127.0.0.1", server.listening.port))
            await until(lambda: any("no connection can be accepted for now port=" in line for line in log_lines))
            server.listening.close()
        assert server.connections == []
        client.close()

    world.run(main())


def test_reset_with_something_unread_behind_it(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client = socket.create_connection(("127.0.0.1", server.listening.port))
        await until(lambda: server.connections)
        connection = server.connections[0]
        connection.channel.watch(reading=False, writing=False)
        client.send(b"acks=0, and gone")
        client.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        client.close()
        await until(lambda: connection.ended or connection.error)
        assert bytes(connection.received) in {
            b"acks=0, and gone",
            b"",
        }  # the system may throw it away with the connection

    world.run(main())


def test_accepted_sockets_do_not_wait_to_fill_packets(world: World) -> None:
    async def main() -> None:
        server = Server(world)
        client = socket.create_connection(("127.0.0.1", server.listening.port))
        await until(lambda: server.connections)
        channel = server.connections[0].channel
        accepted = socket.socket(fileno=os.dup(channel.fd))  # type: ignore[attr-defined]
        assert accepted.getsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY)
        assert not accepted.get_inheritable()
        accepted.close()
        client.close()

    world.run(main())


def test_a_crowd_that_always_has_more_leaves_the_loop_its_turns(world: World) -> None:
    async def main() -> None:
        server = Server(world, serve=lambda connection, bits: None)  # nothing is read, so all stay ready
        clients = [socket.create_connection(("127.0.0.1", server.listening.port)) for _ in range(3)]
        for client in clients:
            client.send(b"x")
        await until(lambda: len(server.connections) == 3 and all(each.events for each in server.connections))
        for _ in range(20):
            before = len(server.rounds)
            await asyncio.sleep(0)
            assert len(server.rounds) - before <= ROUNDS_MAX
        before = len(server.rounds)
        await asyncio.sleep(0.02)
        assert len(server.rounds) > before
        for client in clients:
            client.close()
        server.listening.close()

    world.run(main())
