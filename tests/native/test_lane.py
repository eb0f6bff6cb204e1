"""What a lane takes is what the ordinary way takes, with the same bytes in the log and in the answer."""

from __future__ import annotations

import gc
import socket
import struct
import weakref
from collections.abc import Iterator
from contextlib import suppress
from random import Random
from typing import Any

import pytest
from tests.garbage import are_gone
from tests.native.conftest import NOTHING_COMPILED
from tests.storage.log_world import NOW, SMALL, TP, World, batch

from ottla.handlers.produce.memo import ProduceMemo
from ottla.model import ErrorCode
from ottla.protocol.hot.produce_template import AnswerTemplate
from ottla.records.batch import COUNT_AT, HEADER_SIZE, LAST_OFFSET_DELTA_AT, parse_header, patch_crc
from ottla.records.checksum import crc32c as packaged_crc32c
from ottla.records.control import ControlType, control_batch
from ottla.records.plain import COUNTED_RECORDS_MAX, is_plain
from ottla.records.record import most_records
from ottla.replication.isr import InSyncReplicas
from ottla.replication.leader import Leader
from ottla.storage.errors import AppendRefused
from ottla.storage.log.append import Origin

compiled = pytest.importorskip("ottla.native.lane", reason=NOTHING_COMPILED)
TAKEN, Lane, Run, crc32c = compiled.TAKEN, compiled.Lane, compiled.Run, compiled.crc32c

VERSIONS = (3, 4, 7, 8, 9, 12, 13)
EPOCH = 4
PREFIX, TRAILER = b"client, acks, topic and partition", b"\0\0\0"
#: What an answer to a request is: its first offset, or an error.
Result = int | ErrorCode


def frame(version: int, records: bytes, correlation: int = 7, prefix: bytes = PREFIX) -> bytes:
    if version >= 9:
        value, length, trailer = len(records) + 1, bytearray(), TRAILER
        while value > 127:
            length.append(value & 127 | 128)
            value >>= 7
        length.append(value)
    else:
        length, trailer = bytearray(struct.pack(">i", len(records))), b""
    body = struct.pack(">hhi", 0, version, correlation) + prefix + length + records + trailer
    return struct.pack(">i", len(body)) + body


def topic(version: int) -> str | bytes:
    return bytes(range(16)) if version >= 13 else "t"


class Partition:
    """A leader over a log in memory, and the ordinary way to it."""

    def __init__(self, version: int) -> None:
        self.log = World(config=SMALL._replace(segment_bytes=8000, max_message_bytes=1500)).open()
        self.leader = Leader(TP, self.log, EPOCH, InSyncReplicas(0, [0], [0]), 0)
        self.memo = ProduceMemo(
            version, PREFIX, TRAILER if version >= 9 else b"", -1, 1000, self.leader, topic(version), 0
        )
        # The first batch after a start is looked at by itself.
        self.append(batch(b"the first"))
        self.log.write_staged()

    def append(self, records: bytes) -> Result:
        try:
            return self.leader.append(memoryview(bytearray(records)), NOW).first_offset
        except AppendRefused as refused:
            return refused.error

    def serve(self, whole: bytes) -> Result | None:
        """None where the request is another than the remembered one."""
        data = bytearray(whole)
        if len(data) < 12 or struct.unpack_from(">ihh", data) != (len(data) - 4, 0, self.memo.version):
            return None
        if not self.memo.is_like(data, 4, len(data)):
            return None
        return self.append(data[4 + self.memo.records_at : 4 + self.memo.records_end])

    def records_in(self, whole: bytes) -> bytes:
        """The batch of a request that is like the remembered one."""
        assert self.memo.is_like(bytearray(whole), 4, len(whole))
        return whole[4 + self.memo.records_at : 4 + self.memo.records_end]

    def bytes(self) -> list[bytes]:
        self.log.write_staged()
        return [segment.file.read(segment.size, 0) for segment in self.log.segments]


