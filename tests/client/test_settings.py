"""Settings: Kafka's names in both spellings, checked; what does not exist or is not there yet is refused by name."""

from __future__ import annotations

import re
from dataclasses import fields
from typing import Any

import pytest

from ottla.client.arguments import checked_count
from ottla.client.consuming.consumer import Consumer
from ottla.client.consuming.resets import duration_ms
from ottla.client.errors import BadArgument, KafkaError, SettingsError
from ottla.client.other_names import NOT_THERE, OFFSET_RESETS, PARTITIONERS, RENAMED
from ottla.client.producing.producer import Producer
from ottla.client.settings import (
    AdminSettings,
    ClientSettings,
    ConsumerSettings,
    ProducerSettings,
    parse_addresses,
    parse_settings,
)
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
        ("transaction.two.phase.commit.enable", r"cannot be set: detach\(\) and finish\(\) hand a transaction over"),
        ("metric.reporters", r"this client has no such thing"),
        ("request.required.acks", r"request\.required\.acks is called otherwise here: set acks$"),
        ("message_send_max_retries", r"is called otherwise here: set retries$"),
        ("partition.class", r"set partitioner: a name or a callable"),
        ("partitioner.class", r"set partitioner: a name or a callable"),
        ("serializer.class", r"set value\.serializer$"),
        ("metadata.broker.list", r"set bootstrap\.servers$"),
        ("Compression.Codec", r"set compression\.type$"),
        ("queue.buffering.max.kbytes", r"set buffer\.memory, in bytes$"),
        ("queue.buffering.max.ms", r"set linger\.ms$"),
        ("producer.type", r"producer\.type is not needed here: send does not wait"),
        ("api_version", r"is not needed here: versions are agreed on with each broker"),
        ("socket.keepalive.enable", r"cannot be set: this client has no such thing"),
        ("zookeeper.connect", r"set bootstrap\.servers: clients talk to brokers"),
        ("statistics.interval.ms", r"this client has no such thing"),
        ("max.in.flight", r"set max\.in\.flight\.requests\.per\.connection$"),
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


@pytest.mark.parametrize(
    ("fetched", "answered"), [(52_428_800, 256 << 20), (400 << 20, 416 << 20), (2**31 - 1, 2**31 - 1)]
)
def test_answers_are_as_large_as_they_are_asked_to_be(fetched: int, answered: int) -> None:
    for name in ("fetch.max.bytes", "max.partition.fetch.bytes"):
        assert parse_settings(ConsumerSettings, {**HERE, name: fetched}, {}).answer_bytes_max == answered
    assert parse_settings(ProducerSettings, HERE, {}).answer_bytes_max == 256 << 20


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
        ("bootstrap_servers", 9092, "must be host:port, or a list of such, not an int"),
        ("client_id", "\ud800", "client.id .* is no text that UTF-8 can write"),
        ("client_id", "x" * 40_000, "client.id is a word of 40000 characters: 32767 at most"),
        ("client_id", "ä" * 20_000, "client.id is a word of 40000 bytes: 32767 at most"),
        ("transactional_id", "\ud800", "transactional.id .* is no text that UTF-8 can write"),
        ("transactional_id", "x" * 40_000, "transactional.id is a word of 40000 characters"),
        ("value_serializer", "pickle", "value.serializer must be one of"),
        ("partitioner", "random", "partitioner must be one of"),
        ("value_serializer", [], r"value.serializer must be one of .*, not \[\]"),
        ("value_serializer", 7, "value.serializer must be one of .*, not 7"),
        ("security_protocol", 7, "security.protocol must be a word, not an int"),
        ("compression_type", "x" * 500, r"must be one of none, .*, not 'x{79}\.\.\.$"),
        ("basic_auth_user_info", b"me:secret", "basic.auth.user.info must be a word, not bytes$"),
        ("basic_auth_user_info", ("me", "secret"), "basic.auth.user.info must be a word, not a tuple$"),
    ],
)
def test_bad_values(name: str, value: Any, said: str) -> None:
    with pytest.raises(SettingsError, match=said):
        Producer(HERE, **{name: value})


def test_a_number_that_python_does_not_write() -> None:
    with pytest.raises(SettingsError, match=r"linger\.ms must be a whole number, not one of so many digits"):
        Producer(HERE, linger_ms=10**5000)
    with pytest.raises(SettingsError, match=r"linger\.ms must be a whole number, not '9{79}\.\.\.$"):
        Producer(HERE, linger_ms="9" * 5000)
    with pytest.raises(SettingsError, match=r"partitioner must be one of .*, not one of so many digits"):
        Producer(HERE, partitioner=10**5000)
    with pytest.raises(SettingsError, match=r"enable\.idempotence must be true or false, not one of so many digits"):
        Producer(HERE, enable_idempotence=10**5000)
    with pytest.raises(BadArgument, match="the count must be from 1 to 2147483647, not one of so many digits"):
        checked_count(10**5000, "the count")


