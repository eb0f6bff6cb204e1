"""Lanes of fetching connections inside of a broker: one without compiled code answers with the same bytes."""

from __future__ import annotations

import socket
from collections.abc import Iterator
from contextlib import ExitStack, suppress
from pathlib import Path
from random import Random

import pytest
from tests.handlers.frames import batch, fetch, fetch_request, produce, produce_request, values
from tests.server.conftest import BrokerThread, Peer

from ottla.broker.broker import Broker
from ottla.model import ErrorCode
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.generated.fetch import FetchResponse

compiled = pytest.importorskip(
    "ottla.native.fetch_lane", reason="nothing is compiled: it takes a C compiler and Python's headers at installation"
)


@pytest.fixture
def two(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[tuple[BrokerThread, BrokerThread]]:
    """The first compiled, the second not."""
    with ExitStack() as stack:
        brokers = []
        for pure in ("", "1"):
            monkeypatch.setenv("OTTLA_PURE", pure)
            broker = stack.enter_context(BrokerThread(f"{tmp_path}/pure{pure}"))
            broker.create_topic("t", 2, segment_bytes="4000")
            brokers.append(broker)
        yield brokers[0], brokers[1]


def lanes(broker: Broker) -> int:
    """How many connections have one."""
    return sum(isinstance(each.lane, compiled.FetchLane) for each in broker._server._connections)


def delete_records(peer: Peer, offset: int) -> None:
    topic = DeleteRecordsTopic(name="t", partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    answer = peer.ask(DeleteRecordsRequest(topics=[topic], timeout_ms=60_000), 2, DeleteRecordsResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.NONE


class Reader:
    """Asks both brokers the same, and most often for what comes behind the last answer."""

    def __init__(self, rng: Random, peers: tuple[Peer, ...]) -> None:
        self.rng, self.peers = rng, peers
        self.version = rng.choice([4, 7, 11, 12])
        self.options = {"partition_max_bytes": rng.choice([100, 1000, 1 << 20]), "min_bytes": rng.choice([0, 1, 200])}
        self.next = 0

    def read(self, end: int) -> None:
        rng, options = self.rng, dict(self.options)
        chance = rng.random()
        offset = self.next if chance < 0.7 else rng.choice([0, end, end + 1, rng.randrange(end + 1)])
        if chance > 0.95:
            options["partition"] = 1
        elif chance > 0.9:
            options["isolation_level"] = 1
        for peer in self.peers:
            peer.send(peer.frame(fetch_request(offset, **options), self.version))
        ours, theirs = (peer.receive() for peer in self.peers)
        assert ours == theirs
        at = 4 + (self.version >= 12)
        response, _ = FetchResponse.decode(ours, self.version, at)
        got = values(response.responses[0].partitions[0]) if response.responses else []
        self.next = offset + len(got) if got else rng.randrange(end + 1)


@pytest.mark.parametrize("seed", range(3))
def test_random_conversations(two: tuple[BrokerThread, BrokerThread], seed: int) -> None:
    rng = Random(seed)
    with ExitStack() as stack:
        writers = [stack.enter_context(broker.connect()) for broker in two]
        readers = [Reader(rng, tuple(stack.enter_context(broker.connect()) for broker in two)) for _ in range(4)]
        end = 0
        for _ in range(400):
            chance = rng.random()
            if chance < 0.25:
                records = batch(*[rng.randbytes(rng.choice([5, 90, 300])) for _ in range(rng.choice([1, 1, 4]))])
                offsets = {produce(writer, records).base_offset for writer in writers}
                assert len(offsets) == 1
                end = max(two[0].look(end_of), end)
            elif chance < 0.27 and end:
                to = rng.randrange(end + 1)
                for writer in writers:
                    with suppress(AssertionError):  # below the log's start by now
                        delete_records(writer, to)
            else:
                rng.choice(readers).read(end)
        assert two[0].look(lanes) > 0
        assert two[1].look(lanes) == 0


def end_of(broker: Broker) -> int:
    return next(
        leader.log.end_offset
        for tp, leader in broker.services.replicas.leaders.items()
        if (tp.topic, tp.partition) == ("t", 0)
    )


def test_what_changes_under_a_lane(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("mortal")
    with running.connect() as other:
        assert produce(other, batch(b"a"), topic="mortal").error_code == ErrorCode.NONE
        for _ in range(3):
            assert values(fetch(peer, topic="mortal")) == [b"a"]
        assert produce(other, batch(b"b"), topic="mortal").error_code == ErrorCode.NONE
        assert values(fetch(peer, topic="mortal")) == [b"a", b"b"]
        deleted = other.ask(DeleteTopicsRequest(topic_names=["mortal"], timeout_ms=60_000), 3, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == ErrorCode.NONE
        assert fetch(peer, topic="mortal").error_code == ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
        running.create_topic("mortal")
        assert fetch(peer, topic="mortal").records in {None, b""}
        assert produce(other, batch(b"c"), topic="mortal").error_code == ErrorCode.NONE
        for _ in range(3):
            assert values(fetch(peer, topic="mortal")) == [b"c"]


def test_a_connection_that_produces_keeps_its_lane(running: BrokerThread, peer: Peer) -> None:
    running.create_topic("both")
    for number in range(4):
        assert produce(peer, batch(b"a"), topic="both").base_offset == number
        assert values(fetch(peer, topic="both")) == [b"a"] * (number + 1)
    assert running.look(lanes) == 0
    peer.send(peer.frame(produce_request(batch(b"z"), topic="both"), 8))
    assert peer.receive()


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
    with running.connect() as other, running.connect() as peer:
        assert produce(other, batch(b"x" * 20_000), topic="late").error_code == ErrorCode.NONE
        for _ in range(3):
            assert values(fetch(peer, topic="late")) == [b"x" * 20_000]
        assert running.look(lanes) == 1
        port = peer.socket.getsockname()[1]
        filled = running.look(lambda broker: fill(broker, port))
        for _ in range(3):
            peer.send(peer.frame(fetch_request(topic="late"), 11))
        # Another client's round trip: the broker has met the first of them by then.
        assert values(fetch(other, topic="late")) == [b"x" * 20_000]
        assert peer.exactly(filled) == b"x" * filled
        for number in range(3):
            assert int.from_bytes(peer.receive()[:4], "big") == peer.correlation - 2 + number
        assert values(fetch(peer, topic="late")) == [b"x" * 20_000]


def test_clients_that_go_without_their_answers(running: BrokerThread) -> None:
    running.create_topic("gone")
    with running.connect() as peer:
        assert produce(peer, batch(b"a" * 1000), topic="gone").error_code == ErrorCode.NONE
        for _ in range(20):
            with running.connect() as other:
                for _ in range(3):
                    assert values(fetch(other, topic="gone")) == [b"a" * 1000]
                other.send(other.frame(fetch_request(topic="gone"), 11))
                other.socket.setsockopt(socket.SOL_SOCKET, socket.SO_LINGER, b"\1\0\0\0\0\0\0\0")
        assert values(fetch(peer, topic="gone")) == [b"a" * 1000]
