"""Listeners: their syntax, what may share a port, and what may be advertised."""

from __future__ import annotations

import pytest

from ottla.config import Config, ConfigError, Listener


def listeners(text: str, **more: str) -> tuple[Listener, ...]:
    return Config.parse({"listeners": text, **more}).server.listeners


def test_host_port_and_name() -> None:
    mapping = {"listener.security.protocol.map": "INSIDE:PLAINTEXT,PLAINTEXT:PLAINTEXT"}
    assert listeners(" inside://10.0.0.1:9092 , PLAINTEXT://[::1]:9093", **mapping) == (
        Listener("INSIDE", "10.0.0.1", 9092, "PLAINTEXT"),
        Listener("PLAINTEXT", "::1", 9093, "PLAINTEXT"),
    )


def test_text_is_read_back() -> None:
    for text in ("PLAINTEXT://:9092", "PLAINTEXT://h_x.example:1", "PLAINTEXT://[fe80::1]:0"):
        assert str(listeners(text, **{"advertised.listeners": text})[0]) == text


@pytest.mark.parametrize(
    ("text", "why"),
    [
        ("PLAINTEXT:9092", "is not NAME://host:port"),
        ("PLAINTEXT://host", "is not NAME://host:port"),
        ("://:9092", "is not NAME://host:port"),
        ("PLAINTEXT://:99999", "is not a port number"),
        ("PLAINTEXT://:-1", "is not a port number"),
        ("PLAINTEXT://:9o92", "is not a port number"),
        ("PLAINTEXT://::1:9092", "an IPv6 address stands in brackets"),
        ("PLAINTEXT://a/b:9092", "is not a host name"),
        ("FOO://:9092", "no security protocol is defined for listener FOO"),
        ("PLAINTEXT://:1,PLAINTEXT://:2", "each listener must have a different name"),
        ("SSL://:9093", "SSL asks for SSL, which is not served yet"),
        (",".join(f"PLAINTEXT://:{port}" for port in range(1, 80)), "more than 64 listeners"),
    ],
)
def test_bad_listeners_are_refused(text: str, why: str) -> None:
    with pytest.raises(ConfigError, match=why):
        listeners(text)


@pytest.mark.parametrize(
    ("first", "second", "allowed"),
    [
        ("127.0.0.1:9092", "[::1]:9092", True),
        ("127.0.0.1:9092", "127.0.0.2:9092", False),
        (":9092", "[::1]:9092", False),
        (":0", ":0", True),
        ("h:9092", "h:9093", True),
    ],
)
def test_a_port_is_shared_by_an_ipv4_and_an_ipv6_address_only(first: str, second: str, allowed: bool) -> None:
    properties = {"listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT"}
    text = f"A://{first},B://{second}"
    if allowed:
        assert len(listeners(text, **properties)) == 2
    else:
        with pytest.raises(ConfigError, match="each listener must have a different port"):
            listeners(text, **properties)


def test_the_meta_address_is_bound_but_not_advertised() -> None:
    with pytest.raises(ConfigError, match=r"nonroutable meta-address 0\.0\.0\.0"):
        listeners("PLAINTEXT://0.0.0.0:9092")
    config = Config.parse({"listeners": "PLAINTEXT://0.0.0.0:9092", "advertised.listeners": "PLAINTEXT://h:1"})
    assert config.server.listeners[0].host == "0.0.0.0"
    assert config.server.advertised_listeners == (Listener("PLAINTEXT", "h", 1, "PLAINTEXT"),)


def test_what_is_not_bound_is_not_advertised() -> None:
    properties = {
        "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
        "listeners": "A://:1",
        "advertised.listeners": "B://h:1",
    }
    with pytest.raises(ConfigError, match="listener B is not in 'listeners'"):
        Config.parse(properties)


def test_two_listeners_may_advertise_one_address() -> None:
    config = Config.parse(
        {
            "listener.security.protocol.map": "A:PLAINTEXT,B:PLAINTEXT",
            "listeners": "A://:1,B://:2",
            "advertised.listeners": "A://balancer:9092,B://balancer:9092",
            "inter.broker.listener.name": "b",
        }
    )
    assert [listener.port for listener in config.server.advertised_listeners] == [9092, 9092]
    assert config.server.inter_broker_listener == "B"


@pytest.mark.parametrize("text", ["PLAINTEXT:FOO", "PLAINTEXT", ":SSL", "A:SSL,a:SSL"])
def test_a_bad_protocol_map_is_refused(text: str) -> None:
    with pytest.raises(ConfigError, match=r"for configuration listener\.security\.protocol\.map"):
        Config.parse({"listener.security.protocol.map": text})
