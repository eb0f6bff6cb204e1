"""Bytes as Kafka's own serializers write them."""

from __future__ import annotations

from typing import Any
from uuid import UUID

import pytest

from ottla.client.errors import SerializationFailed, SettingsError
from ottla.client.serializers import deserializer_for, serialized, serializer_for

PAIRS: list[tuple[str, Any, bytes]] = [
    ("str", "héllo", b"h\xc3\xa9llo"),
    ("int32", -2, b"\xff\xff\xff\xfe"),
    ("int64", 258, bytes(6) + b"\x01\x02"),
    ("float32", 1.5, b"\x3f\xc0\x00\x00"),
    ("float64", -2.0, b"\xc0" + bytes(7)),
    ("uuid", UUID(int=1), b"00000000-0000-0000-0000-000000000001"),
    ("json", {"a": [1, None, "ü"]}, '{"a":[1,null,"ü"]}'.encode()),
]


@pytest.mark.parametrize(("name", "value", "raw"), PAIRS)
def test_there_and_back(name: str, value: Any, raw: bytes) -> None:
    serializer, deserializer = serializer_for(name, "x"), deserializer_for(name, "x")
    assert serialized(value, serializer, "value") == raw
    assert deserializer is not None
    assert deserializer(raw) == value


def test_null_stays_null() -> None:
    for name, _, _ in PAIRS:
        assert serialized(None, serializer_for(name, "x"), "value") is None


def test_bytes_need_no_name() -> None:
    assert serialized(b"raw", None, "value") == b"raw"
    buffer = bytearray(b"abc")
    raw = serialized(buffer, None, "value")
    buffer[0] = 0
    assert raw == b"abc"  # what the caller writes later is not sent


@pytest.mark.parametrize(
    ("name", "value"), [("str", 5), ("int64", 2**63), ("int32", "5"), ("json", object()), (None, "text"), (None, 5)]
)
def test_what_cannot_be_serialized(name: str | None, value: Any) -> None:
    with pytest.raises(SerializationFailed, match="the key"):
        serialized(value, serializer_for(name, "x"), "key")


def test_a_callable_and_what_it_may_give() -> None:
    assert serialized(7, serializer_for(lambda n: b"n" * n, "x"), "value") == b"nnnnnnn"
    with pytest.raises(SerializationFailed, match="is an int, not bytes"):
        serialized(7, serializer_for(lambda n: n, "x"), "value")


def test_unknown_names() -> None:
    with pytest.raises(SettingsError, match=r"value\.serializer must be one of bytes, str"):
        serializer_for("arvo", "value.serializer")
    with pytest.raises(SettingsError, match=r"value\.serializer: avro:registry needs schema\.registry\.url"):
        serializer_for("avro", "value.serializer")
