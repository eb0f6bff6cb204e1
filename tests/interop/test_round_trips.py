"""Every client writes with every codec, every client reads it all back: one partition that holds them all."""

from __future__ import annotations

import time

import pytest
from confluent_kafka.admin import AdminClient

from tests.interop.clients import READERS, WRITERS, Row, write_confluent, write_ottla
from tests.interop.conftest import create_topic

CODECS = ("none", "gzip", "snappy", "lz4", "zstd")

#: Twenty-four days back, so that nothing between can pass by mistaking a broker's clock for a record's.
PAST_MS = int(time.time() * 1000) - 24 * 86_400_000

HEADERS = (("a", b"1"), ("a", b"2"), ("empty", b""), ("\u00e9\u4e2d", bytes(range(256))))


def rows(writer: str, codec: str) -> list[Row]:
    """Nulls, empties, headers of every shape, text that compresses and bytes that do not."""
    made = [
        Row(None, b"only a value", (), PAST_MS),
        Row(b"only a key", None, (), PAST_MS + 1),
        Row(b"", b"", (), PAST_MS + 2),
        Row(
            b"headers",
            b"x",
            (("a", b"1"), ("a", b"2"), ("empty", b""), ("\u00e9\u4e2d", bytes(range(256)))),
            PAST_MS + 3,
        ),
        Row(b"repeated", b"ottla " * 5000, (), PAST_MS + 4),
        Row(b"out of order", b"an earlier timestamp", (), PAST_MS - 5000),
    ]
    made += [
        Row(f"{writer}-{n}".encode(), f"{codec} {n} {n * n}".encode() * 3, (), PAST_MS + 5 + n) for n in range(100)
    ]
    return made


@pytest.mark.parametrize("codec", CODECS)
def test_what_each_client_writes_each_client_reads(bootstrap: str, topic: str, codec: str) -> None:
    expected: list[Row] = []
    for name, write in WRITERS.items():
        write(bootstrap, topic, rows(name, codec), codec)
        expected += rows(name, codec)
    for name, read in READERS.items():
        found = read(bootstrap, topic, len(expected))
        assert [record.row for record in found] == expected, name
        assert [record.offset for record in found] == list(range(len(expected))), name


def test_a_null_header_value_stays_null(bootstrap: str, topic: str) -> None:
    written = Row(b"k", b"v", (("none", None), ("empty", b"")), PAST_MS)
    for name in ("confluent", "ottla"):
        WRITERS[name](bootstrap, topic, [written], "none")
    for name in ("confluent", "aiokafka", "ottla"):
        assert [record.row for record in READERS[name](bootstrap, topic, 2)] == [written] * 2, name


@pytest.mark.parametrize("writer", ["confluent", "ottla"])
def test_records_beyond_a_megabyte(bootstrap: str, admin: AdminClient, new_name: str, writer: str) -> None:
    create_topic(admin, new_name, max_message_bytes="12000000")
    large = [Row(b"%d" % n, bytes([n]) * 5_000_000, (), PAST_MS) for n in range(3)]
    if writer == "ottla":
        write_ottla(bootstrap, new_name, large, "none", max_request_size=10_000_000)
    else:
        write_confluent(bootstrap, new_name, large, "none", message_max_bytes=10_000_000)
    for name, read in READERS.items():
        assert [record.row for record in read(bootstrap, new_name, 3)] == large, name
