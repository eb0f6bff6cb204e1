"""Overrides of topics and brokers, producer ids, ISR changes and failed replicas."""

from __future__ import annotations

from typing import Any

import pytest
from tests.controller.cluster import Cluster

from ottla.controller.interface import (
    ConfigChanges,
    ConfigOverrides,
    ConfigResult,
    ConfigTarget,
    ConfigTargetType,
    IsrChange,
    TopicToCreate,
)
from ottla.coordination.znodes import decode_config
from ottla.metadata.updates import DEFAULT_BROKER
from ottla.model import BrokerId, Epoch, ErrorCode, TopicPartition

SET, DELETE, APPEND, SUBTRACT = range(4)
NO_TOPIC = ConfigTarget(ConfigTargetType.TOPIC, "none")
ORDERS = ConfigTarget(ConfigTargetType.TOPIC, "orders")
BROKER = ConfigTarget(ConfigTargetType.BROKER, "1")
ALL_BROKERS = ConfigTarget(ConfigTargetType.BROKER, "")
ONE = BrokerId(1)


@pytest.fixture
def started(cluster: Cluster) -> Cluster:
    cluster.run(cluster.start())
    cluster.run(cluster.controller.create_topics([TopicToCreate("orders", 2, configs={"retention.ms": "5"})]))
    return cluster


def alter(cluster: Cluster, *requests: ConfigChanges | ConfigOverrides, **options: Any) -> list[ConfigResult]:
    return cluster.run(cluster.controller.alter_configs(requests, **options))


def stored(cluster: Cluster, path: str) -> dict[str, str]:
    data, _ = cluster.run(cluster.session.get(path))
    return decode_config(path, data)


def test_single_changes_of_a_topic(started: Cluster) -> None:
    changes = (("cleanup.policy", APPEND, "compact"), ("retention.ms", SET, "9"), ("segment.ms", SET, "7"))
    (result,) = alter(started, ConfigChanges(ORDERS, changes))
    assert result.error is ErrorCode.NONE
    expected = {"cleanup.policy": "delete,compact", "retention.ms": "9", "segment.ms": "7"}
    assert stored(started, "/config/topics/orders") == expected
    assert started.broker.cache.topic_config("orders") == expected
    changes = (("cleanup.policy", SUBTRACT, "delete"), ("retention.ms", DELETE, None))
    (result,) = alter(started, ConfigChanges(ORDERS, changes))
    assert result.error is ErrorCode.NONE
    assert started.broker.cache.topic_config("orders") == {"cleanup.policy": "compact", "segment.ms": "7"}
    started.run(started.stop())
    started.run(started.start())
    assert started.broker.cache.topic_config("orders") == {"cleanup.policy": "compact", "segment.ms": "7"}


def test_all_overrides_of_a_topic_are_replaced(started: Cluster) -> None:
    (result,) = alter(started, ConfigOverrides(ORDERS, {"segment.ms": "7"}))
    assert result.error is ErrorCode.NONE
    assert started.broker.cache.topic_config("orders") == {"segment.ms": "7"}


def test_overrides_of_one_broker_and_of_all(started: Cluster) -> None:
    one = ConfigChanges(BROKER, (("log.cleaner.threads", SET, "3"),))
    every = ConfigChanges(ALL_BROKERS, (("log.cleaner.threads", SET, "2"),))
    assert [result.error for result in alter(started, one, every)] == [ErrorCode.NONE] * 2
    cache = started.broker.cache
    assert cache.broker_config(1) == {"log.cleaner.threads": "3"}
    assert cache.default_broker_config() == {"log.cleaner.threads": "2"}
    assert stored(started, f"/config/brokers/{DEFAULT_BROKER}") == {"log.cleaner.threads": "2"}
    started.kill()
    started.run(started.start())
    assert started.broker.cache.broker_config(1) == {"log.cleaner.threads": "3"}
    (result,) = alter(started, ConfigOverrides(BROKER, {}))
    assert result.error is ErrorCode.NONE
    assert started.broker.cache.broker_config(1) == {}


