"""Lanes inside of a broker: a second broker without compiled code is told the same, and says and stores the same."""

from __future__ import annotations

import asyncio
import errno
import socket
import time
from collections.abc import Callable, Iterator
from contextlib import ExitStack, suppress
from dataclasses import replace
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.handlers.frames import batch, fetch, produce, produce_request, values
from tests.server.conftest import BrokerThread, Peer
from tests.server.test_hostile_batches import BAD
from tests.server.topic_settings import alter

from ottla.broker.broker import Broker
from ottla.config import Config
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.memory.clock import Timeline, VirtualClock
from ottla.ports.memory.disk import MemoryDisk
from ottla.ports.real import real_ports
from ottla.ports.real.round_loop import RoundLoop
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.generated.metadata import MetadataRequest, MetadataRequestTopic
from ottla.protocol.generated.produce import ProduceResponse

pytest.importorskip(
    "ottla.native.lane", reason="nothing is compiled: it takes a C compiler and Python's headers at installation"
)

TP = TopicPartition("t", 0)
#: What is refused with the same words whenever it is asked; a time too far ahead is named beside the present one.
NAMED_ALIKE = [name for name in BAD if name != "far ahead"]
Make = Callable[..., BrokerThread]


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BrokerThread, BrokerThread]]:
    """The first compiled, the second not."""
    with ExitStack() as stack:
        brokers = []
        for pure in ("", "1"):
            monkeypatch.setenv("OTTLA_PURE", pure)
            broker = stack.enter_context(BrokerThread(f"{tmp_path}/pure{pure}"))
            broker.create_topic("t", 2)
            broker.create_topic("u")
            brokers.append(broker)
        yield brokers[0], brokers[1]


def lanes(broker: Broker) -> int:
    """How many runs the partition's leader has: 1 once a connection has a lane."""
    return int(broker.services.replicas.leaders[TP].run is not None)


def stored(broker: BrokerThread, folder: str) -> bytes:
    logs = Path(broker.properties["log.dirs"])
    return b"".join(path.read_bytes() for path in sorted((logs / folder).glob("*.log")))


def has_lane(running: BrokerThread) -> bool:
    return bool(running.look(lanes))


# -- the same conversations


def some_raw(rng: Random, peer: Peer, sequences: dict[int, int]) -> tuple[bytes, int]:
    """What one client sends next, and how many answers it is owed."""
    chance = rng.random()
    version = rng.choice([7, 7, 7, 7, 9, 12])
    options: dict[str, Any] = {
        "topic": rng.choice(["t"] * 6 + ["u", "missing"]),
        "partition": rng.choice([0] * 9 + [1]),
    }
    options["acks"] = rng.choice([-1, -1, 1])
    count = rng.choice([1, 1, 1, 1, 2, 17])
    records = [rng.randbytes(rng.choice([10, 10, 10, 63, 64, 300])) for _ in range(count)]
    if chance < 0.1:
        raw, _ = BAD[rng.choice(NAMED_ALIKE)]
        return peer.frame(produce_request(raw, **options), version), 1
    if chance < 0.15:
        topics = [MetadataRequestTopic(name="t")]
        return peer.frame(MetadataRequest(topics=topics, allow_auto_topic_creation=False), 4), 1
    if chance < 0.35:
        producer = rng.randrange(3)
        sequence = sequences.get(producer, 0)
        if rng.random() < 0.2:
            sequence = max(0, sequence + rng.choice([-count, 2]))
        sequences[producer] = sequence + count
        idempotent = batch(*records, producer_id=producer, producer_epoch=0, base_sequence=sequence)
        return peer.frame(produce_request(idempotent, topic="t"), 7), 1
    one = peer.frame(produce_request(batch(*records, compression=rng.choice([0, 0, 0, 4])), **options), version)
    if chance < 0.5:
        return one + peer.frame(produce_request(batch(*records), **options), version), 2
    return one, 1


