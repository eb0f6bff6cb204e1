"""A topic's properties over the broker's, and the checks before they are stored."""

from __future__ import annotations

import pytest
from hypothesis import example, given
from hypothesis import strategies as st

from ottla.config import (
    Config,
    ConfigError,
    LogConfig,
    UnknownConfigError,
    effective_log_config,
    validate_topic_configs,
)
from ottla.config.definitions import topic_definitions
from ottla.config.log import LONG_MAX
from ottla.config.topic import FIELDS, SYNONYMS
from ottla.config.values import parse
from ottla.model import ErrorCode


def test_logconfigs_defaults_are_those_of_the_table() -> None:
    """Tests write `LogConfig(segment_bytes=...)`: what they leave out must be what a topic has."""
    overrides = {name: known.default for name, known in topic_definitions().items() if known.default is not None}
    other = LogConfig._make([None] * len(LogConfig._fields))
    assert effective_log_config(overrides, other) == LogConfig()
    assert set(FIELDS.values()) == set(LogConfig._fields)


def test_overrides_hold_and_the_rest_is_the_brokers() -> None:
    broker = Config.parse({"log.segment.bytes": "2000000", "log.retention.hours": "1", "log.flush.interval.ms": "9"})
    config = effective_log_config(
        {
            "retention.ms": "-1",
            "cleanup.policy": "compact",
            "min.cleanable.dirty.ratio": "0.1",
            "leader.replication.throttled.replicas": "0:1,1:2",
            "follower.replication.throttled.replicas": "*",
            "unclean.leader.election.enable": "true",
            "message.timestamp.type": "LogAppendTime",
        },
        broker.log,
    )
    assert config.segment_bytes == 2_000_000
    assert config.flush_ms == 9
    assert config.retention_ms == -1
    assert config.cleanup_policy == {"compact"}
    assert config.min_cleanable_dirty_ratio == 0.1
    assert config.leader_throttled_replicas == ("0:1", "1:2")
    assert config.follower_throttled_replicas == ("*",)
    assert config.unclean_leader_election is True
    assert config.uses_log_append_time
    assert effective_log_config({}, broker.log) is broker.log


def test_internal_segment_bytes_wins() -> None:
    overrides = {"internal.segment.bytes": "300", "segment.bytes": "1048576"}
    assert effective_log_config(overrides, LogConfig()).segment_bytes == 300


def test_names_without_a_field_are_passed_over() -> None:
    assert effective_log_config({"remote.storage.enable": "true", "from.the.future": "x"}, LogConfig()) == LogConfig()


def test_every_broker_synonym_fills_the_same_field() -> None:
    """Set on the broker, or on the topic: the log sees the same."""
    samples = {"INT": "2097152", "LONG": "2097152", "DOUBLE": "0.75", "BOOLEAN": "true", "LIST": "compact"}
    special = {
        "compression.type": "zstd",
        "message.timestamp.type": "LogAppendTime",
        "compression.gzip.level": "7",
        "compression.lz4.level": "11",
        "compression.zstd.level": "13",
    }
    for name, synonyms in SYNONYMS.items():
        if name not in FIELDS:
            continue
        known = topic_definitions()[name]
        text = special.get(name, samples.get(known.type, ""))
        on_topic = effective_log_config({name: text}, LogConfig())
        assert on_topic != LogConfig(), name
        assert Config.parse({synonyms[0]: text}).log == on_topic, name


@pytest.mark.parametrize(
    ("overrides", "why"),
    [
        ({"segment.bytes": "10"}, "Value must be at least 14"),
        ({"retention.ms": "-2"}, "Value must be at least -1"),
        ({"cleanup.policy": "shred"}, "must be one of: compact, delete"),
        ({"leader.replication.throttled.replicas": "0:1,x"}, "must be the literal"),
        ({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "50"}, r"\(100\) > max.compaction.lag.ms \(50\)"),
        ({"remote.storage.enable": "true"}, "Tiered Storage functionality is disabled"),
        ({"segment.bytes": None}, "Null value not supported"),
    ],
)
def test_bad_topic_configs_are_refused(overrides: dict[str, str | None], why: str) -> None:
    with pytest.raises(ConfigError, match=why) as caught:
        validate_topic_configs(overrides)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_an_unknown_topic_config_is_refused() -> None:
    with pytest.raises(UnknownConfigError) as caught:
        validate_topic_configs({"retention.mss": "1"})
    assert str(caught.value) == "Unknown topic config name: retention.mss"


def test_good_topic_configs_are_taken() -> None:
    validate_topic_configs({"retention.bytes": "-5", "cleanup.policy": "", "max.compaction.lag.ms": str(LONG_MAX)})


def test_compaction_lags_are_compared_with_those_of_the_broker() -> None:
    broker = Config.parse({"log.cleaner.max.compaction.lag.ms": "50", "log.cleaner.min.compaction.lag.ms": "20"}).log
    for overrides, why in (
        ({"min.compaction.lag.ms": "100"}, r"\(100\) > max.compaction.lag.ms \(50\)"),
        ({"max.compaction.lag.ms": "10"}, r"\(20\) > max.compaction.lag.ms \(10\)"),
    ):
        with pytest.raises(ConfigError, match=why) as caught:
            validate_topic_configs(overrides, broker)
        assert caught.value.code is ErrorCode.INVALID_CONFIG
        validate_topic_configs(overrides)
    validate_topic_configs({"min.compaction.lag.ms": "100", "max.compaction.lag.ms": "100"}, broker)


@pytest.mark.parametrize(("text", "why"), [("1e400", "no more than 1"), ("-1e400", "at least 0")])
def test_a_number_beyond_all_doubles_is_refused_for_what_it_is(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=f"Infinity for configuration .*: Value must be {why}") as caught:
        validate_topic_configs({"min.cleanable.dirty.ratio": text})
    assert caught.value.code is ErrorCode.INVALID_CONFIG


@given(st.sampled_from(sorted(topic_definitions())), st.text(max_size=40))
@example("min.cleanable.dirty.ratio", "1e400")
def test_any_text_is_a_value_or_refused(name: str, text: str) -> None:
    try:
        parse(topic_definitions()[name], text)
    except ConfigError as error:
        assert error.name == name  # noqa: PT017 - both outcomes are good
    else:
        effective_log_config({name: text}, LogConfig())


def test_how_many_records_a_follower_may_lack_is_said_by_the_topic_or_the_broker_or_nobody() -> None:
    assert Config.parse({}).log.lag_messages_max is None
    broker = Config.parse({"replica.lag.max.messages": "4000"})
    assert broker.without_effect == ()
    assert effective_log_config({}, broker.log).lag_messages_max == 4_000
    assert effective_log_config({"replica.lag.max.messages": "7"}, broker.log).lag_messages_max == 7
    with pytest.raises(ConfigError):
        validate_topic_configs({"replica.lag.max.messages": "0"})
