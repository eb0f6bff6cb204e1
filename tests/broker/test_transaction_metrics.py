"""What a scrape tells of transactions that ended by the clock, and of ids that it has forgotten."""

from __future__ import annotations

from math import isnan

from tests.broker.test_broker_metrics import numbers

from ottla import testing
from ottla.client.sync import Producer

TIMED_OUT, EXPIRED, IDS, ONGOING = (
    f"ottla_transactions_{name}" for name in ("timed_out_total", "expired_ids_total", "ids", "ongoing")
)

LOADS = "kafka_server_transaction_coordinator_metrics_partition_load_time_"


def test_what_the_clock_ends_is_counted() -> None:
    with testing.broker() as broker:

        def seen(*names: str) -> list[float]:
            found = numbers(broker.metrics())
            return [found[name] for name in names]

        broker.create_topic("orders")
        assert seen(TIMED_OUT, EXPIRED, IDS, ONGOING) == [0, 0, 0, 0]
        assert all(map(isnan, seen(f"{LOADS}max", f"{LOADS}avg")))
        with Producer(
            bootstrap_servers=broker.bootstrap, transactional_id="left", transaction_timeout_ms=30_000
        ) as producer:
            producer.begin()
            producer.send_and_wait("orders", b"open")
            assert seen(TIMED_OUT, EXPIRED, IDS, ONGOING) == [0, 0, 1, 1]
            longest, average = seen(f"{LOADS}max", f"{LOADS}avg")
            assert longest >= average >= 0
            broker.advance("1m")
            assert seen(TIMED_OUT, EXPIRED, IDS, ONGOING) == [1, 0, 1, 0]
            assert all(map(isnan, seen(f"{LOADS}max", f"{LOADS}avg")))  # thirty seconds ago
        broker.advance("8d")
        assert seen(TIMED_OUT, EXPIRED, IDS, ONGOING) == [1, 1, 0, 0]
