"""Settings: Kafka's names in both spellings, checked; what does not exist or is not there yet is refused by name."""

from __future__ import annotations

from typing import Any

import pytest

from ottla.client.consuming.resets import duration_ms
from ottla.client.errors import KafkaError, SettingsError
from ottla.client.producing.producer import Producer
from ottla.client.settings import ConsumerSettings, ProducerSettings, parse_addresses, parse_settings
from ottla.model import ErrorCode

HERE = {"bootstrap.servers": "localhost:9092"}


def producer(**settings: Any) -> ProducerSettings:
    return parse_settings(ProducerSettings, HERE, settings)


def test_dotted_names_and_keywords() -> None:
    settings = parse_settings(ProducerSettings, {**HERE, "linger.ms": "20", "batch_size": 5}, {"acks": "all"})
    assert (settings.linger_ms, settings.batch_size, settings.acks) == (20, 5, -1)
    assert settings.bootstrap_servers == (("localhost", 9092),)


def test_keywords_win() -> None:
    assert parse_settings(ProducerSettings, {**HERE, "linger.ms": 1}, {"linger_ms": 2}).linger_ms == 2


def test_kafkas_defaults() -> None:
    settings = producer()
    assert (settings.linger_ms, settings.batch_size, settings.buffer_memory) == (5, 16_384, 33_554_432)
    assert (settings.delivery_timeout_ms, settings.request_timeout_ms, settings.retries) == (120_000, 30_000, 2**31 - 1)
    assert (settings.max_in_flight_requests_per_connection, settings.max_request_size) == (5, 1_048_576)
    consumer = parse_settings(ConsumerSettings, HERE, {})
    assert (consumer.fetch_min_bytes, consumer.fetch_max_wait_ms, consumer.max_poll_records) == (1, 500, 500)
    assert (consumer.fetch_max_bytes, consumer.max_partition_fetch_bytes) == (52_428_800, 1_048_576)
    assert (consumer.auto_offset_reset, consumer.isolation_level) == ("latest", "read_uncommitted")


@pytest.mark.parametrize(
    ("name", "said"),
    [
        ("linger_mss", r"there is no setting linger\.mss; did you mean linger\.ms\?"),
        ("batch.sizes", r"did you mean batch\.size\?"),
        ("zzzz", r"there is no setting zzzz$"),
        ("ssl_cafile", r"ssl\.cafile cannot be set: encryption and authentication are not there yet"),
        ("sasl.mechanism", r"sasl\.mechanism cannot be set"),
        ("transactional_id", r"transactions are not there yet"),
        ("metric.reporters", r"this client has no such thing"),
    ],
)
def test_unknown_names(name: str, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse_settings(ProducerSettings, {**HERE, name: "x"}, {})


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("group.id", " ", r"group\.id must not be empty"),
        ("group.instance.id", 7, r"group\.instance\.id must be a word"),
        ("group.protocol", "consumer", "is not there yet in this client: only classic is"),
        ("heartbeat.interval.ms", 45_000, r"must be less than session\.timeout\.ms, which is 45000"),
        ("max.poll.interval.ms", 0, "must be from 1"),
        ("group.remote.assignor", "uniform", "this client's groups assign by themselves"),
        ("share.acknowledgement.mode", "explicit", "share groups are not there yet"),
    ],
)
def test_bad_settings_of_groups(name: str, value: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        parse_settings(ConsumerSettings, {**HERE, name: value}, {})


def test_kafkas_defaults_of_groups() -> None:
    found = parse_settings(ConsumerSettings, {**HERE, "group.id": "g"}, {})
    assert (found.session_timeout_ms, found.heartbeat_interval_ms, found.max_poll_interval_ms) == (
        45_000,
        3_000,
        300_000,
    )
    assert (found.enable_auto_commit, found.auto_commit_interval_ms) == (True, 5_000)
    assert found.partition_assignment_strategy == ("range", "cooperative-sticky")


@pytest.mark.parametrize(
    ("name", "value", "said"),
    [
        ("linger_ms", "soon", "must be a whole number"),
        ("linger_ms", 1.5, "must be a whole number"),
        ("linger_ms", True, "must be a whole number"),
        ("linger_ms", -1, "must be from 0"),
        ("acks", "some", "must be a whole number"),
        ("acks", 2, "must be from -1 to 1"),
        ("compression_type", "brotli", "must be one of none, gzip, snappy, lz4, zstd"),
        ("enable_idempotence", "maybe", "must be true or false"),
        ("security_protocol", "SSL", "security.protocol SSL is not there yet"),
        ("client_id", 7, "must be a word"),
        ("bootstrap_servers", "localhost", "'localhost' is no host:port"),
        ("bootstrap_servers", "localhost:0", "is no host:port"),
        ("bootstrap_servers", " , ", "names no address"),
        ("value_serializer", "pickle", "value.serializer must be one of"),
        ("partitioner", "random", "partitioner must be one of"),
    ],
)
def test_bad_values(name: str, value: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Producer(HERE, **{name: value})


def test_a_settings_error_is_a_value_error_and_kafkas() -> None:
    with pytest.raises(ValueError, match="missing") as caught:
        Producer()
    assert isinstance(caught.value, KafkaError)
    assert caught.value.code is ErrorCode.INVALID_CONFIG


def test_what_idempotence_needs() -> None:
    for conflict in {"acks": 1}, {"max_in_flight_requests_per_connection": 6}, {"retries": 0}:
        assert Producer(HERE, **conflict).settings.enable_idempotence is False  # nobody asked for it
        with pytest.raises(SettingsError, match=r"enable\.idempotence is on"):
            Producer(HERE, enable_idempotence=True, **conflict)
    assert Producer(HERE).settings.enable_idempotence is True
    assert Producer(HERE, enable_idempotence="false").settings.enable_idempotence is False


def test_the_delivery_timeout_has_room_for_one_request() -> None:
    with pytest.raises(SettingsError, match=r"delivery\.timeout\.ms must be at least"):
        Producer(HERE, delivery_timeout_ms=30_000, linger_ms=1)


def test_addresses() -> None:
    assert parse_addresses("a:1, b:2,a:1") == (("a", 1), ("b", 2))
    assert parse_addresses(["[::1]:9092"]) == (("::1", 9092),)


@pytest.mark.parametrize(("text", "ms"), [("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500), ("pt2m", 120_000)])
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "P1Y"])
def test_no_durations(text: str) -> None:
    with pytest.raises(SettingsError, match="is no duration"):
        duration_ms(text)
