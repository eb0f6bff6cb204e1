"""Keys and places of a batch's records, without reading the rest of them.

`scan_batch` fills eleven columns; the cleaner needs a key, or where a record ends, and needs it of every record of a
log: this is where most of a pass is spent. Lengths of one or two bytes are decoded in line, all others by `varint`.
Compiled code, where it is there, reads the keys of sound records, and leaves all others to the loop here.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import Final

from ottla.native import compiled_keys
from ottla.records import varint
from ottla.records.errors import CorruptBatch

#: Start and end of a record in its batch's payload.
Span = tuple[int, int]

_compiled: Final = compiled_keys()
_BEYOND: Final = "a record goes beyond the end of its batch"


def read_keys(data: bytes, at: int, end: int, count: int) -> list[bytes | None]:
    """The keys of the `count` records that fill `data` from `at` to `end`; raises CorruptBatch."""
    if _compiled is not None:
        found: list[bytes | None] | None = _compiled.read(data, at, end, count)
        if found is not None:
            return found
    keys: list[bytes | None] = []
    note, read_folded = keys.append, varint.read_folded
    try:
        for _ in range(count):
            if (size := data[at]) < 128:
                at += 2  # the attributes follow
            elif (byte := data[at + 1]) < 128:
                size += (byte << 7) - 128
                at += 3
            else:
                size, at = read_folded(data, at)
                at += 1
            following = at + (size >> 1) - 1
            while data[at] > 127:
                at += 1
            at += 1
            while data[at] > 127:
                at += 1
            if (length := data[at + 1]) < 128:
                at += 2
            else:
                length, at = read_folded(data, at + 1)
            if length & 1:
                note(None)
            else:
                length = at + (length >> 1)
                if length >= following:
                    raise CorruptBatch("a key goes beyond the end of its record")
                note(data[at:length])
            at = following
    except IndexError:
        raise CorruptBatch(_BEYOND) from None
    if at != end:
        raise CorruptBatch(f"its {count} records end {end - at} bytes before the batch")
    return keys


def read_offsets(data: bytes, at: int, count: int, base_offset: int, delta_max: int) -> list[int]:
    """The records' offsets, where they have holes. `read_keys` has shown that the records are whole."""
    offsets: list[int] = []
    read_varint, before = varint.read_varint, -1
    for _ in range(count):
        length, at = read_varint(data, at)
        following = at + length
        _, at = varint.read_varlong(data, at + 1)
        delta, _ = read_varint(data, at)
        if not before < delta <= delta_max:
            raise CorruptBatch("its offsets do not rise, or go beyond its last one")
        before = delta
        offsets.append(base_offset + delta)
        at = following
    return offsets


def find_spans(data: bytes, at: int, end: int, wanted: Sequence[int]) -> list[Span]:
    """Where the wanted records lie; `wanted` has a 1 for each of them, and a 0 for each of the others before them."""
    spans: list[Span] = []
    note = spans.append
    try:
        for is_wanted in wanted:
            if (size := data[at]) < 128:
                following = at + 1 + (size >> 1)
            elif (byte := data[at + 1]) < 128:
                following = at + 2 + ((size + (byte << 7) - 128) >> 1)
            else:
                size, begun = varint.read_folded(data, at)
                following = begun + (size >> 1)
            if is_wanted:
                note((at, following))
            at = following
    except IndexError:
        raise CorruptBatch(_BEYOND) from None
    if at > end:
        raise CorruptBatch(_BEYOND)
    return spans


def with_values(data: bytes, spans: Sequence[Span]) -> list[Span]:
    """Those records that are no tombstones: their value is not null."""
    try:
        return [span for span in spans if not _is_tombstone(data, span[0])]
    except IndexError:
        raise CorruptBatch(_BEYOND) from None


def _is_tombstone(data: bytes, at: int) -> bool:
    while data[at] > 127:
        at += 1
    at += 2  # the attributes lie between
    while data[at] > 127:
        at += 1
    at += 1
    while data[at] > 127:
        at += 1
    if (length := data[at + 1]) < 128:
        at += 2
    else:
        length, at = varint.read_folded(data, at + 1)
    if not length & 1:
        at += length >> 1
    return data[at] == 1
