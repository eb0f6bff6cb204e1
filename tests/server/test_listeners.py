"""Several listeners, what each tells of the cluster, and whose turn it is in a round."""

from __future__ import annotations

import asyncio
import threading
import time
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from pathlib import Path

from tests.server.conftest import SECONDS_MAX, BrokerThread, Peer
from tests.server.test_connections import asks, until
from tests.server.test_patient_requests import METADATA, Record, Room, frame

from ottla.handlers.calls.peer import RequestBuffer
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.network import READABLE
from ottla.protocol.generated.describe_cluster import DescribeClusterRequest, DescribeClusterResponse
from ottla.protocol.generated.describe_configs import (
    DescribeConfigsRequest,
    DescribeConfigsResource,
    DescribeConfigsResponse,
)
from ottla.protocol.generated.metadata import MetadataRequest, MetadataResponse
from ottla.server.connection import Connection
from ottla.server.listeners import ServedListener
from ottla.server.round_bounds import FRAMES_A_ROUND, ROUND_MS
from ottla.server.rounds import Rounds

TWO = {
    "listeners": "INSIDE://127.0.0.1:0,OUTSIDE://127.0.0.1:0",
    "listener.security.protocol.map": "INSIDE:PLAINTEXT,OUTSIDE:PLAINTEXT",
    "inter.broker.listener.name": "INSIDE",
}


def told(port: int) -> tuple[str, int]:
    """Where the broker's only node is, to who asks on this port."""
    with Peer(port) as peer:
        (broker,) = peer.ask(MetadataRequest(topics=[]), 9, MetadataResponse).brokers
        (same,) = peer.ask(DescribeClusterRequest(), 0, DescribeClusterResponse).brokers
        assert (broker.host, broker.port) == (same.host, same.port)
        return broker.host, broker.port


def test_each_listener_tells_its_own_address(tmp_path: Path) -> None:
    with BrokerThread(str(tmp_path), **TWO) as running:
        inside, outside = (endpoint.port for endpoint in running.broker.endpoints)
        assert inside != outside
        assert told(inside) == ("127.0.0.1", inside)
        assert told(outside) == ("127.0.0.1", outside)


def test_what_is_advertised_is_told(tmp_path: Path) -> None:
    advertised = "INSIDE://broker-1.internal:0,OUTSIDE://kafka.example.com:19092"
    with BrokerThread(str(tmp_path), **TWO, **{"advertised.listeners": advertised}) as running:
        server = running.broker._server
        assert server is not None
        inside, outside = (listening.port for listening in server._listening.values())
        assert told(inside) == ("broker-1.internal", inside)
        assert told(outside) == ("kafka.example.com", 19092)


def test_a_control_listener_is_served(tmp_path: Path) -> None:
    with (
        BrokerThread(str(tmp_path), **TWO, **{"control.plane.listener.name": "INSIDE"}) as running,
        Peer(running.broker.endpoints[0].port) as control,
        Peer(running.broker.endpoints[1].port) as client,
    ):
        assert asks(control)
        assert asks(client)


def connected(room: Room, *frames: bytes, control: bool = False) -> Connection:
    room.listener = ServedListener("CONTROL" if control else "CLIENTS", control=control)
    return room.connected(*frames)


def test_clients_never_shut_out_brokers(tmp_path: Path) -> None:
    with ExitStack() as stack:
        running = stack.enter_context(BrokerThread(str(tmp_path), **TWO, **{"max.connections": "4"}))
        inside, outside = (endpoint.port for endpoint in running.broker.endpoints)
        clients = [stack.enter_context(Peer(outside)) for _ in range(4)]
        for client in (*clients[1:], clients[0]):
            assert asks(client)
            time.sleep(0.01)
        with Peer(outside) as refused:
            assert refused.is_closed()
        brokers = [stack.enter_context(Peer(inside)) for _ in range(2)]
        assert all(asks(broker) for broker in brokers)
        # Those that were idle longest have made room, and only for as many as came.
        assert clients[1].is_closed()
        assert clients[2].is_closed()
        assert asks(clients[3])
        assert asks(clients[0])
        assert running.look(lambda broker: broker.connection_count) == 4
        # With no client left brokers still come in.
        brokers += [stack.enter_context(Peer(inside)) for _ in range(4)]
        assert all(asks(broker) for broker in brokers)
        assert running.look(lambda broker: broker.connection_count) == 6


