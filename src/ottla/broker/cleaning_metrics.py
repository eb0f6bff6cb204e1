"""The log cleaner in numbers, under the names that dashboards for Kafka use; all 0 before the broker has started."""

from __future__ import annotations

from collections.abc import Callable, Iterator

from ottla.broker.cleaning import Cleaning
from ottla.metrics import Labels, Registry
from ottla.ports import Clock


def register_cleaning_metrics(registry: Registry, find: Callable[[], Cleaning | None], clock: Clock) -> None:
    cleaner, choice = "kafka_log_logcleaner_", "kafka_log_logcleanermanager_"

    def gauge(name: str, text: str, read: Callable[[Cleaning], float]) -> None:
        registry.gauge(name, text, lambda: 0.0 if (cleaning := find()) is None else read(cleaning))

    def gauges(
        name: str, text: str, labels: Labels, read: Callable[[Cleaning], Iterator[tuple[Labels, float]]]
    ) -> None:
        registry.gauges(name, text, labels, lambda: () if (cleaning := find()) is None else read(cleaning))

    gauges(
        f"{choice}uncleanable_partitions_count",
        "Logs that could not be cleaned and are set aside, by log directory.",
        ("logdirectory",),
        Cleaning.uncleanable_partitions,
    )
    gauges(
        "ottla_log_cleaner_failures",
        "How often in a row a log that is set aside could not be cleaned.",
        ("topic", "partition"),
        Cleaning.uncleanable,
    )
    gauge(
        f"{choice}max_dirty_percent",
        "How much of the dirtiest log is dirty, in percent.",
        lambda each: 100 * each.dirtiest,
    )
    gauge(
        f"{choice}time_since_last_run_ms",
        "Milliseconds since the last pass ended.",
        lambda each: clock.monotonic_ms() - each.last_ended_ms,
    )
    gauge(f"{cleaner}deadthreadcount", "1 where the cleaner has ended though it should run.", lambda each: each.is_dead)
    gauge(
        f"{cleaner}max_compaction_delay_secs",
        "Seconds by which max.compaction.lag.ms is passed, of the log that is most overdue.",
        lambda each: each.overdue_ms / 1000,
    )
    gauge(f"{cleaner}max_clean_time_secs", "Seconds that the last pass took.", lambda each: each.last_s)
    gauge(
        f"{cleaner}max_buffer_utilization_percent",
        "How full the key map was in the last pass, in percent.",
        lambda each: 0.0 if each.last is None else 100 * each.last.fullness,
    )
    gauge(
        f"{cleaner}cleaner_recopy_percent",
        "How much of what it read the last pass wrote again, in percent.",
        lambda each: 0.0 if each.last is None else 100 * each.last.bytes_written / max(each.last.bytes_read, 1),
    )

    def counter(name: str, text: str, read: Callable[[Cleaning], float]) -> None:
        registry.gauges(
            name, text, (), lambda: [((), 0.0 if (cleaning := find()) is None else read(cleaning))], type_="counter"
        )

    counter("ottla_log_cleaner_passes_total", "Passes that came to their end.", lambda each: each.passes)
    counter("ottla_log_cleaner_failed_passes_total", "Passes that failed.", lambda each: each.failures)
