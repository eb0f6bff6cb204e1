"""A remembered Produce recognises its like, whatever was recognised before, and nothing else."""

from __future__ import annotations

from collections.abc import Callable
from random import Random

import pytest
from tests.server.conftest import BrokerThread

from ottla.handlers.produce.memo import ProduceMemo
from ottla.model import TopicPartition

Make = Callable[..., BrokerThread]


def compact(value: int) -> bytes:
    out = bytearray()
    while value > 127:
        out.append(value & 127 | 128)
        value >>= 7
    return bytes((*out, value))


def frame(version: int, prefix: bytes, batch: bytes, trailer: bytes) -> bytes:
    length = compact(len(batch) + 1) if version >= 9 else len(batch).to_bytes(4, "big")
    return bytes(8) + prefix + length + batch + trailer


@pytest.mark.parametrize("version", [7, 9])
def test_frames_that_are_alike_and_others(make_broker: Make, version: int) -> None:
    with make_broker() as running:
        running.create_topic("t")
        leader = running.look(lambda broker: broker.services.replicas.leaders[TopicPartition("t", 0)])
    rng = Random(version)
    trailer = bytes(3) if version >= 9 else b""
    for _ in range(200):
        prefix = rng.randbytes(rng.randrange(1, 30))
        memo = ProduceMemo(version, prefix, trailer, -1, 1000, leader, "t", 0)
        for _ in range(20):
            batch = rng.randbytes(rng.choice([1, 60, 126, 127, 128, 200, 17_000]))
            whole = frame(version, prefix, batch, trailer)
            start = rng.choice([0, 4, 100])
            before, behind = rng.randbytes(start), rng.randbytes(rng.randrange(1, 20))
            data = bytearray(before + whole + behind)
            assert memo.is_like(data, start, start + len(whole))
            assert data[start + memo.records_at : start + memo.records_end] == batch
            batch_at = len(whole) - len(trailer) - len(batch)
            changed = rng.choice([*range(8, batch_at), *range(len(whole) - len(trailer), len(whole))])
            data[start + changed] ^= 1 << rng.randrange(8)
            assert not memo.is_like(data, start, start + len(whole)), f"byte {changed} of {whole!r}"
            data[start + changed : start + changed + 1] = whole[changed : changed + 1]
            for end in (start + len(whole) - 1, start + len(whole) + 1, start + 9, start + 8):
                assert not memo.is_like(data, start, end)
