"""DescribeConfigs' entries: value, source, synonyms, and what is kept secret."""

from __future__ import annotations

from collections.abc import Collection

import pytest

from ottla.config import Config
from ottla.config.definitions import broker_definitions, listed_when_set, topic_definitions
from ottla.config.describe import (
    DescribedProperty,
    Source,
    Synonym,
    broker_entry,
    describe_all_brokers,
    describe_topic,
    is_listed,
    names_of_broker,
    value_text,
)
from ottla.config.dynamic import with_dynamic


def describe_broker(config: Config, names: Collection[str] | None = None) -> list[DescribedProperty]:
    """As `handlers/configs/described.py` answers: some stand in the list of all only where they are set."""
    asked = [name for name in names_of_broker(config) if names is None or name in names]
    entries = [broker_entry(name, config) for name in asked]
    return [entry for entry in entries if names is not None or is_listed(entry)]


def only(entries: list[DescribedProperty]) -> DescribedProperty:
    assert len(entries) == 1
    return entries[0]


def test_a_topic_without_overrides_shows_every_public_property_with_its_default() -> None:
    entries = describe_topic({}, Config.parse())
    assert {entry.name for entry in entries} == topic_definitions().keys() - {"internal.segment.bytes"}
    for entry in entries:
        assert entry.value == topic_definitions()[entry.name].default, entry.name
        assert (entry.source, entry.is_read_only, entry.is_sensitive) == (Source.DEFAULT, False, False)
        assert entry.documentation


def test_synonyms_stand_in_the_order_in_which_they_hold() -> None:
    config = Config.parse({"log.segment.bytes": "2000000"})
    config = with_dynamic(config, {"log.segment.bytes": "3000000"}, {"log.segment.bytes": "4000000"})
    entry = only(describe_topic({"segment.bytes": "5000000"}, config, ["segment.bytes"]))
    assert (entry.value, entry.source, entry.type) == ("5000000", Source.DYNAMIC_TOPIC, 3)
    assert entry.synonyms == (
        Synonym("segment.bytes", "5000000", Source.DYNAMIC_TOPIC),
        Synonym("log.segment.bytes", "4000000", Source.DYNAMIC_BROKER),
        Synonym("log.segment.bytes", "3000000", Source.DYNAMIC_DEFAULT_BROKER),
        Synonym("log.segment.bytes", "2000000", Source.STATIC_BROKER),
        Synonym("log.segment.bytes", "1073741824", Source.DEFAULT),
    )


def test_a_topics_retention_tells_of_the_brokers_hours() -> None:
    entry = only(describe_topic({}, Config.parse({"log.retention.hours": "5"}), {"retention.ms"}))
    assert (entry.value, entry.source) == ("18000000", Source.STATIC_BROKER)
    assert entry.synonyms[0] == Synonym("log.retention.hours", "5", Source.STATIC_BROKER)


def test_lists_keep_their_order_and_numbers_lose_their_blanks() -> None:
    overrides = {"cleanup.policy": "delete, compact", "flush.ms": " 007 "}
    values = {entry.name: entry.value for entry in describe_topic(overrides, Config.parse())}
    assert values["cleanup.policy"] == "delete,compact"
    assert values["flush.ms"] == "7"


def test_a_stored_value_that_is_not_good_is_shown_to_be_repaired() -> None:
    overrides = {"segment.ms": "garbage", "unheard.of": "x", "flush.ms": "5"}
    entries = {entry.name: entry for entry in describe_topic(overrides, Config.parse())}
    assert entries["segment.ms"].synonyms[0] == Synonym("segment.ms", "garbage", Source.DYNAMIC_TOPIC)
    assert entries["flush.ms"].value == "5"
    assert "unheard.of" not in entries


def test_a_broker_shows_every_public_property() -> None:
    entries = {entry.name: entry for entry in describe_broker(Config.parse())}
    public = {name for name, known in broker_definitions().items() if not known.is_internal}
    assert entries.keys() == public - listed_when_set()
    assert entries["log.dir"].value == "/var/lib/ottla/data"
    assert entries["log.dirs"].value is None
    assert entries["broker.id"].is_read_only
    assert not entries["log.retention.ms"].is_read_only
    assert entries["log.cleaner.io.max.bytes.per.second"].value == "1.7976931348623157E308"


def test_what_only_zookeeper_mode_knows_is_listed_where_it_is_set_and_told_to_whom_asks() -> None:
    assert {"zookeeper.connect", "super.users", "leader.replication.throttled.rate"} <= listed_when_set()
    asked = only(describe_broker(Config.parse(), ["zookeeper.session.timeout.ms"]))
    assert (asked.value, asked.source) == ("6000", Source.DEFAULT)
    config = with_dynamic(Config.parse({"super.users": "User:a"}), {"leader.replication.throttled.rate": "7"}, {})
    sources = {entry.name: entry.source for entry in describe_broker(config) if entry.name in listed_when_set()}
    assert sources == {
        "super.users": Source.STATIC_BROKER,
        "leader.replication.throttled.rate": Source.DYNAMIC_DEFAULT_BROKER,
    }


def test_an_unset_unit_has_no_value_and_a_set_one_its_own() -> None:
    config = Config.parse({"log.retention.hours": "5"})
    milliseconds, hours = sorted(
        describe_broker(config, ["log.retention.hours", "log.retention.ms"]), key=lambda entry: entry.name, reverse=True
    )
    assert (milliseconds.value, milliseconds.source, milliseconds.synonyms) == (None, Source.DEFAULT, ())
    assert (hours.value, hours.source) == ("5", Source.STATIC_BROKER)


def test_passwords_and_unknown_values_are_not_told() -> None:
    config = Config.parse({"ssl.key.password": "s3cret", "my.plugin.token": "s3cret"})
    entries = describe_broker(config, ["ssl.key.password", "my.plugin.token"])
    assert [(entry.value, entry.is_sensitive, entry.source) for entry in entries] == [
        (None, True, Source.STATIC_BROKER),
        (None, True, Source.STATIC_BROKER),
    ]
    assert "s3cret" not in repr(describe_broker(config))


def test_all_brokers_shows_what_is_set_for_all_and_nothing_else() -> None:
    config = with_dynamic(Config.parse({"num.io.threads": "3"}), {"num.io.threads": "4"}, {"max.connections": "5"})
    entry = only(describe_all_brokers(config))
    assert (entry.name, entry.value, entry.source) == ("num.io.threads", "4", Source.DYNAMIC_DEFAULT_BROKER)
    assert describe_all_brokers(config, ["max.connections"]) == []


def test_names_filter_and_unknown_names_are_left_out() -> None:
    assert [entry.name for entry in describe_topic({}, Config.parse(), ["flush.ms", "nope"])] == ["flush.ms"]
    assert describe_broker(Config.parse(), []) == []


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.0, "0.0"),
        (0.5, "0.5"),
        (1.0, "1.0"),
        (0.001, "0.001"),
        (0.0001, "1.0E-4"),
        (9999999.0, "9999999.0"),
        (12345678.0, "1.2345678E7"),
        (1.5e300, "1.5E300"),
        (-2.5e-7, "-2.5E-7"),
        (float("inf"), "Infinity"),
        (float("-inf"), "-Infinity"),
    ],
)
def test_doubles_are_spelt_as_in_java(number: float, text: str) -> None:
    assert value_text(topic_definitions()["min.cleanable.dirty.ratio"], number) == text
