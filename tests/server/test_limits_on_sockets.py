"""What many senders may ask for at once, over the system's own sockets; `test_request_limits.py` has the fine print."""

from __future__ import annotations

import resource
import select
import socket
import struct
import threading
import time
from collections.abc import Callable
from concurrent.futures import ThreadPoolExecutor
from contextlib import ExitStack, suppress
from pathlib import Path

import pytest
from tests.cli.test_starting import started
from tests.handlers.frames import batch, fetch, produce, produce_request, values
from tests.server.conftest import SECONDS_MAX, BrokerThread, MovedBroker, Peer
from tests.server.test_connections import asks, until

from ottla.broker.broker import Broker
from ottla.client.admin.results import ConfigChange, ConfigOperation, ConfigResource
from ottla.client.sync import Admin
from ottla.protocol.generated.api_versions import ApiVersionsRequest
from ottla.protocol.generated.produce import ProduceResponse
from ottla.server.incoming import BEGINNING_BYTES_MAX
from ottla.server.request_memory import BoundedRounds

Make = Callable[..., BrokerThread]

#: API key, version and correlation id of a Produce request, behind a length that lies.
FRAME_MAX = 100 * 1024 * 1024
LARGEST = struct.pack(">ihhi", FRAME_MAX, 0, 9, 1)


def resident_bytes(pid: int | str = "self") -> int:
    return int(Path(f"/proc/{pid}/statm").read_text().split()[1]) * resource.getpagesize()


def held(broker: Broker) -> int:
    assert broker._server is not None
    rounds = broker._server._rounds
    assert isinstance(rounds, BoundedRounds)
    return rounds.held_bytes


def served_at_once(running: BrokerThread, count: int) -> int:
    """Of so many connections side by side, how many are answered; all end before it returns."""
    before = running.look(lambda broker: broker.connection_count)
    with ExitStack() as connections:
        peers = {peer.socket: peer for peer in (connections.enter_context(running.connect()) for _ in range(count))}
        for peer in peers.values():
            with suppress(OSError):  # closed already
                peer.send(peer.frame(ApiVersionsRequest(client_software_name="t", client_software_version="1"), 3))
        answered, waiting = 0, set(peers)
        while waiting:
            # One that is not answered is closed.
            ready = select.select(list(waiting), [], [], SECONDS_MAX)[0]
            assert ready
            for each in ready:
                waiting.discard(each)
                with suppress(EOFError, ConnectionError):
                    peers[each].receive()
                    answered += 1
    until(lambda: running.look(lambda broker: broker.connection_count) <= before)
    return answered


@pytest.mark.parametrize(
    "name", ["max.connections", "max.connections.per.ip", "listener.name.plaintext.max.connections"]
)
def test_limits_of_connections_change_while_the_broker_runs(make_broker: Make, name: str) -> None:
    def alter(value: str | None) -> None:
        operation = ConfigOperation.SET if value is not None else ConfigOperation.DELETE
        with Admin(bootstrap_servers=f"127.0.0.1:{running.port}") as admin:
            broker = ConfigResource.broker(running.look(lambda broker: broker.broker_id))
            admin.incremental_alter_configs({broker: [ConfigChange(name, value, operation)]})
        until(lambda: running.look(lambda broker: broker.connection_count) == 0)

    with make_broker() as running:
        assert served_at_once(running, 8) == 8
        alter("3")
        assert served_at_once(running, 8) == 3
        alter("5")
        assert served_at_once(running, 8) == 5
        alter(None)
        assert served_at_once(running, 8) == 8


