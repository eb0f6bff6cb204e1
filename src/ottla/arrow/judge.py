"""Records to Arrow by way of objects: slow and always right, in Python alone.

This is what compiled code is held to, what reads where there is none, and what says what is wrong with a batch.
"""

from __future__ import annotations

from typing import Any, Final, NamedTuple

from ottla.arrow.errors import UnrepresentableTime
from ottla.arrow.library import pa
from ottla.arrow.schema import HEADERS, KEY, OFFSET, TIMESTAMP, TYPES, VALUE
from ottla.arrow.survey import Place, ReadBounds
from ottla.records.batch import Readable
from ottla.records.errors import CorruptBatch, RecordError
from ottla.records.record import Record, decode_batch

_MICROSECONDS: Final = 1000
_LEAST: Final = -(2**63)
_MOST: Final = 2**63 - 1


class JudgedRows(NamedTuple):
    #: How many of the places were read.
    batches: int
    rows: int
    columns: dict[str, Any]


def judged(
    buf: Readable, places: list[Place], columns: tuple[str, ...], bounds: ReadBounds, *, offsets: bool
) -> JudgedRows:
    """The records of these batches. Raises what is wrong with the first; in front of any other fault it stops."""
    records: list[Record] = []
    size = done = 0
    for pos, *_ in places:
        try:
            found = _sound(buf, pos, columns, bounds)
        except RecordError:
            if not done:
                raise
            break
        records += found
        done += 1
        size += sum(len(one.key or b"") + len(one.value or b"") for one in found)
        if size > bounds.bytes_max:
            break
    wanted = (*columns, OFFSET) if offsets and OFFSET not in columns else columns
    made = {name: pa.array(_COLUMNS[name](records), TYPES[name]) for name in wanted if name in _COLUMNS}
    return JudgedRows(done, len(records), made)


def _sound(buf: Readable, pos: int, columns: tuple[str, ...], bounds: ReadBounds) -> list[Record]:
    """The batch's records within the bounds, all of which Arrow can hold."""
    found = []
    for record in decode_batch(buf, pos, check_crcs=bounds.check_crcs):
        if record.offset > _MOST:
            raise CorruptBatch("an offset of the batch exceeds 64 bits")
        if not bounds.first <= record.offset < bounds.until:
            continue
        if TIMESTAMP in columns and not _LEAST <= record.timestamp * _MICROSECONDS <= _MOST:
            raise UnrepresentableTime(
                f"the time of the record at offset {record.offset}, {record.timestamp} ms, is no 64-bit number of "
                "microseconds: leave the column timestamp out to read it"
            )
        found.append(record)
    return found


def _headers(records: list[Record]) -> list[list[dict[str, Any]]]:
    return [[{"key": name, "value": content} for name, content in record.headers] for record in records]


_COLUMNS: Final[dict[str, Any]] = {
    KEY: lambda records: [record.key for record in records],
    VALUE: lambda records: [record.value for record in records],
    OFFSET: lambda records: [record.offset for record in records],
    TIMESTAMP: lambda records: [record.timestamp * _MICROSECONDS for record in records],
    HEADERS: _headers,
}
