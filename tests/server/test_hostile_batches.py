"""Batches that no producer should send, over a socket: each is refused with Kafka's error and leaves no trace.

`tests/records/verdict_cases.py` holds the checks themselves against Kafka's, case by case.
"""

from __future__ import annotations

import struct
import time

import pytest
from tests.handlers.frames import batch, fetch, list_offset, produce, produce_request, values
from tests.server.conftest import BrokerThread, Peer

from ottla.model import ErrorCode
from ottla.protocol.generated.delete_records import (
    DeleteRecordsPartition,
    DeleteRecordsRequest,
    DeleteRecordsResponse,
    DeleteRecordsTopic,
)
from ottla.protocol.generated.produce import ProduceResponse
from ottla.records import batch as layout
from ottla.records.batch import patch_crc
from ottla.records.compression import GZIP, NAMES, compress
from ottla.records.record import most_records
from ottla.records.validate import UNFOLDED_BYTES_MAX

HOUR_MS = 3_600_000
CORRUPT, INVALID = ErrorCode.CORRUPT_MESSAGE, ErrorCode.INVALID_RECORD
GOOD = batch(b"one", b"two", b"three")


def patched(at: int, form: str, value: int, *, whole: bytes = GOOD, checksum: bool = True) -> bytes:
    changed = bytearray(whole)
    struct.pack_into(form, changed, at, value)
    if checksum:
        patch_crc(changed, 0)
    return bytes(changed)


def counted(count: int, whole: bytes = GOOD) -> bytes:
    """The header's two words for how many there are say the same."""
    delta = patched(layout.LAST_OFFSET_DELTA_AT, ">i", count - 1, whole=whole)
    return patched(layout.COUNT_AT, ">i", count, whole=delta)


#: Of twenty records, more than are counted one by one.
TWENTY = [b"%d" % number for number in range(20)]
#: Records that no codec could hold in so few bytes: of the most that there could be, by one too many.
TOO_MANY = {
    f"more records than {NAMES[codec]} holds": counted(most_records(codec, len(whole) - layout.HEADER_SIZE) + 1, whole)
    for codec in NAMES
    if (whole := batch(*TWENTY, compression=codec))
}


BAD = {
    "crc": (patched(len(GOOD) - 1, ">b", 77, checksum=False), CORRUPT),
    "magic 3": (patched(16, ">b", 3), CORRUPT),
    "magic 1": (patched(16, ">b", 1), INVALID),
    "magic -1": (patched(16, ">b", -1), CORRUPT),
    "count above": (patched(layout.COUNT_AT, ">i", 4), INVALID),
    "count and last offset above": (counted(4), INVALID),
    "count and last offset below": (counted(2), INVALID),
    "count of two milliards": (counted(2**31 - 1), INVALID),
    "no records": (counted(0), INVALID),
    "negative count": (counted(-3), INVALID),
    "codec 5": (patched(21, ">h", 5), ErrorCode.UNKNOWN_SERVER_ERROR),
    "codec 7": (patched(21, ">h", 7), ErrorCode.UNKNOWN_SERVER_ERROR),
    "control": (patched(21, ">h", 0x20), INVALID),
    "length below a header": (patched(8, ">i", 5, checksum=False), CORRUPT),
    "length beyond the request": (patched(8, ">i", 2**30, checksum=False), INVALID),
    "negative length": (patched(8, ">i", -1, checksum=False), CORRUPT),
    "base offset": (patched(0, ">q", 9), INVALID),
    "cut short": (GOOD[:-1], INVALID),
    "a header and nothing else": (GOOD[:61], INVALID),
    "two batches": (GOOD + GOOD, INVALID),
    "two milliards in twelve bytes": (
        counted(2**31 - 1, patched(21, ">h", GZIP, whole=patched(8, ">i", 61, whole=GOOD[:73], checksum=False))),
        INVALID,
    ),
    **{name: (whole, INVALID) for name, whole in TOO_MANY.items()},
    # An hour is allowed, and this is read when the tests are found: a day is ahead still when their turn comes.
    "far ahead": (batch(b"x", timestamp=int(time.time() * 1000) + 24 * HOUR_MS), ErrorCode.INVALID_TIMESTAMP),
}


@pytest.fixture
def topic(running: BrokerThread, request: pytest.FixtureRequest) -> str:
    name = "".join(c if c.isalnum() else "-" for c in request.node.name)
    running.create_topic(name)
    return name


@pytest.mark.parametrize("name", BAD)
def test_a_bad_batch_is_refused_with_kafkas_error(running: BrokerThread, peer: Peer, topic: str, name: str) -> None:
    raw, error = BAD[name]
    with running.connect() as other:
        # The first is read by the request's fields, the others by the request before them.
        for version in (8, 12):
            assert produce(peer, batch(b"before"), version=version, topic=topic).error_code == 0
            assert produce(peer, raw, version=version, topic=topic).error_code == error
            assert produce(other, batch(b"beside"), version=version, topic=topic).error_code == 0
            assert produce(other, raw, version=version, topic=topic).error_code == error
    assert values(fetch(peer, topic=topic)) == [b"before", b"beside"] * 2
    assert list_offset(peer, -1, topic=topic).offset == 4


