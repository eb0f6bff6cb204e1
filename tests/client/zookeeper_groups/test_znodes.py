"""The nodes of Kafka 0.8, byte for byte, and what is refused of damaged ones."""

from __future__ import annotations

import pytest

from ottla.client.errors import SettingsError
from ottla.client.zookeeper_groups.settings import parse_zookeeper_settings
from ottla.client.zookeeper_groups.znodes import (
    ConsumerThread,
    MemberRegistration,
    Subscription,
    SubscriptionKind,
    consumer_of_owner,
    decode_member,
    decode_offset,
    encode_member,
    encode_offset,
    member_path,
    offset_path,
    owner_path,
)
from ottla.coordination.znode_json import DamagedZnode

STATIC = Subscription(SubscriptionKind.STATIC, {"orders": 1, "bills": 2})
#: As a consumer of Kafka 0.8.2 registers.
STATIC_DATA = b'{"version":1,"subscription":{"orders":1,"bills":2},"pattern":"static","timestamp":"1400000000000"}'
WHITE = Subscription(SubscriptionKind.WHITE_LIST, {"orders.*,bills": 4})
WHITE_DATA = b'{"version":1,"subscription":{"orders.*,bills":4},"pattern":"white_list","timestamp":"7"}'


def test_paths_are_those_of_kafka() -> None:
    assert member_path("g", "g_host-1-0a") == "/consumers/g/ids/g_host-1-0a"
    assert owner_path("g", "orders", 3) == "/consumers/g/owners/orders/3"
    assert offset_path("g", "orders", 3) == "/consumers/g/offsets/orders/3"


@pytest.mark.parametrize(
    ("subscription", "time_ms", "data"), [(STATIC, 1400000000000, STATIC_DATA), (WHITE, 7, WHITE_DATA)]
)
def test_registrations_are_those_of_kafka(subscription: Subscription, time_ms: int, data: bytes) -> None:
    assert encode_member(MemberRegistration(subscription, time_ms)) == data
    assert decode_member("/m", data) == MemberRegistration(subscription, time_ms)


@pytest.mark.parametrize(
    "data",
    [
        b"", b"[]", b"{}", b"nothing", b"\xff",
        b'{"subscription":{"a":1}}',
        b'{"subscription":{"a":1},"pattern":"other"}',
        b'{"subscription":{"a":0},"pattern":"static"}',
        b'{"subscription":{"a":10001},"pattern":"static"}',
        b'{"subscription":{"a":"1"},"pattern":"static"}',
        b'{"subscription":{"a":1,"b":1},"pattern":"white_list"}',
        b'{"subscription":{"(":1},"pattern":"white_list"}',
        b'{"subscription":[],"pattern":"static"}',
    ],
)  # fmt: skip
def test_a_damaged_registration_is_named(data: bytes) -> None:
    with pytest.raises(DamagedZnode, match="/m is damaged"):
        decode_member("/m", data)


def test_patterns_are_read_as_by_kafka() -> None:
    known = ["orders-eu", "bills", "others", "__consumer_offsets"]
    assert WHITE.topics(known, excludes_internal=True) == {"orders-eu": 4, "bills": 4}
    black = Subscription(SubscriptionKind.BLACK_LIST, {"orders.*|bills": 1})
    assert black.topics(known, excludes_internal=True) == {"others": 1}
    assert black.topics(known, excludes_internal=False) == {"others": 1, "__consumer_offsets": 1}
    assert STATIC.topics(known, excludes_internal=True) == {"orders": 1, "bills": 2}


def test_owners_are_threads() -> None:
    assert str(ConsumerThread("g_host-1-0a", 0)) == "g_host-1-0a-0"
    assert consumer_of_owner(b"g_host-1-0a-0") == "g_host-1-0a"
    assert consumer_of_owner(b"odd") == "odd"


def test_offsets_are_texts() -> None:
    assert encode_offset(17) == b"17"
    assert decode_offset("/o", b" 17\n") == 17
    for data in (b"", b"-1", b"1.5", b"x", b"9" * 30, str(2**63).encode(), "٣".encode()):
        with pytest.raises(DamagedZnode, match="/o is damaged"):
            decode_offset("/o", data)


@pytest.mark.parametrize(
    ("settings", "words"),
    [
        ({}, "zookeeper.connect is missing"),
        ({"zookeeper.connect": "nobody:x"}, "is no port"),
        ({"zookeeper.connect": "a:1"}, "group.id is missing"),
        ({"zookeeper.connect": "a:1", "group.id": "a/b"}, "group.id 'a/b' has other characters"),
        ({"zookeeper.connect": "a:1", "group.id": ".."}, "group.id"),
        ({"zookeeper.connect": "a:1", "group.id": "g", "consumer.id": "a b"}, "consumer.id"),
        ({"zookeeper.connect": "a:1", "group.id": "g", "offsets.storage": "kafka"}, "must be one of zookeeper"),
        ({"zookeeper.connect": "a:1", "group.id": "g", "rebalance.max.retries": "0"}, "rebalance.max.retries"),
        ({"zookeeper.connect": "a:1", "group.id": "g", "session.timeout.ms": "1"}, "there is no setting session"),
    ],
)
def test_settings_are_checked(settings: dict[str, str], words: str) -> None:
    with pytest.raises(SettingsError, match=words.replace(".", r"\.")):
        parse_zookeeper_settings(settings, {})


def test_defaults_are_those_of_kafka_0_8() -> None:
    made = parse_zookeeper_settings({"zookeeper.connect": "a:1/kafka", "group.id": "g"}, {})
    assert (made.zookeeper_session_timeout_ms, made.connection_timeout_ms, made.backoff_ms) == (6_000, 6_000, 2_000)
    assert (made.rebalance_max_retries, made.auto_commit_interval_ms, made.auto_offset_reset) == (4, 60_000, "largest")
    assert made.partition_assignment_strategy == "range"
    assert made.of_reading("b:2")["auto.offset.reset"] == "latest"
