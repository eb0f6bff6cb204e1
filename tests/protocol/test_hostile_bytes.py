"""Bytes that are no message: decoders raise DecodeError, and nothing else, before they allocate what is claimed."""

from __future__ import annotations

import random
import tracemalloc
from collections.abc import Callable

import pytest
from tests.protocol.golden_lines import bodies
from tests.protocol.random_messages import Kind, kinds, random_message

from ottla.protocol.apis import APIS
from ottla.protocol.errors import DecodeError
from ottla.protocol.header import decode_request_header, decode_response_header, request_body_start

#: Bytes that mean something as a length, a count, a tag or null.
_LOADED = (0x00, 0x01, 0x02, 0x03, 0x7F, 0x80, 0xFE, 0xFF)


def survives(decode: Callable[[bytes], object], raw: bytes) -> bool:
    """Whether `raw` decodes; fails the test on anything but a value or DecodeError."""
    try:
        decode(raw)
    except DecodeError:
        return False
    return True


def noise(rng: random.Random, length: int) -> bytes:
    if rng.random() < 0.5:
        return rng.randbytes(length)
    return bytes(rng.choice(_LOADED) for _ in range(length))


def mutation(rng: random.Random, raw: bytes) -> bytes:
    out = bytearray(raw)
    for _ in range(rng.randint(1, 3)):
        at = rng.randrange(len(out) + 1)
        match rng.randrange(4):
            case 0:
                out[at : at + 1] = bytes((rng.choice(_LOADED),))
            case 1:
                out[at : at + 4] = rng.choice(
                    (b"\x7f\xff\xff\xff", b"\x80\x00\x00\x00", b"\xff\xff\xff\xff", b"\xff" * 5)
                )
            case 2:
                del out[at : at + rng.randint(1, 4)]
            case 3:
                out[at:at] = noise(rng, rng.randint(1, 4))
    return bytes(out)


def attack(kind: Kind, seed: int, rounds: int) -> None:
    rng = random.Random(seed)

    def decode(raw: bytes) -> object:
        return kind.type.decode(raw, kind.version)

    good = random_message(kind, seed).encode(kind.version)[:4000]
    for _ in range(rounds):
        survives(decode, noise(rng, rng.randrange(80)))
        survives(decode, mutation(rng, good))


@pytest.mark.parametrize("name", [api.name for api in APIS.values()])
def test_noise_and_mutations_raise_decode_errors_only(name: str) -> None:
    for kind in kinds():
        if kind.schema.name == name:
            attack(kind, seed=kind.version, rounds=12)


@pytest.mark.slow
@pytest.mark.parametrize("kind", kinds(), ids=lambda kind: kind.id)
def test_much_noise_and_many_mutations_raise_decode_errors_only(kind: Kind) -> None:
    for seed in range(100, 140):
        attack(kind, seed, rounds=60)


@pytest.mark.parametrize("name", [api.name for api in APIS.values()])
def test_truncated_golden_bytes_raise_decode_errors(name: str) -> None:
    api = next(api for api in APIS.values() if api.name == name)
    for body in bodies():
        if body.name != name or body.variant != "FULL":
            continue
        cls = api.request_type() if body.kind == "Request" else api.response_type()
        step = max(1, len(body.raw) // 60)
        for length in range(0, len(body.raw), step):
            with pytest.raises(DecodeError):
                cls.decode(body.raw[:length], body.version)


@pytest.mark.parametrize("name", [api.name for api in APIS.values()])
def test_mutated_golden_bytes_raise_decode_errors_only(name: str) -> None:
    api = next(api for api in APIS.values() if api.name == name)
    rng = random.Random(name)
    for body in bodies():
        if body.name != name or body.variant != "FULL":
            continue
        cls = api.request_type() if body.kind == "Request" else api.response_type()
        for _ in range(15):
            survives(lambda raw, cls=cls, version=body.version: cls.decode(raw, version), mutation(rng, body.raw))  # type: ignore[misc]


def test_claimed_counts_allocate_nothing() -> None:
    """The largest count and length, with few bytes behind: refused before a list or a string of that size exists."""
    tracemalloc.start()
    try:
        for kind in kinds():
            kind.type  # noqa: B018 - loads the module
            for claim in (b"\x7f\xff\xff\xff", b"\xff\xff\xff\xff\x07", b"\xff\xff\xff\x7f", b"\x00\x7f\xff\xff\xff"):
                before = tracemalloc.get_traced_memory()[0]
                tracemalloc.reset_peak()
                survives(lambda raw, kind=kind: kind.type.decode(raw, kind.version), claim * 8)  # type: ignore[misc]
                assert tracemalloc.get_traced_memory()[1] - before < 200_000, kind.id
    finally:
        tracemalloc.stop()


def test_noise_is_no_header() -> None:
    rng = random.Random(5)
    for _ in range(4000):
        key = rng.choice([*APIS, rng.randrange(-5, 200)])
        start = (key & 0xFFFF).to_bytes(2, "big") + rng.randrange(20).to_bytes(2, "big") + rng.randbytes(4)
        raw = (start + noise(rng, rng.randrange(40)))[: rng.randrange(60)]
        good = survives(decode_request_header, raw)
        quick = survives(request_body_start, raw)
        assert quick or not good, raw  # the quick one looks into neither the client id nor its encoding
        survives(lambda raw: decode_response_header(raw, 3, 9), raw)


def test_request_header_with_65_tagged_fields_is_refused() -> None:
    def header(count: int) -> bytes:
        tags = b"".join(bytes((tag, 0)) for tag in range(count))
        return b"\x00\x03\x00\x09\x00\x00\x00\x01\xff\xff" + bytes((count,)) + tags

    assert len(decode_request_header(header(64))[0].unknown_tags) == 64
    assert request_body_start(header(64)) == len(header(64))
    for read in (decode_request_header, request_body_start):
        with pytest.raises(DecodeError, match="more than 64"):
            read(header(65))


def test_request_header_of_an_unknown_api_is_refused() -> None:
    with pytest.raises(DecodeError, match="no API with key 999"):
        decode_request_header(b"\x03\xe7\x00\x00\x00\x00\x00\x01\xff\xff")


def test_request_header_of_an_unknown_version_is_read() -> None:
    """ApiVersions is answered even then, so its header is taken to have the newest form known, as in Kafka."""
    header, end = decode_request_header(b"\x00\x12\x7f\xff\x00\x00\x00\x07\x00\x01c\x00")
    assert (header.api_version, header.correlation_id, header.client_id, end) == (0x7FFF, 7, "c", 12)