def test_many_half_sent_requests_hold_up_nobody_and_end(tmp_path: Path) -> None:
    idle = {"connections.max.idle.ms": "600000"}  # none ends before all have come, however long that takes
    with MovedBroker(str(tmp_path), **idle) as running, ExitStack() as slow:
        running.create_topic("t")
        with running.connect() as other:
            whole = other.frame(produce_request(batch(b"x" * 30_000)), 8)
            peers = [slow.enter_context(running.connect()) for _ in range(300)]
            for number, peer in enumerate(peers):
                peer.send(whole[: 1 + number * 97 % (len(whole) - 1)])
                if number % 50 == 0:
                    assert produce(other, batch(b"y")).error_code == 0
            until(lambda: running.look(lambda broker: broker.connection_count) >= 301)
            assert produce(other, batch(b"y")).error_code == 0
            # Some become whole in time, in pieces: they are served as any other.
            for number in range(0, 300, 30):
                rest = whole[1 + number * 97 % (len(whole) - 1) :]
                peers[number].send(rest[: len(rest) // 2])
                peers[number].send(rest[len(rest) // 2 :])
                answer = peers[number].answer(ProduceResponse, 8).responses[0].partition_responses[0]
                assert answer.error_code == 0
            running.advance("11m")
            for peer in peers:
                assert peer.is_closed()
        until(lambda: running.look(lambda broker: broker.connection_count) == 0)
        with running.connect() as reader:
            assert len(values(fetch(reader, max_bytes=1 << 24, partition_max_bytes=1 << 24))) == 17


def test_an_announced_size_costs_nothing_before_its_bytes_come(make_broker: Make) -> None:
    with make_broker() as running, ExitStack() as stack:
        before = resident_bytes()
        peers = [stack.enter_context(running.connect()) for _ in range(8)]
        for peer in peers:
            peer.send(LARGEST + bytes(1000))
        for peer in peers:
            with running.connect() as other:
                assert asks(other)
            peer.send(bytes(200_000))
        until(lambda: running.look(lambda broker: all(c.end > 200_000 for c in broker._server._connections)))  # type: ignore[union-attr]
        assert resident_bytes() - before < FRAME_MAX


@pytest.mark.skipif(not hasattr(resource, "prlimit"), reason="another process is given limits by Linux alone")
def test_memory_that_the_system_refuses_costs_one_connection_and_not_the_broker(tmp_path: Path) -> None:
    with started("up", "--port", "0", "--data", str(tmp_path)) as up, ExitStack() as stack:
        resource.prlimit(up.child.pid, resource.RLIMIT_AS, (1 << 30, 1 << 30))
        peers = [stack.enter_context(Peer(up.port)) for _ in range(12)]
        for peer in peers:
            peer.send(LARGEST + bytes(BEGINNING_BYTES_MAX))
        assert select.select([peer.socket for peer in peers], [], [], SECONDS_MAX)[0]
        refused = 0
        for peer in peers:
            peer.socket.settimeout(0.2)  # for those that are not: what is refused is closed at once
            try:
                refused += peer.is_closed()
            except TimeoutError:
                continue
        assert 0 < refused < 12
        with Peer(up.port) as other:
            assert asks(other)
        code, _, err = up.stop()
    assert code == 0
    assert "there is no memory" in err
    assert "Traceback" not in err


def test_the_bound_for_requests_that_are_not_whole_holds_over_sockets(make_broker: Make) -> None:
    bound = {"queued_max_request_bytes": "2000000", "socket_request_max_bytes": "2000000"}
    with make_broker(**bound) as running:
        running.create_topic("t")
        go_on = threading.Event()

        def send_slowly(number: int) -> int:
            with running.connect() as peer:
                frame = peer.frame(produce_request(batch(b"%d" % number * 900_000)), 8)
                peer.send(frame[:-1])  # who is not read from waits here
                assert go_on.wait(SECONDS_MAX)
                peer.send(frame[-1:])
                return int(peer.answer(ProduceResponse, 8).responses[0].partition_responses[0].error_code)

        with ThreadPoolExecutor(6) as threads:
            answers = [threads.submit(send_slowly, number) for number in range(6)]
            try:
                until(lambda: running.look(held) >= 2_000_000)
                with running.connect() as other:
                    # Nobody else is served before one of them is whole, unless nothing of the request has to stay.
                    assert asks(other)
                # Buffers are powers of two: the second of a mebibyte reaches the bound.
                assert running.look(held) == 2 << 20
            finally:
                go_on.set()
            assert [answer.result(SECONDS_MAX) for answer in answers] == [0] * 6
        until(lambda: running.look(held) == 0)


def connect_and_ask(port: int) -> float:
    """When the answer came."""
    with Peer(port) as peer:
        assert asks(peer)
        return time.monotonic()


@pytest.mark.parametrize("name", ["max.connection.creation.rate", "listener.name.a.max.connection.creation.rate"])
def test_connections_over_the_rate_wait_and_are_served(tmp_path: Path, name: str) -> None:
    two = {
        "listeners": "A://127.0.0.1:0,B://127.0.0.1:0",
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "inter.broker.listener.name": "B",
    }
    with BrokerThread(str(tmp_path), **{**two, name: "10"}) as running, ThreadPoolExecutor(30) as threads:
        limited, free = (endpoint.port for endpoint in running.broker.endpoints)
        begun = time.monotonic()
        waiting = [threads.submit(connect_and_ask, limited) for _ in range(15)]
        others = [threads.submit(connect_and_ask, free) for _ in range(15)]
        assert all(other.result(SECONDS_MAX) for other in others)
        answered = sorted(each.result(SECONDS_MAX) - begun for each in waiting)
        # Ten may come at once, and then one each tenth of a second: nobody came before its turn.
        turns = [0.0] * 10 + [0.1 * number for number in range(1, 6)]
        assert all(at > turn - 0.02 for at, turn in zip(answered, turns, strict=True)), answered


def test_a_client_that_gives_up_while_it_waits_to_be_accepted_is_no_fault(make_broker: Make) -> None:
    with make_broker(max_connection_creation_rate="5") as running:
        for _ in range(12):
            given_up = socket.create_connection(("127.0.0.1", running.port), timeout=SECONDS_MAX)
            given_up.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, struct.pack("ii", 1, 0))
            given_up.close()
        with running.connect() as peer:
            assert asks(peer)
