"""`.txnindex` and `.snapshot`: aborted transactions and producers' states."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Final

from ottla.ports.disk import Disk
from ottla.storage.dump.entries import Finding, TxnIndexEntry
from ottla.storage.formats import producer_snapshot
from ottla.storage.formats.errors import FormatError
from ottla.storage.formats.names import parse_segment_file
from ottla.storage.formats.producer_snapshot import ProducerEntry
from ottla.storage.log.indexes.txn_index import ENTRY as TXN_ENTRY

_CHUNK_ENTRIES: Final = 4096


def dump_txn_index(disk: Disk, path: str) -> Iterator[TxnIndexEntry | Finding]:
    file = disk.open_read_only(path)
    try:
        size, position = file.size(), 0
        previous: TxnIndexEntry | None = None
        while size - position >= TXN_ENTRY.size:
            data = file.read(TXN_ENTRY.size * _CHUNK_ENTRIES, position)
            data = data[: len(data) - len(data) % TXN_ENTRY.size]
            if not data:
                break
            for raw in TXN_ENTRY.iter_unpack(data):
                entry = TxnIndexEntry._make(raw)
                yield entry
                fault = _txn_fault(entry, previous)
                if fault:
                    yield Finding(path, position, fault)
                previous = entry
                position += TXN_ENTRY.size
        if position != size:
            yield Finding(path, position, f"{size - position} bytes are left, and an entry has {TXN_ENTRY.size}")
    finally:
        file.close()


def _txn_fault(entry: TxnIndexEntry, previous: TxnIndexEntry | None) -> str | None:
    if entry.version != 0:
        return f"the entry has version {entry.version}, and only version 0 is known"
    if not 0 <= entry.first_offset <= entry.last_offset:
        return f"the transaction from {entry.first_offset} to {entry.last_offset} is no range of offsets"
    if previous is not None and entry.last_offset <= previous.last_offset:
        return f"the transaction that ended at {entry.last_offset} follows one that ended at {previous.last_offset}"
    return None


def dump_snapshot(disk: Disk, path: str) -> Iterator[ProducerEntry | Finding]:
    try:
        entries = producer_snapshot.decode(disk.read_file(path))
    except FormatError as error:
        yield Finding(path, None, str(error))
        return
    name = parse_segment_file(path.rpartition("/")[2])
    seen: set[int] = set()
    for number, entry in enumerate(entries):
        yield entry
        position = producer_snapshot.SUMMED_FROM + producer_snapshot.COUNT.size + number * producer_snapshot.ENTRY.size
        if entry.producer_id in seen:
            yield Finding(path, position, f"producer {entry.producer_id} stands twice")
        if name is not None and entry.last_offset >= name.offset:
            yield Finding(
                path, position, f"producer {entry.producer_id} wrote offset {entry.last_offset} after this snapshot"
            )
        seen.add(entry.producer_id)
