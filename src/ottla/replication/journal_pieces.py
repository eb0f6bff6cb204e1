"""A journal's log in pieces of whole batches, as a coordinator loads it."""

from __future__ import annotations

from typing import Final

from ottla.ports import Workers
from ottla.records.batch import HEADER_SIZE, LOG_OVERHEAD, MAGIC, MAGIC_AT, header_fields
from ottla.storage.errors import CorruptLog, OffsetOutsideLog, StorageFault
from ottla.storage.log.cold_reads import missing_place, missing_producers
from ottla.storage.log.log import Log

#: Read at once: the reader works through a piece without a pause.
_PIECE_BYTES_MAX: Final = 256 * 1024

_LOCATION: Final = header_fields("base_offset", "length")
_LAST_DELTA: Final = header_fields("last_offset_delta")


async def read_piece(log: Log, offset: int, end: int, bytes_max: int, workers: Workers) -> bytes | None:
    """What begins at the offset, not yet cut to whole batches. Empty where there is nothing from there to the end,
    since compaction has removed it; None where this log does not have the offset any more, and another may."""
    while (missing := missing_place(log, offset, end)) is not None:
        await workers.thread(missing.run)
        missing.take()
        if log.is_abandoned:
            return None
        if missing.fault is not None:
            raise missing.fault
    try:
        found = log.read(offset, min(_PIECE_BYTES_MAX, bytes_max), end)
    except OffsetOutsideLog:
        return None
    if found.file is None:
        return b"" if end <= log.end_offset else None
    found.file.lease()
    try:
        if data := await workers.thread(found.read):
            return data
        raise CorruptLog(log.tp, log.directory, found.position, f"the file ends before offset {offset}")
    except OSError as error:
        raise StorageFault.of(log.directory, error) from error
    finally:
        found.file.release()


async def read_producers(log: Log, workers: Workers) -> None:
    """Reads what the log knows of its transactional producers: each of their writes looks it up, and may not wait for
    the disk. Raises StorageFault."""
    while (missing := missing_producers(log)) is not None:
        await workers.thread(missing.run)
        missing.take()
        if log.is_abandoned:
            return
        if missing.fault is not None:
            raise missing.fault


def whole_batches(data: bytes, offset: int) -> tuple[int, int]:
    """How many bytes the whole batches at the front take, and the offset behind them; (0, offset) where none is."""
    at, size = 0, len(data)
    while size - at > MAGIC_AT:
        base, length = _LOCATION.unpack_from(data, at)
        following = at + LOG_OVERHEAD + length
        if length <= MAGIC_AT - LOG_OVERHEAD or following > size:
            break
        is_batch = data[at + MAGIC_AT] == MAGIC and length + LOG_OVERHEAD >= HEADER_SIZE
        # A message of before Kafka 0.11 has its own offset, or that of the last one inside.
        offset = base + 1 + (_LAST_DELTA.unpack_from(data, at)[0] if is_batch else 0)
        at = following
    return at, offset
