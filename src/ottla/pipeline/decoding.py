"""From records to columns. What cannot be decoded stays: with why, and with its record, so that it can be sent on.

A decoded frame has the fields, `timestamp` (the record's, unless a field is called so), `_error` and `_record`.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, Final

from ottla import formats
from ottla.formats.errors import FormatError, LibraryMissing
from ottla.pipeline.columns import quoted
from ottla.pipeline.errors import BadDefinition
from ottla.pipeline.reading import ERROR, RECORD, refuse_without_dead_letters

_RECORD_FIELDS: Final = ("topic", "partition", "offset", "timestamp", "key", "value", "headers")
_CORRUPT: Final = "_corrupt"
_DECODED: Final = "_decoded"
_NULL: Final = "the value is null"
#: Of a value that cannot be decoded, in the error.
_SHOWN_CHARACTERS: Final = 80


def decode_json(frame: Any, schema: Any, *, rescue: str | None = None, options: dict[str, str] | None = None) -> Any:
    """Values as JSON objects with the fields of `schema`: Spark's DDL (`"id BIGINT, amount DOUBLE"`) or its types.

    `rescue` names a column for what the schema does not know: a JSON object of those fields, or null. `options` are
    those of Spark's reader of JSON.
    """
    from pyspark.sql import functions as F  # noqa: N812 - as everybody calls them
    from pyspark.sql.types import StringType, StructType

    _check(frame, "decode_json")
    fields = schema if isinstance(schema, StructType) else _parsed(schema)
    whole = StructType([*fields.fields]).add(_CORRUPT, StringType())
    text = F.col("value").cast("string")
    reading = {**(options or {}), "mode": "PERMISSIVE", "columnNameOfCorruptRecord": _CORRUPT}
    decoded = frame.withColumn(_DECODED, F.from_json(text, whole, reading))
    shown = F.substring(text, 1, _SHOWN_CHARACTERS)
    why = (
        F.when(F.col("value").isNull(), F.lit(_NULL))
        .when(
            F.col(_DECODED).isNull() | F.col(f"{_DECODED}.{_CORRUPT}").isNotNull(),
            F.concat(F.lit("not JSON of the schema: "), shown),
        )
        .otherwise(F.lit(None).cast("string"))
    )
    more = {}
    if rescue is not None:
        more[rescue] = F.expr(
            "nullif(to_json(map_filter(from_json(cast(value AS string), 'MAP<STRING,STRING>'), "
            f"(k, v) -> NOT array_contains({_names(fields)}, k))), '{{}}')"
        )
    return _result(decoded, fields.fieldNames(), why, more)


def decode(frame: Any, spec: str, **settings: Any) -> Any:
    """Values by one of the formats of `ottla.formats`, such as `avro:registry` or `protobuf:order.proto#Order`."""
    from pyspark.sql import functions as F  # noqa: N812
    from pyspark.sql.pandas.types import from_arrow_type, to_arrow_type
    from pyspark.sql.types import StringType, StructField, StructType

    from ottla.spark.source.columns import as_spark_has_it

    _check(frame, "decode")
    try:
        decoder = formats.decoder(spec, **settings)
        column = from_arrow_type(decoder.arrow_type)
    except (FormatError, LibraryMissing) as error:
        raise BadDefinition(f"decode({spec!r}): {error}") from error
    fields = column if isinstance(column, StructType) else StructType([StructField("value", column)])
    arrow = to_arrow_type(column, timezone="UTC")
    schema = StructType([*frame.schema.fields]).add(_DECODED, column).add(ERROR, StringType())

    def decoded(batches: Iterable[Any]) -> Iterator[Any]:
        import pyarrow

        # The decoder goes to the tasks with its schema: a subject's may be another one by then.
        for batch in batches:
            values, errors = decoder.decode(batch.column("value"))
            columns = [*batch.columns, as_spark_has_it(values, arrow), errors.cast(pyarrow.string())]
            yield pyarrow.RecordBatch.from_arrays(columns, names=[*batch.schema.names, _DECODED, ERROR])

    found = frame.mapInArrow(decoded, schema)
    if column is not fields:
        found = found.withColumn(_DECODED, F.struct(F.col(_DECODED).alias("value")))
    why = F.when(F.col("value").isNull(), F.lit(_NULL)).otherwise(F.col(ERROR))
    return _result(found, fields.fieldNames(), why, {})


def _result(decoded: Any, names: list[str], why: Any, more: dict[str, Any]) -> Any:
    from pyspark.sql import functions as F  # noqa: N812

    fields = [F.col(f"{_DECODED}.{quoted(name)}").alias(name) for name in names]
    time = [] if "timestamp" in names else [F.col("timestamp")]
    record = F.struct(*(F.col(name) for name in _RECORD_FIELDS)).alias(RECORD)
    return decoded.select(
        *fields, *(column.alias(name) for name, column in more.items()), *time, why.alias(ERROR), record
    )


def _check(frame: Any, what: str) -> None:
    refuse_without_dead_letters(what)
    missing = [name for name in _RECORD_FIELDS if name not in frame.columns]
    if missing:
        raise BadDefinition(
            f"{what} takes records as read_topic gives them, and the frame has no column {missing[0]}: "
            "decode what read_topic, or a table of it, returns"
        )


def _parsed(ddl: str) -> Any:
    from pyspark.errors import PySparkException
    from pyspark.sql.types import StructType

    try:
        return StructType.fromDDL(ddl)
    except PySparkException as error:
        first = str(error).strip().partition("\n")[0]
        raise BadDefinition(f'decode_json: {ddl!r} is no schema like "id BIGINT, amount DOUBLE": {first}') from None


def _names(fields: Any) -> str:
    quoted = ("'" + name.replace("\\", "\\\\").replace("'", "\\'") + "'" for name in fields.fieldNames())
    return f"array({', '.join(quoted)})"
