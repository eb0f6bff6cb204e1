"""Messages of magic 0 and 1 as kafka-python writes them, whose writer is not ours, and what can be wrong with them."""

from __future__ import annotations

import contextlib
import random
import struct
import zlib

import pytest
from kafka.record.legacy_records import LegacyRecordBatchBuilder
from tests.records.generated_records import NOW

from ottla.records.compression import GZIP, LZ4, SNAPPY, compress
from ottla.records.errors import DecompressionTooLarge, RecordError
from ottla.records.old_messages import NO_TIMESTAMP, OldMessage, parse_message, unfold
from ottla.records.xxhash32 import xxhash32_short

RECORDS = [(b"k1", b"first"), (None, b"second"), (b"k3", None), (b"", b"")]


def written(magic: int, codec: int = 0, first: int = 0) -> bytes:
    builder = LegacyRecordBatchBuilder(magic, codec, 1 << 16)
    for number, (key, value) in enumerate(RECORDS):
        builder.append(first + number, timestamp=NOW + number, key=key, value=value)
    data = bytes(builder.build())
    # As a broker stores it: a wrapper has the offset of the last message in it.
    return data if codec == 0 else struct.pack(">q", first + len(RECORDS) - 1) + data[8:]


def message(
    *,
    magic: int = 1,
    attributes: int = 0,
    offset: int = 0,
    timestamp: int = 7,
    key: bytes | None = None,
    value: bytes | None = b"v",
) -> bytes:
    body = struct.pack(">bb", magic, attributes) + (struct.pack(">q", timestamp) if magic else b"")
    for part in (key, value):
        body += struct.pack(">i", -1 if part is None else len(part)) + (part or b"")
    return struct.pack(">qiI", offset, len(body) + 4, zlib.crc32(body)) + body


def wrapper(inner: bytes, *, magic: int = 1, codec: int = GZIP, offset: int = 0, more: int = 0) -> bytes:
    return message(magic=magic, attributes=codec | more, offset=offset, value=compress(codec, inner))


def read(data: bytes) -> list[OldMessage]:
    found, at = [], 0
    while at < len(data):
        one = parse_message(data, at, at)
        assert one.is_valid
        found += unfold(one)
        at += one.size
    return found


FORMS = [(0, 0), (0, GZIP), (0, SNAPPY), (1, 0), (1, GZIP), (1, SNAPPY), (1, LZ4)]


@pytest.mark.parametrize(("magic", "codec"), FORMS)
def test_what_another_writer_wrote_is_read(magic: int, codec: int) -> None:
    found = read(written(magic, codec))
    assert [(one.key, one.value) for one in found] == RECORDS
    assert [one.offset for one in found] == [0, 1, 2, 3]
    times = [NO_TIMESTAMP] * 4 if magic == 0 else [NOW, NOW + 1, NOW + 2, NOW + 3]
    assert [one.timestamp for one in found] == times


def test_the_first_lz4_frames_of_kafka_have_a_wrong_sum_in_their_header() -> None:
    """The frame's magic was summed with it, which no library accepts; a right one is read as well."""
    right = compress(LZ4, message(magic=0, value=b"inside"))
    end = 4 + 2
    wrong = right[:end] + bytes((xxhash32_short(right[:end]) >> 8 & 0xFF,)) + right[end + 1 :]
    assert wrong != right
    for frame in (wrong, right):
        assert [one.value for one in read(message(magic=0, attributes=LZ4, value=frame))] == [b"inside"]
    with pytest.raises(RecordError, match="lz4"):
        read(message(magic=1, attributes=LZ4, value=wrong))


def test_relative_offsets_count_back_from_the_wrappers() -> None:
    """A broker gave the wrapper the offset of its last message, and a cleaner may have taken some of the others."""
    inner = message(offset=1, value=b"a") + message(offset=4, value=b"b")
    assert [one.offset for one in read(wrapper(inner, offset=104))] == [101, 104]
    inner = message(magic=0, offset=101, value=b"a") + message(magic=0, offset=104, value=b"b")
    assert [one.offset for one in read(wrapper(inner, magic=0, offset=104))] == [101, 104]


