"""`ottla.spark.read`: the same rows as `format("ottla")`, by the faster way into Spark.

Each task of `spark.range` has one row, the number of its split, which `mapInArrow` reads.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from typing import Any, Final

from ottla.spark.options import folded
from ottla.spark.source.columns import spark_schema
from ottla.spark.source.planning import batch_splits
from ottla.spark.source.settings import COLUMNS_OPTION, PUSHDOWN, SourceSettings, source_settings
from ottla.spark.source.splits import Split
from ottla.spark.source.tasks import read_split

_FILTERS: Final = "spark.sql.python.filterPushdown.enabled"


def read(
    spark: Any,
    options: Mapping[str, Any] | None = None,
    /,
    *,
    columns: Iterable[str] | None = None,
    **more: Any,
) -> Any:
    """A frame of what the options say, in a mapping or as keywords; a batch's options of `format("ottla")`.

    What is read is fixed now, not when the frame is used.
    """
    given = folded({**(options or {}), **more})
    if columns is not None:
        given[COLUMNS_OPTION] = ",".join(columns)
    settings = source_settings(given, stream=False)
    splits = batch_splits(settings)
    tasks = spark.range(0, len(splits), 1, max(1, len(splits)))
    return tasks.mapInArrow(_SplitReading(settings, splits), spark_schema(settings.columns, settings.decoders))


def reader(spark: Any) -> Any:
    """`spark.read.format("ottla")`, which pushes filters down where the session lets Python sources do that."""
    pushes = str(spark.conf.get(_FILTERS, "false")).lower()
    return spark.read.format("ottla").option(PUSHDOWN, pushes)


class _SplitReading:
    """What each task runs. It goes to the workers with all splits, a hundred bytes each."""

    def __init__(self, settings: SourceSettings, splits: list[Split]) -> None:
        self._settings = settings
        self._splits = splits

    def __call__(self, numbers: Iterable[Any]) -> Iterator[Any]:
        for batch in numbers:
            for number in batch.column(0).to_pylist():
                yield from read_split(self._settings, self._splits[number])
