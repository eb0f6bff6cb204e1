"""What a lane answers to a Fetch is what the ordinary way answers, and what it does not know it leaves alone."""

from __future__ import annotations

import socket
import struct
import weakref
from collections.abc import Iterator
from contextlib import suppress
from pathlib import Path
from random import Random
from typing import Any

import pytest
from tests.garbage import are_gone
from tests.handlers.frames import fetch_request
from tests.storage.at_once import cut_to, expire
from tests.storage.log_world import NOW, TP, World, batch

from ottla.config.log import LogConfig
from ottla.handlers.fetch.memo import FetchMemo, remember
from ottla.ports.real.disk import RealDisk
from ottla.protocol.fields import LENGTH_BYTES
from ottla.protocol.header import RequestHeader, encode_request, request_body_start
from ottla.protocol.hot.fetch import parse_fetch
from ottla.replication.isr import InSyncReplicas
from ottla.replication.leader import Leader
from ottla.server.buffers import FIRST_READ_BYTES, Buffer
from ottla.storage.errors import OffsetOutsideLog

compiled = pytest.importorskip(
    "ottla.native.fetch_lane",
    reason="nothing is compiled: it takes a C compiler and Python's headers at installation",
)
TAKEN, FetchRun = compiled.TAKEN, compiled.FetchRun

VERSIONS = (4, 5, 7, 9, 11, 12, 13)
EPOCH = 4
#: Some batches a segment, and each with an entry in the index.
CONFIG = LogConfig(segment_bytes=100_000, index_interval_bytes=200, max_message_bytes=200_000)


def frame(version: int, offset: int, correlation: int = 7, **options: Any) -> bytes:
    message = fetch_request(offset, **options)
    if version >= 13:
        message.topics[0].topic_id = bytes(range(16))
        message.topics[0].topic = ""
    header = RequestHeader(api_key=1, api_version=version, correlation_id=correlation, client_id="test")
    return encode_request(header, message)


class Numbered:
    """Of a policy what a lane asks for."""

    number = 0


class Partition:
    """A leader over a log in files."""

    def __init__(self, folder: Path) -> None:
        folder.mkdir()
        self.log = World(RealDisk(), CONFIG, str(folder)).open()
        self.leader = Leader(TP, self.log, EPOCH, InSyncReplicas(0, [0], [0]), 0)

    def append(self, *values: bytes) -> None:
        self.log.stage(batch(*values), leader_epoch=EPOCH, now_ms=NOW)
        self.log.write_staged()
        if self.log.active.size > 15_000:
            self.log.roll(NOW)
        self.leader.high_watermark = self.log.end_offset

    def cut(self, offset: int) -> None:
        cut_to(self.log, offset)
        self.leader.high_watermark = self.log.end_offset

    def expected(self, memo: FetchMemo, whole: bytes) -> bytes | None:
        """What is answered without any lane, if the request is like the memo's and something is there."""
        buffer = Buffer(FIRST_READ_BYTES)
        buffer.data[: len(whole)] = whole
        size, key, version, correlation = struct.unpack_from(">ihhi", buffer.data)
        if (
            size != len(whole) - LENGTH_BYTES
            or key != 1
            or version != memo.version
            or (offset := memo.offset(buffer, LENGTH_BYTES, len(whole))) < 0
        ):
            return None
        try:
            piece = self.log.read(offset, memo.max_bytes, self.leader.high_watermark)
        except OffsetOutsideLog:
            return None
        if piece.size < memo.min_bytes or piece.size + memo.room > FIRST_READ_BYTES:
            return None
        head = bytearray(memo.room)
        at = memo.head.fill(head, correlation, self.leader.high_watermark, self.log.places.start_offset, piece.size)
        return bytes(head[:at]) + piece.read() + memo.head.tail


def memo_of(partition: Partition, whole: bytes) -> FetchMemo:
    buffer = Buffer(FIRST_READ_BYTES)
    buffer.data[: len(whole)] = whole
    version = struct.unpack_from(">h", whole, 6)[0]
    request = parse_fetch(buffer.data, request_body_start(buffer.data, LENGTH_BYTES, len(whole)), version, len(whole))
    memo = remember(buffer, LENGTH_BYTES, len(whole), version, request, partition.leader, 1 << 20, 0)
    assert memo is not None
    return memo


class Wire:
    """A connection with a lane; of the broker's end of it, what a lane asks for."""

    def __init__(self, memo: FetchMemo, run: Any, policy: Numbered) -> None:
        self.closed = False
        self.answers: list[bytes] | tuple[()] = ()
        self.memo = memo
        self.client, self.served = socket.socketpair()
        self.client.setblocking(False)
        self.served.setblocking(False)
        self.lane = memo.lane(run, policy, self.served.fileno(), self)  # type: ignore[arg-type]
        self.buffer = bytearray(FIRST_READ_BYTES)

    def receive(self, whole: bytes, *, exactly: bool = False) -> int:
        """With `exactly` the buffer ends where the bytes do, for who watches over every step beyond."""
        self.buffer = bytearray(len(whole) if exactly else FIRST_READ_BYTES)
        self.client.sendall(whole)
        return int(self.lane.receive(memoryview(self.buffer)))

    def answer(self) -> bytes:
        with suppress(BlockingIOError):
            return self.client.recv(1 << 20)
        return b""

    def close(self) -> None:
        self.client.close()
        self.served.close()


