"""Stretches of a log at random, of every shape that a partition can have, and what is to be read of them."""

from __future__ import annotations

import struct
from collections.abc import Iterator
from contextlib import contextmanager
from random import Random
from typing import Any

import pytest

from ottla.arrow import decoding, survey
from ottla.arrow.decoding import decode
from ottla.arrow.schema import COLUMNS
from ottla.arrow.survey import ReadBounds
from ottla.records.batch import (
    ATTRIBUTES_AT,
    COUNT_AT,
    CREATE_TIME,
    HEADER_SIZE,
    LAST_OFFSET_DELTA_AT,
    LOG_APPEND_TIME,
    iterate,
    patch_crc,
)
from ottla.records.compression import CODECS
from ottla.records.control import ControlType, control_batch
from ottla.records.record import Record, decode_batch, encode_batch

NOW = 1_764_000_000_000
SIZES = (0, 0, 1, 5, 20, 63, 64, 100, 700, 8191, 8192)
NAMES = ("", "trace", "\u00fc", "a" * 70, "\U0001f600")


@contextmanager
def as_compiled() -> Iterator[None]:
    """With compiled code, whatever the environment says."""
    built = pytest.importorskip("ottla.native.columns", exc_type=ImportError)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_compiled", built)
        patch.setattr(survey, "_compiled", built)
        yield


@contextmanager
def in_python() -> Iterator[None]:
    """As where nothing is compiled."""
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(decoding, "_compiled", None)
        patch.setattr(survey, "_compiled", None)
        yield


def some_bytes(chance: Random) -> bytes | None:
    size = chance.choice(SIZES)
    return None if not chance.randrange(5) else bytes([chance.randrange(256)]) * size


def some_record(chance: Random, offset: int) -> Record:
    headers = tuple((chance.choice(NAMES), some_bytes(chance)) for _ in range(chance.choice((0, 0, 0, 1, 2, 9))))
    time = NOW + chance.choice((0, 1, -1, 70, 10_000, -(10**9), 10**10))
    return Record(offset, chance.choice((time, time, time, -1, 0)), some_bytes(chance), some_bytes(chance), headers)


def emptied(base_offset: int, chance: Random) -> bytes:
    """What compaction leaves of a batch that had a producer's last sequence number."""
    raw = bytearray(
        encode_batch([Record(base_offset, NOW, None, b"")], base_offset=base_offset, compression=0)[:HEADER_SIZE]
    )
    struct.pack_into(">i", raw, 8, HEADER_SIZE - 12)
    struct.pack_into(">i", raw, COUNT_AT, 0)
    struct.pack_into(">i", raw, LAST_OFFSET_DELTA_AT, chance.randrange(5))
    raw[ATTRIBUTES_AT + 1] |= chance.choice((0, CODECS["lz4"], CODECS["zstd"]))
    patch_crc(raw, 0)
    return bytes(raw)


def some_batch(chance: Random, offset: int) -> bytes:
    kind = chance.randrange(12)
    if kind == 0:
        return emptied(offset, chance)
    if kind == 1:
        return control_batch(
            chance.choice((ControlType.COMMIT, ControlType.ABORT)),
            timestamp=NOW,
            producer_id=chance.randrange(3),
            producer_epoch=0,
            coordinator_epoch=0,
            base_offset=offset,
        )
    records = []
    base = offset
    for _ in range(chance.choice((1, 1, 2, 3, 7, 30))):
        records.append(some_record(chance, offset))
        offset += chance.choice((1, 1, 1, 1, 2, 64, 9000))
    return encode_batch(
        records,
        base_offset=base,
        compression=chance.choice((0, 0, *CODECS.values())),
        timestamp_type=chance.choice((CREATE_TIME, CREATE_TIME, CREATE_TIME, LOG_APPEND_TIME)),
        producer_id=chance.randrange(3),
        producer_epoch=0,
        base_sequence=0,
        leader_epoch=chance.randrange(3),
        transactional=not chance.randrange(3),
    )


def some_log(chance: Random, batches: int) -> bytes:
    """Batches one after the other, with gaps between them."""
    parts = []
    offset = chance.choice((0, 1, 2**33))
    for _ in range(batches):
        parts.append(some_batch(chance, offset))
        _, header = next(iterate(parts[-1], 0, len(parts[-1])))
        offset = header.next_offset + chance.choice((0, 0, 0, 1, 1000))
    return b"".join(parts)


def rows_by_objects(raw: bytes, first: int = 0, until: int = 2**63 - 1) -> list[tuple[Any, ...]]:
    """The rows of all columns, by the decoder of objects."""
    found: list[tuple[Any, ...]] = []
    for pos, header in iterate(raw, 0, len(raw)):
        if header.is_control:
            continue
        kind = int(header.is_log_append_time)
        for record in decode_batch(raw, pos):
            if first <= record.offset < until:
                headers = [{"key": name, "value": value} for name, value in record.headers]
                found.append((record.key, record.value, "t", 3, record.offset, record.timestamp * 1000, kind, headers))
    return found


def rows_of(batches: list[Any]) -> list[tuple[Any, ...]]:
    """The same of Arrow batches, each of which is looked at as a suspicious reader would."""
    found: list[tuple[Any, ...]] = []
    for batch in batches:
        batch.validate(full=True)
        columns = [
            (column.cast("int64") if name == "timestamp" else column).to_pylist()
            for name, column in zip(batch.schema.names, batch.columns, strict=True)
        ]
        found += zip(*columns, strict=True)
    return found


def read(raw: bytes, **options: Any) -> list[tuple[Any, ...]]:
    bounds = ReadBounds(**{name: options.pop(name) for name in list(options) if name in ReadBounds._fields})
    return rows_of(list(decode(raw, topic="t", partition=3, columns=COLUMNS, bounds=bounds, **options)))
