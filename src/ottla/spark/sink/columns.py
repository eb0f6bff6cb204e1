"""The frame's columns that become records: those of Spark's sink for Kafka, under its names, types and complaints.

`value` must be there; `topic` too where no option names one. `key`, `headers` and `partition` may be. All other columns
are passed over, `timestamp` too: a record's time is that of its writing. A key or value that an option has encoded may
have any type.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Final

from pyspark.sql.types import ArrayType, DataType, MapType, StructType, VariantType, YearMonthIntervalType

from ottla.arrow.library import pa
from ottla.arrow.schema import HEADERS, KEY, PARTITION, TOPIC, VALUE
from ottla.spark.sink.encoding import AS, encoded
from ottla.spark.sink.errors import BadSinkColumns

if TYPE_CHECKING:
    from ottla.formats import Encoder

#: By Spark's own words for its types; nothing is said of nulls, which all of them may have.
_TYPES: Final = {
    TOPIC: ("string",),
    KEY: ("string", "binary"),
    VALUE: ("string", "binary"),
    HEADERS: ("array<struct<key:string,value:binary>>",),
    PARTITION: ("int",),
}


class SinkColumns:
    """Where in the frame each of them stands."""

    __slots__ = ("_encoders", "_places")

    def __init__(self, schema: StructType, topic: str | None, encoders: Mapping[str, Encoder] | None = None) -> None:
        """Raises BadSinkColumns. A topic that is named once counts more than a column."""
        self._encoders = dict(encoders or {})
        wanted = [name for name in _TYPES if topic is None or name != TOPIC]
        self._places: dict[str, int] = {}
        for place, field in enumerate(schema.fields):
            if field.name in wanted and field.name not in self._places:
                if field.name in self._encoders:
                    _check_can_be_encoded(field.name, field.dataType, field.name)
                else:
                    _check_type(field.name, field.dataType.simpleString())
                self._places[field.name] = place
        if topic is None and TOPIC not in self._places:
            raise BadSinkColumns(
                "topic option required when no 'topic' attribute is present. Use the topic option for setting a topic."
            )
        if VALUE not in self._places:
            raise BadSinkColumns("Required attribute 'value' not found")
        for name in self._encoders:
            if name not in self._places:
                raise BadSinkColumns(f"{name}{AS} encodes the column {name}, and the frame has none")

    def taken_from(self, rows: Any, first_row: int) -> Any:
        """An Arrow batch of these columns alone. `first_row` is the number of its first row, for what is said of it."""
        columns = {name: rows.column(at) for name, at in self._places.items()}
        for name, encoder in self._encoders.items():
            columns[name] = encoded(encoder, name, columns[name], first_row)
        taken = pa.RecordBatch.from_arrays(list(columns.values()), names=list(columns))
        if TOPIC in self._places and taken.column(TOPIC).null_count:
            row = first_row + taken.column(TOPIC).is_null().index(True).as_py()
            raise BadSinkColumns(
                f"row {row}: null topic present in the data. Use the topic option for setting a default topic."
            )
        return taken


def _check_can_be_encoded(name: str, kind: DataType, path: str) -> None:
    """Arrow has a variant as a struct of its inner bytes, which formats would write as such, and of months no value."""
    if isinstance(kind, VariantType | YearMonthIntervalType):
        raise BadSinkColumns(
            f"{path} is of type {kind.simpleString()}, which {name}{AS} cannot write: make another of it, as by "
            "to_json or a cast to string"
        )
    if isinstance(kind, StructType):
        for field in kind.fields:
            _check_can_be_encoded(name, field.dataType, f"{path}.{field.name}")
    elif isinstance(kind, ArrayType):
        _check_can_be_encoded(name, kind.elementType, f"{path}.element")
    elif isinstance(kind, MapType):
        _check_can_be_encoded(name, kind.keyType, f"{path}.key")
        _check_can_be_encoded(name, kind.valueType, f"{path}.value")


def _check_type(name: str, kind: str) -> None:
    if kind not in _TYPES[name]:
        raise BadSinkColumns(
            f"{name} attribute unsupported type {kind}. {name} must be a(n) {' or '.join(_TYPES[name])}"
        )
