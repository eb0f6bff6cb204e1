"""The columns: names and types are those of Spark's Kafka source, so that its users find what they know."""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any, Final

from ottla.arrow.errors import BadColumns
from ottla.arrow.library import pa

KEY: Final = "key"
VALUE: Final = "value"
TOPIC: Final = "topic"
PARTITION: Final = "partition"
OFFSET: Final = "offset"
TIMESTAMP: Final = "timestamp"
#: 0: the producer's time (CreateTime), 1: the broker's (LogAppendTime).
TIMESTAMP_TYPE: Final = "timestampType"
HEADERS: Final = "headers"

#: What is there where nothing is said: headers cost a third of the speed and few ask for them.
DEFAULT_COLUMNS: Final = (KEY, VALUE, TOPIC, PARTITION, OFFSET, TIMESTAMP, TIMESTAMP_TYPE)
COLUMNS: Final = (*DEFAULT_COLUMNS, HEADERS)

#: A header is its name and its value. What is not UTF-8 in a name is replaced, as in Java.
HEADER_TYPE: Final = pa.struct([pa.field("key", pa.string()), pa.field("value", pa.binary())])
#: The element's name is the one that Spark gives it. A record without headers has an empty list.
HEADERS_TYPE: Final = pa.list_(pa.field("element", HEADER_TYPE))
TIMESTAMP_ARROW_TYPE: Final = pa.timestamp("us", tz="UTC")

TYPES: Final[dict[str, Any]] = {
    KEY: pa.binary(),
    VALUE: pa.binary(),
    TOPIC: pa.string(),
    PARTITION: pa.int32(),
    OFFSET: pa.int64(),
    TIMESTAMP: TIMESTAMP_ARROW_TYPE,
    TIMESTAMP_TYPE: pa.int32(),
    HEADERS: HEADERS_TYPE,
}

#: Columns that are the same in all rows are slices of arrays that are kept: so many of them, by least rows.
_KEPT: Final = 256
_ROWS_MIN: Final = 1024


def checked_columns(columns: Iterable[str] | None) -> tuple[str, ...]:
    """The columns that are asked for, in their order; raises BadColumns."""
    if columns is None:
        return DEFAULT_COLUMNS
    if isinstance(columns, str) or not isinstance(columns, Iterable):
        raise BadColumns(f"columns is a list of names, not {columns!r}")
    chosen = tuple(columns)
    for name in chosen:
        if name not in TYPES:
            raise BadColumns(f"there is no column {name!r}: there are {', '.join(COLUMNS)}")
    if not chosen or len(set(chosen)) < len(chosen):
        raise BadColumns("columns must name at least one column, and none twice")
    return chosen


@lru_cache(maxsize=_KEPT)
def _schema(columns: tuple[str, ...]) -> Any:
    return pa.schema([(name, TYPES[name]) for name in columns])


def schema_of(columns: Iterable[str] | None = None) -> Any:
    """The Arrow schema of these columns, or of the usual ones."""
    return _schema(checked_columns(columns))


def constant(column: str, value: str | int, rows: int) -> Any:
    """A column with the same value in all rows."""
    return _kept(column, value, max(_ROWS_MIN, 1 << (rows - 1).bit_length())).slice(0, rows)


@lru_cache(maxsize=_KEPT)
def _kept(column: str, value: str | int, rows: int) -> Any:
    return pa.repeat(pa.scalar(value, TYPES[column]), rows)
