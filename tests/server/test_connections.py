"""Limits, idleness, back-pressure and the end of connections."""

from __future__ import annotations

import asyncio
import socket
import time
from collections.abc import Callable
from dataclasses import replace
from pathlib import Path
from typing import Any, TypeVar

from tests.handlers.frames import batch, produce_request
from tests.server.conftest import SECONDS_MAX, BrokerThread, MovedBroker, Peer

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.model import ErrorCode, TopicPartition
from ottla.ports import Workers
from ottla.ports.network import Round
from ottla.ports.real import real_ports
from ottla.ports.real.channel import ChannelPoller, SocketChannel
from ottla.ports.real.epoll_rounds import EpollRounds
from ottla.ports.real.network import RealNetwork
from ottla.protocol.generated.api_versions import ApiVersionsRequest, ApiVersionsResponse
from ottla.protocol.generated.fetch import FetchPartition, FetchRequest, FetchTopic
from ottla.protocol.generated.metadata import MetadataRequest
from ottla.protocol.generated.produce import ProduceResponse
from ottla.server.connection import SLOTS_MAX

T = TypeVar("T")

Make = Callable[..., BrokerThread]


def asks(peer: Peer) -> bool:
    request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
    return bool(peer.ask(request, 3, ApiVersionsResponse).error_code == ErrorCode.NONE)


def until(condition: Callable[[], bool]) -> None:
    deadline = time.monotonic() + SECONDS_MAX
    while not condition():
        assert time.monotonic() < deadline, "it never came to be"
        time.sleep(0.01)


def send_until_it_blocks(peer: Peer, frame: bytes) -> int:
    for sent in range(200_000):
        try:
            peer.send(frame)
        except TimeoutError:
            return sent
    raise AssertionError("the broker takes whatever it is sent")


def long_poll(peer: Peer, wait_ms: int = 30_000) -> bytes:
    partition = FetchPartition(partition=0, fetch_offset=0, partition_max_bytes=1000)
    request = FetchRequest(
        replica_id=-1, max_wait_ms=wait_ms, min_bytes=1, topics=[FetchTopic(topic="t", partitions=[partition])]
    )
    return peer.frame(request, 4)


def test_a_connection_over_the_total_limit_is_closed(make_broker: Make) -> None:
    with make_broker(max_connections="2") as running, running.connect() as one, running.connect() as two:
        assert asks(one)
        assert asks(two)
        with running.connect() as three:
            assert three.is_closed()
        one.socket.close()
        until(lambda: running.look(lambda broker: broker.connection_count) == 1)
        with running.connect() as four:
            assert asks(four)


def test_a_connection_over_its_addresss_limit_is_closed(make_broker: Make) -> None:
    limits = {"max_connections_per_ip": "1", "max_connections_per_ip_overrides": "127.0.0.2:2"}
    with make_broker(**limits) as running, running.connect() as one:
        assert asks(one)
        with running.connect() as two:
            assert two.is_closed()


def test_an_address_may_be_named(make_broker: Make, log_lines: list[str]) -> None:
    limits = {"max_connections_per_ip_overrides": "localhost:1,nowhere.invalid:5,127.0.0..1:7"}
    with make_broker(**limits) as running, running.connect() as one:
        assert asks(one)
        with running.connect() as two:
            assert two.is_closed()
    for unknown in ("nowhere.invalid", "127.0.0..1"):
        (said,) = (line for line in log_lines if unknown in line)
        assert "WARN" in said
        assert "max.connections.per.ip.overrides" in said


def test_a_listener_may_have_a_limit_of_its_own(tmp_path: Path) -> None:
    limit = {"listener.name.plaintext.max.connections": "1"}
    with BrokerThread(str(tmp_path), **limit) as running, running.connect() as one:
        assert asks(one)
        with running.connect() as two:
            assert two.is_closed()


def test_an_idle_connection_is_closed_and_a_waiting_one_is_not(tmp_path: Path) -> None:
    with MovedBroker(str(tmp_path), **{"connections.max.idle.ms": "600000"}) as running:
        running.create_topic("t")
        with running.connect() as waiting:
            waiting.send(long_poll(waiting, 3_600_000))
            until(lambda: running.look(lambda broker: len(broker.services.replicas.waiters)) == 1)  # type: ignore[union-attr]
            with running.connect() as idle:
                assert asks(idle)
                running.advance("11m")
                assert idle.is_closed()
            running.advance("50m")
            assert waiting.receive()


def test_a_client_that_never_reads_holds_up_itself_alone(make_broker: Make) -> None:
    with make_broker() as running, running.connect() as deaf, running.connect() as other:
        running.create_topic("t", 500)
        deaf.socket.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 4096)
        deaf.socket.settimeout(0.2)
        frame = deaf.frame(MetadataRequest(topics=None), 5)
        sent = send_until_it_blocks(deaf, frame)
        assert asks(other)
        held = running.look(lambda broker: broker.outgoing_bytes())
        assert held < 8 * 1024 * 1024, f"{sent} requests are answered with {held} bytes in memory"


