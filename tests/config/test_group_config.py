"""Settings of single groups: what is taken, within which bounds, and what holds."""

from __future__ import annotations

import pytest

from ottla.config import Config, ConfigError
from ottla.config.definitions import broker_definitions, group_definitions
from ottla.config.describe import Source, describe_group
from ottla.config.group import broker_synonym, effective_groups_config, validate_group_configs


def test_every_setting_falls_back_on_one_that_brokers_have_or_on_none() -> None:
    own = {name for name in group_definitions() if broker_synonym(name) is None}
    assert own == {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
    assert {broker_synonym(name) for name in group_definitions()} - {None} <= broker_definitions().keys()


@pytest.mark.parametrize(
    ("overrides", "sentence"),
    [
        ({"session.timeout.ms": "1"}, "Unknown group config name: session.timeout.ms"),
        (
            {"consumer.session.timeout.ms": "44999"},
            "consumer.session.timeout.ms must be greater than or equal to group.consumer.min.session.timeout.ms",
        ),
        (
            {"streams.num.standby.replicas": "3"},
            "streams.num.standby.replicas must be less than or equal to group.streams.max.standby.replicas",
        ),
    ],
)
def test_what_is_refused(overrides: dict[str, str], sentence: str) -> None:
    with pytest.raises(ConfigError) as caught:
        validate_group_configs(overrides, Config.parse())
    assert str(caught.value) == sentence


def test_a_session_is_longer_than_a_heartbeat_whichever_of_them_is_the_brokers() -> None:
    short = Config.parse({"group.consumer.min.session.timeout.ms": "1000"})
    with pytest.raises(ConfigError, match="must be greater than consumer"):
        validate_group_configs({"consumer.session.timeout.ms": "5000"}, short)
    validate_group_configs({"consumer.session.timeout.ms": "5001"}, short)


def test_bounds_that_were_moved_later_hold_for_what_was_set_before() -> None:
    groups = Config.parse({"group.consumer.max.session.timeout.ms": "50000"}).groups
    held = effective_groups_config({"consumer.session.timeout.ms": "60000"}, groups)
    assert held.consumer_session_timeout_ms == 50_000
    assert held.consumer_heartbeat_interval_ms == groups.consumer_heartbeat_interval_ms


def test_values_that_were_put_there_by_hand_are_passed_over() -> None:
    groups = Config.parse().groups
    assert effective_groups_config({"consumer.session.timeout.ms": "soon", "x": "y"}, groups) == groups


def test_the_brokers_own_value_is_where_a_group_has_none() -> None:
    config = Config.parse({"group.consumer.session.timeout.ms": "46000"})
    (entry,) = describe_group({}, config, ["consumer.session.timeout.ms"])
    assert (entry.value, entry.source) == ("46000", Source.STATIC_BROKER)
    (entry,) = describe_group({"consumer.session.timeout.ms": "47000"}, config, ["consumer.session.timeout.ms"])
    assert (entry.value, entry.source) == ("47000", Source.DYNAMIC_GROUP)
    assert [synonym.value for synonym in entry.synonyms] == ["47000", "46000", "45000"]
