"""What Spark calls for `format("ottla")`: one class, which only says who does the work.

Spark makes it anew in each process that plans a read or a write, so it holds nothing but the options.
"""

from __future__ import annotations

from typing import Any

from pyspark.sql.datasource import DataSource


class OttlaDataSource(DataSource):  # type: ignore[misc]  # pyspark's annotations are not read
    @classmethod
    def name(cls) -> str:
        return "ottla"

    def schema(self) -> Any:
        from ottla.spark.source.columns import spark_schema
        from ottla.spark.source.settings import columns_of, decoders_of

        return spark_schema(columns_of(self.options), decoders_of(self.options))

    def reader(self, schema: Any) -> Any:
        from ottla.spark.source.batch import batch_reader

        return batch_reader(schema, self.options)

    def streamReader(self, schema: Any) -> Any:  # noqa: N802 - Spark's name
        from ottla.spark.source.stream import stream_reader

        return stream_reader(schema, self.options)

    def writer(self, schema: Any, overwrite: bool) -> Any:
        from ottla.spark.sink import batch_writer

        return batch_writer(schema, overwrite, self.options)

    def streamWriter(self, schema: Any, overwrite: bool) -> Any:  # noqa: N802 - as above
        from ottla.spark.sink import stream_writer

        return stream_writer(schema, overwrite, self.options)