@pytest.fixture
def partition(tmp_path: Path) -> Partition:
    partition = Partition(tmp_path / "orders-0")
    for number in range(10):
        partition.append(b"%d" % number * 300)
    return partition


@pytest.fixture
def policy() -> Numbered:
    return Numbered()


@pytest.fixture
def run() -> Any:
    return FetchRun()


@pytest.fixture
def wire(partition: Partition, run: Any, policy: Numbered) -> Iterator[Wire]:
    wire = Wire(memo_of(partition, frame(11, 0)), run, policy)
    yield wire
    wire.close()


# -- random requests, beside the ordinary way


def some_frame(rng: Random, version: int, end: int, following: int, **options: Any) -> bytes:
    """Most of them good, many damaged."""
    offset = (
        following if rng.random() < 0.6 else rng.choice([0, rng.randrange(end + 1), end, end + 1, -1, 2**62, -(2**63)])
    )
    whole = bytearray(frame(version, offset, rng.choice([0, 1, -1, 2**31 - 1]), **options))
    chance = rng.random()
    if chance < 0.1:
        whole[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
    elif chance < 0.15:
        del whole[rng.randrange(len(whole)) :]
    elif chance < 0.2:
        whole += rng.randbytes(rng.choice([1, 4, 70]))
    return bytes(whole)


@pytest.mark.parametrize("version", VERSIONS)
def test_random_requests(tmp_path: Path, version: int) -> None:
    rng = Random(version)
    ours, twin = Partition(tmp_path / "orders-0"), Partition(tmp_path / "twin-0")
    run, policy, taken = FetchRun(), Numbered(), 0
    options = {"min_bytes": rng.choice([0, 1, 300]), "partition_max_bytes": rng.choice([10, 1000, 5000, 1 << 20])}
    wires = [Wire(memo_of(ours, frame(version, 0, **options)), run, policy) for _ in range(3)]
    following = [0] * len(wires)
    for _ in range(400):
        chance = rng.random()
        if chance < 0.3:
            values = [rng.randbytes(rng.choice([1, 50, 400])) for _ in range(rng.choice([1, 1, 5]))]
            if rng.random() < 0.03:
                values = [rng.randbytes(70_000)]
            for each in (ours, twin):
                each.append(*values)
        elif chance < 0.33:
            to = rng.randrange(ours.log.start_offset, ours.log.end_offset + 1)
            for each in (ours, twin):
                each.cut(to)
        elif chance < 0.35:
            to = rng.randrange(ours.log.start_offset, ours.log.end_offset + 1)
            for each in (ours, twin):
                each.log.advance_start(to)
                for removal in expire(each.log, NOW, each.leader.high_watermark):
                    removal.run()
        number = rng.randrange(len(wires))
        wire = wires[number]
        whole = some_frame(rng, version, ours.log.end_offset, following[number], **options)
        expected = twin.expected(wire.memo, whole)
        received = wire.receive(whole, exactly=rng.random() < 0.5)
        if received == TAKEN:
            taken += 1
            assert len(run) == 1
            assert run.answer() == []
            answer = wire.answer()
            assert answer == expected
            following[number] = wire.memo.offset(held(whole), LENGTH_BYTES, len(whole)) + 1
        else:
            assert received == len(whole)
            assert bytes(wire.buffer[:received]) == whole
            assert len(run) == 0
    assert taken > 20
    for wire in wires:
        wire.close()


def held(whole: bytes) -> Buffer:
    buffer = Buffer(FIRST_READ_BYTES)
    buffer.data[: len(whole)] = whole
    return buffer


# -- what it asks for


def changed(name: str, partition: Partition, wire: Wire, run: Any, policy: Numbered) -> None:
    leader = partition.leader
    if name == "another policy":
        policy.number = 1
    elif name == "a leader that is not active":
        leader.retire()
    elif name == "another leader epoch":
        leader.begin_epoch(EPOCH + 1)
    elif name == "a log that has moved":
        leader.log = None  # type: ignore[assignment]
    elif name == "the high watermark stands below the end":
        leader.high_watermark -= 1
    elif name == "the log's start stands above":
        partition.log.advance_start(5)
    elif name == "an answer stands before it":
        wire.answers = [b"x"]
    elif name == "no answer may be copied":
        run.has_room = False
    elif name == "a file that cannot be read":
        segment = partition.log.active
        segment.goes_on_with(RealDisk().open(f"{partition.log.directory}/other", create=True))


CHANGES = (
    *("another policy", "a leader that is not active", "another leader epoch", "a log that has moved"),
    *("the high watermark stands below the end", "the log's start stands above", "an answer stands before it"),
    *("no answer may be copied", "a file that cannot be read"),
)


@pytest.mark.parametrize("name", CHANGES)
def test_what_is_not_as_it_was(partition: Partition, wire: Wire, run: Any, policy: Numbered, name: str) -> None:
    whole = frame(11, 2)
    assert wire.receive(whole) == TAKEN
    assert run.answer() == []
    assert wire.answer() == partition.expected(wire.memo, whole)
    changed(name, partition, wire, run, policy)
    for _ in range(2):
        assert wire.receive(whole) == len(whole)
        assert bytes(wire.buffer[: len(whole)]) == whole
    assert run.answer() == []
    assert wire.answer() == b""


def test_nothing_that_is_not_there_yet(partition: Partition, wire: Wire, run: Any) -> None:
    whole = frame(11, 10)
    assert wire.receive(whole) == len(whole)
    partition.append(b"the next")
    assert wire.receive(whole) == TAKEN
    assert run.answer() == []
    assert wire.answer() == partition.expected(wire.memo, whole)


def test_bytes_are_counted(wire: Wire, partition: Partition, run: Any) -> None:
    assert wire.receive(frame(11, 9)) == TAKEN
    assert wire.memo.traffic.bytes_out == partition.log.read(9, 1 << 20, 10).size
    assert wire.receive(frame(11, 9)) == TAKEN
    assert wire.memo.traffic.bytes_out == 2 * partition.log.read(9, 1 << 20, 10).size
    assert len(run) == 2
    run.answer()
    assert len(run) == 0


def test_more_answers_than_have_room(partition: Partition, run: Any, policy: Numbered) -> None:
    """Those that are there are sent before the round's end, and all are counted."""
    partition.append(b"x" * 60_000)
    whole = frame(11, 10)
    wires = [Wire(memo_of(partition, whole), run, policy) for _ in range(12)]
    for wire in wires:
        wire.served.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1 << 18)
        assert wire.receive(whole) == TAKEN
    assert len(run) == 12
    assert wires[0].answer() != b""
    assert wires[-1].answer() == b""
    assert run.answer() == []
    expected = partition.expected(wires[-1].memo, whole)
    assert wires[-1].answer() == expected
    for wire in wires:
        wire.close()


