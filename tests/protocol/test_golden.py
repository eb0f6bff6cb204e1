"""Every API in every version, against bytes that Apache Kafka's encoder made."""

from __future__ import annotations

import base64
import subprocess
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.golden_lines import FILES, PROGRAM, Body, bodies, headers, lines, wanted
from tools.java import java_command

from ottla.model import topic_id_text
from ottla.protocol.apis import APIS, request_header_version
from ottla.protocol.compile.shape import snake
from ottla.protocol.header import (
    RequestHeader,
    decode_request_header,
    decode_response_header,
    put_request_header,
    put_response_header,
    request_body_start,
)
from ottla.protocol.message import Message, Structure


def message_type(body: Body) -> type[Message]:
    api = next(api for api in APIS.values() if api.name == body.name)
    return api.request_type() if body.kind == "Request" else api.response_type()


def test_golden_bytes_are_there_for_every_version() -> None:
    have = {(body.name, body.kind, body.version) for body in bodies()}
    need = {
        (api.name, kind, version)
        for api in APIS.values()
        for kind in ("Request", "Response")
        for version in range(api.min, api.max + 1)
    }
    assert have == need


@pytest.mark.parametrize("name", [api.name for api in APIS.values()])
def test_golden_bytes_say_the_same_to_us(name: str) -> None:
    for body in bodies():
        if body.name != name:
            continue
        for buffer in (body.raw, memoryview(body.raw)):
            message, end = message_type(body).decode(buffer, body.version)
            assert end == len(body.raw), body.id
            assert message.encode(body.version) == body.raw, body.id
            assert_same(message, body.fields, body.id)
        shifted, end = message_type(body).decode(b"???" + body.raw, body.version, 3)
        assert shifted == message, body.id
        assert end == len(body.raw) + 3, body.id


def assert_same(ours: Structure, theirs: dict[str, Any], where: str) -> None:
    """Compares with Kafka's JSON, which leaves out tagged fields with their default and fields of other versions."""
    seen = {"unknown_tags"}
    for key, value in theirs.items():
        if key.endswith("SizeInBytes"):
            name = snake(key.removesuffix("SizeInBytes"))
            assert len(getattr(ours, name)) == value, f"{where}.{name}"
        else:
            name = snake(key)
            assert_same_value(getattr(ours, name), value, f"{where}.{name}")
        seen.add(name)
    default = type(ours)()
    for name in set(ours.__slots__) - seen:
        assert getattr(ours, name) == getattr(default, name), f"{where}.{name}"


def assert_same_value(ours: Any, theirs: Any, where: str) -> None:
    if isinstance(ours, Structure):
        assert_same(ours, theirs, where)
    elif isinstance(ours, list):
        assert len(ours) == len(theirs), where
        for index, (mine, other) in enumerate(zip(ours, theirs, strict=True)):
            assert_same_value(mine, other, f"{where}[{index}]")
    elif isinstance(ours, bytes | memoryview):
        if len(ours) == 16 and len(theirs) == 22:
            assert topic_id_text(bytes(ours)) == theirs, where
        else:
            assert ours == base64.b64decode(theirs), where
    else:
        assert ours == theirs, where


def test_unknown_tags_of_kafka_are_kept() -> None:
    full = [body for body in bodies() if body.variant == "FULL" and body.name == "CreateTopics" and body.version == 7]
    assert len(full) == 2
    for body in full:
        message, _ = message_type(body).decode(body.raw, 7)
        assert getattr(message, "unknown_tags")  # noqa: B009 - the base class has no fields


def test_headers_are_those_of_kafka() -> None:
    seen = set()
    for line in headers():
        version = request_header_version(line.key, line.version)
        seen.add(version)
        header, end = decode_request_header(line.request)
        assert end == len(line.request) == request_body_start(line.request), line
        assert (header.api_key, header.api_version) == (line.key, line.version)
        assert header.correlation_id == 0x01020304 + line.version
        assert header.client_id == ("client-\u00e9" if version >= 1 and line.version % 2 == 0 else None)
        assert header.unknown_tags == ({200: b"\x01\x02\x03"} if version == 2 and line.version % 3 == 0 else {})
        again = bytearray()
        put_request_header(again, header)
        assert again == line.request

        correlation_id, tags, end = decode_response_header(line.response, line.key, line.version)
        assert (correlation_id, dict(tags), end) == (-5 - line.version, {}, len(line.response)), line
        again = bytearray()
        put_response_header(again, line.key, line.version, correlation_id)
        assert again == line.response
    assert seen == {0, 1, 2}


def test_header_repr_names_its_fields() -> None:
    header = RequestHeader(api_key=3, api_version=9, correlation_id=1, client_id="c")
    assert repr(header) == "RequestHeader(api_key=3, api_version=9, client_id='c', correlation_id=1)"


@pytest.mark.java
@pytest.mark.slow  # the jars stay as they are
@pytest.mark.parametrize("kafka", sorted(FILES))
def test_kafka_still_says_the_golden_bytes(kafka: str, kafka_jars: Path, kafka39_jars: Path) -> None:
    if kafka == "3.9":  # its client comes without the JSON library that its converters need
        classes = [*kafka39_jars.glob("*.jar"), *kafka_jars.glob("jackson-*.jar"), *kafka_jars.glob("slf4j-*.jar")]
    else:
        classes = [*kafka_jars.glob("*.jar")]
    path = ":".join(str(jar) for jar in sorted(classes))
    command = java_command(path, str(PROGRAM))
    said = subprocess.run(command, input=wanted(kafka).encode(), capture_output=True, check=True, timeout=120)
    new = said.stdout.decode().splitlines()
    assert len(new) > 100
    assert set(new) <= set(lines())
    assert len(lines()) == sum(3 * 2 * count + count for count in [sum(api.max - api.min + 1 for api in APIS.values())])
