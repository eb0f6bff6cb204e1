"""Requests that wait for others, in numbers, under the name that Kafka has for the place where they do."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterator
from typing import Final

from ottla.handlers.fetch.waiting import FetchWait
from ottla.handlers.produce.held import HeldProduces
from ottla.handlers.produce.waiting import ProduceWait
from ottla.metrics import Labels, Registry
from ottla.replication.replicas import Replicas
from ottla.replication.waiters import Waiter

_PRODUCE: Final = "Produce"
_FETCH: Final = "Fetch"


def register_waiting_metrics(registry: Registry, replicas: Callable[[], Replicas | None]) -> None:
    registry.gauges(
        "kafka_server_delayedoperationpurgatory_purgatorysize",
        "Requests that wait: Produces for replicas or the disk, Fetches for records.",
        ("delayedoperation",),
        lambda: _counts(replicas()),
    )


def _counts(replicas: Replicas | None) -> Iterator[tuple[Labels, float] | None]:
    found: Counter[str] = Counter()
    for waiter in [] if replicas is None else replicas.waiters.parked():
        if isinstance(waiter, HeldProduces):
            found[_PRODUCE] += len(waiter)
        else:
            found[_kind(waiter)] += 1
        yield None
    for kind in (_PRODUCE, _FETCH):
        yield (kind,), found[kind]


def _kind(waiter: Waiter) -> str:
    """Empty for what is neither: markers of transactions, and what coordinators write."""
    if isinstance(waiter, FetchWait):
        return _FETCH
    return _PRODUCE if isinstance(waiter, ProduceWait) else ""
