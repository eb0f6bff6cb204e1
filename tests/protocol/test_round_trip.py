"""Random messages of every API and version survive encoding and decoding, in one piece and as a view."""

from __future__ import annotations

import pytest
from tests.protocol.random_messages import Kind, kinds, random_message

from ottla.protocol.apis import APIS
from ottla.protocol.errors import EncodeError
from ottla.protocol.header import RequestHeader, decode_request_header, encode_request, encode_response


def round_trips(kind: Kind, seed: int) -> None:
    message = random_message(kind, seed)
    raw = message.encode(kind.version)
    again, end = kind.type.decode(raw, kind.version)
    assert end == len(raw), f"{kind.id}, seed {seed}"
    assert again == message, f"{kind.id}, seed {seed}"
    framed = memoryview(bytearray(b"\xff" * 5 + raw + b"\x00\xff"))
    again, end = kind.type.decode(framed, kind.version, 5)
    assert (again, end) == (message, 5 + len(raw)), f"{kind.id}, seed {seed}"


@pytest.mark.parametrize("name", [api.name for api in APIS.values()])
def test_random_messages_survive(name: str) -> None:
    for kind in kinds():
        if kind.schema.name == name:
            for seed in range(5):
                round_trips(kind, seed)


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.id)
def test_many_random_messages_survive(kind: Kind) -> None:
    for seed in range(1000, 1400):
        round_trips(kind, seed)


def test_frames_hold_header_and_body() -> None:
    for kind in kinds():
        if kind.schema.api_key < 0:
            continue  # only stored, never sent by itself
        message = random_message(kind, 77)
        if kind.struct.name.endswith("Request"):
            header = RequestHeader(api_key=kind.schema.api_key, api_version=kind.version, correlation_id=9)
            frame = encode_request(header, message)
            again, body = decode_request_header(frame, 4)
            assert again == header
        else:
            frame = encode_response(kind.schema.api_key, kind.version, 9, message)
            flexible = kind.schema.flexible(kind.version) and kind.schema.name != "ApiVersions"
            body = 9 if flexible else 8
            assert frame[4:8] == b"\x00\x00\x00\x09"
        assert int.from_bytes(frame[:4], "big") == len(frame) - 4
        assert frame[body:] == message.encode(kind.version), kind.id


def test_version_out_of_range_is_refused() -> None:
    for api in APIS.values():
        for cls in (api.request_type(), api.response_type()):
            assert cls.supports(api.min)
            assert not cls.supports(api.max + 1)
            for version in (api.min - 1, api.max + 1):
                with pytest.raises(EncodeError, match="no version"):
                    cls().encode(version)