@pytest.mark.parametrize(
    ("request_", "error"),
    [
        (ConfigChanges(NO_TOPIC, ()), "UNKNOWN_TOPIC_OR_PARTITION"),
        (ConfigChanges(NO_TOPIC, (("retention.ms", SET, "7"),)), "UNKNOWN_TOPIC_OR_PARTITION"),
        (ConfigChanges(NO_TOPIC, (("retention.ms", SET, "soon"),)), "INVALID_CONFIG"),
        (ConfigChanges(NO_TOPIC, (("retention.ms", SET, None),)), "INVALID_REQUEST"),
        (ConfigOverrides(NO_TOPIC, {"retention.ms": "7"}), "UNKNOWN_TOPIC_OR_PARTITION"),
        (ConfigOverrides(NO_TOPIC, {"no.such": "1"}), "INVALID_CONFIG"),
        (ConfigChanges(ORDERS, (("no.such", SET, "1"),)), "INVALID_CONFIG"),
        (ConfigChanges(ORDERS, (("retention.ms", SET, "soon"),)), "INVALID_CONFIG"),
        (ConfigChanges(ORDERS, (("retention.ms", SET, None),)), "INVALID_REQUEST"),
        (ConfigChanges(ORDERS, (("retention.ms", APPEND, "1"),)), "INVALID_CONFIG"),
        (ConfigChanges(ORDERS, (("retention.ms", 9, "1"),)), "INVALID_REQUEST"),
        (ConfigChanges(ORDERS, (("retention.ms", SET, "1"), ("retention.ms", SET, "2"))), "INVALID_REQUEST"),
        (ConfigOverrides(ORDERS, {"retention.ms": None}), "INVALID_REQUEST"),
        (ConfigOverrides(ORDERS, {"no.such": "1"}), "INVALID_CONFIG"),
        (ConfigChanges(BROKER, (("log.dirs", SET, "/x"),)), "INVALID_REQUEST"),
        (ConfigChanges(ConfigTarget(ConfigTargetType.BROKER, "one"), ()), "INVALID_REQUEST"),
        (ConfigChanges(ConfigTarget(ConfigTargetType.BROKER, "../x"), ()), "INVALID_REQUEST"),
        (ConfigChanges(ConfigTarget(ConfigTargetType.BROKER, "\u0661"), ()), "INVALID_REQUEST"),
    ],
)
def test_changes_that_are_refused(started: Cluster, request_: ConfigChanges | ConfigOverrides, error: str) -> None:
    good = ConfigChanges(ALL_BROKERS, (("log.cleaner.threads", SET, "2"),))
    refused, done = alter(started, request_, good)
    assert (refused.error, done.error) == (ErrorCode[error], ErrorCode.NONE)
    assert refused.message
    assert stored(started, "/config/topics/orders") == {"retention.ms": "5"}


def test_one_resource_may_not_be_named_twice(started: Cluster) -> None:
    change = ConfigChanges(ORDERS, (("segment.ms", SET, "7"),))
    assert {result.error for result in alter(started, change, change)} == {ErrorCode.INVALID_REQUEST}


def test_validate_only_and_changes_that_change_nothing_write_nothing(started: Cluster) -> None:
    zxid = started.session.store._tree.zxid
    (result,) = alter(started, ConfigOverrides(ORDERS, {"segment.ms": "7"}), validate_only=True)
    assert result.error is ErrorCode.NONE
    (result,) = alter(started, ConfigOverrides(ORDERS, {"retention.ms": "5"}))
    assert result.error is ErrorCode.NONE
    assert started.session.store._tree.zxid == zxid
    assert started.broker.cache.topic_config("orders") == {"retention.ms": "5"}


# Producer ids.


def test_producer_ids_are_never_given_twice(started: Cluster) -> None:
    def block() -> tuple[int, int]:
        ids = started.run(started.controller.allocate_producer_ids(ONE))
        assert ids.error is ErrorCode.NONE
        return ids.first, ids.length

    assert [block(), block()] == [(0, 1000), (1000, 1000)]
    started.crash()
    started.run(started.start())
    assert block() == (2000, 1000)


def test_producer_ids_come_to_an_end(started: Cluster) -> None:
    last = b'{"version":1,"broker":1,"block_start":"9223372036854774000","block_end":"9223372036854774999"}'
    started.run(started.session.set("/latest_producer_id_block", last))
    ids = started.run(started.controller.allocate_producer_ids(ONE))
    assert (ids.error, ids.length) == (ErrorCode.UNKNOWN_SERVER_ERROR, 0)
    started.run(started.session.set("/latest_producer_id_block", b"{}"))
    ids = started.run(started.controller.allocate_producer_ids(ONE))
    assert ids.error is ErrorCode.UNKNOWN_SERVER_ERROR
    assert "latest_producer_id_block" in (ids.message or "")