class Wire:
    """A connection with a lane."""

    def __init__(self, partition: Partition, run: Any, token: object = None, *, transactional: bool = False) -> None:
        self.client, self.served = socket.socketpair()
        self.client.setblocking(False)
        self.served.setblocking(False)
        memo = partition.memo
        template = AnswerTemplate(memo.version, memo.topic, 0)
        self.lane = run.lane(
            self.served.fileno(),
            self if token is None else token,
            memo.version,
            memo.version >= 9,
            PREFIX,
            TRAILER if memo.version >= 9 else b"",
            template.whole,
            template.offset_at,
            template.has_log_start,
            1000,
            transactional,
        )
        self.buffer = bytearray(65536)

    def receive(self, whole: bytes, *, exactly: bool = False) -> int:
        """With `exactly` the buffer ends where the bytes do, for who watches over every step beyond."""
        if exactly:
            self.buffer = bytearray(len(whole))
        self.client.sendall(whole)
        return self.lane.receive(memoryview(self.buffer))

    def close(self) -> None:
        self.client.close()
        self.served.close()


@pytest.fixture
def partition() -> Partition:
    return Partition(9)


@pytest.fixture
def gathered() -> list[Any]:
    return []


@pytest.fixture
def run(partition: Partition, gathered: list[Any]) -> Run:
    return Run(partition.leader, gathered)


@pytest.fixture
def wire(partition: Partition, run: Any) -> Iterator[Wire]:
    wire = Wire(partition, run)
    yield wire
    wire.close()


