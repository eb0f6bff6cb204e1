"""A caller's table as columns of which batches can be made: the Kafka sink's columns, in the types that Arrow has for
them.

`value` must be there. `key`, `headers`, `partition`, `timestamp` and `topic` may be; `offset` and `timestampType`,
which come with what was read, say nothing about what is written and are passed over. Any other column is a mistake.
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final, NamedTuple

from ottla.arrow.errors import BadColumns
from ottla.arrow.library import pa
from ottla.arrow.schema import HEADERS, HEADERS_TYPE, KEY, OFFSET, PARTITION, TIMESTAMP, TIMESTAMP_TYPE, TOPIC, VALUE

KNOWN: Final = (VALUE, KEY, HEADERS, PARTITION, TIMESTAMP, TOPIC)
PASSED_OVER: Final = frozenset({OFFSET, TIMESTAMP_TYPE})

#: Arrow counts the bytes of a column in 31 bits, where its type is none of the large ones.
_BYTES_MAX: Final = 2**31 - 1
#: How many of a unit make a millisecond.
_DIVISORS: Final = {"ms": 1, "us": 1_000, "ns": 1_000_000}


class GivenRows(NamedTuple):
    """Some rows: Arrow arrays of equal length, or None for a column that is not there."""

    #: The first row's number in the table.
    row: int
    #: binary
    values: Any
    keys: Any
    #: int32
    partitions: Any
    #: int64, in units of which `time_divisor` make a millisecond.
    times: Any
    time_divisor: int
    #: HEADERS_TYPE
    headers: Any


def table_of(given: Any) -> Any:
    """A pyarrow table of anything that speaks Arrow: Polars, DuckDB, pandas, a record batch or a reader of them."""
    if isinstance(given, pa.Table):
        return given
    if isinstance(given, pa.RecordBatch):
        return pa.Table.from_batches([given])
    if isinstance(given, pa.RecordBatchReader):
        return given.read_all()
    if hasattr(given, "__arrow_c_stream__"):
        return pa.table(given)
    raise BadColumns(f"rows must be an Arrow table or what can become one, not {type(given).__name__}")


def checked_names(table: Any) -> None:
    names = table.schema.names
    for name in names:
        if name not in KNOWN and name not in PASSED_OVER:
            raise BadColumns(f"there is no column {name!r} of records: there are {', '.join(KNOWN)}")
        if names.count(name) > 1:
            raise BadColumns(f"there are two columns {name!r}")
    if VALUE not in names:
        raise BadColumns("there is no column 'value'")


def pieces(table: Any, rows_max: int) -> Iterator[GivenRows]:
    """The rows, so many at a time; raises BadColumns."""
    checked_names(table)
    row = 0
    for batch in table.to_batches(max_chunksize=rows_max):
        yield from _converted(batch, row)
        row += batch.num_rows


def _converted(batch: Any, row: int) -> Iterator[GivenRows]:
    columns = dict(zip(batch.schema.names, batch.columns, strict=True))
    try:
        times, divisor = _times(columns.get(TIMESTAMP))
        made = GivenRows(
            row,
            _cast(VALUE, columns[VALUE], pa.binary()),
            _cast(KEY, columns.get(KEY), pa.binary()),
            _cast(PARTITION, columns.get(PARTITION), pa.int32()),
            times,
            divisor,
            _cast(HEADERS, columns.get(HEADERS), HEADERS_TYPE),
        )
    except BadColumns:
        # Half of the rows may have few enough bytes.
        if batch.num_rows < 2 or batch.nbytes <= _BYTES_MAX:
            raise
        middle = batch.num_rows // 2
        yield from _converted(batch.slice(0, middle), row)
        yield from _converted(batch.slice(middle), row + middle)
        return
    yield made


def _cast(name: str, column: Any, kind: Any) -> Any:
    if column is None or column.type == kind:
        return column
    of_column = column.type
    wrong = pa.types.is_boolean(of_column) or pa.types.is_temporal(of_column)
    if kind == pa.binary():
        wrong = wrong or pa.types.is_floating(of_column) or pa.types.is_integer(of_column)
    elif kind == pa.int32():
        wrong = wrong or not (pa.types.is_integer(of_column) or pa.types.is_null(of_column))
    try:
        if not wrong:
            return _recast(column, kind)
    except pa.ArrowException as error:
        raise BadColumns(f"column {name!r} is {of_column}, which does not become {kind}: {error}") from error
    raise BadColumns(f"column {name!r} is {of_column}, not {kind}")


def _recast(column: Any, kind: Any) -> Any:
    """Raises ArrowException."""
    try:
        return column.cast(kind)
    except pa.ArrowInvalid:
        # Of a column of a large type Arrow asks where its last byte lies, and a slice may lie behind 2 GiB of others.
        if kind == pa.int32() or column.nbytes > _BYTES_MAX:
            raise
        if kind == pa.binary():
            return _counted_anew(column)
        column.validate(full=True)
        return pa.concat_arrays([column.slice(0, 0), column]).cast(kind)  # a copy has these rows' headers alone


def _counted_anew(column: Any) -> Any:
    """Values of a large type as binary, in the memory where they are."""
    if not (pa.types.is_large_binary(column.type) or pa.types.is_large_string(column.type)):
        raise pa.ArrowInvalid("its values take more than 2 GiB")
    from pyarrow import compute  # a slow import, for what is rare

    _, counts, values = column.buffers()
    ends = pa.Array.from_buffers(pa.int64(), len(column) + 1, [None, counts], offset=column.offset)
    first = ends[0].as_py()
    behind = compute.subtract(ends, first).cast(pa.int32())
    valid = column.is_valid().buffers()[1] if column.null_count else None
    return pa.Array.from_buffers(
        pa.binary(), len(column), [valid, behind.buffers()[1], values.slice(first, behind[-1].as_py())]
    )


def _times(column: Any) -> tuple[Any, int]:
    """Whole numbers are milliseconds, as Kafka has them."""
    if column is None or pa.types.is_null(column.type):
        return None, 1
    if pa.types.is_timestamp(column.type):
        if column.type.unit == "s":
            try:
                column = column.cast(pa.timestamp("ms", column.type.tz))
            except pa.ArrowException as error:
                raise BadColumns(f"column {TIMESTAMP!r}: {error}") from error
        return column.view(pa.int64()), _DIVISORS[column.type.unit]
    if pa.types.is_integer(column.type):
        return _cast(TIMESTAMP, column, pa.int64()), 1
    raise BadColumns(f"column {TIMESTAMP!r} is {column.type}, not a timestamp")
