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
    gauge(f"{choice}max_dirty_percent", "The dirtiest log's dirty share.", lambda each: 100 * each.dirtiest)
    gauge(
        f"{choice}time_since_last_run_ms",
        "Since the last pass ended.",
        lambda each: clock.monotonic_ms() - each.last_ended_ms,
    )
    gauge(f"{cleaner}deadthreadcount", "1 where the cleaner has ended though it should run.", lambda each: each.is_dead)
    gauge(
        f"{cleaner}max_compaction_delay_secs",
        "By how much max.compaction.lag.ms is passed at most.",
        lambda each: each.overdue_ms / 1000,
    )
    gauge(f"{cleaner}max_clean_time_secs", "What the last pass took.", lambda each: each.last_s)
    gauge(
        f"{cleaner}max_buffer_utilization_percent",
        "How full the key map was in the last pass.",
        lambda each: 0.0 if each.last is None else 100 * each.last.fullness,
    )
    gauge(
        f"{cleaner}cleaner_recopy_percent",
        "What the last pass wrote of what it read.",
        lambda each: 0.0 if each.last is None else 100 * each.last.bytes_written / max(each.last.bytes_read, 1),
    )
    gauge("ottla_log_cleaner_passes", "Passes that came to their end.", lambda each: each.passes)
    gauge("ottla_log_cleaner_failed_passes", "Passes that failed.", lambda each: each.failures)
