"""`.txnindex`: the aborted transactions whose marker lies in a segment, for readers of committed records.

34 bytes an entry: version i16 = 0, producer id, first offset, last offset (the marker's), and the last stable offset
when the marker was written, all i64. A reader takes those that overlap what it fetches and drops their records itself.
"""

from __future__ import annotations

from collections.abc import Iterable
from struct import Struct
from typing import Final, NamedTuple

from ottla.storage.errors import DamagedIndex

VERSION: Final = 0
ENTRY: Final = Struct(">hqqqq")


class AbortedTransaction(NamedTuple):
    producer_id: int
    first_offset: int
    #: The abort marker's offset.
    last_offset: int
    #: Where readers of committed records could read up to once this marker was there. A search that has found an entry
    #: with this at or above its upper bound can stop: later entries begin behind the bound.
    last_stable_offset: int


def encode(entries: Iterable[AbortedTransaction]) -> bytes:
    return b"".join([ENTRY.pack(VERSION, *entry) for entry in entries])


def decode(data: bytes, base_offset: int) -> list[AbortedTransaction]:
    if len(data) % ENTRY.size:
        raise DamagedIndex(f"its {len(data)} bytes are no multiple of {ENTRY.size}")
    entries: list[AbortedTransaction] = []
    for version, *fields in ENTRY.iter_unpack(data):
        entry = AbortedTransaction._make(fields)
        if version != VERSION:
            raise DamagedIndex(f"it has an entry of version {version}")
        # The marker comes behind what it ends; zeros, as a power cut leaves them, say something else.
        if entry.last_offset < base_offset or entry.first_offset >= entry.last_offset:
            raise DamagedIndex(f"it names a transaction from {entry.first_offset} to {entry.last_offset}")
        if entries and entry.last_offset <= entries[-1].last_offset:
            raise DamagedIndex("its entries do not rise")
        entries.append(entry)
    return entries
