"""Whether a task's rows are those that it had before, in whatever order they come.

Of each row there is a CRC over its columns, one after the other; their sum does not depend on the order of rows, nor on
how they are cut into Arrow batches. That a shuffle hands a task its rows in another order is no difference.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from itertools import islice, repeat
from operator import xor
from typing import Any, Final, Protocol
from zlib import crc32

from ottla.arrow.library import pa
from ottla.arrow.schema import HEADERS

_MODULUS: Final = 2**63
#: Lengths and nulls of all rows count too, beside the CRC's 32 bits.
_PER_BYTE: Final = 0x9E3779B97F4A7C15
_PER_NULL: Final = 0xC2B2AE3D27D4EB4F
#: In place of a null.
_NULL: Final = b"\xffnull"


class TakenColumns(Protocol):
    def taken_from(self, rows: Any, first_row: int) -> Any: ...


class SummedColumns:
    """The columns that become records, and the checksum of all that were taken."""

    def __init__(self, columns: TakenColumns) -> None:
        self._columns = columns
        self.checksum = 0

    def taken_from(self, rows: Any, first_row: int) -> Any:
        taken = self._columns.taken_from(rows, first_row)
        self.checksum = (self.checksum + _sum(taken)) % _MODULUS
        return taken


def _sum(rows: Any) -> int:
    total = 0
    crcs: Iterable[int] = repeat(0, rows.num_rows)
    for number, name in enumerate(sorted(rows.schema.names), start=1):
        column = rows.column(name)
        total += number * _PER_NULL * column.null_count
        if name == HEADERS:
            crcs = _over_headers(crcs, column)
            continue
        values = _bytes(column)
        lengths = list(map(len, values))
        crcs = _over(crcs, values, lengths)
        total += number * _PER_BYTE * sum(lengths)
    return total + sum(crcs)


def _over(crcs: Iterable[int], values: list[bytes], lengths: list[int]) -> Iterator[int]:
    """With its length before each value: what stands at the end of one column is not at the begin of the next."""
    return map(crc32, values, map(xor, crcs, lengths))


def _over_headers(crcs: Iterable[int], column: Any) -> Iterator[int]:
    keys, values = map(_bytes, column.flatten().flatten())
    headers = zip(keys, values, strict=True)
    counts = column.value_lengths().fill_null(0).to_pylist()
    for before, count in zip(crcs, counts, strict=True):
        crc = before ^ count
        for key, value in islice(headers, count):
            crc = crc32(value, crc32(key, crc ^ len(key)) ^ len(value))
        yield crc


def _bytes(column: Any) -> list[bytes]:
    if pa.types.is_integer(column.type):
        column = column.cast(pa.string())
    if not (pa.types.is_binary(column.type) or pa.types.is_large_binary(column.type)):
        column = column.cast(pa.large_binary() if pa.types.is_large_string(column.type) else pa.binary())
    return list(_filled(column.to_pylist())) if column.null_count else column.to_pylist()


def _filled(values: Iterable[bytes | None]) -> Iterator[bytes]:
    return (_NULL if one is None else one for one in values)
