"""Fills a shard from its partition's log, a little at a time: others are served between any two slices."""

from __future__ import annotations

import asyncio
from collections.abc import Iterator
from typing import Final

from ottla import logs
from ottla.coordinators.caller import Now
from ottla.coordinators.journal import Journal
from ottla.coordinators.shard import Shard
from ottla.model import NO_PRODUCER_ID
from ottla.ports.clock import Clock
from ottla.protocol.header import PLAIN_FRAME_BYTES_MAX
from ottla.records.batch import LOG_OVERHEAD, MAGIC, MAGIC_AT, BatchHeader, header_fields
from ottla.records.control import ControlType, parse_control
from ottla.records.errors import CorruptBatch, RecordError
from ottla.records.reading import open_batch

log_event = logs.logger("coordinators")

#: What is done without a pause, counted in offsets applied: about two milliseconds.
WORK_AT_ONCE_MAX: Final = 200
_BYTES_AS_A_RECORD: Final = 50
_STEP_AS_RECORDS: Final = 10

_unpack_location: Final = header_fields("base_offset", "length").unpack_from


async def load(journal: Journal, shard: Shard, clock: Clock) -> int:
    """Returns how many records there were. Raises what the journal raises."""
    records = 0
    async for chunk in journal.replay():
        for count in _apply(chunk, shard):
            records += count
            await asyncio.sleep(0)
    for _ in shard.loaded(Now(clock.wall_ms(), clock.monotonic_ms())):
        await asyncio.sleep(0)
    return records


def _apply(chunk: bytes, shard: Shard) -> Iterator[int]:
    """Applies whole batches; yields how many records it has applied whenever others should have their turn."""
    pos, done, work = 0, 0, 0
    while pos + MAGIC_AT < len(chunk):
        base_offset, length = _unpack_location(chunk, pos)
        if length <= MAGIC_AT - LOG_OVERHEAD:
            break  # Nothing behind it can be found; the journal hands out whole batches only.
        try:
            if chunk[pos + MAGIC_AT] != MAGIC:
                raise CorruptBatch(f"messages of format {chunk[pos + MAGIC_AT]}, of before Kafka 0.11")
            header, records = open_batch(chunk, pos)
            producer_id = header.producer_id if header.is_transactional else NO_PRODUCER_ID
            is_control = header.is_control
            for offset, key, value in records:
                if is_control:
                    _end_transaction(shard, header, key, value)
                elif value is not None and len(value) > PLAIN_FRAME_BYTES_MAX and not header.is_transactional:
                    for _ in shard.replay_long(key, value, offset):
                        work += _STEP_AS_RECORDS
                        if work >= WORK_AT_ONCE_MAX:
                            yield done
                            done = work = 0
                else:
                    shard.replay(key, value, offset, producer_id)
                done += 1
                # A group's record takes the longer the more members it has.
                work += 1 + (0 if value is None else len(value) // _BYTES_AS_A_RECORD)
                if work >= WORK_AT_ONCE_MAX:
                    yield done
                    done = work = 0
        except RecordError as fault:
            log_event.warning_limited(
                f"a batch of {shard.topic} was skipped",
                str(shard.partition),
                interval_s=1.0,
                partition=shard.partition,
                offset=base_offset,
                reason=str(fault),
            )
        pos += LOG_OVERHEAD + length
        # A batch costs about as much as a record, beside those that it holds.
        work += 1
        if work >= WORK_AT_ONCE_MAX:
            yield done
            done = work = 0
    yield done


def _end_transaction(shard: Shard, header: BatchHeader, key: bytes | None, value: bytes | None) -> None:
    marker = parse_control(key, value)
    if marker.ends_transaction:
        shard.end_transaction(header.producer_id, committed=marker.type is ControlType.COMMIT)
