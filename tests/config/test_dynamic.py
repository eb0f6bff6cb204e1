"""Incremental changes, and what may change while a broker runs."""

from __future__ import annotations

import pytest

from ottla.config import Config, ConfigError
from ottla.config.dynamic import (
    CHANGES_MAX,
    VALUE_BYTES_MAX,
    Op,
    apply_incremental,
    is_dynamic,
    validate_broker_configs,
    with_dynamic,
)
from ottla.model import ErrorCode


def test_set_and_delete() -> None:
    current = {"retention.ms": "1", "segment.ms": "2"}
    changed = apply_incremental(
        "topic", current, [("retention.ms", Op.DELETE, None), ("flush.ms", 0, "7"), ("preallocate", 1, None)]
    )
    assert changed == {"segment.ms": "2", "flush.ms": "7"}
    assert current == {"retention.ms": "1", "segment.ms": "2"}


@pytest.mark.parametrize(
    ("current", "op", "value", "result"),
    [
        ({}, Op.APPEND, "compact", "delete,compact"),  # the default is what is appended to
        ({}, Op.SUBTRACT, "delete", ""),
        ({"cleanup.policy": "compact"}, Op.APPEND, "compact", "compact"),
        ({"cleanup.policy": "compact, delete"}, Op.SUBTRACT, "compact", "delete"),
        ({"cleanup.policy": ""}, Op.APPEND, "compact,delete", "compact,delete"),
        ({"cleanup.policy": "delete"}, Op.SUBTRACT, "compact", "delete"),
    ],
)
def test_append_and_subtract(current: dict[str, str], op: Op, value: str, result: str) -> None:
    assert apply_incremental("topic", current, [("cleanup.policy", op, value)]) == {"cleanup.policy": result}


@pytest.mark.parametrize(
    ("changes", "code", "why"),
    [
        ([("segment.bytes", Op.APPEND, "1")], ErrorCode.INVALID_CONFIG, "its type is not LIST"),
        ([("no.such.name", Op.SUBTRACT, "1")], ErrorCode.INVALID_CONFIG, "its type is not LIST"),
        ([("flush.ms", 0, "1"), ("flush.ms", 1, None)], ErrorCode.INVALID_REQUEST, "duplicate config keys"),
        ([("flush.ms", 9, "1")], ErrorCode.INVALID_REQUEST, "Unknown operations type 9"),
        ([("flush.ms", Op.SET, None)], ErrorCode.INVALID_REQUEST, "Null value not supported"),
        ([("a", Op.SET, "x" * (VALUE_BYTES_MAX + 1))], ErrorCode.INVALID_CONFIG, "longer than 32767 bytes"),
        ([(str(n), Op.DELETE, None) for n in range(CHANGES_MAX + 1)], ErrorCode.POLICY_VIOLATION, "more than 10000"),
    ],
)
def test_bad_changes_are_refused(changes: list[tuple[str, int, str | None]], code: ErrorCode, why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        apply_incremental("topic", {}, changes)
    assert caught.value.code is code


def test_the_longest_value_is_taken() -> None:
    text = "x" * VALUE_BYTES_MAX
    assert apply_incremental("broker", {}, [("a", Op.SET, text)]) == {"a": text}


@pytest.mark.parametrize(
    ("overrides", "of_all_brokers", "why"),
    [
        ({"broker.id": "3"}, False, "Cannot update these configs dynamically"),
        ({"listeners": "PLAINTEXT://:1"}, False, "Cannot update these configs dynamically"),
        ({"log.retention.hours": "3"}, True, "Cannot update these configs dynamically"),
        ({"ssl.keystore.location": "/k"}, False, "only per-listener"),
        (
            {"listener.name.a.ssl.keystore.location": "/k"},
            True,
            "at default cluster level, broker id must be specified",
        ),
        ({"cordoned.log.dirs": "/a"}, True, "at default cluster level, broker id must be specified"),
        ({"log.retention.ms": "soon"}, False, "Not a number of type LONG"),
        ({"listener.name.a.ssl.client.auth": "maybe"}, False, "must be one of"),
    ],
)
def test_what_may_not_change_is_refused(overrides: dict[str, str], of_all_brokers: bool, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        validate_broker_configs(overrides, of_all_brokers=of_all_brokers)


def test_a_refusal_hides_passwords() -> None:
    with pytest.raises(ConfigError) as caught:
        validate_broker_configs({"ssl.key.password": "s3cret"}, of_all_brokers=False)
    assert "s3cret" not in str(caught.value)


def test_what_may_change_is_taken() -> None:
    validate_broker_configs(
        {"log.retention.ms": "5", "max.connections": "9", "a.plugins.own": "x"}, of_all_brokers=True
    )
    validate_broker_configs({"listener.name.a.plain.sasl.jaas.config": "x"}, of_all_brokers=False)
    assert is_dynamic("log.retention.ms")
    assert is_dynamic("listener.name.internal.ssl.keystore.location")
    assert not is_dynamic("log.dirs")
    assert not is_dynamic("no.such.name")


def test_one_brokers_overrides_beat_all_brokers_beat_the_file() -> None:
    config = Config.parse({"log.retention.hours": "1", "message.max.bytes": "10", "zzz": "1"}, env={"HOME": "/h"})
    config = with_dynamic(config, {"log.retention.ms": "2", "max.connections": "4"}, {"log.retention.ms": "3"})
    assert config.log.retention_ms == 3
    assert config.log.max_message_bytes == 10
    assert config.server.connections_max == 4
    assert config.storage.log_dirs == ("/h/.local/state/ottla/data",)
    assert len(config.warnings) == 1


def test_overrides_are_replaced_not_heaped_up() -> None:
    config = with_dynamic(Config.parse(), {"message.max.bytes": "10"}, {})
    assert with_dynamic(config, {}, {}) == Config.parse()


def test_overrides_that_cannot_change_are_passed_over() -> None:
    config = with_dynamic(Config.parse(), {"num.partitions": "9"}, {"listeners": "garbage"})
    assert config == Config.parse()


def test_overrides_that_nobody_knows_are_kept_and_have_no_effect() -> None:
    strange = {"unknown": "x", "listener.name.a.broker.id": "zz"}
    config = with_dynamic(Config.parse(), {}, strange)
    assert config.dynamic_broker == strange
    assert config._replace(dynamic_broker={}) == Config.parse()


def test_an_unsound_result_is_refused() -> None:
    with pytest.raises(ConfigError, match=r"max\.connections\.per\.ip"):
        with_dynamic(Config.parse(), {}, {"max.connections.per.ip": "0"})
