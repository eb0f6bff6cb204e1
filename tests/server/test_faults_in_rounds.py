"""A fault of ours in any step of a round ends what it belongs to, and nothing else.

Many connections send their requests while the loop is held up, so that one round serves them all; a step of it then
raises. Whatever was acknowledged is then where it was said to be, a topic holds what was sent to it and nothing else,
and everybody can go on.
"""

from __future__ import annotations

import asyncio
import threading
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

import pytest
from tests.handlers.frames import batch, fetch, fetch_request, produce_request, values
from tests.handlers.groups import PROPERTIES, find
from tests.server.conftest import BrokerThread
from tests.server.planted import SITES, Plant, Planted
from tests.server.test_connections import until

from ottla.broker.broker import Broker
from ottla.model import ErrorCode
from ottla.protocol.generated.create_topics import CreatableTopic, CreateTopicsRequest
from ottla.protocol.generated.fetch import FetchRequest, FetchResponse
from ottla.protocol.generated.offset_commit import (
    OffsetCommitRequest,
    OffsetCommitRequestPartition,
    OffsetCommitRequestTopic,
    OffsetCommitResponse,
)
from ottla.protocol.generated.produce import ProduceResponse
from ottla.protocol.message import Message

TOPICS = ("a", "b", "c")
#: Connections of each kind, to each topic.
EACH = 2
VERSION = {"produce": 8, "produce any": 8, "fetch": 11, "fetch long": 11, "fetch session": 11, "commit": 7}
#: How often a long fetch names its partition, to be as long as those that are served in steps.
NAMED = 500
#: Where nobody knows what is in a file, the directory goes offline: it is the only one here, so the broker ends.
MAY_END_THE_BROKER = {"Staging._note_written", "Segment.note_batches", "ProducerStates.commit"}


class Client:
    """One connection that sends the same kind of request again and again, each with a value of its own."""

    def __init__(self, broker: BrokerThread, kind: str, topic: str, number: int) -> None:
        self.broker = broker
        self.kind = kind
        self.topic = topic
        self.name = f"{kind}-{topic}-{number}".encode()
        self.count = 0
        self.peer = broker.connect()
        self.session_id = self.session_epoch = 0

    def request(self) -> Message:
        self.count += 1
        value = b"%s-%d" % (self.name, self.count)
        if self.kind == "produce":
            return produce_request(batch(value), topic=self.topic)
        if self.kind == "produce any":
            # Sizes that change, two requests in three of an idempotent producer, many records: no lane takes all.
            rows = [value + b"." * (self.count % 3) * 20] * 1
            return produce_request(batch(*rows, *[b"%s+%d" % (value, n) for n in range(20)]), topic=self.topic)
        if self.kind.startswith("fetch"):
            return self._fetch_request()
        partition = OffsetCommitRequestPartition(partition_index=0, committed_offset=self.count)
        topics = [OffsetCommitRequestTopic(name=self.topic, partitions=[partition])]
        return OffsetCommitRequest(
            group_id=self.name.decode(), generation_id_or_member_epoch=-1, member_id="", topics=topics
        )

    def _fetch_request(self) -> FetchRequest:
        # What there is, or more than there ever is: it is waited for.
        min_bytes = 1 if self.count % 3 else 1 << 30
        request = fetch_request(0, topic=self.topic, max_wait_ms=0 if self.count % 2 else 50, min_bytes=min_bytes)
        if self.kind == "fetch long":
            request.topics[0].partitions *= NAMED
        if self.kind == "fetch session":
            request.session_id, request.session_epoch = self.session_id, self.session_epoch
            if self.session_epoch:
                request.topics = []
            self.session_epoch += 1
        return request

    def send(self) -> None:
        self.peer.send(self.peer.frame(self.request(), VERSION[self.kind]))

    def answer(self) -> Any:
        """The answer, or None where the connection was closed instead; a new one is then made."""
        kinds: dict[str, type[Message]] = {"fetch": FetchResponse, "commit": OffsetCommitResponse}
        try:
            answer = self.peer.answer(kinds.get(self.kind.split()[0], ProduceResponse), VERSION[self.kind])
        except (EOFError, ConnectionError):
            self.peer.socket.close()
            self.peer = self.broker.connect()
            self.session_id = self.session_epoch = 0
            return None
        if self.kind == "fetch session":
            self.session_id = answer.session_id
            if not self.session_id or answer.error_code:
                self.session_id = self.session_epoch = 0
        return answer