@pytest.mark.parametrize("settings", [{}, {"message_timestamp_type": "LogAppendTime"}], ids=["plain", "looked at"])
def test_a_transaction_that_nobody_began_is_refused(
    running: BrokerThread, peer: Peer, settings: dict[str, str]
) -> None:
    """No coordinator would ever end it, and readers of committed records would stand before it for ever."""
    name = f"transactions-{len(settings)}"
    running.create_topic(name, **settings)
    numbered = {"producer_id": 4242, "producer_epoch": 0, "base_sequence": 0}
    for options in ({}, numbered):
        raw = patched(21, ">h", layout.TRANSACTIONAL, whole=batch(b"never", **options))
        for version in (3, 8, 12):
            with running.connect() as other:
                # Where requests are recognised, and where they are not.
                for before in (0, 2):
                    for _ in range(before):
                        assert produce(other, batch(b"a"), version=version, topic=name).error_code == ErrorCode.NONE
                    refused = produce(other, raw, version=version, topic=name)
                    assert refused.error_code == ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
                    assert refused.base_offset == -1
    # One such batch fails the whole request, as Kafka has it.
    request = produce_request(batch(b"good"), topic=name)
    raw = patched(21, ">h", layout.TRANSACTIONAL)
    request.topic_data.append(produce_request(raw, topic="t").topic_data[0])
    answers = peer.ask(request, 8, ProduceResponse).responses
    assert {each.partition_responses[0].error_code for each in answers} == {
        ErrorCode.TRANSACTIONAL_ID_AUTHORIZATION_FAILED
    }
    end = list_offset(peer, -1, topic=name).offset
    assert end == 12
    read: list[bytes | None] = []
    while len(read) < end:
        found = values(fetch(peer, len(read), topic=name, isolation_level=1))
        assert found
        read += found
    assert read == [b"a"] * end


@pytest.mark.parametrize("version", [3, 6, 7])
def test_zstd_is_for_versions_that_know_it(running: BrokerThread, peer: Peer, topic: str, version: int) -> None:
    zstd, plain = batch(b"z" * 100, compression=4), batch(b"p" * 100)
    known = version >= 7
    error = ErrorCode.NONE if known else ErrorCode.UNSUPPORTED_COMPRESSION_TYPE
    assert produce(peer, zstd, version=version, topic=topic).error_code == error
    for _ in range(3):
        # Recognised by now.
        assert produce(peer, plain, version=version, topic=topic).error_code == ErrorCode.NONE
        assert produce(peer, zstd, version=version, topic=topic).error_code == error
    assert list_offset(peer, -1, topic=topic).offset == (7 if known else 3)


@pytest.mark.parametrize("acks", [-1, 1])
def test_more_replicas_than_there_are_cannot_be_asked_for(running: BrokerThread, peer: Peer, acks: int) -> None:
    """The topic asks for three in sync and has one: all of them are enough, as Kafka 4.3 has it."""
    name = f"insync-{acks % 3}"
    running.create_topic(name, min_insync_replicas="3")
    assert [produce(peer, batch(b"a"), topic=name, acks=acks).error_code for _ in range(3)] == [ErrorCode.NONE] * 3


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=lambda codec: NAMES[codec])
def test_a_bomb_is_refused_where_its_records_are_looked_at(
    running: BrokerThread, peer: Peer, topic: str, codec: int
) -> None:
    """`test_record_checks.py` has the bombs that are walked, and who is served meanwhile."""
    block = compress(codec, bytes(UNFOLDED_BYTES_MAX + 1))
    small = batch(b"x", compression=codec)
    bomb = patched(8, ">i", 49 + len(block), whole=small[:61] + block)
    assert len(bomb) < 8_000_000
    for name, settings in (("compacted", {"cleanup_policy": "compact"}), ("plain", {"compression_type": "gzip"})):
        running.create_topic(f"{topic}-{name}", max_message_bytes="8000000", **settings)
    assert produce(peer, bomb, topic=f"{topic}-compacted").error_code == ErrorCode.MESSAGE_TOO_LARGE
    assert list_offset(peer, -1, topic=f"{topic}-compacted").offset == 0
    # Who does not look inside stores it as it came.
    expected = ErrorCode.NONE if codec == GZIP else ErrorCode.MESSAGE_TOO_LARGE
    assert produce(peer, bomb, topic=f"{topic}-plain").error_code == expected


@pytest.mark.parametrize("codec", [1, 2, 3, 4], ids=lambda codec: NAMES[codec])
def test_a_block_that_does_not_decompress_is_refused_where_it_is_opened(
    running: BrokerThread, peer: Peer, topic: str, codec: int
) -> None:
    name = f"{topic}-compacted"
    running.create_topic(name, cleanup_policy="compact")
    whole = bytearray(batch(b"v" * 500, compression=codec))
    whole[61:71] = bytes(10)
    patch_crc(whole, 0)
    assert produce(peer, bytes(whole), topic=name).error_code == ErrorCode.UNKNOWN_SERVER_ERROR
    assert list_offset(peer, -1, topic=name).offset == 0


@pytest.mark.parametrize("offset", [3, 2**62, -2])
def test_records_are_deleted_up_to_offsets_that_exist(peer: Peer, topic: str, offset: int) -> None:
    assert produce(peer, batch(b"a", b"b"), topic=topic).error_code == 0
    asked = DeleteRecordsTopic(name=topic, partitions=[DeleteRecordsPartition(partition_index=0, offset=offset)])
    answer = peer.ask(DeleteRecordsRequest(topics=[asked], timeout_ms=60_000), 2, DeleteRecordsResponse)
    assert answer.topics[0].partitions[0].error_code == ErrorCode.OFFSET_OUT_OF_RANGE
    assert list_offset(peer, -2, topic=topic).offset == 0
