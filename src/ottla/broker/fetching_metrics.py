"""Followers that fetch, in numbers, under the names that dashboards for Kafka use; 0 before the broker has started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from itertools import islice

from ottla.metrics import SERIES_MAX, Labels, Registry
from ottla.replication.fetching.fetchers import Fetchers
from ottla.replication.traffic import TrafficByTopic


def register_fetching_metrics(
    registry: Registry, fetchers: Callable[[], Fetchers | None], traffic: Callable[[], TrafficByTopic | None]
) -> None:
    manager, topics = "kafka_server_replicafetchermanager_", "kafka_server_brokertopicmetrics_"

    def gauge(name: str, text: str, read: Callable[[Fetchers], float]) -> None:
        registry.gauge(name, text, lambda: 0.0 if (found := fetchers()) is None else read(found))

    gauge(f"{manager}maxlag", "Committed records that the follower lacks which lacks the most.", Fetchers.max_lag)
    gauge(
        f"{manager}minfetchrate",
        "Fetches a second of the fetcher that sends the fewest, over the last minute.",
        Fetchers.min_fetch_rate,
    )
    gauge(
        f"{manager}failedpartitionscount",
        "Partitions that are not fetched until their role changes, for a fault of this broker.",
        Fetchers.failed_partitions,
    )
    registry.gauges(
        "kafka_server_fetcherlagmetrics_consumerlag",
        "Committed records of a partition that its follower here lacks.",
        ("clientid", "topic", "partition"),
        lambda: () if (found := fetchers()) is None else _lags(found),
    )

    def counter(name: str, text: str, read: Callable[[TrafficByTopic], float]) -> None:
        registry.gauges(
            name, text, (), lambda: [((), 0.0 if (found := traffic()) is None else read(found))], type_="counter"
        )

    counter(
        f"{topics}replicationbytesin_total",
        "Bytes of record batches fetched from leaders.",
        lambda found: found.replicated_bytes_in,
    )
    counter(
        f"{topics}replicationbytesout_total",
        "Bytes of record batches sent to followers.",
        lambda found: found.replicated_bytes_out,
    )
    counter(
        f"{topics}reassignmentbytesin_total",
        "Of the bytes that were fetched, those of partitions that are on their way to this broker.",
        lambda found: found.reassigned_bytes_in,
    )
    counter(
        f"{topics}reassignmentbytesout_total",
        "Of the bytes that were sent to followers, those of partitions that are on their way to them.",
        lambda found: found.reassigned_bytes_out,
    )


def _lags(fetchers: Fetchers) -> Iterator[tuple[Labels, float]]:
    for fetcher, one in islice(fetchers.partitions(), SERIES_MAX + 1):
        if one.lag is not None:
            client = f"ReplicaFetcherThread-{fetcher.number}-{fetcher.leader}"
            yield (client, one.tp.topic, str(one.tp.partition)), one.lag
