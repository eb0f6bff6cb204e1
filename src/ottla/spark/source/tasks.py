"""What runs in Spark's workers: a split into Arrow batches."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from pyspark.sql.datasource import InputPartition

from ottla.spark.source.decoding import Decoding
from ottla.spark.source.direct.reading import direct_reading
from ottla.spark.source.links import link
from ottla.spark.source.loss import LossPolicy
from ottla.spark.source.ranges import RangeReader
from ottla.spark.source.settings import SourceSettings
from ottla.spark.source.splits import Split


def read_split(settings: SourceSettings, split: Split | InputPartition | None) -> Iterator[Any]:
    """Where there is no split at all, Spark makes a task of nothing: None, or a partition without a value."""
    if isinstance(split, Split):
        way = link(settings.client)
        loss = LossPolicy(fail=settings.fail_on_data_loss)
        files = direct_reading(way, split, settings.direct_dirs) if settings.direct else None
        decoding = Decoding(settings, split.tp)
        reader = RangeReader(way, split, decoding.read, loss, settings.poll_timeout_ms, files)
        yield from map(decoding.decoded, reader.batches())