def test_who_makes_room_for_a_broker_of_its_own_address_is_counted_no_more(tmp_path: Path) -> None:
    limits = {"max.connections": "1", "max.connections.per.ip": "3"}
    with BrokerThread(str(tmp_path), **TWO, **limits) as running:
        inside, outside = (endpoint.port for endpoint in running.broker.endpoints)
        for _ in range(4):
            with Peer(outside) as client:
                assert asks(client)
                with Peer(inside) as broker:
                    assert asks(broker)
                    assert client.is_closed()
            until(lambda: running.look(lambda broker: broker.connection_count) == 0)


def test_brokers_have_their_own_limit(tmp_path: Path) -> None:
    limits = {"max.connections": "4", "listener.name.inside.max.connections": "1"}
    with BrokerThread(str(tmp_path), **TWO, **limits) as running:
        inside, outside = (endpoint.port for endpoint in running.broker.endpoints)
        with Peer(inside) as one, Peer(outside) as client:
            assert asks(one)
            with Peer(inside) as another:
                assert another.is_closed()
            assert asks(client)


def test_nobody_shuts_out_the_controller(tmp_path: Path) -> None:
    names = {**TWO, "listeners": f"{TWO['listeners']},CONTROL://127.0.0.1:0"}
    names["listener.security.protocol.map"] += ",CONTROL:PLAINTEXT"
    settings = {"control.plane.listener.name": "CONTROL", "max.connections": "1"}
    with BrokerThread(str(tmp_path), **names, **settings) as running:
        _, outside, control = (endpoint.port for endpoint in running.broker.endpoints)
        with Peer(outside) as client:
            assert asks(client)
            with Peer(control) as controller:
                assert asks(controller)
                assert client.is_closed()


def test_one_listener_is_for_all(tmp_path: Path) -> None:
    with BrokerThread(str(tmp_path), **{"max.connections": "1"}) as running, running.connect() as one:
        assert asks(one)
        with running.connect() as two:
            assert two.is_closed()
        assert asks(one)


def test_the_controllers_requests_come_before_those_that_came_first() -> None:
    room = Room()
    clients = [connected(room, frame(METADATA, number)) for number in range(50)]
    controllers = [connected(room, frame(METADATA, 1000 + number), control=True) for number in range(2)]

    async def scenario() -> None:
        room.rounds.control_first([(connection, READABLE) for connection in (*clients, *controllers)])

    asyncio.run(scenario())
    assert [number for _, number in room.record.rounds[0]] == [1000, 1001, *range(50)]


def test_a_connection_with_many_frames_lets_others_come_between() -> None:
    room = Room()
    count = 3 * FRAMES_A_ROUND + 1
    greedy = connected(room, *(frame(METADATA, number) for number in range(count)))

    async def scenario() -> None:
        room.run(greedy, connected(room, frame(METADATA, 1000)))
        room.run(connected(room, frame(METADATA, 2000)))
        await room.drain()

    asyncio.run(scenario())
    first, second, *_ = room.record.rounds
    assert first[: FRAMES_A_ROUND + 1] == [*((METADATA, number) for number in range(FRAMES_A_ROUND)), (METADATA, 1000)]
    assert second[0] == (METADATA, 2000)
    served = [number for each in room.record.rounds for _, number in each]
    assert [number for number in served if number < 1000] == list(range(count))
    # Its own turn in a round, and one more when everybody else has had theirs.
    assert all(len(each) <= 2 * FRAMES_A_ROUND + 1 for each in room.record.rounds)


class Slow(Record):
    """Each frame takes a millisecond of the room's time."""

    def __init__(self, timeline: Timeline) -> None:
        super().__init__()
        self.timeline = timeline

    def begin(self) -> None:
        super().begin()
        self.began_ms = round(self.timeline.seconds * 1000)

    def serve(self, connection: Connection, buffer: RequestBuffer, start: int, end: int) -> None:
        super().serve(connection, buffer, start, end)
        self.timeline.move_to(self.timeline.seconds + 0.001)


def slow_room() -> Room:
    room, timeline = Room(), Timeline()
    room.rounds = Rounds(VirtualClock(timeline), 1 << 20, lambda _: None)
    room.record = Slow(timeline)
    room.rounds.open(room.record)  # type: ignore[arg-type]
    return room