@pytest.mark.parametrize("seed", range(4))
def test_random_conversations(two: tuple[BrokerThread, BrokerThread], seed: int) -> None:
    rng = Random(seed)
    with ExitStack() as stack:
        pairs = [tuple(stack.enter_context(broker.connect()) for broker in two) for _ in range(4)]
        sequences: dict[int, int] = {}
        for _ in range(400):
            ours, theirs = rng.choice(pairs)
            raw, owed = some_raw(rng, ours, sequences)
            cut = rng.randrange(len(raw)) if rng.random() < 0.1 else 0
            for peer in (ours, theirs):
                peer.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
                if cut:
                    peer.send(raw[:cut])
                    time.sleep(0.002)
                peer.send(raw[cut:])
            for _ in range(owed):
                answer = ours.receive()
                other = theirs.receive()
                # Ports and ids of clusters differ, in Metadata alone.
                if b"127.0.0.1" not in answer:
                    assert answer == other
    assert has_lane(two[0])
    assert not has_lane(two[1])
    for folder in ("t-0", "t-1", "u-0"):
        assert stored(two[0], folder) == stored(two[1], folder)


def test_many_at_once(running: BrokerThread) -> None:
    """Answers name the offsets at which the records are, and each offset is named once."""
    with ExitStack() as stack:
        peers = [stack.enter_context(running.connect()) for _ in range(40)]
        told: dict[int, bytes] = {}
        for turn in range(30):
            for number, peer in enumerate(peers):
                value = f"{turn} of {number}".encode()
                peer.send(peer.frame(produce_request(batch(value), topic="t", partition=1), 7))
            for number, peer in enumerate(peers):
                answer = peer.answer(ProduceResponse, 7).responses[0].partition_responses[0]
                assert answer.error_code == ErrorCode.NONE
                assert peer.last_correlation == peer.correlation
                assert answer.base_offset not in told
                told[answer.base_offset] = f"{turn} of {number}".encode()
        assert sorted(told) == list(range(1200))
        read: list[bytes | None] = []
        while len(read) < 1200:
            read += values(fetch(peers[0], len(read), partition=1))
        assert read == [told[offset] for offset in range(1200)]


# -- what changes under a lane


CHANGES = {
    "smaller batches": ({"max_message_bytes": "80"}, ErrorCode.MESSAGE_TOO_LARGE),
    "no future": ({"message_timestamp_after_max_ms": "0"}, ErrorCode.INVALID_TIMESTAMP),
    "no past": ({"message_timestamp_before_max_ms": "1000"}, ErrorCode.INVALID_TIMESTAMP),
    "keys": ({"cleanup_policy": "compact"}, ErrorCode.INVALID_RECORD),
    "more replicas than there are": ({"min_insync_replicas": "2"}, ErrorCode.NONE),
    "the broker's time": ({"message_timestamp_type": "LogAppendTime"}, ErrorCode.NONE),
    "another codec": ({"compression_type": "gzip"}, ErrorCode.NONE),
}


@pytest.mark.parametrize("pure", ["", "1"])
@pytest.mark.parametrize("name", CHANGES)
def test_a_changed_topic(make_broker: Make, monkeypatch: pytest.MonkeyPatch, name: str, pure: str) -> None:
    monkeypatch.setenv("OTTLA_PURE", pure)
    configs, error = CHANGES[name]
    ahead = {"no future": 600_000, "no past": -60_000}.get(name, 0)
    records = batch(b"x" * 60, timestamp=int(time.time() * 1000) + ahead)
    with make_broker() as running:
        running.create_topic("t", message_timestamp_after_max_ms="3600000")
        with running.connect() as peer, running.connect() as admin:
            for _ in range(3):
                assert produce(peer, records).error_code == ErrorCode.NONE
            alter(admin, **configs)
            for _ in range(2):
                answer = produce(peer, records)
                assert answer.error_code == error
                assert (answer.log_append_time_ms > 0) == (name == "the broker's time")
            end = 3 if error else 5
            assert running.look(lambda broker: broker.services.replicas.leaders[TP].log.end_offset) == end
            alter(admin)  # back to the defaults
            if name != "no future":
                assert produce(peer, batch(b"again")).error_code == ErrorCode.NONE


