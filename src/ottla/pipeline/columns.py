"""Columns: their names in Spark's expressions, and what files, streams and keys cannot have, which is refused when the
file is planned.

files      Spark's own of Parquet: no calendar intervals, no structs without a field
joined     files that become one are read by pyarrow, which has no list of nothing (`array()`)
streams    rows come by Arrow, which has no intervals of months and no shapes
keys       are compared and hashed: no maps and no variants; a hash knows nothing of a collation
"""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, Final

from ottla.pipeline.errors import BadDefinition

#: Whether Spark has times of day: in 4.3 not unless it is asked to.
_TIMES: Final = "spark.sql.timeType.enabled"
_BINARY: Final = "UTF8_BINARY"


def quoted(name: str) -> str:
    """A name as it stands in Spark's expressions, whatever is in it."""
    return f"`{name.replace('`', '``')}`"


def check_stored(what: str, schema: Any, spark: Any) -> None:
    """Raises BadDefinition for a column that no file takes."""
    from pyspark.sql.types import ArrayType, CalendarIntervalType, MapType, NullType, StructType, TimeType

    for path, kind in _parts(schema):
        fault = None
        if isinstance(kind, CalendarIntervalType):
            fault = (
                "and Parquet has no intervals of both months and seconds: make an interval of one of them, or a text"
            )
        elif isinstance(kind, TimeType) and spark.conf.get(_TIMES, "false") != "true":
            fault = f"which Spark has with --conf {_TIMES}=true alone: say that, or cast it"
        elif isinstance(kind, StructType) and not kind.fields:
            fault = "and Parquet has no structs without a field: leave it out"
        elif isinstance(kind, ArrayType | MapType) and _holds(kind, NullType):
            fault = "which says no type of what is in it: cast it"
        if fault is not None:
            raise BadDefinition(f"{what}: the column {path} is {kind.simpleString()}, {fault}")


def check_streamed(what: str, table: str, schema: Any) -> None:
    """Raises BadDefinition for a table that no stream can read. `what` would read it."""
    from pyspark.sql.types import GeographyType, GeometryType, YearMonthIntervalType

    for path, kind in _parts(schema):
        if isinstance(kind, YearMonthIntervalType | GeometryType | GeographyType):
            raise BadDefinition(
                f"{what} reads {table!r} as a stream, and its column {path} is {kind.simpleString()}, which no stream "
                f"of a table can have: have {table} store it as a number, a text or bytes, or use read"
            )


def check_key(what: str, key: str, kind: Any) -> None:
    """Raises BadDefinition for a key whose rows would not find those that they replace."""
    from pyspark.sql.types import StringType

    check_ordered(f"{what} has the key {key!r}, which", kind)
    for _, part in _parts(kind):
        if isinstance(part, StringType) and part.collation != _BINARY:
            raise BadDefinition(
                f"{what} has the key {key!r}, which is {part.simpleString()}, and keys are compared byte by byte: "
                f"give it collate(..., '{_BINARY}'), of collation_key(...) or lower(...) where texts are to be the same"
            )


def check_ordered(what: str, kind: Any) -> None:
    """Raises BadDefinition for what cannot be put in order."""
    if not is_comparable(kind):
        raise BadDefinition(
            f"{what} is {kind.simpleString()}, which Spark cannot compare: take a part of it, or a text"
        )


def is_comparable(kind: Any) -> bool:
    from pyspark.sql.types import CalendarIntervalType, GeographyType, GeometryType, MapType, VariantType

    without = MapType | VariantType | CalendarIntervalType | GeometryType | GeographyType
    return not any(isinstance(part, without) for _, part in _parts(kind))


def _parts(kind: Any, path: str = "") -> Iterator[tuple[str, Any]]:
    """A type and all that are in it; of columns, each with its name."""
    from pyspark.sql.types import ArrayType, MapType, StructType

    if path or not isinstance(kind, StructType):
        yield path, kind
    if isinstance(kind, StructType):
        for field in kind.fields:
            yield from _parts(field.dataType, f"{path}.{field.name}" if path else field.name)
    elif isinstance(kind, ArrayType):
        yield from _parts(kind.elementType, path)
    elif isinstance(kind, MapType):
        yield from _parts(kind.keyType, path)
        yield from _parts(kind.valueType, path)


def _holds(kind: Any, inner: type) -> bool:
    from pyspark.sql.types import ArrayType

    inside = [kind.elementType] if isinstance(kind, ArrayType) else [kind.keyType, kind.valueType]
    return any(isinstance(one, inner) for one in inside)
