"""How long a coordinator's partitions took to load, by the names of Kafka's beans, whichever coordinator it is."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from math import nan

from ottla.coordinators.load_times import LoadTimes
from ottla.metrics import Labels, Registry

#: With the time at which somebody looks, in milliseconds of the monotonic clock.
LoadTimesNow = tuple[LoadTimes, int]
Find = Callable[[], LoadTimesNow | None]


def register_load_times(registry: Registry, kind: str, find: Find) -> None:
    """`kind`: of the coordinator, as Kafka calls it. `find` has none where nobody has asked for a coordinator yet."""
    name = f"kafka_server_{kind}_coordinator_metrics_partition_load_time_"
    lately = "of the last 30 seconds took, in milliseconds; NaN where there was none."
    registry.gauges(f"{name}max", f"What the longest load {lately}", (), partial(_reading, find, LoadTimes.longest_ms))
    average = f"What the loads {lately.replace('took', 'took on the average')}"
    registry.gauges(f"{name}avg", average, (), partial(_reading, find, LoadTimes.average_ms))


def _reading(find: Find, of: Callable[[LoadTimes, int], float]) -> list[tuple[Labels, float]]:
    found = find()
    return [((), nan if found is None else of(*found))]
