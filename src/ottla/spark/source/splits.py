"""Splits: ranges of offsets, each of which one task reads.

Without more said a split is what is to be read of a partition. `maxRecordsPerPartition` cuts those that are longer into
equal parts; `minPartitions` cuts the longest, in proportion, until there are about so many. Both are those of Spark's
Kafka source.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import NamedTuple

from pyspark.sql.datasource import InputPartition

from ottla.model import ZERO_TOPIC_ID, TopicPartition
from ottla.spark.options import OptionError
from ottla.spark.source.settings import MAX_RECORDS, SPLITS_MAX


class Range(NamedTuple):
    """Offsets of a partition: first <= offset < until."""

    tp: TopicPartition
    first: int
    until: int

    @property
    def size(self) -> int:
        return self.until - self.first


class Split(InputPartition):  # type: ignore[misc]  # pyspark's annotations are not read
    """A range, and the id of the topic that it was planned for."""

    def __init__(self, range_: Range, topic_id: bytes = ZERO_TOPIC_ID) -> None:
        super().__init__(range_)
        self.tp, self.first, self.until = range_
        self.topic_id = topic_id

    def __repr__(self) -> str:
        return f"Split({self.tp}, {self.first} to {self.until})"


def planned(
    starts: Mapping[TopicPartition, int],
    ends: Mapping[TopicPartition, int],
    ids: Mapping[str, bytes],
    *,
    at_least: int | None,
    records_max: int | None,
) -> list[Split]:
    """The splits of what lies between. Partitions whose end is not behind their start have none."""
    ranges = [Range(tp, starts[tp], ends[tp]) for tp in sorted(ends) if tp in starts and starts[tp] < ends[tp]]
    if records_max is not None:
        ranges = _cut(ranges, records_max)
    if at_least is not None and len(ranges) < at_least:
        ranges = list(_spread(ranges, at_least))
    return [Split(one, ids.get(one.tp.topic, ZERO_TOPIC_ID)) for one in ranges]


def _cut(ranges: list[Range], records_max: int) -> list[Range]:
    count = sum(-(-one.size // records_max) for one in ranges)
    if count > SPLITS_MAX:
        raise OptionError(f"{MAX_RECORDS}={records_max} would make {count} tasks, more than {SPLITS_MAX}")
    return [part for one in ranges for part in _parts(one, -(-one.size // records_max))]


def _spread(ranges: list[Range], at_least: int) -> Iterable[Range]:
    """The small ones stay whole, so the others share the number that is left by their sizes."""
    total = sum(one.size for one in ranges)
    whole = {one for one in ranges if _share(one.size, total, at_least) == 1}
    others = total - sum(one.size for one in whole)
    wanted = max(1, at_least - len(whole))
    for one in ranges:
        yield from [one] if one in whole else _parts(one, _share(one.size, others, wanted))


def _share(size: int, total: int, wanted: int) -> int:
    return min(size, max(1, round(size * wanted / total)))


def _parts(whole: Range, count: int) -> Iterable[Range]:
    first = whole.first
    for number in range(count):
        until = first + (whole.until - first) // (count - number)
        yield Range(whole.tp, first, until)
        first = until