@pytest.mark.parametrize("kind", [ProducerSettings, ConsumerSettings, AdminSettings])
def test_none_stands_for_a_default(kind: type[ClientSettings]) -> None:
    """A check that is off, or acknowledgements that nobody waits for, would come of it, or a fault far from here."""
    nothing = {one.name: None for one in fields(kind) if one.name != "bootstrap_servers"}
    assert parse_settings(kind, HERE, nothing) == parse_settings(kind, HERE, {})
    with pytest.raises(SettingsError, match="must be host:port, or a list of such, not None"):
        parse_settings(kind, {"bootstrap.servers": None}, {})


@pytest.mark.parametrize("given", ["localhost:9092", ["localhost:9092"], 5])
def test_settings_that_are_no_mapping(given: Any) -> None:
    with pytest.raises(SettingsError, match=r"settings must be a mapping of names to values, not .*servers="):
        Producer(given)
    with pytest.raises(SettingsError, match="the name of a setting must be a str, not an int"):
        Producer({1: "x"})


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
    assert parse_addresses("[fe80::1%eth0]:1,ä.example.:2") == (("fe80::1%eth0", 1), ("ä.example.", 2))
    assert parse_addresses("PLAINTEXT://a:1, ://[::1]:2,PLAIN_TEXT-2://a:1") == (("a", 1), ("::1", 2))


@pytest.mark.parametrize(
    "text",
    [
        "a",
        "a:",
        ":1",
        "a:0",
        "a:65536",
        f"a:{'9' * 5000}",
        f"{'a' * 64}:1",
        "a..b:1",
        "\udcff:1",
        "a/b:1",
        "a://",
        "://:1",
    ],
    ids=lambda text: repr(text[:20]),
)
def test_no_addresses(text: str) -> None:
    """The resolver would raise what is no KafkaError for some of them."""
    with pytest.raises(SettingsError, match="is no host:port"):
        parse_addresses(text)


@pytest.mark.parametrize(("text", "ms"), [("PT1H30M", 5_400_000), ("P1DT0.5S", 86_400_500), ("pt2m", 120_000)])
def test_durations(text: str, ms: int) -> None:
    assert duration_ms(text) == ms


@pytest.mark.parametrize("text", ["", "P", "PT", "1h", "P1Y"])
def test_no_durations(text: str) -> None:
    with pytest.raises(SettingsError, match="is no duration"):
        duration_ms(text)


def every_word(text: str) -> list[str]:
    return re.findall(r"[a-z][a-z0-9]*(?:\.[a-z0-9]+)+|acks|retries|partitioner", text)


def test_old_names_are_refused_with_names_that_exist() -> None:
    """What is set instead is a setting of some client, and no old name is one by chance."""
    ours = {
        name.replace("_", ".")
        for kind in (AdminSettings, ProducerSettings, ConsumerSettings)
        for name in kind.__dataclass_fields__
    }
    for old, instead in RENAMED.items():
        assert old not in ours
        assert set(every_word(instead)) <= ours, old
        for kind in AdminSettings, ProducerSettings, ConsumerSettings:
            with pytest.raises(SettingsError, match=re.escape(old)):
                parse_settings(kind, {**HERE, old: "x"}, {})
    for prefixes, _ in NOT_THERE:
        for prefix in prefixes:
            assert not [name for name in ours if name.startswith(prefix)], prefix


@pytest.mark.parametrize(("theirs", "ours"), list(OFFSET_RESETS.items()))
def test_values_of_other_clients(theirs: str, ours: str) -> None:
    with pytest.raises(SettingsError, match=f"not '{theirs}': it is called {ours} here"):
        Consumer(HERE, auto_offset_reset=theirs)
    assert Consumer(HERE, auto_offset_reset=ours)


@pytest.mark.parametrize(("theirs", "ours"), list(PARTITIONERS.items()))
def test_partitioners_of_other_clients(theirs: str, ours: str) -> None:
    with pytest.raises(SettingsError, match=f"that is {ours} here"):
        Producer(HERE, partitioner=f"org.apache.kafka.clients.producer.{theirs}")
    assert Producer(HERE, partitioner=ours)


def test_what_transactions_need() -> None:
    """As with Kafka's clients, which know of idempotence only otherwise."""
    for settings, said in (
        ({"acks": 1}, "acks must be all"),
        ({"retries": 0}, "retries must not be 0"),
        ({"enable_idempotence": False}, r"enable\.idempotence must not be false"),
        ({"max_in_flight_requests_per_connection": 6}, "at most 5"),
        ({"transactional_id": " "}, r"transactional\.id must not be empty"),
        ({"transaction_timeout_ms": 0}, r"transaction\.timeout\.ms must be from 1"),
    ):
        with pytest.raises(SettingsError, match=said):
            Producer({**HERE, "transactional.id": "till-1"}, **settings)
