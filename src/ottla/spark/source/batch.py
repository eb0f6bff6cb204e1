"""`spark.read.format("ottla")`."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import replace
from typing import Any

from pyspark.sql.datasource import DataSourceReader

from ottla.spark.source.columns import columns_in
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.pushdown import PushedBounds, pushed_of
from ottla.spark.source.settings import SourceSettings, source_settings
from ottla.spark.source.splits import Split
from ottla.spark.source.tasks import read_split


class BatchReader(DataSourceReader):  # type: ignore[misc]  # pyspark's annotations are not read
    def __init__(self, settings: SourceSettings) -> None:
        self._settings = settings
        self._pushed: PushedBounds | None = None

    def partitions(self) -> list[Split]:
        return batch_splits(self._settings, self._pushed)

    def read(self, partition: Split | None) -> Iterator[Any]:
        return read_split(self._settings, partition)


class FilteringReader(BatchReader):
    """The same with filters pushed down. Spark refuses a reader that can do so unless the session is set up for it."""

    def pushFilters(self, filters: list[Any]) -> Iterable[Any]:  # noqa: N802 - Spark's name
        self._pushed = pushed_of(filters)
        return filters


def batch_reader(schema: Any, options: Mapping[str, Any]) -> BatchReader:
    settings = source_settings(options, stream=False)
    settings = replace(settings, columns=columns_in(schema, settings.decoders))
    return FilteringReader(settings) if settings.pushdown else BatchReader(settings)