class Room:
    def __init__(self, broker: BrokerThread) -> None:
        self.broker = broker
        for topic in TOPICS:
            broker.create_topic(topic)
        with broker.connect() as peer:
            find(peer)  # makes the topic of committed offsets
        self.clients = [Client(broker, kind, topic, n) for kind in VERSION for topic in TOPICS for n in range(EACH)]
        #: Offsets by value, as acknowledged, by topic.
        self.acknowledged: dict[str, dict[bytes, int]] = defaultdict(dict)

    @contextmanager
    def one_round(self) -> Iterator[None]:
        """What is sent inside is ready all at once."""
        held, release = threading.Event(), threading.Event()

        def hold() -> None:
            held.set()
            release.wait(60)

        self.broker.loop.call_soon_threadsafe(hold)
        assert held.wait(60)
        try:
            yield
        finally:
            release.set()

    def ask_all(self) -> list[Client]:
        """Everybody sends a request; returns those that got no answer."""
        with self.one_round():
            for client in self.clients:
                client.send()
        return [client for client in self.clients if not self._is_answered(client)]

    def _is_answered(self, client: Client) -> bool:
        answer = client.answer()
        if answer is None:
            return False
        if client.kind.startswith("produce"):
            (partition,) = answer.responses[0].partition_responses
            if partition.error_code == ErrorCode.NONE:
                self.acknowledged[client.topic][b"%s-%d" % (client.name, client.count)] = partition.base_offset
            else:
                assert partition.error_code == ErrorCode.KAFKA_STORAGE_ERROR, "clients are to try again"
                return False
        if client.kind.startswith("fetch"):
            for value in [value for topic in answer.responses for value in values(topic.partitions[0])]:
                assert value is not None
                assert f"-{client.topic}-".encode() in value
        if client.kind == "commit":
            return bool(answer.topics[0].partitions[0].error_code == ErrorCode.NONE)
        return True

    def check(self) -> None:
        """What each topic holds is what was sent to it, and what was acknowledged is there."""
        for topic in TOPICS:
            with self.broker.connect() as peer:
                found = values(fetch(peer, topic=topic, max_bytes=1 << 24, partition_max_bytes=1 << 24))
            assert all(value is not None and f"-{topic}-".encode() in value for value in found), topic
            firsts = [value for value in found if value is not None and b"+" not in value]
            assert len({value.rstrip(b".") for value in firsts}) == len(firsts)
            for value, offset in self.acknowledged[topic].items():
                assert (found[offset] or b"").rstrip(b".") == value


def settled(room: Room) -> None:
    """Everybody is answered, within a few rounds: coordinators may have to load again."""
    for _ in range(100):
        if not room.ask_all():
            return
    raise AssertionError("some are never answered again")


#: At which end of the step the fault comes, and whether lanes are there.
WAYS = {
    "before-lanes": (False, True),
    "behind-pure": (True, False),
    "before-pure": (False, False),
    "behind-lanes": (True, True),
}


def every_fault() -> Iterator[Any]:
    """`./test` has each second step in one of the first two ways, in turns, and `./test --slow` all others."""
    for number, site in enumerate(SITES):
        for turn, (name, way) in enumerate(WAYS.items()):
            marks = () if number % 2 == 0 and turn == number // 2 % 2 else (pytest.mark.slow,)
            yield pytest.param(site, *way, id=f"{site[1]}-{name}", marks=marks)


