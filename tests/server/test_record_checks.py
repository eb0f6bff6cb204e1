"""Batches that are looked into: a small one in the loop, one with much in it by another process, and nobody notices.

Who is served meanwhile is counted, not timed: between a request and its answer another connection asks again and again.
"""

from __future__ import annotations

import select
import signal
import struct
import time
from collections.abc import Iterator
from contextlib import contextmanager
from functools import cache

import pytest
from tests.handlers.frames import batch, fetch, list_offset, produce, produce_request, values
from tests.searches import some
from tests.server.conftest import BrokerThread, Peer
from tests.server.test_connections import asks, until

from ottla.config.log import LogConfig
from ottla.handlers.calls import checks
from ottla.handlers.produce import checks as produce_checks
from ottla.handlers.produce.checks import ABANDONED_BYTES_MAX, ABANDONED_MAX
from ottla.model import ErrorCode, TopicPartition
from ottla.ports.real.workers import RealWorkers
from ottla.protocol.generated.delete_topics import DeleteTopicsRequest, DeleteTopicsResponse
from ottla.protocol.generated.list_offsets import (
    ListOffsetsPartition,
    ListOffsetsRequest,
    ListOffsetsResponse,
    ListOffsetsTopic,
)
from ottla.protocol.generated.produce import (
    PartitionProduceData,
    ProduceRequest,
    ProduceResponse,
    TopicProduceData,
)
from ottla.protocol.message import Message
from ottla.records.batch import HEADER_SIZE, LENGTH_AT, LOG_OVERHEAD, MAGIC_AT, parse_header, patch_crc
from ottla.records.builder import build_batch, encode_record
from ottla.records.compression import GZIP, LZ4, NONE, ZSTD
from ottla.records.errors import RecordError
from ottla.records.record import Record, decode_batch, encode_batch
from ottla.records.rewrite import recompress
from ottla.records.validate import AppendRules, check_records
from ottla.storage.log.append import IN_THE_LOOP

NOW = int(time.time() * 1000)
#: Others that are served while one batch is looked into. In the loop it would be none.
SERVED_MIN = 30
#: Enough for a second of looking.
MANY = 1_000_000
KEPT = {"compacted": {"cleanup_policy": "compact"}, "lz4": {"compression_type": "lz4"}}


def bomb(count: int, codec: int) -> bytes:
    """A few kilobytes with `count` times the same record: all but the first have a wrong offset."""
    record = encode_record(0, 0, b"k", None, ())
    return build_batch(
        record * count,
        count=count,
        last_offset_delta=count - 1,
        base_timestamp=NOW,
        max_timestamp=NOW + 5,
        attributes=codec,
    )


@cache
def honest(count: int, *, codec: int = ZSTD, keyless: int = -1) -> bytes:
    records = [Record(n, NOW + n % 7, None if n == keyless else b"%d" % (n % 100), b"v") for n in range(count)]
    return encode_batch(records, compression=codec)


def answered(peer: Peer) -> bool:
    return bool(select.select([peer.socket], [], [], 0)[0])


def served_until_answered(other: Peer, asker: Peer) -> int:
    served = 0
    while not answered(asker):
        assert asks(other)
        served += 1
    return served


@pytest.fixture
def asker(running: BrokerThread) -> Iterator[Peer]:
    with running.connect() as peer:
        peer.socket.settimeout(120)
        yield peer


@pytest.fixture
def topic(running: BrokerThread, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name, max_message_bytes="8000000")
    for kind, settings in KEPT.items():
        running.create_topic(f"{name}-{kind}", max_message_bytes="8000000", **settings)
    return name


