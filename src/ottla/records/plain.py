"""What a plain batch is: one that a log takes as its producer sent it, after a few comparisons and its checksum.

- It is one whole batch of format 2, with nothing behind it.
- Its base offset is 0, and its count, one at least, is its last offset's distance and one more.
- Its attributes are among PLAIN_ATTRIBUTES: a codec and nothing else. Where its request repeats one in a transaction it
  has that bit besides, and a producer's id.
- Its records fit its bytes. Up to COUNTED_RECORDS_MAX uncompressed ones fill them exactly, by their lengths; all others
  are no more than the bytes can unfold to.
- With a producer's id it has a sequence number.
- Its checksum is right.

A topic's configuration adds what it allows (`usual_attributes` in `storage/log/append.py`, a largest size, a latest
time). This test runs for every batch of every client, and therefore stands as one expression in two more places: in
`stage_plain` of `storage/log/staging.py` (by `stage_in_transaction`, where the producer's transaction is open), and in
`native/lane.c`, which takes less. Both use the numbers and fields of this module, and
`tests/storage/log/test_plain_batches.py` and `tests/native/` hold both to `is_plain`.
"""

from __future__ import annotations

from struct import Struct
from typing import Final

from ottla.records.batch import (
    ATTRIBUTES_AT,
    CODEC_MAX,
    COMPRESSION_MASK,
    CRC_AT,
    HEADER_SIZE,
    MAGIC,
    TRANSACTIONAL,
    Readable,
    check_crc,
    header_fields,
    header_format,
    parse_header,
)
from ottla.records.compression import UNFOLDS_MAX
from ottla.records.errors import CorruptBatch
from ottla.records.record import RECORD_BYTES_MIN
from ottla.records.varint import SMALL_COUNT

#: A codec. What recognises requests by what stands before the batch must not let one pass that the request has no right
#: to: so the bit of transactions is none of these, and is asked for where the remembered request had it.
PLAIN_ATTRIBUTES: Final = frozenset(range(CODEC_MAX + 1))
#: Uncompressed batches of so few records have them counted with the header, since that costs less than the checksum.
COUNTED_RECORDS_MAX: Final = 16
#: So many bytes behind a header hold COUNTED_RECORDS_MAX records in any codec: fewer are looked at by `check_header`.
PLAIN_SIZE_MIN: Final = HEADER_SIZE + RECORD_BYTES_MIN

#: What these checks look at, and the two bytes behind the header, which are a lone record's length as a rule.
PLAIN_FIELDS: Final = Struct(
    header_format(
        "base_offset",
        "length",
        "magic",
        "crc",
        "attributes",
        "last_offset_delta",
        "max_timestamp",
        "producer_id",
        "count",
    )
    + "2s"
)
#: A lone record begins behind its length of two bytes, which `varint.SMALL` has for batches below LONE_SIZE_END.
LONE_RECORD_AT: Final = PLAIN_FIELDS.size
LONE_SIZE_END: Final = LONE_RECORD_AT + SMALL_COUNT
#: The producer's epoch and the sequence number of the first record.
SEQUENCE_FIELDS: Final = header_fields("producer_epoch", "base_sequence")
#: Base offset, length and leader epoch: what a log stamps. The checksum does not cover them.
STAMPED_FIELDS: Final = header_fields("base_offset", "length", "leader_epoch")
#: From here on the checksum covers a batch.
SUMMED_FROM: Final = ATTRIBUTES_AT
assert STAMPED_FIELDS.size < CRC_AT < SUMMED_FROM
#: Records whose lengths take more than two bytes are not counted through.
_LENGTH_END: Final = 2 * SMALL_COUNT


def is_plain(batch: Readable, *, in_transaction: bool = False) -> bool:
    """Whether all of the above holds: slow, and said in one place. The fast forms are held to it."""
    if len(batch) < PLAIN_SIZE_MIN:
        return False
    try:
        header = parse_header(batch)
    except CorruptBatch:
        return False
    if header.size != len(batch) or header.magic != MAGIC or header.base_offset != 0:
        return False
    if header.count < 1 or header.count != header.last_offset_delta + 1:
        return False
    if header.attributes ^ (TRANSACTIONAL if in_transaction else 0) not in PLAIN_ATTRIBUTES:
        return False
    if header.base_sequence < 0 if header.has_producer_id else in_transaction:
        return False
    if header.count <= COUNTED_RECORDS_MAX and not header.attributes & COMPRESSION_MASK:
        if not are_whole(batch, header.size, header.count):
            return False
    elif header.count * RECORD_BYTES_MIN > (header.size - HEADER_SIZE) * UNFOLDS_MAX[header.compression]:
        return False
    return check_crc(batch, 0, header.size)


def are_whole(batch: Readable, size: int, count: int) -> bool:
    """Whether `count` records of less than 8 KiB, by their lengths of one or two bytes, fill the batch exactly."""
    at, length_end = HEADER_SIZE, _LENGTH_END
    try:
        for _ in range(count):
            # Zigzag: a length that is not negative is even, and its double.
            if (length := batch[at]) < 128:
                at += 1
            else:
                length += (batch[at + 1] << 7) - 128
                at += 2
            if length & 1 or length >= length_end:
                return False
            at += length >> 1
    except IndexError:
        return False
    return at == size
