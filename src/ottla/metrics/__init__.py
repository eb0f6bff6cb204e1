"""Numbers for Prometheus: the registry, what stands in it, and the text that a scrape reads.

metrics = Registry()
messages = metrics.counters("kafka_server_brokertopicmetrics_messagesin_total", "Records appended.", ("topic",))
orders = messages.labels("orders")
orders.value += 1
metrics.render()
"""

from ottla.metrics.buckets import Buckets, RecentBuckets, Summary
from ottla.metrics.registry import FAMILY_CHARACTERS_MAX, OVERFLOW, SERIES_MAX, Counter, Labels, Reading, Registry
from ottla.metrics.text import CONTENT_TYPE

__all__ = [
    "CONTENT_TYPE",
    "FAMILY_CHARACTERS_MAX",
    "OVERFLOW",
    "SERIES_MAX",
    "Buckets",
    "Counter",
    "Labels",
    "Reading",
    "RecentBuckets",
    "Registry",
    "Summary",
]