def test_a_waiting_fetch_is_forgotten_when_its_client_goes(make_broker: Make) -> None:
    with make_broker() as running:
        running.create_topic("t")
        with running.connect() as peer:
            peer.send(long_poll(peer))
            until(lambda: running.look(lambda broker: len(broker.services.replicas.waiters)) == 1)  # type: ignore[union-attr]
        until(lambda: running.look(lambda broker: len(broker.services.replicas.waiters)) == 0)  # type: ignore[union-attr]
        until(lambda: running.look(lambda broker: broker.connection_count) == 0)


def test_requests_behind_a_waiting_fetch_wait_their_turn(make_broker: Make) -> None:
    with make_broker() as running, running.connect() as peer:
        running.create_topic("t")
        request = ApiVersionsRequest(client_software_name="t", client_software_version="1")
        peer.send(long_poll(peer, 300) + peer.frame(request, 3))
        assert peer.receive()[:4] == b"\0\0\0\1"
        assert peer.answer(ApiVersionsResponse, 3).error_code == ErrorCode.NONE
        assert peer.last_correlation == 2


def test_a_stop_closes_those_who_wait(make_broker: Make) -> None:
    with make_broker() as running:
        running.create_topic("t")
        peer = running.connect()
        peer.send(long_poll(peer))
        until(lambda: running.look(lambda broker: len(broker.services.replicas.waiters)) == 1)  # type: ignore[union-attr]
    assert peer.is_closed()


class HeldWorkers:
    """Threads whose work begins when it is let go."""

    def __init__(self, workers: Workers) -> None:
        self._workers = workers
        self._held: list[Callable[[], None]] | None = None

    def hold(self) -> None:
        self._held = []

    def let_go(self) -> None:
        held, self._held = self._held, None
        for begin in held or ():
            begin()

    def thread(self, work: Callable[[], T]) -> asyncio.Future[T]:
        if self._held is None:
            return self._workers.thread(work)
        outer: asyncio.Future[T] = asyncio.get_running_loop().create_future()

        def begin() -> None:
            self._workers.thread(work).add_done_callback(lambda done: outer.set_result(done.result()))

        self._held.append(begin)
        return outer

    def __getattr__(self, name: str) -> Any:
        return getattr(self._workers, name)


class Holding(BrokerThread):
    async def _start(self) -> None:
        self.ports = real_ports()
        self.workers = HeldWorkers(self.ports.workers)
        self.broker = Broker(Config.parse(self.properties), replace(self.ports, workers=self.workers))
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


def test_so_many_produces_of_one_connection_wait_and_no_more(tmp_path: Path) -> None:
    """What is behind them stays in the socket: a client cannot fill the memory with answers that wait for the disk."""
    count = 3 * SLOTS_MAX
    with Holding(str(tmp_path)) as running, running.connect() as peer, running.connect() as other:
        running.create_topic("t", flush_messages="1")
        tp = TopicPartition("t", 0)

        def end() -> int:
            return running.look(lambda broker: broker.services.replicas.leaders[tp].log.end_offset)

        running.look(lambda _: running.workers.hold())
        for number in range(count):
            peer.send(peer.frame(produce_request(batch(b"%d" % number)), 8))
        until(lambda: end() == SLOTS_MAX)
        for _ in range(20):
            # Others are served meanwhile, and each round could take more.
            assert asks(other)
        assert end() == SLOTS_MAX
        other.send(other.frame(produce_request(batch(b"another")), 8))
        until(lambda: end() == SLOTS_MAX + 1)
        running.look(lambda _: running.workers.let_go())
        offsets = [
            peer.answer(ProduceResponse, 8).responses[0].partition_responses[0].base_offset for _ in range(count)
        ]
        assert offsets == sorted(offsets)
        assert other.answer(ProduceResponse, 8).responses[0].partition_responses[0].base_offset == SLOTS_MAX
        assert end() == count + 1


class Taken(RealNetwork):
    """A network in which the system does not let the first connections be polled: their descriptors are taken."""

    def __init__(self, count: int) -> None:
        super().__init__()
        self.count = count

    def _new_rounds(self, loop: asyncio.AbstractEventLoop, on_round: Round) -> ChannelPoller:
        network = self

        class Rounds(EpollRounds):
            def add(self, channel: SocketChannel, token: Any) -> None:
                if network.count:
                    network.count -= 1
                    self._epoll.register(channel.fd, 0)
                super().add(channel, token)

        return Rounds(loop, on_round)


class NoneToPoll(BrokerThread):
    async def _start(self) -> None:
        self.ports = replace(real_ports(), network=Taken(3))
        self.broker = Broker(Config.parse(self.properties), self.ports)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


def test_connections_that_cannot_be_polled_are_closed_and_no_longer_counted(
    tmp_path: Path, log_lines: list[str]
) -> None:
    with NoneToPoll(str(tmp_path), **{"max.connections": "2"}) as running:
        for _ in range(3):
            with running.connect() as peer:
                assert peer.is_closed()
        with running.connect() as peer, running.connect() as other:
            assert asks(peer)
            assert asks(other)
    assert sum("closing a connection that cannot be polled" in line for line in log_lines) == 1  # not one for each
