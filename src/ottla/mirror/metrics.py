"""What a mirror's page for Prometheus shows of each partition: how much was copied, how far it is behind, and whether
it goes on. It is read from the flows when somebody scrapes.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator

from ottla.metrics import Labels, Registry
from ottla.mirror.flow import Flow, PartitionLag

_PARTITION = ("source", "target", "topic", "partition")


def register(registry: Registry, flows: Iterable[Flow]) -> None:
    known = list(flows)

    def each() -> Iterator[tuple[Labels, PartitionLag]]:
        for flow in known:
            for one in flow.lags():
                labels = (flow.policy.source, flow.policy.target, one.partition.topic, str(one.partition.partition))
                yield labels, one

    registry.gauges(
        "ottla_mirror_lag",
        "Offsets of the source that are not copied yet.",
        _PARTITION,
        lambda: ((labels, float(one.lag)) for labels, one in each() if one.lag is not None),
    )
    registry.gauges(
        "ottla_mirror_records_total",
        "Records that were copied and acknowledged, since this process has the partition.",
        _PARTITION,
        lambda: ((labels, float(one.records)) for labels, one in each()),
        type_="counter",
    )
    registry.gauges(
        "ottla_mirror_bytes_total",
        "Bytes of batches that were copied and acknowledged, since this process has the partition.",
        _PARTITION,
        lambda: ((labels, float(one.bytes)) for labels, one in each()),
        type_="counter",
    )
    registry.gauges(
        "ottla_mirror_missed_total",
        "Offsets that the source removed before they were copied, since this process has the partition.",
        _PARTITION,
        lambda: ((labels, float(one.missed)) for labels, one in each()),
        type_="counter",
    )
    registry.gauges(
        "ottla_mirror_stopped",
        "1 where a partition is not copied any more, for a reason that the log names.",
        _PARTITION,
        lambda: ((labels, float(one.stopped is not None)) for labels, one in each()),
    )