def test_the_brokers_time_is_that_of_the_wrapper() -> None:
    inner = message(timestamp=1) + message(timestamp=2, offset=1)
    outer = wrapper(inner, more=0x08)
    assert [(one.timestamp, one.timestamp_type) for one in read(outer)] == [(7, "LogAppendTime")] * 2
    assert [one.timestamp for one in read(wrapper(inner))] == [1, 2]


def faulty(data: bytes, at: int, replacement: bytes) -> bytes:
    return data[:at] + replacement + data[at + len(replacement) :]


PLAIN = message(key=b"key", value=b"value")


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (PLAIN[:11], "11 bytes are left, and offset and size have 12"),
        (faulty(PLAIN, 8, struct.pack(">i", 13)), "its size 13 is less than a message's"),
        (faulty(PLAIN, 8, struct.pack(">i", -1)), "its size -1 is less than a message's"),
        (faulty(PLAIN, 8, struct.pack(">i", 14)), "is less than that of a message with a timestamp"),
        (PLAIN[:-1], "it has 30 bytes, and 29 are left"),
        (faulty(PLAIN, 8, struct.pack(">i", 2**31 - 1)), "it has 2147483647 bytes"),
        (faulty(PLAIN, 16, b"\x02"), "magic"),
        (faulty(PLAIN, 26, struct.pack(">i", -2)), "its key has -2 bytes"),
        (faulty(PLAIN, 26, struct.pack(">i", 13)), "its key has 13 bytes, and 12 are left"),
        (faulty(PLAIN, 26, struct.pack(">i", 10)), "the length of its value has 4"),
        (faulty(PLAIN, 33, struct.pack(">i", 4)), "1 bytes follow its value"),
    ],
)
def test_no_length_is_believed(data: bytes, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        parse_message(data, 0, 0)


def test_a_wrong_checksum_is_said_and_no_error() -> None:
    assert not parse_message(faulty(PLAIN, len(PLAIN) - 1, b"X"), 0, 0).is_valid


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (message(attributes=GZIP, value=None), "has no value"),
        (message(attributes=GZIP, value=compress(GZIP, b"")), "has none in it"),
        (message(attributes=GZIP, value=b"nothing"), "gzip"),
        (message(attributes=4, value=b"x"), "codec zstd does not exist in format 1"),
        (message(attributes=7, value=b"x"), "codec 7 does not exist in format 1"),
        (wrapper(wrapper(message())), "another one in it"),
        (wrapper(message(magic=0)), "of format 1 has one of format 0 in it"),
        (wrapper(faulty(PLAIN, len(PLAIN) - 1, b"X")), "checksum of the inner message 0 is wrong"),
        (wrapper(PLAIN[:-1]), "are left"),
        (message(magic=0, attributes=LZ4, value=b"\x04\x22\x4d\x18"), "lz4"),
    ],
)
def test_what_a_wrapper_may_not_hold(data: bytes, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        list(unfold(parse_message(data, 0, 0)))


def test_a_wrapper_unfolds_to_a_bound() -> None:
    bomb = wrapper(message(value=bytes(1 << 20)))
    assert len(bomb) < 3_000
    with pytest.raises(DecompressionTooLarge):
        list(unfold(parse_message(bomb, 0, 0), 1 << 19))


def test_whatever_bytes_come_nothing_but_record_errors_is_raised() -> None:
    random_bytes = random.Random(7)
    sound = [written(magic, codec) for magic, codec in FORMS]
    for _ in range(2_000):
        data = bytearray(random_bytes.choice(sound))
        for _ in range(random_bytes.randrange(1, 4)):
            data[random_bytes.randrange(len(data))] = random_bytes.randrange(256)
        del data[random_bytes.randrange(len(data) + 1) :]
        with contextlib.suppress(RecordError):
            list(unfold(parse_message(bytes(data), 0, 0)))


def test_the_hash_is_xxhashs() -> None:
    """Values of its own specification, and of the header of an lz4 frame with the usual descriptor."""
    assert xxhash32_short(b"") == 0x02CC5D05
    assert xxhash32_short(b"a") == 0x550D7456
    assert xxhash32_short(b"abc") == 0x32D153FF
    assert xxhash32_short(b"\x60\x40") >> 8 & 0xFF == 0x82
