"""What a project's own tests use: a real broker inside the test's process, on a free port, up in a blink.

    with ottla.testing.broker() as broker:
        broker.create_topic("orders", partitions=3)
        producer = KafkaProducer(bootstrap_servers=broker.bootstrap)

Inside an event loop `async with ottla.testing.async_broker() as broker` is the same, and its methods are awaited. With
pytest, the fixtures `ottla_broker` and `topic` (`pytest_plugin.py`) come with the installed package.

Names are loaded when they are first used: pytest imports this package at each start, in every project that has it.
"""

from __future__ import annotations

from collections.abc import Mapping
from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import os

    from ottla.broker.broker import StartFault
    from ottla.config import ConfigError
    from ottla.coordination.errors import CoordinationError
    from ottla.local_cluster.member import StartFailed
    from ottla.storage.directories.errors import DirectoryError
    from ottla.testing.awaited import AsyncBroker
    from ottla.testing.in_process import InProcessBroker
    from ottla.testing.lag import StillBehind
    from ottla.testing.processes import Cluster

__all__ = [
    "AsyncBroker",
    "Cluster",
    "ConfigError",
    "CoordinationError",
    "DirectoryError",
    "InProcessBroker",
    "StartFailed",
    "StartFault",
    "StillBehind",
    "async_broker",
    "broker",
    "cluster",
]

_MODULES = {
    "AsyncBroker": "ottla.testing.awaited",
    "Cluster": "ottla.testing.processes",
    "ConfigError": "ottla.config",
    "CoordinationError": "ottla.coordination.errors",
    "DirectoryError": "ottla.storage.directories.errors",
    "InProcessBroker": "ottla.testing.in_process",
    "StartFailed": "ottla.local_cluster.member",
    "StartFault": "ottla.broker.broker",
    "StillBehind": "ottla.testing.lag",
}


def broker(
    *,
    data: str | os.PathLike[str] | None = None,
    port: int = 0,
    properties: Mapping[str, str] | None = None,
    container_host: str | None = None,
    container_bind: str = "0.0.0.0",  # noqa: S104 - only where a container's host is named
    container_port: int = 0,
) -> InProcessBroker:
    """A broker on a thread of its own; it runs inside of a `with` block, or from `start()` to `stop()`.

    `data` is a folder to keep; without one the broker has a temporary folder, which goes with it. `port` 0 takes a free
    port. `properties` are Kafka's, by its names.

    With `container_host` it has a second listener, on `container_bind` and `container_port`, and answers clients that
    ask there with that host: what a container calls this machine (`host.docker.internal`).
    """
    from ottla.testing.in_process import InProcessBroker

    return InProcessBroker(
        data=data,
        port=port,
        properties=properties,
        container_host=container_host,
        container_bind=container_bind,
        container_port=container_port,
    )


def async_broker(
    *,
    data: str | os.PathLike[str] | None = None,
    port: int = 0,
    properties: Mapping[str, str] | None = None,
    container_host: str | None = None,
    container_bind: str = "0.0.0.0",  # noqa: S104 - as above
    container_port: int = 0,
) -> AsyncBroker:
    """The same for `async with`, with methods that are awaited."""
    from ottla.testing.awaited import AsyncBroker

    return AsyncBroker(
        data=data,
        port=port,
        properties=properties,
        container_host=container_host,
        container_bind=container_bind,
        container_port=container_port,
    )


def cluster(
    n: int = 3,
    *,
    data: str | os.PathLike[str] | None = None,
    properties: Mapping[str, str] | None = None,
    zookeeper: str | None = None,
    racks: Mapping[int, str] | None = None,
) -> Cluster:
    """`n` brokers, each a process, and their tree another one: for tests that kill, pause and cut off (`processes.py`).

    `zookeeper` is a tree that is there, in place of one of its own. `racks` are those of the brokers, 1 to `n`.
    """
    from ottla.testing.processes import Cluster

    return Cluster(n, data=data, properties=properties, zookeeper=zookeeper, racks=racks)


if not TYPE_CHECKING:  # a type checker would take every name for one that exists

    def __getattr__(name: str) -> Any:
        if name not in _MODULES:
            raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
        return getattr(import_module(_MODULES[name]), name)