def test_a_crowd_of_slow_requests_is_served_for_a_moment_only_before_the_controllers_turn() -> None:
    room = slow_room()
    crowd = [connected(room, *(frame(METADATA, 100 * number + n) for n in range(20))) for number in range(30)]
    control = connected(room, frame(METADATA, -1), frame(METADATA, -2), control=True)

    async def scenario() -> None:
        assert not room.rounds.control_first([(connection, READABLE) for connection in crowd])
        room.rounds.control_first([(control, READABLE)])
        while ready := [each for each in crowd if each.channel.arrived]:  # type: ignore[attr-defined]
            # The network tells again of what was not received.
            room.rounds.control_first([(connection, READABLE) for connection in ready])
        await room.drain()

    asyncio.run(scenario())
    first, second, *others = ([number for _, number in each] for each in room.record.rounds)
    assert first == list(range(ROUND_MS))
    assert second[:2] == [-1, -2]
    # What is new and what was left over have their times.
    assert all(len(each) <= 2 * ROUND_MS for each in others)
    served = [*first, *second, *(number for each in others for number in each)]
    for number in range(30):
        assert [n for n in served if n // 100 == number and n >= 0] == list(range(100 * number, 100 * number + 20))


def test_who_comes_while_others_are_left_over_has_a_time_of_its_own() -> None:
    """A short request waits neither for a crowd that has been left over, nor does that wait for crowds of them."""
    room = slow_room()
    crowd = [connected(room, *(frame(METADATA, 10 * n + k) for k in range(9))) for n in range(3)]
    late = [connected(room, frame(METADATA, 1000 + n)) for n in range(3)]

    async def scenario() -> None:
        while any(each.channel.arrived for each in crowd):  # type: ignore[attr-defined]
            # The network tells again of what was not received.
            room.run(*(each for each in crowd if each.channel.arrived))  # type: ignore[attr-defined]
        room.run(*late)
        await room.drain()

    asyncio.run(scenario())
    # Those that are new come in their own round, whatever waits; those that wait come in the same.
    at = next(place for place, each in enumerate(room.record.rounds) if (METADATA, 1000) in each)
    numbers = [number for _, number in room.record.rounds[at]]
    assert numbers[:3] == [1000, 1001, 1002]
    assert len(numbers) > 3
    served = [number for each in room.record.rounds for _, number in each]
    assert sorted(served) == [*(10 * n + k for n in range(3) for k in range(9)), 1000, 1001, 1002]


def test_a_controller_that_sends_much_is_served_before_what_others_have_left() -> None:
    room = slow_room()
    count = 2 * FRAMES_A_ROUND
    crowd = [connected(room, frame(METADATA, number)) for number in range(3 * ROUND_MS)]
    control = connected(room, *(frame(METADATA, 1000 + number) for number in range(count)), control=True)

    async def scenario() -> None:
        while ready := [each for each in (*crowd, control) if each.channel.arrived]:  # type: ignore[attr-defined]
            # The network tells again of what was not received.
            room.rounds.control_first([(connection, READABLE) for connection in ready])
            await room.drain()

    asyncio.run(scenario())
    served = [number for each in room.record.rounds for _, number in each]
    assert served == [*range(1000, 1000 + count), *range(3 * ROUND_MS)]


def test_the_controller_is_answered_beside_a_crowd_with_slow_requests(tmp_path: Path) -> None:
    resource = DescribeConfigsResource(resource_type=4, resource_name="1", configuration_keys=None)
    question = DescribeConfigsRequest(resources=[resource], include_synonyms=True, include_documentation=True)
    with (
        BrokerThread(str(tmp_path), **TWO, **{"control.plane.listener.name": "INSIDE", "broker.id": "1"}) as running,
        ExitStack() as stack,
        Peer(running.broker.endpoints[0].port) as control,
    ):
        server = running.broker._server
        assert server is not None
        assert server._on_round == server._rounds.control_first
        crowd = [stack.enter_context(Peer(running.broker.endpoints[1].port)) for _ in range(20)]
        assert asks(control)
        with held_up(running):  # or half of them may be served before the last are sent
            for peer in crowd:
                peer.send(peer.frame(question, 4) * 20)
        first = crowd[0].answer(DescribeConfigsResponse, 4)
        assert asks(control)
        answered = running.look(lambda broker: broker.services.metrics.times_of("DescribeConfigs").requests)
        assert answered < 200
        answers = [first, *(crowd[0].answer(DescribeConfigsResponse, 4) for _ in range(19))]
        answers += [peer.answer(DescribeConfigsResponse, 4) for peer in crowd[1:] for _ in range(20)]
        assert not any(answer.results[0].error_code for answer in answers)


@contextmanager
def held_up(running: BrokerThread) -> Iterator[None]:
    """The broker's loop does nothing meanwhile."""
    goes_on = threading.Event()
    running.loop.call_soon_threadsafe(goes_on.wait, SECONDS_MAX)
    try:
        yield
    finally:
        goes_on.set()