def test_the_checksum() -> None:
    rng = Random(1)
    for size in [*range(40), 1000, 4096, 65537]:
        data = rng.randbytes(size)
        assert crc32c(data) == packaged_crc32c(data)
        assert crc32c(memoryview(data)[size // 2 :]) == packaged_crc32c(data[size // 2 :])


@pytest.mark.parametrize("codec", [1, 2, 3, 4])
def test_more_records_than_the_codec_holds_are_left_to_the_ordinary_way(wire: Wire, run: Any, codec: int) -> None:
    data = bytearray(batch(*[b"%d" % number for number in range(20)], compression=codec))
    most = most_records(codec, len(data) - HEADER_SIZE)
    for count, taken in ((most, True), (most + 1, False), (2**31 - 1, False)):
        claim(data, count)
        whole = frame(9, bytes(data))
        assert (wire.receive(whole) == TAKEN) == taken
    assert len(run) == 1


# -- random requests, beside the ordinary way


class Producers:
    """Batches of idempotent producers, most of them the next one."""

    def __init__(self, rng: Random) -> None:
        self.rng = rng
        self.next = [0] * 4

    def triple(self, number: int, count: int) -> tuple[int, int, int]:
        chance = self.rng.random()
        if chance < 0.6:
            return (-1, -1, -1)
        sequence = self.next[number]
        if chance < 0.7:
            sequence = max(0, sequence + self.rng.choice([-1, 1, 5]))
        self.next[number] = sequence + count
        return (1000 + number, self.rng.choice([0, 0, 0, 0, 0, 1]), sequence)


def claim(data: bytearray, count: int) -> None:
    """Has the header say that there are so many records."""
    struct.pack_into(">i", data, LAST_OFFSET_DELTA_AT, count - 1)
    struct.pack_into(">i", data, COUNT_AT, count)
    patch_crc(data, 0)


def some_batch(rng: Random, producers: Producers, number: int) -> bytes:
    count = rng.choice([1, 1, 1, 2, 5, 16, 17])
    values = [rng.randbytes(rng.choice([0, 1, 60, 63, 64, 100, 130])) for _ in range(count)]
    data = batch(
        *values,
        timestamp=rng.choice([NOW - 5, NOW, NOW + 10**10]) if rng.random() < 0.05 else NOW,
        key=rng.choice([None, b"k"]),
        producer=producers.triple(number, count),
        compression=rng.choice([0, 0, 0, 0, 1, 2, 3, 4]),
    )
    chance = rng.random()
    if chance < 0.1:
        # Something else than a producer would send, with a good checksum: codecs, time types, counts, lengths.
        at = rng.choice([rng.randrange(8), 8, 11, 16, 21, 22, 23, 26, 35, 43, 51, 53, 57, 60, 61, 62, len(data) - 1])
        data[at] ^= 1 << rng.randrange(8)
        data[17:21] = packaged_crc32c(data[21:]).to_bytes(4, "big")
    elif chance < 0.13:
        claim(data, most_records(data[22] & 7, len(data) - HEADER_SIZE) + rng.choice([-1, 0, 1, 2]))
    elif chance < 0.15:
        data[rng.randrange(len(data))] ^= 1 << rng.randrange(8)
    elif chance < 0.18:
        data = data[: rng.randrange(len(data))]
    return bytes(data)


def some_frame(rng: Random, version: int, producers: Producers, number: int) -> bytes:
    whole = frame(version, some_batch(rng, producers, number), rng.randrange(-(2**31), 2**31))
    chance = rng.random()
    if chance < 0.05:
        changed = bytearray(whole)
        changed[rng.randrange(len(whole))] ^= 1 << rng.randrange(8)
        return bytes(changed)
    if chance < 0.08:
        return whole[: rng.randrange(1, len(whole))]
    if chance < 0.1:
        return whole + whole[: rng.randrange(1, len(whole) + 1)]
    if chance < 0.12:
        return frame(version, b"", 1)
    return whole


def must_be_taken(partition: Partition, whole: bytes) -> bool:
    """Whether a request that the ordinary way takes is one of those that lanes are for."""
    records = partition.records_in(whole)
    if len(whole) > 4096 or not is_plain(records):
        return False
    header = parse_header(records)
    return header.compression != 0 or header.count <= COUNTED_RECORDS_MAX


@pytest.mark.parametrize("version", VERSIONS)
def test_random_requests_leave_the_same_log_as_the_ordinary_way(version: int) -> None:
    rng = Random(version)
    ordinary, fast = Partition(version), Partition(version)
    gathered: list[Any] = []
    run = Run(fast.leader, gathered)
    producers = Producers(rng)
    taken_in_all = staged_in_all = 0
    for _ in range(150):
        wires = [Wire(fast, run) for _ in range(rng.randrange(1, 5))]
        others: list[tuple[Result | None, bytes]] = []
        taken: list[bytes] = []
        # Ordinary requests of a round are staged before what lanes have collected.
        for number, wire in enumerate(wires):
            whole = some_frame(rng, version, producers, number)
            got = wire.receive(whole, exactly=True)
            if got == TAKEN:
                taken.append(whole)
            else:
                assert bytes(wire.buffer[:got]) == whole[:got]
                assert got == len(whole)
                others.append((fast.serve(whole), whole))
        assert gathered == ([run] if taken else [])
        assert len(run) == len(taken)
        for result, whole in others:
            assert ordinary.serve(whole) == result
            assert not isinstance(result, int) or isinstance(result, ErrorCode) or not must_be_taken(ordinary, whole)
        assert all(is_plain(ordinary.records_in(whole)) for whole in taken)
        expected = [ordinary.serve(whole) for whole in taken]
        if taken:
            taken_in_all += len(taken)
            if fast.log.staging.stage_run(run, EPOCH, NOW) >= 0:
                staged_in_all += len(taken)
                assert [first for _, _, _, first, _ in run.requests()] == expected
                assert [last for *_, last in run.requests()][-1] == fast.log.next_offset - 1
            else:
                data = run.data()
                results, at = [], 0
                for _, _, size, _, _ in run.requests():
                    results.append(fast.append(data[at : at + size]))
                    at += size
                assert results == expected
                assert at == len(data) == run.size
            assert [correlation for _, correlation, *_ in run.requests()] == [
                int.from_bytes(whole[8:12], "big", signed=True) for whole in taken
            ]
        run.clear()
        gathered.clear()
        assert fast.bytes() == ordinary.bytes()
        assert fast.log.producers.snapshot() == ordinary.log.producers.snapshot()
        for wire in wires:
            wire.close()
    assert taken_in_all > 100
    assert staged_in_all > 50


@pytest.mark.parametrize("version", [7, 9])
def test_no_bytes_are_taken_for_a_request_that_are_none(version: int) -> None:
    """Prefixes of a good request, each with its own length as the frame's: nothing is read behind what was received."""
    partition = Partition(version)
    gathered: list[Any] = []
    whole = frame(version, batch(b"x" * 100))
    wire = Wire(partition, Run(partition.leader, gathered))
    for size in range(4, len(whole)):
        wire.buffer = bytearray(whole.ljust(65536, b"\0"))  # what an earlier request has left in the buffer
        cut = struct.pack(">i", size - 4) + whole[4:size]
        assert wire.receive(cut) == size
        assert wire.receive(cut, exactly=True) == size
    assert gathered == []
    wire.close()


def sealed(data: bytearray | memoryview) -> bytes:
    data[8:12] = (len(data) - 12).to_bytes(4, "big")
    data[17:21] = packaged_crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


def changed(at: int, form: str, value: int, *values: bytes, **options: Any) -> bytes:
    data = batch(*(values or (b"a", b"b")), **options)
    struct.pack_into(form, data, at, value)
    data[17:21] = packaged_crc32c(data[21:]).to_bytes(4, "big")
    return bytes(data)


OTHERS = {
    "a base offset": changed(0, ">q", 1),
    "a length of more": changed(8, ">i", 75),
    "another magic": changed(16, ">b", 1),
    "another checksum": bytes(batch(b"a", b"b"))[:-1] + b"?",
    "unknown attributes": changed(21, ">h", 0x100),
    "a control batch": changed(21, ">h", 0x20),
    "a transaction": bytes(batch(b"a", producer=(1, 0, 0), transactional=True)),
    "no records": changed(57, ">i", 0, b"", timestamp=NOW),
    "no records, compressed": sealed(bytearray(changed(23, ">i", -1, b"a", compression=4)[:57] + bytes(4) + b"block")),
    "more records than it says": changed(57, ">i", 1),
    "fewer than its last offset": changed(23, ">i", 2),
    "a producer without a sequence": bytes(batch(b"a", producer=(1, 0, -1))),
    "many records": bytes(batch(*[b"a"] * 17)),
    "a record of odd length": changed(61, ">b", 15, b"a"),
    "a record of negative length": changed(61, ">b", 1, b"a"),
    "a record that is too long": changed(61, ">b", 60, b"a"),
    "a record that is too short": changed(61, ">b", 4, b"a"),
    "a header alone": bytes(batch(b"a"))[:61],
}


@pytest.mark.parametrize("name", OTHERS)
@pytest.mark.parametrize("version", [7, 9])
def test_batches_that_are_left_to_the_ordinary_way(version: int, name: str) -> None:
    partition = Partition(version)
    gathered: list[Any] = []
    wire = Wire(partition, Run(partition.leader, gathered))
    whole = frame(version, OTHERS[name])
    assert wire.receive(whole, exactly=True) == len(whole)
    assert gathered == []
    good = frame(version, batch(b"a", b"b"))
    assert wire.receive(good, exactly=True) == TAKEN
    wire.close()


@pytest.mark.parametrize("version", [7, 9])
def test_frames_that_are_left_to_the_ordinary_way(version: int) -> None:
    partition = Partition(version)
    gathered: list[Any] = []
    wire = Wire(partition, Run(partition.leader, gathered))
    good = frame(version, batch(b"a", b"b"))
    longer, shorter = (struct.pack(">i", len(good) - 4 + by) + good[4:] for by in (1, -1))
    another_api, another_version = good[:5] + b"\1" + good[6:], good[:7] + b"\6" + good[8:]
    for whole in (longer, shorter, another_api, another_version, good + b"\0", good[:-1], frame(version, b"")):
        assert wire.receive(whole, exactly=True) == len(whole)
    assert wire.receive(frame(version, batch(b"x" * 4096)), exactly=True) > 4096
    assert gathered == []
    wire.close()


# -- answers


@pytest.mark.parametrize("version", VERSIONS)
def test_answers_are_those_of_the_template(version: int) -> None:
    partition = Partition(version)
    gathered: list[Any] = []
    run = Run(partition.leader, gathered)
    wires = [Wire(partition, run) for _ in range(3)]
    for number, wire in enumerate(wires):
        assert wire.receive(frame(version, batch(b"a", b"b"), 100 + number)) == TAKEN
    assert partition.log.staging.stage_run(run, EPOCH, NOW) == 7
    assert run.answer(0) == []
    template = AnswerTemplate(version, topic(version), 0)
    for number, wire in enumerate(wires):
        assert wire.client.recv(1000) == template.fill(100 + number, 1 + 2 * number, -1, 0)
        wire.close()


def test_an_answer_that_the_socket_does_not_take_is_handed_back(partition: Partition, run: Any, wire: Wire) -> None:
    assert wire.receive(frame(9, batch(b"a"), 5)) == TAKEN
    partition.log.staging.stage_run(run, EPOCH, NOW)
    with suppress(BlockingIOError):
        while True:
            wire.served.send(b"x" * 1000)
    ((token, rest),) = run.answer(0)
    assert token is wire
    assert rest == AnswerTemplate(9, "t", 0).fill(5, 1, -1, 0)


def test_a_peer_that_has_gone_is_told_of(partition: Partition, run: Any, wire: Wire) -> None:
    assert wire.receive(frame(9, batch(b"a"))) == TAKEN
    partition.log.staging.stage_run(run, EPOCH, NOW)
    wire.client.close()
    assert run.answer(0) == [(wire, None)]


def test_a_closed_lane_answers_nobody(partition: Partition, run: Any, wire: Wire) -> None:
    assert wire.receive(frame(9, batch(b"a"))) == TAKEN
    partition.log.staging.stage_run(run, EPOCH, NOW)
    wire.lane.close()
    assert run.answer(0) == []
    with pytest.raises(BlockingIOError):
        wire.client.recv(1)


# -- receiving


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


def test_a_request_that_came_in_two_pieces_is_left_to_others(wire: Wire, gathered: list[Any]) -> None:
    whole = frame(9, batch(b"a"))
    assert wire.receive(whole[:50]) == 50
    assert wire.receive(whole[50:]) == len(whole) - 50
    assert gathered == []


# -- memory


class Token:
    """Knows its lane, as a connection does."""

    lane: Any


def test_lanes_and_runs_go_when_nobody_knows_them(partition: Partition) -> None:
    gathered: list[Any] = []
    tokens = []
    for _ in range(50):
        run, token = Run(partition.leader, gathered), Token()
        wire = Wire(partition, run, token)
        token.lane = wire.lane
        assert wire.receive(frame(9, batch(b"a"))) == TAKEN
        wire.close()
        tokens.append(weakref.ref(token))
    del run, token, wire
    gathered.clear()
    assert are_gone(tokens)


def test_a_run_keeps_its_lanes_until_it_is_cleared(partition: Partition, run: Any) -> None:
    token = Token()
    wire = Wire(partition, run, token)
    assert wire.receive(frame(9, batch(b"a"))) == TAKEN
    known = weakref.ref(token)
    wire.close()
    del wire, token
    gc.collect()
    assert known() is not None
    run.clear()
    assert are_gone([known])


def test_what_makes_no_lane(partition: Partition, run: Any) -> None:
    good = [3, None, 9, True, PREFIX, TRAILER, bytes(60), 20, True, 1000, False]
    assert run.lane(*good)
    for at, bad in [(4, bytes(5000)), (5, bytes(5000)), (6, bytes(600)), (7, 7), (7, -1), (7, 37), (7, 2**31 - 1)]:
        with pytest.raises(ValueError, match="short"):
            run.lane(*good[:at], bad, *good[at + 1 :])
    with pytest.raises(TypeError):
        Run(partition.leader, ())
    with pytest.raises(TypeError):
        Lane()


def in_transaction(sequence: int, *, transactional: bool = True, producer_id: int = 7) -> bytes:
    return bytes(batch(b"v", producer=(producer_id, 0, sequence), transactional=transactional))


def test_a_lane_of_a_transactional_producer(partition: Partition, run: Any) -> None:
    """It takes batches in transactions and no others; the log takes them while the transaction is open."""
    partition.append(in_transaction(0))
    partition.log.write_staged()
    wire = Wire(partition, run, transactional=True)
    for other in (in_transaction(1, transactional=False), in_transaction(-1, producer_id=-1), batch(b"plain")):
        assert wire.receive(frame(9, other)) != TAKEN
    first = partition.log.next_offset
    assert wire.receive(frame(9, in_transaction(1))) == TAKEN
    assert run.producers() == [(0, 7, 0, 1, 1)]
    staging = partition.log.staging
    assert staging.stage_run(run, EPOCH, NOW) == first + 1
    partition.log.write_staged()
    run.clear()
    marked = control_batch(ControlType.ABORT, timestamp=NOW, producer_id=7, producer_epoch=0, coordinator_epoch=0)
    partition.log.stage(memoryview(bytearray(marked)), EPOCH, NOW, Origin.COORDINATOR)
    partition.log.write_staged()
    assert partition.log.aborted_transactions(0, partition.log.end_offset) == [(7, first - 1)]
    assert wire.receive(frame(9, in_transaction(2))) == TAKEN
    assert staging.stage_run(run, EPOCH, NOW) == -1, "it belongs to no transaction: the ordinary way refuses it"
    run.clear()
    wire.close()


def test_an_ordinary_lane_takes_nothing_of_a_transaction(partition: Partition, run: Any) -> None:
    partition.append(in_transaction(0))
    partition.log.write_staged()
    wire = Wire(partition, run)
    assert wire.receive(frame(9, in_transaction(1))) != TAKEN
    assert wire.receive(frame(9, in_transaction(1, transactional=False))) == TAKEN
    assert partition.log.staging.stage_run(run, EPOCH, NOW) == -1, "a transaction of this producer is open"
    run.clear()
    wire.close()


# -- what is answered later


def received(wire: Wire) -> list[tuple[int, int]]:
    """Correlation id and first offset of each answer that has come."""
    found = bytearray()
    with suppress(BlockingIOError):
        while piece := wire.client.recv(65536):
            found += piece
    template, answers = AnswerTemplate(9, "t", 0), []
    size = len(template.whole)
    assert len(found) % size == 0
    for at in range(0, len(found), size):
        (correlation,) = struct.unpack_from(">i", found, at + 4)
        (offset,) = struct.unpack_from(">q", found, at + template.offset_at)
        assert bytes(found[at : at + size]) == template.fill(correlation, offset, -1, 0)
        answers.append((correlation, offset))
    return answers


def held(run: Any, first: int, *requests: tuple[Wire, int]) -> Any:
    """One batch of each wire, stamped from this offset on, and taken out of the run."""
    for wire, correlation in requests:
        assert wire.receive(frame(9, batch(b"x"), correlation)) == TAKEN
    run.stamp(first, EPOCH)
    return run.hold()


def test_what_is_held_is_answered_as_far_as_it_is_told(partition: Partition, run: Any) -> None:
    wires = [Wire(partition, run) for _ in range(3)]
    later = held(run, 10, *((wire, 70 + number) for number, wire in enumerate(wires)))
    assert (len(run), len(later), [wire.lane.waiting for wire in wires]) == (0, 3, [1, 1, 1])
    # The run goes on, and so do its lanes.
    again = held(run, 13, (wires[0], 80))
    assert wires[0].lane.waiting == 2
    assert later.answer(10, 0, 99) == (0, [])
    assert later.answer(12, 0, 1) == (1, [])
    assert later.answer(12, 0, 99) == (1, [])
    assert [received(wire) for wire in wires] == [[(70, 10)], [(71, 11)], []]
    assert (len(later), later.answer(99, 0, 99), len(later)) == (1, (1, []), 0)
    assert again.answer(99, 0, 99) == (1, [])
    assert [received(wire) for wire in wires] == [[(80, 13)], [], [(72, 12)]]
    assert [wire.lane.waiting for wire in wires] == [0, 0, 0]
    for wire in wires:
        wire.close()


def test_what_is_held_is_taken_out(partition: Partition, run: Any) -> None:
    tokens = [object(), object()]
    wires = [Wire(partition, run, token) for token in tokens]
    later = held(run, 10, (wires[0], 1), (wires[1], 2))
    assert later.take(wires[0].lane) == [(tokens[0], 1, 10, 10)]
    assert later.take(wires[0].lane) == []
    assert (len(later), wires[0].lane.waiting, wires[1].lane.waiting) == (1, 0, 1)
    assert later.take(None) == [(tokens[1], 2, 11, 11)]
    assert (len(later), later.answer(99, 0, 99)) == (0, (0, []))
    assert [received(wire) for wire in wires] == [[], []]
    for wire in wires:
        wire.close()


def test_behind_what_a_socket_did_not_take_all_is_handed_back(partition: Partition, run: Any, wire: Wire) -> None:
    later = held(run, 10, (wire, 1))
    behind = held(run, 11, (wire, 2))
    wire.served.setsockopt(socket.SOL_SOCKET, socket.SO_SNDBUF, 1)
    filled = 0
    with suppress(BlockingIOError):
        while True:
            filled += wire.served.send(bytes(4096))
    template = AnswerTemplate(9, "t", 0)
    assert later.answer(99, 0, 99) == (1, [(wire, template.fill(1, 10, -1, 0))])
    while filled:
        filled -= len(wire.client.recv(filled))
    # There is room again, but what was handed back has not left.
    assert behind.answer(99, 0, 99) == (1, [(wire, template.fill(2, 11, -1, 0))])
    # It is asked to receive once nothing is unsent.
    last = held(run, 12, (wire, 3))
    assert last.answer(99, 0, 99) == (1, [])
    assert received(wire) == [(3, 12)]


def test_a_lane_holds_so_many_and_no_more(run: Any, wire: Wire) -> None:
    kept = [held(run, number, (wire, number)) for number in range(32)]
    whole = frame(9, batch(b"x"))
    assert (wire.lane.waiting, wire.receive(whole), len(run)) == (32, len(whole), 0)
    kept[0].answer(1, 0, 1)
    assert wire.receive(whole) == TAKEN


def test_closed_lanes_and_peers_that_have_gone(partition: Partition, run: Any) -> None:
    closed, gone = Wire(partition, run), Wire(partition, run)
    later = held(run, 10, (closed, 1), (gone, 2))
    closed.lane.close()
    gone.client.close()
    assert later.answer(99, 0, 99) == (2, [(gone, None)])
    assert received(closed) == []
    closed.close()


def test_what_is_held_keeps_its_lanes(partition: Partition, run: Any) -> None:
    token = Token()
    wire = Wire(partition, run, token)
    later = held(run, 10, (wire, 1))
    known = weakref.ref(token)
    wire.close()
    del wire, token
    gc.collect()
    assert known() is not None
    del later
    assert are_gone([known])


def test_the_shortest_time_of_its_requests(partition: Partition, run: Any, wire: Wire) -> None:
    assert run.shortest_ms == 2**31 - 1
    assert wire.receive(frame(9, batch(b"x"))) == TAKEN
    assert run.shortest_ms == 1000
    run.clear()
    assert run.shortest_ms == 2**31 - 1
