"""Transactions in numbers: what their coordinator holds and does. `kafka_*` are the names of Kafka's beans."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import TYPE_CHECKING

from ottla.broker.broker import Broker
from ottla.broker.load_time_metrics import LoadTimesNow, register_load_times
from ottla.metrics import Labels

if TYPE_CHECKING:
    from ottla.transactions.coordinator import TransactionCoordinator

_Read = Callable[["TransactionCoordinator"], int]


def register_transaction_metrics(broker: Broker) -> None:
    """Adds them to a broker's registry. Before anybody has asked for a coordinator there are no transactions."""
    markers = "kafka_coordinator_transaction_transactionmarkerchannelmanager_"
    gauges: dict[str, tuple[str, _Read]] = {
        f"{markers}unknowndestinationqueuesize": (
            "Decided transactions of which a marker waits for a leader, or to be sent once more.",
            lambda found: found.markers.without_leader,
        ),
        f"{markers}logappendretryqueuesize": (
            "Transactions whose markers are written, and whose completion the journal has refused so far.",
            lambda found: found.counts.unwritten,
        ),
        "ottla_transactions_ids": ("Transactional ids that this broker coordinates.", lambda found: found.counts.ids),
        "ottla_transactions_ongoing": ("Of these, those with an open one.", lambda found: found.counts.ongoing),
        "ottla_transactions_ending": (
            "Decided transactions whose markers are on their way.",
            lambda found: len(found.markers),
        ),
    }
    counters: dict[str, tuple[str, _Read]] = {
        "ottla_transactions_timed_out_total": (
            "Transactions that were aborted since their time was over.",
            lambda found: found.counts.aborted_by_timeout,
        ),
        "ottla_transactions_expired_ids_total": (
            "Transactional ids that were forgotten since nobody used them.",
            lambda found: found.counts.expired,
        ),
    }
    for kind, family in (("gauge", gauges), ("counter", counters)):
        for name, (text, read) in family.items():
            broker.registry.gauges(name, text, (), partial(_numbers, broker, read), type_=kind)
    register_load_times(broker.registry, "transaction", partial(_load_times, broker))


def _numbers(broker: Broker, read: _Read) -> list[tuple[Labels, float]]:
    services = broker.services
    found = None if services is None else services.transactions_on_demand.made
    return [((), 0 if found is None else read(found))]


def _load_times(broker: Broker) -> LoadTimesNow | None:
    services = broker.services
    found = None if services is None else services.transactions_on_demand.made
    return None if found is None else (found.led.load_times, found.led.now().monotonic_ms)