@pytest.mark.parametrize(("site", "behind", "compiled"), every_fault())
def test_a_fault_in_a_step(
    site: tuple[str, str], behind: bool, compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiled:
        pytest.importorskip("ottla.native.lane", reason="nothing is compiled")
        monkeypatch.delenv("OTTLA_PURE", raising=False)
    else:
        monkeypatch.setenv("OTTLA_PURE", "1")
    plant = Plant(*site, behind=behind)
    with monkeypatch.context() as patch:
        plant.put_in(patch)
        with BrokerThread(str(tmp_path), **PROPERTIES) as broker:
            room = Room(broker)
            settled(room)
            settled(room)
            for call in (0, 3):
                plant.calls_left = call
                room.ask_all()
                plant.calls_left = None
                if broker.look(lambda each: each.lost) is not None:
                    break
                settled(room)
            lost = broker.look(lambda each: each.lost)
            assert lost is None or site[1] in MAY_END_THE_BROKER, lost
            if lost is None:
                room.check()
    with BrokerThread(str(tmp_path), **PROPERTIES) as again:
        room.broker = again
        room.check()


PRODUCE = "ottla.handlers.produce.handler"
LANES = "ottla.handlers.produce.lanes"
#: The second fault comes where the first one is dealt with; each with the calls that pass before it.
TWO_FAULTS = {
    "unwritten, then unsettled": (
        ("ottla.replication.writes", "Writes._write", 0),
        (PRODUCE, "ProduceHandler._settle_quick", 0),
    ),
    "unwritten, then unheld": (
        ("ottla.replication.writes", "Writes._write", 0),
        ("ottla.server.connection", "Connection.hold", 0),
    ),
    "no run, then no run again": (
        ("ottla.storage.log.staging", "Staging.stage_run", 0),
        (LANES, "Lanes._staged_end", 1),
    ),
    "no run, then not one by one": (
        ("ottla.storage.log.staging", "Staging.stage_run", 0),
        (PRODUCE, "ProduceHandler._stage_collected", 0),
    ),
    "unanswered, then unclosed": ((LANES, "Lanes._answer", 0), ("ottla.server.connection", "Connection.abort", 0)),
    "unwritten, then undiscarded": (
        ("ottla.replication.writes", "Writes._write", 0),
        ("ottla.storage.log.staging", "Staging.discard", 0),
    ),
}


@pytest.mark.in_turns
@pytest.mark.parametrize("compiled", [True, False], ids=["lanes", "pure"])
@pytest.mark.parametrize("faults", TWO_FAULTS.values(), ids=list(TWO_FAULTS))
def test_two_faults_in_a_round(
    faults: tuple[tuple[str, str, int], ...], compiled: bool, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    if compiled:
        pytest.importorskip("ottla.native.lane", reason="nothing is compiled")
        monkeypatch.delenv("OTTLA_PURE", raising=False)
    else:
        monkeypatch.setenv("OTTLA_PURE", "1")
    plants = [Plant(module, name, behind=False) for module, name, _ in faults]
    with monkeypatch.context() as patch:
        for plant in plants:
            plant.put_in(patch)
        with BrokerThread(str(tmp_path), **PROPERTIES) as broker:
            room = Room(broker)
            settled(room)
            settled(room)
            for plant, (_, _, calls) in zip(plants, faults, strict=True):
                plant.calls_left = calls
            room.ask_all()
            for plant in plants:
                plant.calls_left = None
            lost = broker.look(lambda each: each.lost)
            if lost is None:
                settled(room)
                room.check()
            assert lost is None or faults[1][1] == "Staging.discard", lost
    with BrokerThread(str(tmp_path), **PROPERTIES) as again:
        room.broker = again
        room.check()


def close_all(broker: Broker) -> int:
    """As the sweep of idle connections does; how many are left."""
    server = broker._server
    assert server is not None
    for connection in list(server._connections):
        server._rounds.close_connection(connection)
    return broker.connection_count


def test_a_fault_in_giving_a_request_up_closes_its_connection_all_the_same(tmp_path: Path) -> None:
    """Else its socket would stay open and be told of again and again, and the sweep of idle ones never come back."""
    with BrokerThread(str(tmp_path)) as broker:
        broker.create_topic("a")
        peer = broker.connect()
        peer.send(peer.frame(fetch_request(0, topic="a", max_wait_ms=60_000, min_bytes=1), 11))
        until(lambda: broker.look(lambda each: len(each.services.replicas.waiters)) == 1)  # type: ignore[union-attr]
        closed = broker.look(lambda each: next(iter(each._server._connections)))  # type: ignore[union-attr]

        def broken() -> None:
            raise Planted

        closed.cancel = broken
        assert broker.look(close_all) == 0
        assert peer.is_closed()


def test_who_waits_for_something_that_was_cancelled_is_not_left_waiting(tmp_path: Path) -> None:
    async def cancelled(*_: Any, **__: Any) -> Any:
        raise asyncio.CancelledError

    with BrokerThread(str(tmp_path)) as broker:
        peer = broker.connect()
        request = CreateTopicsRequest(topics=[CreatableTopic(name="a", num_partitions=1, replication_factor=1)])
        services = broker.broker.services
        assert services is not None
        services.controller.create_topics = cancelled  # type: ignore[method-assign]
        peer.send(peer.frame(request, 5))
        assert peer.is_closed()