@pytest.mark.in_turns
@pytest.mark.parametrize("count", [MANY, pytest.param(5_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("codec", [ZSTD, GZIP])
@pytest.mark.parametrize("kind", KEPT)
def test_others_are_served_while_a_bomb_is_looked_into(
    asker: Peer, peer: Peer, topic: str, kind: str, codec: int, count: int
) -> None:
    raw = bomb(count, codec)
    assert len(raw) < 100_000
    asker.send(asker.frame(produce_request(raw, f"{topic}-{kind}"), 8))
    assert served_until_answered(peer, asker) > SERVED_MIN
    answer = asker.answer(ProduceResponse, 8).responses[0].partition_responses[0]
    assert (answer.error_code, answer.error_message) == (
        ErrorCode.INVALID_RECORD,
        "record 1 of the batch has the offset 0",
    )
    assert list_offset(peer, -1, topic=f"{topic}-{kind}").offset == 0


@pytest.mark.parametrize("count", [MANY, pytest.param(5_000_000, marks=pytest.mark.slow)])
@pytest.mark.parametrize("codec", some([ZSTD, GZIP], ZSTD))
def test_others_are_served_while_a_bomb_is_searched_for_a_time(
    asker: Peer, peer: Peer, topic: str, codec: int, count: int
) -> None:
    assert produce(peer, bomb(count, codec), topic=topic).error_code == 0
    # No record has the time that the header claims. For the largest time the batch's last offset has to do.
    for timestamp, found in ((NOW + 3, (-1, -1)), (-3, (NOW + 5, count - 1))):
        asker.send(asker.frame(times_request(topic, timestamp), 7))
        assert served_until_answered(peer, asker) > SERVED_MIN
        answer = asker.answer(ListOffsetsResponse, 7).topics[0].partitions[0]
        assert (answer.error_code, answer.timestamp, answer.offset) == (0, *found)


def times_request(topic: str, *timestamps: int) -> Message:
    asked = [ListOffsetsPartition(partition_index=n, timestamp=each) for n, each in enumerate(timestamps)]
    return ListOffsetsRequest(replica_id=-1, topics=[ListOffsetsTopic(name=topic, partitions=asked)])


def test_others_are_served_while_the_late_records_of_a_bomb_are_named(asker: Peer, peer: Peer, topic: str) -> None:
    late = build_batch(
        encode_record(0, 0, b"k", None, ()) * MANY,
        count=MANY,
        last_offset_delta=MANY - 1,
        base_timestamp=NOW + 10**9,
        max_timestamp=NOW + 10**9,
        attributes=ZSTD,
    )
    asker.send(asker.frame(produce_request(late, topic), 8))
    assert served_until_answered(peer, asker) > SERVED_MIN
    answer = asker.answer(ProduceResponse, 8).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.INVALID_TIMESTAMP
    assert [each.batch_index for each in answer.record_errors] == list(range(1000))


@pytest.mark.parametrize("codec", [ZSTD, GZIP, NONE])
def test_an_honest_batch_is_stored_as_a_small_one_is(peer: Peer, topic: str, codec: int) -> None:
    raw = honest(200_000, codec=codec)
    for kind, expected in (("compacted", raw), ("lz4", recompress(raw, 0, LZ4))):
        name = f"{topic}-{kind}"
        assert produce(peer, raw, topic=name).base_offset == 0
        assert produce(peer, raw, topic=name).base_offset == 200_000
        stored = bytes(fetch(peer, 200_000, topic=name, max_bytes=1 << 24, partition_max_bytes=1 << 24).records)
        assert stored[MAGIC_AT:] == expected[MAGIC_AT:]
        assert parse_header(stored).base_offset == 200_000


@pytest.mark.parametrize("count", [IN_THE_LOOP.records - 1, 50_000])
def test_a_refusal_names_the_same_records_however_many_there_are(peer: Peer, topic: str, count: int) -> None:
    raw = honest(count, keyless=count // 2)
    with pytest.raises(RecordError) as caught:
        check_records(parse_header(raw), raw, 0, AppendRules(max_message_bytes=1 << 20, compacted=True), NOW)
    answer = produce(peer, raw, topic=f"{topic}-compacted")
    assert (answer.error_code, answer.error_message) == (caught.value.error_code, caught.value.message)
    named = [(each.batch_index, each.batch_index_error_message) for each in answer.record_errors]
    assert named == list(caught.value.record_faults)
    assert [index for index, _ in named] == [count // 2]


def test_what_a_topic_takes_is_known_for_much_as_for_little(running: BrokerThread, peer: Peer, topic: str) -> None:
    running.create_topic(f"{topic}-small", compression_type="uncompressed", max_message_bytes="100000")
    assert produce(peer, honest(30_000), topic=f"{topic}-small").error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert produce(peer, honest(5_000), topic=f"{topic}-small").error_code == 0


def test_the_broker_stamps_its_own_time(running: BrokerThread, peer: Peer, topic: str) -> None:
    name = f"{topic}-stamped"
    running.create_topic(name, cleanup_policy="compact", message_timestamp_type="LogAppendTime")
    before = int(time.time() * 1000)
    answer = produce(peer, honest(50_000), topic=name)
    assert answer.error_code == 0
    assert before <= answer.log_append_time_ms <= time.time() * 1000
    header = parse_header(bytes(fetch(peer, topic=name, partition_max_bytes=1 << 24, max_bytes=1 << 24).records))
    assert (header.max_timestamp, header.is_log_append_time) == (answer.log_append_time_ms, True)


def test_requests_of_a_connection_keep_their_order(asker: Peer, topic: str) -> None:
    """Small ones, which a lane knows, and between them two that wait."""
    name = f"{topic}-compacted"
    sizes = [1, 1, 1, 20_000, 1, 20_000, 1, 1]
    for size in sizes[:3]:
        assert produce(asker, honest(size), topic=name).error_code == 0
    for size in sizes[3:]:
        asker.send(asker.frame(produce_request(honest(size), name), 8))
    first = sum(sizes[:3])
    for number, size in enumerate(sizes[3:]):
        answer = asker.answer(ProduceResponse, 8).responses[0].partition_responses[0]
        assert asker.last_correlation == asker.correlation - len(sizes[3:]) + number + 1
        assert (answer.error_code, answer.base_offset) == (0, first)
        first += size


def test_other_requests_of_a_connection_wait(asker: Peer, topic: str) -> None:
    asker.send(asker.frame(produce_request(honest(20_000), f"{topic}-compacted"), 8))
    asker.send(asker.frame(times_request(f"{topic}-compacted", -1), 7))
    assert asker.answer(ProduceResponse, 8).responses[0].partition_responses[0].error_code == 0
    assert asker.answer(ListOffsetsResponse, 7).topics[0].partitions[0].offset == 20_000


@pytest.mark.parametrize("acks", [0, 1])
def test_a_request_for_several_topics_is_answered_when_all_are_known(asker: Peer, topic: str, acks: int) -> None:
    names = [f"{topic}-compacted", topic, f"{topic}-lz4"]
    data = [
        TopicProduceData(
            name=name, partition_data=[PartitionProduceData(index=n, records=honest(20_000)) for n in range(2)]
        )
        for name in names
    ]
    asker.send(asker.frame(ProduceRequest(acks=acks, timeout_ms=5000, topic_data=data), 8))
    unknown = ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    if acks:
        answer = asker.answer(ProduceResponse, 8)
        assert [[each.error_code for each in one.partition_responses] for one in answer.responses] == [[0, unknown]] * 3
    else:
        # Nobody can be told of the partitions that do not exist but by closing.
        with pytest.raises(EOFError):
            asker.receive()


def test_a_client_that_goes_away_harms_nobody(running: BrokerThread, peer: Peer, topic: str) -> None:
    name = f"{topic}-compacted"
    for acks in (0, 1):
        with running.connect() as gone:
            gone.send(gone.frame(produce_request(honest(100_000), name, acks=acks), 8))
            gone.send(gone.frame(times_request(name, 5), 7))
            assert asks(peer)
    assert produce(peer, honest(1), topic=name).error_code == 0
    assert produce(peer, honest(20_000), topic=name).error_code == 0
    until(lambda: running.look(lambda broker: len(broker._dispatcher._produce.checks.tasks)) == 0)


@pytest.mark.parametrize("codec", some([NONE, ZSTD], NONE))
def test_what_clients_leave_behind_is_bounded(running: BrokerThread, peer: Peer, topic: str, codec: int) -> None:
    count = 200_000
    raw = honest(count, codec=codec)
    for _ in range(30):
        with running.connect() as gone:
            gone.send(gone.frame(produce_request(raw, f"{topic}-compacted"), 8))
            assert asks(peer)

    def left() -> tuple[int, int]:
        return running.look(
            lambda broker: (
                broker._dispatcher._produce.checks._abandoned,
                broker._dispatcher._produce.checks._abandoned_bytes,
            )
        )

    most = 0
    while left() != (0, 0):
        requests, size = left()
        most = max(most, requests)
        assert requests <= ABANDONED_MAX
        assert size <= ABANDONED_BYTES_MAX
        assert asks(peer)
    assert most > 0
    assert 0 < list_offset(peer, -1, topic=f"{topic}-compacted").offset < 30 * count


def kill_the_looking_processes(running: BrokerThread) -> None:
    workers = running.ports.workers
    assert isinstance(workers, RealWorkers)
    for fed in (workers._checking, workers._checking_long):
        process = fed.child._process
        if process is not None:
            process.kill()


def test_a_process_that_dies_is_replaced_and_the_batch_looked_into_again(
    running: BrokerThread, asker: Peer, topic: str
) -> None:
    with looking_stands_still(running, asker, f"{topic}-compacted"):
        asker.send(asker.frame(produce_request(honest(20_000), f"{topic}-compacted"), 8))
        until_it_is_looked_into(running)
        kill_the_looking_processes(running)
    assert asker.answer(ProduceResponse, 8).responses[0].partition_responses[0].error_code == 0


def test_a_batch_that_its_process_dies_of_twice_is_to_be_sent_again(
    running: BrokerThread, asker: Peer, peer: Peer, topic: str
) -> None:
    assert produce(peer, bomb(MANY, ZSTD), topic=topic).error_code == 0
    asker.send(asker.frame(produce_request(bomb(MANY, ZSTD), f"{topic}-compacted"), 8))
    while not answered(asker):
        kill_the_looking_processes(running)
    answer = asker.answer(ProduceResponse, 8).responses[0].partition_responses[0]
    assert answer.error_code == ErrorCode.REQUEST_TIMED_OUT
    asker.send(asker.frame(times_request(topic, NOW + 3), 7))
    while not answered(asker):
        kill_the_looking_processes(running)
    assert asker.answer(ListOffsetsResponse, 7).topics[0].partitions[0].error_code == ErrorCode.REQUEST_TIMED_OUT
    assert produce(asker, honest(20_000), topic=f"{topic}-compacted").error_code == 0


@contextmanager
def looking_stands_still(running: BrokerThread, peer: Peer, topic: str) -> Iterator[None]:
    """The process that looks into batches: what is sent inside is not answered before the end."""
    assert produce(peer, honest(2000), topic=topic).error_code == 0  # it is there
    workers = running.ports.workers
    assert isinstance(workers, RealWorkers)
    process = workers._checking.child._process
    assert process is not None
    process.send_signal(signal.SIGSTOP)
    try:
        yield
    finally:
        process.send_signal(signal.SIGCONT)


def until_it_is_looked_into(running: BrokerThread) -> None:
    until(lambda: running.look(lambda broker: broker.services is not None and broker.services.checks._quick._taken))


def test_a_changed_configuration_is_what_counts(running: BrokerThread, asker: Peer, peer: Peer, topic: str) -> None:
    name = f"{topic}-compacted"

    def change(config: LogConfig) -> None:
        tp = TopicPartition(name, 0)
        running.look(lambda broker: broker.services and broker.services.replicas.leaders[tp].log.reconfigure(config))

    with looking_stands_still(running, peer, f"{topic}-lz4"):
        asker.send(asker.frame(produce_request(honest(20_000, keyless=7), name), 8))
        until_it_is_looked_into(running)
        change(LogConfig(max_message_bytes=8_000_000, compression_type="lz4"))
        assert not answered(asker)
    assert asker.answer(ProduceResponse, 8).responses[0].partition_responses[0].error_code == 0
    stored = bytes(fetch(asker, topic=name, max_bytes=1 << 24, partition_max_bytes=1 << 24).records)
    assert parse_header(stored).compression == LZ4


@pytest.mark.parametrize("again", [False, True])
def test_a_topic_that_is_deleted_meanwhile(
    running: BrokerThread, asker: Peer, peer: Peer, topic: str, again: bool
) -> None:
    name = f"{topic}-compacted"
    with looking_stands_still(running, peer, f"{topic}-lz4"):
        asker.send(asker.frame(produce_request(honest(20_000), name), 8))
        until_it_is_looked_into(running)
        deleted = peer.ask(DeleteTopicsRequest(topic_names=[name], timeout_ms=60_000), 5, DeleteTopicsResponse)
        assert deleted.responses[0].error_code == 0
        if again:
            running.create_topic(name, cleanup_policy="compact")
        assert not answered(asker)
    answer = asker.answer(ProduceResponse, 8).responses[0].partition_responses[0]
    expected = ErrorCode.NOT_LEADER_OR_FOLLOWER if again else ErrorCode.UNKNOWN_TOPIC_OR_PARTITION
    assert answer.error_code == expected
    if again:
        assert list_offset(peer, -1, topic=name).offset == 0


def test_a_time_is_found_deep_in_a_batch(peer: Peer, topic: str) -> None:
    records = [Record(n, NOW + n, b"k", b"v") for n in range(50_000)]
    assert produce(peer, encode_batch(records, compression=ZSTD), topic=topic).error_code == 0
    assert produce(peer, batch(b"later", timestamp=NOW + 60_000), topic=topic).error_code == 0
    for at in (0, 1, 40_000, 49_999):
        assert list_offset(peer, NOW + at, topic=topic).offset == at
    found = list_offset(peer, NOW + 50_000, topic=topic)
    assert (found.timestamp, found.offset, found.leader_epoch) == (NOW + 60_000, 50_000, 0)
    assert values(fetch(peer, 50_000, topic=topic)) == [b"later"]


def test_a_stored_batch_that_cannot_be_read_is_a_fault_of_the_disk(peer: Peer, topic: str) -> None:
    whole = bomb(5000, GZIP)
    broken = build_batch_from(whole, bytes(100))
    assert produce(peer, broken, topic=topic).error_code == 0
    assert list_offset(peer, NOW + 3, topic=topic).error_code == ErrorCode.KAFKA_STORAGE_ERROR


def build_batch_from(whole: bytes, block: bytes) -> bytes:
    """The batch with another block, and the right checksum."""
    changed = bytearray(whole[:HEADER_SIZE] + block)
    struct.pack_into(">i", changed, LENGTH_AT, len(changed) - LOG_OVERHEAD)
    patch_crc(changed, 0)
    return bytes(changed)


def test_what_is_stored_can_be_read(peer: Peer, topic: str) -> None:
    raw = honest(20_000)
    assert produce(peer, raw, topic=f"{topic}-lz4").error_code == 0
    stored = bytes(fetch(peer, topic=f"{topic}-lz4", max_bytes=1 << 24, partition_max_bytes=1 << 24).records)
    assert decode_batch(stored) == decode_batch(raw)


@pytest.mark.parametrize("kind", ["compacted", pytest.param("lz4", marks=pytest.mark.slow)])
def test_honest_ones_do_not_stand_behind_bombs(
    running: BrokerThread, peer: Peer, topic: str, kind: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Eight connections send bombs one after the other: what an honest one sends meanwhile is not behind them."""
    # Four seconds of a core's work stand before the last bomb, and on a busy machine far more than thirty.
    monkeypatch.setattr(checks, "WAIT_MS_MAX", 600_000)
    bombers = [running.connect() for _ in range(8)]
    raw, mine = bomb(MANY // 2, ZSTD), honest(20_000)
    assert produce(peer, mine, topic=f"{topic}-{kind}").error_code == 0
    for bomber in bombers:
        bomber.socket.settimeout(300)
        bomber.send(bomber.frame(produce_request(raw, f"{topic}-{kind}"), 8))
    for number in range(1, 4):
        assert produce(peer, mine, topic=f"{topic}-{kind}").base_offset == number * 20_000
    # Bombs that came before it are still being looked into.
    assert sum(answered(bomber) for bomber in bombers) < len(bombers)
    assert list_offset(peer, NOW + 3, topic=f"{topic}-{kind}").offset == 3
    for bomber in bombers:
        answer = bomber.answer(ProduceResponse, 8).responses[0].partition_responses[0]
        assert answer.error_code == ErrorCode.INVALID_RECORD
        bomber.socket.close()


def test_what_waits_to_be_looked_into_has_a_bound(
    running: BrokerThread, peer: Peer, topic: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    raw = honest(200_000, codec=NONE)
    monkeypatch.setattr(produce_checks, "WAITING_BYTES_MAX", 2 * len(raw))
    senders = [running.connect() for _ in range(6)]
    for sender in senders:
        sender.socket.settimeout(120)
        sender.send(sender.frame(produce_request(raw, f"{topic}-compacted"), 8))
    answers = [sender.answer(ProduceResponse, 8).responses[0].partition_responses[0].error_code for sender in senders]
    assert set(answers) <= {ErrorCode.NONE, ErrorCode.REQUEST_TIMED_OUT}
    assert answers.count(ErrorCode.NONE) >= 2
    for sender in senders:
        sender.socket.close()
    assert produce(peer, raw, topic=f"{topic}-compacted").base_offset == answers.count(ErrorCode.NONE) * 200_000
    assert running.look(lambda broker: broker._dispatcher._produce.checks._waiting_bytes) == 0
