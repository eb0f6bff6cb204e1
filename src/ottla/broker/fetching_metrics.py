"""Followers that fetch, in numbers, under the names that dashboards for Kafka use; 0 before the broker has started."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from functools import partial
from itertools import islice
from typing import TYPE_CHECKING

from ottla.metrics import SERIES_MAX, Labels, Registry
from ottla.replication.fetching.fetchers import Fetchers
from ottla.replication.traffic import TrafficByTopic

if TYPE_CHECKING:
    from ottla.replication.fetching.fetcher import Fetcher


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

    for name, text, count in (
        ("bytes_total", "Bytes of record batches that a fetcher has taken over.", _bytes_taken),
        ("requests_total", "Fetches that a fetcher has sent.", _requests_sent),
    ):
        registry.gauges(
            f"kafka_server_fetcherstats_{name}",
            text,
            ("clientid", "brokerhost", "brokerport"),
            partial(_of_each, fetchers, count),
            type_="counter",
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


def _bytes_taken(fetcher: Fetcher) -> int:
    return fetcher.partitions.bytes_taken


def _requests_sent(fetcher: Fetcher) -> int:
    return fetcher.rate.total


def _of_each(
    fetchers: Callable[[], Fetchers | None], count: Callable[[Fetcher], int]
) -> Iterator[tuple[Labels, float]]:
    found = fetchers()
    for fetcher, address in () if found is None else found.each():
        yield (_client_id(fetcher), address.host, str(address.port)), count(fetcher)


def _client_id(fetcher: Fetcher) -> str:
    """As Kafka calls it."""
    return f"ReplicaFetcherThread-{fetcher.number}-{fetcher.leader}"


def _lags(fetchers: Fetchers) -> Iterator[tuple[Labels, float]]:
    for fetcher, one in islice(fetchers.partitions(), SERIES_MAX + 1):
        if one.lag is not None:
            yield (_client_id(fetcher), one.tp.topic, str(one.tp.partition)), one.lag