def test_a_deleted_topic_and_its_successor(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("mortal")
    for _ in range(3):
        assert produce(peer, batch(b"a"), topic="mortal").error_code == ErrorCode.NONE
    with running.connect() as admin:
        deleted = admin.ask(DeleteTopicsRequest(topic_names=["mortal"], timeout_ms=60_000), 3, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == ErrorCode.NONE
    assert produce(peer, batch(b"b"), topic="mortal").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    running.create_topic("mortal")
    assert [produce(peer, batch(b"c"), topic="mortal").base_offset for _ in range(3)] == [0, 1, 2]
    assert values(fetch(peer, topic="mortal")) == [b"c"] * 3


# -- faults


class OnMemory(BrokerThread):
    """Real sockets, and a disk that fails as it is told to."""

    async def _start(self) -> None:
        self.disk = MemoryDisk(VirtualClock(Timeline()))
        self.ports = replace(real_ports(), disk=self.disk)
        self.broker = Broker(Config.parse(self.properties), self.ports)
        await self.broker.start()
        self.port = self.broker.endpoints[0].port


def test_a_full_disk(tmp_path: Path) -> None:
    with OnMemory(str(tmp_path)) as running:
        running.create_topic("t")
        with running.connect() as peer, running.connect() as other:
            for each in (peer, other):
                assert produce(each, batch(b"a")).error_code == ErrorCode.NONE
            assert produce(peer, batch(b"b")).base_offset == 2
            running.look(lambda _: running.disk.fail("append", "*/t-0/*.log", errno.ENOSPC, times=1))
            assert produce(peer, batch(b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
            assert produce(peer, batch(b"c")).base_offset == 3
            assert produce(other, batch(b"d")).base_offset == 4
            assert values(fetch(peer)) == [b"a", b"a", b"b", b"c", b"d"]


def test_a_directory_that_fails(tmp_path: Path) -> None:
    with OnMemory(str(tmp_path), **{"log.dirs": f"{tmp_path}/a,{tmp_path}/b"}) as running:
        running.create_topic("t")
        running.create_topic("u")
        folder = running.look(lambda broker: broker.services.replicas.leaders[TP].log.directory)
        with running.connect() as peer, running.connect() as other:
            for _ in range(3):
                assert produce(peer, batch(b"a")).error_code == ErrorCode.NONE
                assert produce(other, batch(b"a"), topic="u").error_code == ErrorCode.NONE
            running.look(lambda _: running.disk.fail("append", f"{folder}/*.log", errno.EIO))
            for _ in range(2):
                assert produce(peer, batch(b"lost")).error_code == ErrorCode.KAFKA_STORAGE_ERROR
                assert produce(other, batch(b"b"), topic="u").error_code == ErrorCode.NONE


def test_flush_before_the_answer(make_broker: Make) -> None:
    with make_broker() as running:
        running.create_topic("t", flush_messages="1")
        with running.connect() as peer:
            for offset in range(5):
                assert produce(peer, batch(b"a")).base_offset == offset
                assert running.look(lambda broker: broker.services.replicas.leaders[TP].log.recovery_point) > offset
        assert has_lane(running)


# -- connections


def fill(broker: Broker, port: int) -> int:
    """Sends to the client on this port until its socket takes no more; how many bytes that were."""
    sent = 0
    (connection,) = [each for each in broker._server._connections if each.channel.peer_port == port]
    with suppress(BlockingIOError):
        while True:
            sent += connection.channel.send(b"x" * 1000)
    return sent


def test_an_answer_for_which_there_is_no_room_yet(running: BrokerThread) -> None:
    running.create_topic("late")
    with running.connect() as peer:
        for _ in range(2):
            assert produce(peer, batch(b"a"), topic="late").error_code == ErrorCode.NONE
        port = peer.socket.getsockname()[1]
        filled = running.look(lambda broker: fill(broker, port))
        for _ in range(3):
            peer.send(peer.frame(produce_request(batch(b"b"), topic="late"), 8))
            time.sleep(0.02)
        assert peer.exactly(filled) == b"x" * filled
        for offset in range(2, 5):
            assert peer.answer(ProduceResponse, 8).responses[0].partition_responses[0].base_offset == offset
        assert produce(peer, batch(b"a"), topic="late").base_offset == 5


@pytest.mark.parametrize("pure", ["", "1"])
def test_an_answer_made_between_two_rounds_leaves_before_that_of_a_lane(
    make_broker: Make, monkeypatch: pytest.MonkeyPatch, pure: str
) -> None:
    """The end of a wait is answered outside of a round; a broker's loop serves the next one before that is sent."""
    monkeypatch.setenv("OTTLA_PURE", pure)
    monkeypatch.setattr(asyncio, "new_event_loop", RoundLoop)
    with make_broker() as running, running.connect() as peer:
        running.create_topic("order")
        for _ in range(2):
            assert produce(peer, batch(b"a"), topic="order").error_code == ErrorCode.NONE
        port = peer.socket.getsockname()[1]
        request = peer.frame(produce_request(batch(b"b"), topic="order"), 8)

        def answer_and_send(broker: Broker) -> None:
            (connection,) = [each for each in broker._server._connections if each.channel.peer_port == port]
            assert (connection.lane is None) == bool(pure)
            connection.answer(b"the answer before")
            peer.send(request)

        running.look(answer_and_send)
        assert peer.exactly(17) == b"the answer before"
        assert peer.answer(ProduceResponse, 8).responses[0].partition_responses[0].base_offset == 2
        assert produce(peer, batch(b"c"), topic="order").base_offset == 3


def test_a_client_that_goes_without_its_answer(running: BrokerThread) -> None:
    running.create_topic("gone")
    with running.connect() as peer:
        for _ in range(2):
            assert produce(peer, batch(b"a"), topic="gone").error_code == ErrorCode.NONE
        for _ in range(30):
            with running.connect() as other:
                for _ in range(2):
                    assert produce(other, batch(b"b"), topic="gone").error_code == ErrorCode.NONE
                other.send(other.frame(produce_request(batch(b"c"), topic="gone"), 8))
                other.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
            assert produce(peer, batch(b"a"), topic="gone").error_code == ErrorCode.NONE


def test_a_client_that_has_sent_its_last_request(running: BrokerThread) -> None:
    running.create_topic("last")
    with running.connect() as peer:
        for _ in range(2):
            assert produce(peer, batch(b"a"), topic="last").error_code == ErrorCode.NONE
        peer.send(peer.frame(produce_request(batch(b"z"), topic="last"), 8))
        peer.socket.shutdown(socket.SHUT_WR)
        assert peer.answer(ProduceResponse, 8).responses[0].partition_responses[0].base_offset == 2
        assert peer.is_closed()


@pytest.mark.parametrize("pure", ["", "1"])
def test_a_request_longer_than_the_broker_takes(make_broker: Make, monkeypatch: pytest.MonkeyPatch, pure: str) -> None:
    """Where fewer bytes are allowed than a lane receives, what is longer closes its connection all the same."""
    monkeypatch.setenv("OTTLA_PURE", pure)
    with make_broker(socket_request_max_bytes="2000") as running, running.connect() as peer:
        running.create_topic("t")
        for _ in range(2):
            assert produce(peer, batch(b"short"), 7).error_code == ErrorCode.NONE
        peer.send(peer.frame(produce_request(batch(b"v" * 2500)), 7))
        with pytest.raises((EOFError, ConnectionResetError)):
            peer.receive()
