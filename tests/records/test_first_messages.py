"""The entry of Kafka 0.7: a length of N + 5, a magic, a checksum and N bytes."""

from __future__ import annotations

import contextlib
import random
import struct
import zlib

import pytest

from ottla.records.compression import GZIP, SNAPPY, compress
from ottla.records.errors import DecompressionTooLarge, RecordError
from ottla.records.first_messages import FirstMessage, parse_first_message, unfold_first


def entry(payload: bytes, *, magic: int = 0, codec: int = 0) -> bytes:
    attributes = struct.pack(">b", codec) if magic else b""
    body = struct.pack(">b", magic) + attributes + struct.pack(">I", zlib.crc32(payload)) + payload
    return struct.pack(">i", len(body)) + body


def parse(data: bytes) -> FirstMessage:
    return parse_first_message(data, 0, 0, 0)


def test_an_entry_is_its_length_its_magic_its_checksum_and_its_payload() -> None:
    data = bytes.fromhex("0000000a 00 3610a686") + b"hello"
    assert data == entry(b"hello")
    found = parse_first_message(b"??" + data, 2, 1_000, 40)
    assert found == FirstMessage(1_040, 40, 14, 0, 0, 0x3610A686, True, b"hello")
    found = parse(entry(b"hello", magic=1))
    assert (found.size, found.payload, found.is_valid) == (15, b"hello", True)


@pytest.mark.parametrize("codec", [GZIP, SNAPPY])
def test_a_compressed_entry_has_entries_in_it(codec: int) -> None:
    inner = entry(b"one") + entry(b"two", magic=1)
    outer = parse_first_message(entry(compress(codec, inner), magic=1, codec=codec), 0, 100, 0)
    assert [(one.offset, one.payload) for one in unfold_first(outer)] == [(100, b"one"), (100, b"two")]


@pytest.mark.parametrize(
    ("data", "words"),
    [
        (b"\0\0\0", "3 bytes are left, and a length has 4"),
        (struct.pack(">i", 4) + bytes(9), "its length 4 is less than 5"),
        (struct.pack(">i", -1) + bytes(9), "its length -1 is less than 5"),
        (struct.pack(">ib", 5, 1) + bytes(9), "its length 5 is less than 6"),
        (struct.pack(">i", 2**31 - 1) + bytes(9), "it has 2147483647 bytes, and 9 are left"),
        (struct.pack(">ib", 9, 2) + bytes(8), "magic"),
        (struct.pack(">iB", 9, 255) + bytes(8), "magic"),
    ],
)
def test_no_length_is_believed(data: bytes, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        parse(data)


@pytest.mark.parametrize(
    ("payload", "codec", "words"),
    [
        (compress(GZIP, b""), GZIP, "none in it"),
        (b"nothing", GZIP, "gzip"),
        (b"x", 3, "codec 3"),
        (compress(GZIP, entry(compress(GZIP, entry(b"x")), magic=1, codec=GZIP)), GZIP, "another one in it"),
        (compress(GZIP, entry(b"x")[:-1] + b"y"), GZIP, "checksum of the inner message at byte 0"),
        (compress(GZIP, entry(b"x")[:-1]), GZIP, "are left"),
    ],
)
def test_what_a_compressed_entry_may_not_hold(payload: bytes, codec: int, words: str) -> None:
    with pytest.raises(RecordError, match=words):
        list(unfold_first(parse(entry(payload, magic=1, codec=codec))))


def test_an_entry_unfolds_to_a_bound() -> None:
    with pytest.raises(DecompressionTooLarge):
        list(unfold_first(parse(entry(compress(GZIP, entry(bytes(1 << 20))), magic=1, codec=GZIP)), 1 << 19))


def test_whatever_bytes_come_nothing_but_record_errors_is_raised() -> None:
    random_bytes = random.Random(7)
    for _ in range(2_000):
        data = bytearray(entry(compress(GZIP, entry(b"one") + entry(b"two")), magic=1, codec=GZIP))
        for _ in range(random_bytes.randrange(1, 4)):
            data[random_bytes.randrange(len(data))] = random_bytes.randrange(256)
        with contextlib.suppress(RecordError):
            list(unfold_first(parse(bytes(data[: random_bytes.randrange(len(data) + 1)]))))
