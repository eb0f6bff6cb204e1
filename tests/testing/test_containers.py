"""A broker in the test's process that clients elsewhere reach too: where it listens, and what it advertises."""

from __future__ import annotations

import asyncio
import re
from typing import Any

import pytest
from confluent_kafka.admin import AdminClient
from tools.server_process import free_port

from ottla import testing
from ottla.client.sync import Producer

#: 127.0.0.2 stands for the interface that containers reach, and its name for this machine's as they see it.
BIND = "127.0.0.2"
pytest_plugins = "pytester"


def advertised(bootstrap: str) -> list[tuple[str, int]]:
    """What a client is told to connect to that asks at this address."""
    metadata = AdminClient({"bootstrap.servers": bootstrap}).list_topics(timeout=60)
    return [(broker.host, broker.port) for broker in metadata.brokers.values()]


def split(address: str) -> tuple[str, int]:
    host, _, port = address.rpartition(":")
    return host, int(port)


def test_the_test_and_the_container_are_told_different_addresses() -> None:
    with testing.broker(container_host="host.docker.internal", container_bind=BIND) as broker:
        inside, outside = split(broker.bootstrap), split(broker.container_bootstrap)
        assert inside[0] == "127.0.0.1"
        assert outside[0] == "host.docker.internal"
        assert inside[1] != outside[1]
        assert advertised(broker.bootstrap) == [inside]
        assert advertised(f"{BIND}:{outside[1]}") == [outside]
        before = broker.bootstrap, broker.container_bootstrap
        broker.restart()
        assert (broker.bootstrap, broker.container_bootstrap) == before
        with Producer(bootstrap_servers=broker.bootstrap) as producer:
            assert producer.send_and_wait("orders", b"x", timeout=60).offset == 0


def test_without_containers_there_is_no_such_address() -> None:
    with testing.broker() as broker, pytest.raises(ValueError, match="container_host"):
        broker.container_bootstrap  # noqa: B018


def test_the_port_that_containers_use_can_be_chosen() -> None:
    port = free_port()
    with testing.broker(container_host="ottla", container_bind=BIND, container_port=port) as broker:
        assert broker.container_bootstrap == f"ottla:{port}"


def test_properties_that_advertise_something_else_do_not_mix_with_where_it_listens() -> None:
    properties = {"advertised.listeners": "PLAINTEXT://elsewhere.example:1234"}
    with testing.broker(properties=properties) as broker:
        host, port = split(broker.bootstrap)
        assert (host, port != 1234, broker.port == port) == ("127.0.0.1", True, True)
        assert advertised(broker.bootstrap) == [("elsewhere.example", 1234)]
        before = broker.bootstrap
        broker.restart()
        assert broker.bootstrap == before


def test_listeners_of_ones_own() -> None:
    properties = {
        "listeners": f"IN://127.0.0.1:0,OUT://{BIND}:0",
        "advertised.listeners": "IN://127.0.0.1:0,OUT://outside.example:0",
        "listener.security.protocol.map": "IN:PLAINTEXT,OUT:PLAINTEXT",
        "inter.broker.listener.name": "IN",
    }
    with testing.broker(properties=properties) as broker:
        addresses = broker.listening_on
        assert [address.rpartition(":")[0] for address in addresses] == ["127.0.0.1", BIND]
        assert broker.bootstrap == addresses[0]
        # Port 0 is advertised as the port that the listener has got.
        assert advertised(addresses[0]) == [split(addresses[0])]
        assert advertised(addresses[1]) == [("outside.example", split(addresses[1])[1])]


def test_awaited() -> None:
    async def scenario() -> None:
        async with testing.async_broker(container_host="there", container_bind=BIND) as broker:
            assert re.fullmatch(r"there:\d+", broker.container_bootstrap)

    asyncio.run(scenario())


@pytest.mark.parametrize(
    ("given", "said"),
    [
        ({"container_host": ""}, "container_host must be a host's name or address"),
        ({"container_host": "host:9092"}, "container_host must be a host's name or address"),
        ({"container_host": "0.0.0.0"}, "container_host must be a host's name or address"),
        ({"container_port": 5}, "container_port has a meaning only with container_host"),
        (
            {"container_host": "h", "properties": {"listeners": "PLAINTEXT://127.0.0.1:0"}},
            "container_host makes the listeners: leave listeners out of the properties",
        ),
    ],
)
def test_what_cannot_be_meant(given: dict[str, Any], said: str) -> None:
    with pytest.raises(ValueError, match=said):
        testing.broker(**given)
