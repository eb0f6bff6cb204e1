"""Entries as lines of text, as Kafka's dump tool prints them.

The lines of a batch's records are made at once: most of each is the same for all of them.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ottla.ports.disk import Disk
from ottla.records.batch import NO_SEQUENCE, add_to_sequence
from ottla.records.errors import RecordError
from ottla.records.old_messages import OldMessage
from ottla.records.record import Headers, Record
from ottla.storage.dump.entries import BatchEntry, Entry, Finding, PropertyEntry, RecordEntry, fields
from ottla.storage.dump.log_file import (
    RECORDS_BATCH_BYTES_MAX,
    LogWalk,
    PassedOver,
    WalkedBatch,
    WantedDetail,
    batch_entry,
    end_offset,
)

_TRUTH: Final = ("false", "true")


def line_of(entry: Entry) -> str:
    if isinstance(entry, PropertyEntry):
        return f"{entry.name}={entry.value}\n"
    shown = " ".join(f"{name}: {_plain(value)}" for name, value in fields(entry) if value is not None)
    return f"| {shown}\n" if isinstance(entry, RecordEntry) else f"{shown}\n"


def _plain(value: Any) -> str:
    if isinstance(value, bool):
        return _TRUTH[value]
    if isinstance(value, bytes):
        return _content(value)
    if isinstance(value, list):
        return _one_line(f"[{','.join(map(str, value))}]")
    return _one_line(str(value))


def _content(value: bytes) -> str:
    return _one_line(value.decode("utf-8", "backslashreplace"))


def _one_line(text: str) -> str:
    # A record's own line breaks would make two lines of it.
    return text.replace("\r", "\\r").replace("\n", "\\n") if "\n" in text or "\r" in text else text


def log_lines(disk: Disk, path: str, *, records: bool) -> Iterator[str | Finding]:
    """A batch's lines, and what is wrong with it behind them."""
    file = disk.open_read_only(path)
    try:
        walk = LogWalk(file, path, end_offset(disk, path))
        for found in walk.all_batches(WantedDetail(records=records, lines=True)):
            if isinstance(found, PassedOver):
                yield found.lines
                continue
            if isinstance(found, Finding):
                yield found
                continue
            if isinstance(found, OldMessage):
                for line in walk.message_lines(found, records=records):
                    yield line if isinstance(line, Finding) else line_of(line)
                continue
            entry = batch_entry(found)
            yield _batch_line(entry)
            yield from walk.faults(found)
            if records and found.is_valid:
                yield from _record_lines(walk, found, entry)
        yield from walk.end()
    finally:
        file.close()


def _batch_line(batch: BatchEntry) -> str:
    """As `line_of` has it, without a list of its fields."""
    horizon = "" if batch.delete_horizon_ms is None else f" deleteHorizonMs: {batch.delete_horizon_ms}"
    return (
        f"baseOffset: {batch.base_offset} lastOffset: {batch.last_offset} count: {batch.record_count} "
        f"baseSequence: {batch.base_sequence} lastSequence: {batch.last_sequence} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} partitionLeaderEpoch: {batch.partition_leader_epoch} "
        f"isTransactional: {_TRUTH[batch.is_transactional]} isControl: {_TRUTH[batch.is_control]}{horizon} "
        f"position: {batch.position} {batch.timestamp_type}: {batch.timestamp} size: {batch.size} "
        f"magic: {batch.magic} compresscodec: {batch.compression} crc: {batch.crc} "
        f"isvalid: {_TRUTH[batch.is_valid]}\n"
    )


def _record_lines(walk: LogWalk, batch: WalkedBatch, entry: BatchEntry) -> Iterator[str | Finding]:
    if not entry.is_control and entry.size <= RECORDS_BATCH_BYTES_MAX:
        try:
            decoded = walk.decoded(batch)
        except RecordError:
            decoded = []
        if decoded and _is_rising(decoded, entry):
            yield _plain_lines(decoded, entry)
            return
    for line in walk.records(batch, entry):
        yield line if isinstance(line, Finding) else line_of(line)


def _is_rising(records: list[Record], batch: BatchEntry) -> bool:
    offsets = [batch.base_offset - 1, *[record.offset for record in records]]
    return offsets[-1] <= batch.last_offset and all(map(int.__lt__, offsets, offsets[1:]))


def _plain_lines(records: list[Record], batch: BatchEntry) -> str:
    """As `line_of` has them one by one."""
    before = f" position: {batch.position} {batch.timestamp_type}: "
    base, first = batch.base_offset, batch.base_sequence
    middle = (
        f" magic: {batch.magic} compresscodec: {batch.compression} producerId: {batch.producer_id} "
        f"producerEpoch: {batch.producer_epoch} sequence: "
    )
    behind = f" isTransactional: {_TRUTH[batch.is_transactional]} headerKeys: ["
    return "".join(
        [
            f"| offset: {offset}{before}{timestamp} isvalid: true"
            f" keysize: {-1 if key is None else len(key)} valuesize: {-1 if value is None else len(value)}"
            f"{middle}{NO_SEQUENCE if first == NO_SEQUENCE else add_to_sequence(first, offset - base)}"
            f"{behind}{_names(headers) if headers else ''}]"
            f"{'' if key is None else f' key: {_content(key)}'}"
            f"{'' if value is None else f' payload: {_content(value)}'}\n"
            for offset, timestamp, key, value, headers in records
        ]
    )


def _names(headers: Headers) -> str:
    return _one_line(",".join(name for name, _ in headers))
