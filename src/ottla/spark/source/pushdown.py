"""Filters of a query as bounds of what is read. Spark gets all of them back: they only make the ranges smaller.

A lower bound of `timestamp` becomes the first offset whose record is as young, since none before it is. An upper bound
becomes nothing: the times of producers are in no order, and a record behind the first late one may be early.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from typing import Any, Final, NamedTuple

from pyspark.sql import datasource

from ottla.arrow.schema import OFFSET, PARTITION, TIMESTAMP
from ottla.model import TopicPartition
from ottla.spark.source.bounds import Offsets

_EPOCH: Final = datetime(1970, 1, 1, tzinfo=UTC)
_US_A_MS: Final = 1000


class PushedBounds(NamedTuple):
    """What the filters leave: both bounds of numbers are themselves in it; None where there is no bound."""

    partition_min: int | None = None
    partition_max: int | None = None
    partitions: frozenset[int] | None = None
    offset_min: int | None = None
    offset_max: int | None = None
    time_ms_min: int | None = None

    def keeps(self, tp: TopicPartition) -> bool:
        number = tp.partition
        return (
            (self.partition_min is None or number >= self.partition_min)
            and (self.partition_max is None or number <= self.partition_max)
            and (self.partitions is None or number in self.partitions)
        )

    async def narrowed(
        self, offsets: Offsets, starts: Mapping[TopicPartition, int], ends: Mapping[TopicPartition, int]
    ) -> tuple[dict[TopicPartition, int], dict[TopicPartition, int]]:
        """Smaller ranges of those partitions that are kept."""
        first = {tp: max(start, self.offset_min or 0) for tp, start in starts.items() if self.keeps(tp)}
        until = {tp: ends[tp] for tp in first}
        if self.offset_max is not None:
            until = {tp: min(end, self.offset_max + 1) for tp, end in until.items()}
        if self.time_ms_min is not None and self.time_ms_min > 0:
            by_time = await offsets.listed(dict.fromkeys(first, self.time_ms_min))
            for tp, found in by_time.items():
                first[tp] = until[tp] if found < 0 else max(first[tp], found)
        return first, until


def pushed_of(filters: Iterable[Any]) -> PushedBounds:
    """What can be used of filters that all must hold."""
    found = PushedBounds()
    for one in filters:
        name = ".".join(getattr(one, "attribute", ()))
        if name == PARTITION and isinstance(one, datasource.In):
            chosen = frozenset(one.value)
            found = found._replace(partitions=chosen if found.partitions is None else found.partitions & chosen)
        elif name in {PARTITION, OFFSET}:
            low, high = _bounds(one, one.value if hasattr(one, "value") else None)
            found = _tightened(found, name, low, high)
        elif name == TIMESTAMP and isinstance(getattr(one, "value", None), datetime):
            low, _ = _bounds(one, _microseconds(one.value))
            if low is not None:
                least = -(-low // _US_A_MS)
                found = found._replace(time_ms_min=_later(found.time_ms_min, least))
    return found


def _bounds(one: Any, number: Any) -> tuple[int | None, int | None]:
    """The least and the greatest whole number for which the filter can hold."""
    if isinstance(number, bool) or not isinstance(number, int):
        return None, None
    if isinstance(one, datasource.EqualTo | datasource.EqualNullSafe):
        return number, number
    if isinstance(one, datasource.GreaterThan):
        return number + 1, None
    if isinstance(one, datasource.GreaterThanOrEqual):
        return number, None
    if isinstance(one, datasource.LessThan):
        return None, number - 1
    if isinstance(one, datasource.LessThanOrEqual):
        return None, number
    return None, None


def _tightened(found: PushedBounds, name: str, low: int | None, high: int | None) -> PushedBounds:
    if name == PARTITION:
        return found._replace(
            partition_min=_later(found.partition_min, low), partition_max=_sooner(found.partition_max, high)
        )
    return found._replace(offset_min=_later(found.offset_min, low), offset_max=_sooner(found.offset_max, high))


def _later(known: int | None, bound: int | None) -> int | None:
    return known if bound is None else bound if known is None else max(known, bound)


def _sooner(known: int | None, bound: int | None) -> int | None:
    return known if bound is None else bound if known is None else min(known, bound)


def _microseconds(time: datetime) -> int:
    """Since 1970. A time without a zone is one of this machine's, as PySpark makes them."""
    since = time.astimezone(UTC) - _EPOCH
    return (since.days * 86_400 + since.seconds) * 1_000_000 + since.microseconds
