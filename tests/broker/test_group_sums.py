"""Sums over a group's partitions of a topic, and the many groups that one scrape goes through."""

from __future__ import annotations

import tempfile

from tests.broker.test_broker_metrics import numbers
from tests.handlers.groups import commit, find
from tests.server.conftest import BrokerThread

from ottla.broker.group_metrics import register_group_metrics
from ottla.metrics import Registry
from ottla.steps import PIECE


def test_sums_are_of_each_topic_of_each_group() -> None:
    with tempfile.TemporaryDirectory() as folder, BrokerThread(folder, **SETTINGS) as broker, broker.connect() as peer:
        register_group_metrics(broker.broker)
        for topic in ("a", "b"):
            broker.create_topic(topic, 3)
        find(peer)
        for group in ("g", "h"):
            commit(peer, group, {("a", 0): 1, ("b", 2): 10, ("a", 2): 2, ("b", 0): 20})
        seen = numbers(broker.look(lambda running: running.registry.render()))
    for group in ("g", "h"):
        assert seen[f'kafka_consumergroup_current_offset_sum{{consumergroup="{group}",topic="a"}}'] == 3
        assert seen[f'kafka_consumergroup_current_offset_sum{{consumergroup="{group}",topic="b"}}'] == 30
        # Offsets above the end, as a client may commit them, are no lag.
        assert seen[f'kafka_consumergroup_lag_sum{{consumergroup="{group}",topic="b"}}'] == 0


def test_groups_are_counted_once_a_scrape_and_in_steps() -> None:
    """A client may make a hundred thousand groups by committing for them."""
    with tempfile.TemporaryDirectory() as folder, BrokerThread(folder, **SETTINGS) as broker, broker.connect() as peer:
        register_group_metrics(broker.broker)
        broker.create_topic("a")
        find(peer)
        for number in range(3 * PIECE):
            commit(peer, f"g{number}", {("a", 0): 1})
        counted = broker.look(lambda running: counted_groups(running.registry, running.services.groups))  # type: ignore[union-attr]
    # Once for their states, and once for their members.
    assert counted == [(2 * 3 * PIECE, True), (2 * 3 * PIECE, True)]


SETTINGS = {"offsets.topic.replication.factor": "1", "offsets.topic.num.partitions": "1"}


def counted_groups(registry: Registry, coordinator: object) -> list[tuple[int, bool]]:
    """Of two scrapes: how many groups were looked at, and whether never more than a piece in one step."""
    looked = 0
    groups = coordinator.groups  # type: ignore[attr-defined]

    def counting() -> object:
        nonlocal looked
        for group in groups():
            looked += 1
            yield group

    coordinator.groups = counting  # type: ignore[attr-defined]
    found = []
    for _ in range(2):
        looked = seen = 0
        in_steps = True
        for _ in registry.rendering():
            in_steps = in_steps and looked - seen <= PIECE
            seen = looked
        found.append((looked, in_steps))
    return found
