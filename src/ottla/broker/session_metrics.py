"""The session with the tree in numbers, under the names that Kafka has for them."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import TYPE_CHECKING, Final

from ottla.metrics import Labels
from ottla.metrics.times import RecentTimes

if TYPE_CHECKING:
    from ottla.broker.broker import Broker

_CONNECTING: Final = "CONNECTING"
_CONNECTED: Final = "CONNECTED"
_CLOSED: Final = "CLOSED"
#: As ZooKeeper's client calls them: it connects again where it has lost a server, and is closed where it has expired.
_STATES: Final = (_CONNECTING, _CONNECTED, _CLOSED)


def register_session_metrics(broker: Broker) -> None:
    registry, counts, clock = broker.registry, broker.session_counts, broker.ports.clock
    listener, recent = "kafka_server_sessionexpirelistener_", RecentTimes(clock.monotonic_ms())

    def counter(name: str, text: str, read: Callable[[], float]) -> None:
        registry.gauges(f"{listener}{name}", text, (), lambda: [((), read())], type_="counter")

    counter(
        "zookeepersyncconnects_total",
        "Times that a session with the tree was connected again.",
        lambda: counts.connects,
    )
    counter("zookeeperdisconnects_total", "Connections to the tree that were lost.", lambda: counts.disconnects)
    counter(
        "zookeeperexpires_total", "Sessions with the tree that ended while the broker lived.", lambda: counts.expires
    )
    registry.gauges(
        f"{listener}sessionstate",
        "1 for the state that the session with the tree is in.",
        ("state",),
        lambda: _states(broker),
    )
    registry.summaries(
        "kafka_server_zookeeperclientmetrics_zookeeperrequestlatencyms",
        "Milliseconds until the tree of another process has answered a request; quantiles of the last five minutes.",
        (),
        lambda: [((), recent.summary(counts.requests, clock.monotonic_ms()))],
    )


def _states(broker: Broker) -> Iterator[tuple[Labels, float]]:
    present = _state(broker)
    for state in _STATES:
        yield (state,), int(state == present)


def _state(broker: Broker) -> str:
    tree = broker.tree
    if tree is None:
        return _CLOSED if broker.is_stopping else _CONNECTING
    if tree.is_connected:
        return _CONNECTED
    return _CONNECTING if tree.fault is None else _CLOSED