# -- sockets


def fill(wire: Wire) -> None:
    with suppress(BlockingIOError):
        while True:
            wire.served.send(b"x" * 1000)


def test_an_answer_that_the_socket_does_not_take_is_handed_back(partition: Partition, wire: Wire, run: Any) -> None:
    whole = frame(11, 3)
    assert wire.receive(whole) == TAKEN
    fill(wire)
    assert run.answer() == [(wire, partition.expected(wire.memo, whole))]
    assert run.answer() == []


def test_a_peer_that_has_gone_is_named(wire: Wire, run: Any) -> None:
    assert wire.receive(frame(11, 3)) == TAKEN
    wire.client.close()
    assert run.answer() == [(wire, None)]


@pytest.mark.parametrize("closes", ["lane", "peer"])
def test_what_is_closed_is_not_answered(wire: Wire, run: Any, closes: str) -> None:
    assert wire.receive(frame(11, 3)) == TAKEN
    if closes == "lane":
        wire.lane.close()
    else:
        wire.closed = True
    assert run.answer() == []
    assert wire.answer() == b""


def test_a_round_that_is_given_up(partition: Partition, run: Any, wire: Wire, policy: Numbered) -> None:
    other = Wire(memo_of(partition, frame(11, 0)), run, policy)
    assert [each.receive(frame(11, 3)) for each in (wire, other)] == [TAKEN, TAKEN]
    assert run.give_up() == [wire, other]
    assert len(run) == 0
    assert run.answer() == []
    assert wire.answer() == b""
    assert wire.receive(frame(11, 3)) == TAKEN
    other.close()


def test_it_receives_as_a_socket_does(wire: Wire) -> None:
    view = memoryview(wire.buffer)
    with pytest.raises(BlockingIOError):
        wire.lane.receive(view)
    wire.client.send(b"abc")
    assert wire.lane.receive(view[10:12]) == 2
    assert wire.buffer[10:12] == b"ab"
    assert wire.lane.receive(view) == 1
    with pytest.raises((TypeError, BufferError)):
        wire.lane.receive(memoryview(b"not to be written to"))
    wire.client.close()
    assert wire.lane.receive(view) == 0
    wire.lane.close()
    with pytest.raises(OSError, match="Bad file descriptor"):
        wire.lane.receive(view)


def test_what_is_too_long_for_a_lane(partition: Partition, run: Any, policy: Numbered) -> None:
    memo = memo_of(partition, frame(11, 0))
    memo.prefix += b"x" * 1024
    assert memo.lane(run, policy, 0, None) is None  # type: ignore[arg-type]


def test_what_nobody_uses_any_more_goes(partition: Partition, run: Any, policy: Numbered) -> None:
    """Also where a lane's connection refers to the lane, as connections do."""
    wire = Wire(memo_of(partition, frame(11, 0)), run, policy)
    assert wire.receive(frame(11, 3)) == TAKEN
    assert wire.receive(frame(11, 3)) == TAKEN
    run.answer()
    wire.close()
    gone = weakref.ref(wire)
    del wire
    assert are_gone([gone])