# The ISR.


def isr_change(**changes: Any) -> IsrChange:
    return IsrChange(TopicPartition("orders", 0), Epoch(0), 0, (ONE,))._replace(**changes)


def test_a_leader_changes_its_isr(started: Cluster) -> None:
    (result,) = started.settle(started.controller.alter_isr(ONE, [isr_change()]))
    assert result.error is ErrorCode.NONE
    assert result.state is not None
    assert (result.state.isr, result.state.partition_epoch, result.state.leader_epoch) == ((1,), 1, 0)
    assert started.broker.cache.partition("orders", 0) == result.state
    _, stat = started.run(started.session.get("/brokers/topics/orders/partitions/0/state"))
    assert stat.version == 1


@pytest.mark.parametrize(
    ("change", "error"),
    [
        ({"tp": TopicPartition("none", 0)}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"tp": TopicPartition("orders", 2)}, "UNKNOWN_TOPIC_OR_PARTITION"),
        ({"leader_epoch": Epoch(-1)}, "FENCED_LEADER_EPOCH"),
        ({"leader_epoch": Epoch(1)}, "NOT_CONTROLLER"),
        ({"partition_epoch": 1}, "NOT_CONTROLLER"),
        ({"isr": ()}, "INVALID_REQUEST"),
        ({"isr": (ONE, ONE)}, "INVALID_REQUEST"),
        ({"isr": (ONE, BrokerId(2))}, "INVALID_REQUEST"),
    ],
)
def test_isr_changes_that_are_refused(started: Cluster, change: dict[str, Any], error: str) -> None:
    (result,) = started.settle(started.controller.alter_isr(ONE, [isr_change(**change)]))
    assert result.error is ErrorCode[error]
    assert started.run(started.session.get("/brokers/topics/orders/partitions/0/state"))[1].version == 0


def test_only_the_leader_changes_the_isr(started: Cluster) -> None:
    (result,) = started.settle(started.controller.alter_isr(BrokerId(2), [isr_change()]))
    assert result.error is ErrorCode.STALE_BROKER_EPOCH


def test_a_state_that_changed_behind_the_controller_is_not_overwritten(started: Cluster) -> None:
    path = "/brokers/topics/orders/partitions/0/state"
    other = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":3,"isr":[1]}'
    started.run(started.session.set(path, other))
    (result,) = started.settle(started.controller.alter_isr(ONE, [isr_change()]))
    assert result.error is ErrorCode.INVALID_UPDATE_VERSION
    assert started.run(started.session.get(path))[0] == other
    # The next turn knows.
    change = isr_change(leader_epoch=Epoch(3), partition_epoch=1)
    (result,) = started.settle(started.controller.alter_isr(ONE, [change]))
    assert result.error is ErrorCode.NONE


def test_replicas_on_a_failed_directory_lead_no_more(started: Cluster) -> None:
    failed = [TopicPartition("orders", 1), TopicPartition("none", 0)]
    started.settle(started.controller.replicas_failed(ONE, failed))
    good, bad = started.broker.cache.topics["orders"].partitions
    assert (good.leader, bad.leader, bad.leader_epoch, bad.offline_replicas) == (1, -1, 1, (1,))
    (result,) = started.settle(started.controller.alter_isr(ONE, [isr_change(tp=TopicPartition("orders", 1))]))
    assert result.error is ErrorCode.FENCED_LEADER_EPOCH


def test_an_election_on_a_state_that_changed_behind_the_controller_is_decided_anew(started: Cluster) -> None:
    path = "/brokers/topics/orders/partitions/1/state"
    other = b'{"controller_epoch":1,"leader":1,"version":1,"leader_epoch":3,"isr":[1]}'
    started.run(started.session.set(path, other))
    reads = len(started.broker.calls)
    started.settle(started.controller.replicas_failed(ONE, [TopicPartition("orders", 0), TopicPartition("orders", 1)]))
    states = started.broker.cache.topics["orders"].partitions
    assert [(state.leader, state.leader_epoch, state.partition_epoch) for state in states] == [(-1, 1, 1), (-1, 4, 2)]
    # Only that partition was read again, and nothing was announced anew.
    assert started.broker.calls[reads:] == ["metadata"]
