"""Whether the records of a batch are sound, without an object for any of them.

A check of a segment that is sound spends its time here. What is not plainly sound is left to the caller, who decodes
the batch and says what is wrong with it.
"""

from __future__ import annotations

from ottla.records import varint
from ottla.records.batch import BatchHeader
from ottla.records.compression import DECOMPRESSED_BYTES_MAX, NONE, decompress
from ottla.records.errors import RecordError
from ottla.records.record import decode_headers


def are_sound(header: BatchHeader, chunk: bytes, start: int, end: int) -> bool:
    """Of the records between `start` and `end`. False where they are not, and wherever there is a doubt."""
    if header.base_offset < 0 or not 0 <= header.count <= header.last_offset_delta + 1:
        return False
    try:
        if not header.attributes or header.compression == NONE:
            return _are_whole(chunk, start, end, header.count, header.last_offset_delta)
        if start == end:
            return header.count == 0
        payload = bytes(decompress(header.compression, memoryview(chunk)[start:end], DECOMPRESSED_BYTES_MAX))
        return _are_whole(payload, 0, len(payload), header.count, header.last_offset_delta)
    except (RecordError, IndexError):
        return False


def _are_whole(data: bytes, pos: int, until: int, count: int, last_delta: int) -> bool:
    """The loop of `decode_batch` without its objects, for offsets that rise."""
    zigzag, read_folded = varint.ZIGZAG, varint.read_folded
    previous = -1
    for _ in range(count):
        if (size := data[pos]) < 128:
            pos += 1
        elif (byte := data[pos + 1]) < 128:
            size += (byte << 7) - 128
            pos += 2
        else:
            size, pos = read_folded(data, pos)
        end = pos + (size >> 1)
        if data[pos + 1] < 128:  # the distance in time, behind the attributes
            pos += 2
        elif data[pos + 2] < 128:
            pos += 3
        else:
            _, pos = varint.read_varlong(data, pos + 1)
        if (delta := data[pos]) < 128:
            delta = zigzag[delta]
            pos += 1
        elif (byte := data[pos + 1]) < 128 and not delta & 1:
            delta = (delta + (byte << 7) - 128) >> 1
            pos += 2
        else:
            delta, pos = varint.read_varint(data, pos)
        if not previous < delta <= last_delta:
            return False
        previous = delta
        if (length := data[pos]) < 128:
            pos += 1
        else:
            length, pos = read_folded(data, pos)
        if not length & 1:
            pos += length >> 1
        if (length := data[pos]) < 128:
            pos += 1
        elif (byte := data[pos + 1]) < 128:
            length += (byte << 7) - 128
            pos += 2
        else:
            length, pos = read_folded(data, pos)
        if not length & 1:
            pos += length >> 1
        if data[pos]:
            number, pos = varint.read_varint(data, pos)
            _, pos = decode_headers(data, pos, end, number)
        else:
            pos += 1
        if pos != end or size & 1 or end > until:
            return False
    return pos == until
