"""A group's own properties, over the broker's `group.*` ones, within the bounds that the broker sets."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Final

from ottla.config.broker import Config
from ottla.config.definitions import broker_definitions, group_definitions
from ottla.config.errors import BrokenRuleError, ConfigError, UnknownConfigError
from ottla.config.slices import GroupsConfig
from ottla.config.values import Value, parse

#: Of these the broker has no property of its own.
_ONLY_OF_GROUPS: Final = frozenset(
    {"share.auto.offset.reset", "share.isolation.level", "share.renew.acknowledge.enable"}
)

#: Names whose least and greatest values the broker has, in the order in which Kafka looks at them. Of those with
#: False there is no least one.
_BOUNDED: Final = (
    ("consumer.heartbeat.interval.ms", True),
    ("consumer.session.timeout.ms", True),
    ("consumer.assignment.interval.ms", True),
    ("share.heartbeat.interval.ms", True),
    ("share.session.timeout.ms", True),
    ("share.record.lock.duration.ms", True),
    ("share.delivery.count.limit", True),
    ("share.partition.max.record.locks", True),
    ("share.assignment.interval.ms", True),
    ("streams.heartbeat.interval.ms", True),
    ("streams.session.timeout.ms", True),
    ("streams.num.standby.replicas", False),
    ("streams.assignment.interval.ms", True),
)


def broker_synonym(name: str) -> str | None:
    """The broker's property that a group's falls back on."""
    return None if name in _ONLY_OF_GROUPS else f"group.{name}"


def validate_group_configs(overrides: Mapping[str, str], config: Config) -> None:
    """Raises ConfigError unless each name is known, each value is good and within the broker's bounds."""
    known = group_definitions()
    for name in overrides:
        if name not in known:
            raise UnknownConfigError(name, "group")
    values = {name: parse(known[name], text) for name, text in overrides.items()}
    for name, has_least in _BOUNDED:
        if name in values:
            _check_bounds(name, _number(values[name]), has_least, config)
    for kind in ("consumer", "share", "streams"):
        session, heartbeat = f"{kind}.session.timeout.ms", f"{kind}.heartbeat.interval.ms"
        if _effective(session, values, config) <= _effective(heartbeat, values, config):
            raise BrokenRuleError(f"{session} must be greater than {heartbeat}")


def effective_groups_config(overrides: Mapping[str, str], groups: GroupsConfig) -> GroupsConfig:
    """What holds for a group. The broker's bounds may have been moved since it was set: what is outside is moved in."""
    if not overrides:
        return groups
    session_ms = _own("consumer.session.timeout.ms", overrides, groups.consumer_session_timeout_ms)
    heartbeat_ms = _own("consumer.heartbeat.interval.ms", overrides, groups.consumer_heartbeat_interval_ms)
    session_min, session_max = groups.consumer_session_timeout_ms_min, groups.consumer_session_timeout_ms_max
    heartbeat_min, heartbeat_max = groups.consumer_heartbeat_interval_ms_min, groups.consumer_heartbeat_interval_ms_max
    return groups._replace(
        consumer_session_timeout_ms=min(max(session_ms, session_min), session_max),
        consumer_heartbeat_interval_ms=min(max(heartbeat_ms, heartbeat_min), heartbeat_max),
    )


def _own(name: str, overrides: Mapping[str, str], default: int) -> int:
    try:
        return _number(parse(group_definitions()[name], overrides[name]))
    except (KeyError, ConfigError):  # not set, or a bad value was put there by hand
        return default


def _check_bounds(name: str, value: int, has_least: bool, config: Config) -> None:
    least, greatest = _bounds(name)
    if has_least and value < _broker_number(least, config):
        raise BrokenRuleError(f"{name} must be greater than or equal to {least}")
    if value > _broker_number(greatest, config):
        raise BrokenRuleError(f"{name} must be less than or equal to {greatest}")


def _bounds(name: str) -> tuple[str, str]:
    kind, _, rest = name.partition(".")
    return f"group.{kind}.min.{rest}", f"group.{kind}.max.{rest.removeprefix('num.')}"


def _effective(name: str, values: Mapping[str, Value], config: Config) -> int:
    return _number(values[name]) if name in values else _broker_number(f"group.{name}", config)


def _broker_number(name: str, config: Config) -> int:
    definition = broker_definitions()[name]
    for layer in (config.dynamic_broker, config.dynamic_default, config.properties):
        if name in layer:
            return _number(parse(definition, layer[name]))
    assert definition.default is not None, name
    return _number(parse(definition, definition.default))


def _number(value: Value) -> int:
    assert isinstance(value, int)
    return value
