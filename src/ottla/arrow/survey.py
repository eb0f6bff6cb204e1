"""Which batches of a stretch of bytes hold something to be read: found out by their headers.

What a header says is compared with what is there, and checksums with bytes: of batches that are compressed or that are
passed over here, of all others where their records are read. Compiled code does this where nothing is hidden by aborted
transactions; where it has a doubt, and for all the rest, there is the loop here.
"""

from __future__ import annotations

from typing import Final, NamedTuple

from ottla.native import compiled_columns
from ottla.records import legacy
from ottla.records.aborted import AbortedTransactions
from ottla.records.batch import (
    HEADER_SIZE,
    OFFSET_MAX,
    BatchHeader,
    Readable,
    check_crc,
    parse_header,
    validate_header,
)
from ottla.records.compression import DECOMPRESSED_BYTES_MAX
from ottla.records.errors import CorruptBatch, RecordError, UnsupportedMagic

#: One batch of records may unfold to DECOMPRESSED_BYTES_MAX, and Arrow counts bytes in 31 bits.
BYTES_MAX_MAX: Final = 2**31 - 1 - DECOMPRESSED_BYTES_MAX
ROWS_MAX_MAX: Final = 2**24
#: An offset behind all that there are.
NO_END: Final = OFFSET_MAX + 1

#: Position, size, codec and number of records of a batch.
Place = tuple[int, int, int, int]

_ENDED, _FULL, _IN_DOUBT, _PAST = range(4)
_compiled: Final = compiled_columns()


class ReadBounds(NamedTuple):
    """What is to be read, and how much of it at once."""

    #: Offsets below are left out.
    first: int = 0
    #: This offset and those above are left out.
    until: int = NO_END
    #: An Arrow batch has no more rows.
    rows_max: int = 65_536
    #: Batches are added to an Arrow batch while they unfold to no more than this together.
    bytes_max: int = 64 * 1024 * 1024
    check_crcs: bool = True

    def checked(self) -> ReadBounds:
        if not 1 <= self.rows_max <= ROWS_MAX_MAX:
            raise ValueError(f"rows_max must be from 1 to {ROWS_MAX_MAX}, not {self.rows_max}")
        if not 1 <= self.bytes_max <= BYTES_MAX_MAX:
            raise ValueError(f"bytes_max must be from 1 to {BYTES_MAX_MAX}, not {self.bytes_max}")
        return self


class Survey(NamedTuple):
    places: list[Place]
    #: Where the next survey begins.
    pos: int
    #: Behind the last batch that was looked at, of which nothing more is to be read; None where there was none.
    next_offset: int | None
    leader_epoch: int
    #: LogAppendTime or CreateTime, which all batches placed have in common.
    time_type: int
    #: Nothing more is to be found in these bytes.
    ended: bool


def survey(buf: Readable, pos: int, end: int, bounds: ReadBounds, aborted: AbortedTransactions | None) -> Survey:
    """Batches from `pos` on, as many as make an Arrow batch; raises what is wrong with the first, if anything is.

    `end` is that of `buf`.
    """
    if _compiled is None or (aborted is not None and aborted.any):
        return judged_survey(buf, pos, end, bounds, aborted)
    first, until, rows_max, bytes_max, check_crcs = bounds
    reason, places, stopped, _, next_offset, epoch, time_type = _compiled.survey(
        buf, pos, end, first, until, rows_max, bytes_max, check_crcs
    )
    if reason == _IN_DOUBT and stopped == pos:
        return judged_survey(buf, pos, end, bounds, aborted, places_max=1)
    return Survey(
        places,
        stopped,
        None if next_offset < 0 else next_offset,
        epoch,
        max(0, time_type),
        reason in {_ENDED, _PAST},
    )


def judged_survey(
    buf: Readable,
    pos: int,
    end: int,
    bounds: ReadBounds,
    aborted: AbortedTransactions | None,
    places_max: int | None = None,
) -> Survey:
    """The same in Python, with what compiled code leaves to it."""
    places: list[Place] = []
    rows = size = 0
    time_type = -1
    last: BatchHeader | None = None
    ended = False
    while True:
        try:
            header = _whole_batch(buf, pos, end)
            if header is None or header.base_offset >= bounds.until:
                ended = True
                break
            wanted = _is_wanted(buf, pos, header, bounds, aborted)
        except RecordError:
            if last is None:
                raise
            break  # what comes before it first: the next survey begins there
        if wanted:
            kind = int(header.is_log_append_time)
            if places and (
                rows + header.count > bounds.rows_max or size + header.size > bounds.bytes_max or kind != time_type
            ):
                break
            if places_max is not None and len(places) >= places_max:
                break
            places.append((pos, header.size, header.compression, header.count))
            rows, size, time_type = rows + header.count, size + header.size, kind
        last = header
        pos += header.size
    if last is None:
        return Survey(places, pos, None, -1, max(0, time_type), ended)
    return Survey(places, pos, last.next_offset, last.leader_epoch, max(0, time_type), ended)


def _whole_batch(buf: Readable, pos: int, end: int) -> BatchHeader | None:
    """The checked header of the batch at `pos`; None where the bytes end before the batch does."""
    if legacy.is_legacy(buf, pos):
        raise UnsupportedMagic(f"{legacy.describe(buf, pos, end)}, from before record batches, is not read")
    if end - pos < HEADER_SIZE:
        return None
    header = parse_header(buf, pos)
    if pos + header.size > end:
        return None
    validate_header(header)
    return header


def _is_wanted(
    buf: Readable, pos: int, header: BatchHeader, bounds: ReadBounds, aborted: AbortedTransactions | None
) -> bool:
    hidden = aborted is not None and aborted.hides(header)
    payload = header.size - HEADER_SIZE
    idle = hidden or header.is_control or header.last_offset < bounds.first or not (header.count or payload)
    if bounds.check_crcs and (idle or header.compression) and not check_crc(buf, pos, header.size):
        raise CorruptBatch(f"the checksum of the batch at offset {header.base_offset} does not match")
    if header.is_control and aborted is not None and aborted.any:
        aborted.note_marker(header, buf, pos, check_crcs=False)  # it is compared by now, if it is to be
    return not idle
